"""What type checkers know of a flow: the fields of its state, in editors as in the examples."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.check import EXAMPLES

ROOT = Path(__file__).parent.parent.parent
TYPED = """
from dataclasses import dataclass
from typing import Any, TypedDict

from typing_extensions import assert_type

from holdfast import Flow, Result


@dataclass
class Refund:
    amount: int


class Trip(TypedDict):
    city: str


refund = Flow("refund", state=Refund, effect="pure")
trip = Flow("trip", Trip)
plain = Flow("plain", checkpoints="none")


async def use(any_flow: Flow, any_result: Result) -> None:
    assert_type(refund, Flow[Refund])
    assert_type((await refund.run({"amount": 3})).state.amount, int)
    assert_type(refund.run_sync().expect(), Result[Refund])
    assert_type((await trip.resume("x")).state["city"], str)
    assert_type((await plain.result("x")).state, dict[str, Any])
    assert_type((await any_flow.run()).state, Any)
    assert_type(any_result.state, Any)
    refund.run_sync().state.amuont  # wrong
    Flow("x", no_such_setting=3)  # wrong
"""
WRONG = [i for i, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# wrong")]


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    file = tmp_path / "typed.py"
    file.write_text(TYPED)
    return file


# mypy reads all of Holdfast, 40 CPU seconds: `make check` runs it on the examples.
@pytest.mark.soak
@pytest.mark.covers("SAFE-TYPES-02", "SAFE-TYPES-03")
def test_mypy_strict_knows_the_state_and_passes_the_examples(
    typed: Path, pytestconfig: pytest.Config
) -> None:
    assert pytestconfig.cache is not None
    kept = pytestconfig.cache.mkdir("mypy")  # what it found out about files that did not change since
    words = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={kept}", "--no-error-summary"]
    said = subprocess.run(
        [*words, str(typed), *map(str, EXAMPLES)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = re.findall(r"^(.+\.py):(\d+): error: (.*)$", said.stdout, re.MULTILINE)
    places = {(Path(file).name, int(line)) for file, line, _ in found}
    assert places == {("typed.py", n) for n in WRONG}, said.stdout + said.stderr


@pytest.mark.covers("SAFE-TYPES-02", "SAFE-TYPES-03")
def test_pyright_strict_knows_the_state_and_passes_the_examples(typed: Path, tmp_path: Path) -> None:
    # A project is everything below its configuration.
    (tmp_path / "examples").mkdir()
    for path in EXAMPLES:
        shutil.copy(path, tmp_path / "examples")
    config = {
        "strict": ["."],
        "pythonVersion": "3.11",
        "venvPath": str(ROOT),
        "venv": ".venv",
        "extraPaths": [str(ROOT / "src")],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    words = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(tmp_path)]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    report = json.loads(said.stdout)
    found = [d for d in report["generalDiagnostics"] if d["severity"] == "error"]
    places = {(Path(d["file"]).name, d["range"]["start"]["line"] + 1) for d in found}
    assert places == {(typed.name, n) for n in WRONG}, found
    assert report["summary"]["filesAnalyzed"] == len(EXAMPLES) + 1
