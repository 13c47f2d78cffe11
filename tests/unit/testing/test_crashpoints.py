from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from holdfast.store.memory import MemoryStore
from holdfast.store.protocols import Store
from holdfast.telemetry import crashpoint
from holdfast.testing.crashpoints import CRASH_POINTS, EXIT_CODE, Crash, armed, environment, until_crash

pytestmark = pytest.mark.covers("CORE-TEST-02")


def test_point_is_inert_when_nobody_armed_it() -> None:
    for name in CRASH_POINTS:
        crashpoint(name)


def test_point_raises_at_the_pass_that_was_asked_for_when_armed() -> None:
    with armed("after_settle", nth=2) as point:
        crashpoint("after_settle")
        crashpoint("after_claim")
        with pytest.raises(Crash, match="after_settle"):
            crashpoint("after_settle")
    assert (point.passed, point.reached) == (2, True)
    crashpoint("after_settle")


def test_points_are_counted_side_by_side_when_several_are_armed() -> None:
    with armed("after_settle", nth=0) as one, armed("after_claim", nth=0) as other:
        crashpoint("after_settle")
        crashpoint("after_claim")
        crashpoint("after_claim")
    assert (one.passed, other.passed) == (1, 2)


def test_unknown_point_is_refused_when_armed() -> None:
    with pytest.raises(ValueError, match="after_claim"):
        environment("nowhere")


def test_process_ends_at_once_when_its_environment_names_the_point() -> None:
    code = (
        "from holdfast.telemetry import crashpoint\ntry:\n crashpoint('after_park')\n"
        "finally:\n print('cleaned')"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], env=environment("after_park"), capture_output=True, check=False
    )
    assert (child.returncode, child.stdout) == (EXIT_CODE, b"")


def test_nothing_of_a_worker_runs_on_when_it_has_crashed() -> None:
    done: list[str] = []

    async def work(store: Store) -> None:
        async def beside() -> None:
            try:
                await asyncio.sleep(0.01)
                done.append("beside")
            finally:
                done.append("cleaned")

        task = asyncio.ensure_future(beside())
        await asyncio.sleep(0)
        crashpoint("after_claim")
        await task

    assert isinstance(until_crash(work, MemoryStore(), "after_claim"), Crash)
    assert done == []


def test_result_and_errors_come_through_when_the_point_is_not_reached() -> None:
    async def work(store: Store) -> int:
        return len(await store.flows())

    async def fails(store: Store) -> None:
        raise LookupError("as it is")

    assert until_crash(work, MemoryStore(), "after_claim") == 0
    with pytest.raises(LookupError, match="as it is"):
        until_crash(fails, MemoryStore(), "after_claim")
