"""Tests pass on a busy machine: what they wait for has all the time that a test that hangs would take."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deadlines import HANG

ROOT = Path(__file__).resolve().parents[3]
# With the soak, whose time is planned; and where the time is meant to pass: with a frozen server, or a
# message that nobody takes.
EXCEPTED = ("soak", "fleet/torture", "queues/test_nats_cluster", "services/nats")
WAITS = {"timeout", "fail_after", "wait_for", "wait", "join", "result", "communicate", "run", "to_thread"}
CLOCKS = {"monotonic", "perf_counter"}


def is_short(value: ast.expr) -> bool:
    number = value.value if isinstance(value, ast.Constant) else None
    return isinstance(number, int | float) and number is not True and 1 <= number < 60


def short_deadlines(tree: ast.AST) -> Iterator[int]:
    """Lines that wait for some seconds only, or compare a time that was measured with some seconds."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            owner = ast.unparse(each.func.value)
            given = [word.value for word in each.keywords if word.arg == "timeout"]
            if each.func.attr in ("timeout", "fail_after", "wait_for", "wait", "join", "result"):
                given += each.args[-1:]
            if each.func.attr == "run" and owner != "subprocess":
                continue
            if each.func.attr in WAITS and any(map(is_short, given)):
                yield each.lineno
        elif isinstance(each, ast.Compare) and any(map(is_short, each.comparators)):
            is_upper = isinstance(each.ops[-1], ast.Lt | ast.LtE)
            if is_upper and any(f"{clock}()" in ast.unparse(each.left) for clock in CLOCKS):
                yield each.lineno


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("async with asyncio.timeout(5): pass", True),
        ("child.communicate(timeout=10)", True),
        ("assert child.wait(30) == 0", True),
        ("await asyncio.wait_for(task, 20)", True),
        ("assert time.monotonic() - began < 15", True),
        ("subprocess.run(command, timeout=50)", True),
        ("async with asyncio.timeout(HANG): pass", False),
        ("assert time.monotonic() - began > 2", False),
        ("with pytest.raises(TimeoutError): await asyncio.wait_for(task, 0.1)", False),
        ("folder.run('sleep 9', timeout=5)", False),
    ],
)
def test_a_deadline_of_seconds_is_found(source: str, found: bool) -> None:
    body = "".join(f"\n    {line}" for line in source.splitlines())
    assert bool([*short_deadlines(ast.parse(f"async def test():{body}"))]) is found


def test_no_test_depends_on_how_fast_the_machine_is() -> None:
    found: list[str] = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        name = file.relative_to(ROOT / "tests").as_posix()
        if not name.startswith(EXCEPTED) and "soak" not in name:
            found += [f"tests/{name}:{line}" for line in short_deadlines(ast.parse(file.read_text()))]
    assert found == [], "use tests.deadlines.HANG, count operations, or wait for an event"


def test_a_test_that_hangs_says_what_it_waited_for_before_it_is_ended() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["pytest"]["ini_options"]["timeout"] >= 2 * HANG
