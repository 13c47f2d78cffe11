"""The plugin that pytest finds by its entry point, in runs of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.docs import ROOT

pytestmark = pytest.mark.covers("IN-83", "USERS-PYTEST")

FLOWS = """
import pytest
from holdfast import Context, Flow

pytestmark = pytest.mark.{plugin}
refund = Flow("refund", effect="read")
approve = refund.hold("approve", prompt="Refund {{{{amount}}}}?", options=["approve", "reject"])

@refund.node(effect="external", idempotency_key="refund-{{{{amount}}}}")
async def pay(s: dict, ctx: Context) -> dict:
    return {{"receipt": f"paid {{s['amount']}}"}}

refund.edge(approve, pay, when="decision == 'approve'")
calls = []
counting = Flow("counting", effect="read")

@counting.node
async def count() -> dict:
    calls.append(1)
    return {{"odd": len(calls) % 2}}

doubtful = Flow("doubtful", effect="read")

@doubtful.node(effect="external")
async def send() -> dict:
    return {{"sent": True}}

@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    return request.param

async def test_refund(holdfast_human):
    holdfast_human.approves(within="2h")
    result = await holdfast_human.runs(refund, {{"amount": 250}})
    assert result.state["receipt"] == "paid 250"

async def test_time(holdfast, holdfast_clock):
    result = await refund.run({{"amount": 1}}, on=holdfast)
    holdfast_clock.advance(days=3)
    assert result.status == "pending_input"

async def test_repeats_what_it_counts(holdfast):
    calls.clear()
    assert (await counting.run({{}}, on=holdfast)).completed

async def test_asks_a_person(holdfast):
    assert (await doubtful.run({{}}, on=holdfast)).completed

def test_without_it():
    pass
"""


def run(folder: Path, *options: str, plugin: str = "anyio", other: str = "asyncio") -> str:
    """What pytest says, with the entry points of pyproject.toml as an installation has them."""
    (folder / "test_flows.py").write_text(FLOWS.format(plugin=plugin))
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    info = folder / "holdfast_flow-0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: holdfast-flow\nVersion: 0\n")
    points = "".join(f"{name} = {module}\n" for name, module in declared.items())
    (info / "entry_points.txt").write_text(f"[pytest11]\n{points}")
    path = os.pathsep.join([str(folder), str(ROOT / "src")])
    left_out = ("randomly", "cacheprovider", "schemathesis", "langsmith_plugin", other)
    without = [word for name in left_out for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", "-q", *without, *options]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_plugin_is_found_and_its_fixtures_work(tmp_path: Path) -> None:
    assert "5 passed" in run(tmp_path)


@pytest.mark.parametrize(
    ("plugin", "other", "options"), [("anyio", "asyncio", ("-n", "2")), ("asyncio", "anyio", ())]
)
def test_runs_are_killed_at_each_crash_point_and_have_to_end_the_same(
    tmp_path: Path, plugin: str, other: str, options: tuple[str, ...]
) -> None:
    said = run(tmp_path, "--holdfast-crash", *options, plugin=plugin, other=other)
    assert "1 failed, 4 passed" in said
    assert (
        "killed at after_handler, pass 1 and resumed, the results differ: state.odd of counting is 0" in said
    )


def test_plugin_loads_nothing_before_a_test_uses_it() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import holdfast.testing.pytest_entry; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {"holdfast", "holdfast._version", "holdfast.testing", "holdfast.testing.pytest_entry"}
    assert set(done.stdout.split()) == own
