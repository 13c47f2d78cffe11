"""LangGraph's own tests with our saver. They are in its source distribution, which is fetched for the run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("syrupy", reason="`make partners` runs LangGraph's own tests")

SAVERS = Path(__file__).with_name("framework_savers.py")
OURS = "sqlite"
"""Part of the names of its fixtures that are replaced."""
FEWEST = 700
"""Tests that must have passed: of release 1.2.20 there are more."""


@pytest.fixture(scope="module")
def framework(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with its tests, without its code: that is the installed one."""
    place = tmp_path_factory.mktemp("framework")
    name = f"langgraph-{version('langgraph')}"
    words = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--no-build-isolation"]
    words += ["--no-binary", "langgraph", "--dest", str(place), name.replace("-", "==")]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    with tarfile.open(place / f"{name}.tar.gz") as archive:
        wanted = [each for each in archive if each.name.startswith(f"{name}/tests/")]
        # Python before 3.11.4 has no filters.
        safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(place, wanted, **safely)
    savers = place / name / "tests" / "conftest_checkpointer.py"
    added = SAVERS.read_text().replace("from __future__ import annotations\n", "")
    savers.write_text(f"from __future__ import annotations\n{savers.read_text()}\n{added}")
    return place / name


def failures(place: Path, *words: str) -> tuple[list[str], int]:
    """The tests that failed, and how many passed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run(
        [*command, "-o", "addopts=", "--tb", "short", "--timeout", "120", *words], cwd=place,
        env={**os.environ, "NO_DOCKER": "true"}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    passed = re.search(r"(\d+) passed", done.stdout)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if failed or passed is None:
        print(done.stdout[-6000:], done.stderr[-2000:])
    return failed, 0 if passed is None else int(passed[1])


@pytest.mark.covers("IN-46")
@pytest.mark.timeout(1500)
def test_no_test_of_the_framework_fails_that_passes_with_its_memory_saver(framework: Path) -> None:
    failed, passed = failures(framework, "-n", "2", "-k", OURS, "tests")
    assert passed + len(failed) >= FEWEST
    if failed:  # several of them measure time
        failed, _ = failures(framework, *failed)
    for each in failed:
        other = re.sub(rf"{OURS}(_aio|_aes)?", "memory", each)
        assert failures(framework, other)[0], f"{each} fails, and {other} does not"
