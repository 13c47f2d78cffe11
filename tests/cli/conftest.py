"""The command line, called inside the test's own process."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.cli.main import run

REFUND = """
from dataclasses import dataclass
from holdfast import Flow

@dataclass
class Refund:
    order: str
    amount: int
    decision: str = ""
    receipt: str = ""

refund = Flow("refund", state=Refund)
approve = refund.hold("approve", prompt="Refund {{amount}}?", options=["approve", "reject"])

@refund.node(effect="read")
async def assess(s):
    if s.amount < 0:
        raise ValueError("a refund is positive")

@refund.node(effect="external", idempotency_key="{{order}}")
async def pay(s, ctx):
    return {"receipt": f"R-{s.order}"}

refund.start(assess)
refund.edge(assess, approve, when="amount > 100")
refund.edge(assess, pay, otherwise=True)
refund.edge(approve, pay, when="decision == 'approve'")
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def items(self) -> Any:
        """Of a list."""
        return self.json["items"]


Cli = Callable[..., Said]


@pytest.fixture
def logs() -> Iterator[None]:
    """`worker` says where logs go for as long as its process lives; here that is the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], logs: None
) -> Cli:
    """`cli("run", "refund.py")` in a folder of the test's own, on a store of its own."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)

    def call(*words: str) -> Said:
        capsys.readouterr()
        code = run(list(words))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call


@pytest.fixture
def refund(tmp_path: Path) -> str:
    """A flow in a file of its own; the name differs by test, because modules are known by it."""
    file = tmp_path / f"refund_{abs(hash(str(tmp_path)))}.py"
    file.write_text(REFUND)
    return str(file)


def given(amount: int) -> str:
    return json.dumps({"order": "A17", "amount": amount})
