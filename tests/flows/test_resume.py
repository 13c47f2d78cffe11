from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunBusyError, RunNotFoundError, RunStatus, VersionMismatchError
from holdfast.errors import FlowNotFoundError
from tests.flows.places import RUN, Place, kinds, told

pytestmark = pytest.mark.anyio


def steps(log: list[str], *, broken: list[str] | None = None) -> Flow:
    """a, b, c in a row; those named in `broken` raise."""
    flow = Flow("steps", effect="read")
    for name in "abc":

        def make(name: str) -> Any:
            async def work(s: dict[str, Any]) -> dict[str, Any]:
                log.append(name)
                if broken and name in broken:
                    raise ValueError(f"{name} is broken")
                return {name: s.get("x", 0)}

            return work

        flow.node(id=name)(make(name))
    flow.edge("a", "b")
    flow.edge("b", "c")
    return flow


@pytest.mark.covers("E18", "G-35", "R-14", "R-1")
async def test_a_completed_run_gives_its_result_and_runs_nothing_when_resumed(hf: Holdfast) -> None:
    log: list[str] = []
    flow = steps(log)
    first = await flow.run({"x": 3}, on=hf)
    told_before = await kinds(hf, first)
    again = await flow.resume(first.run_id, on=hf)
    assert again.completed
    assert again.state == first.state
    assert log == ["a", "b", "c"]
    assert await kinds(hf, first) == told_before


@pytest.mark.covers("RS-FAIL-3", "G-34", "R-33", "R-36", "R-32", "G-27")
async def test_only_what_is_not_done_runs_when_a_failed_run_is_resumed(hf: Holdfast) -> None:
    log: list[str] = []
    broken = ["b"]
    flow = steps(log, broken=broken)
    result = await flow.run({"x": 5}, on=hf)
    assert result.failed
    assert log == ["a", "b"]
    broken.clear()
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert log == ["a", "b", "b", "c"]
    assert result.state == {"x": 5, "a": 5, "b": 5, "c": 5}
    assert (await told(hf, result, "node.resumed"))[0].node == "b"


@pytest.mark.covers("G-38", "RS-FLOW-10")
async def test_a_resumed_run_fails_and_resumes_again_when_more_is_broken(hf: Holdfast) -> None:
    log: list[str] = []
    broken = ["b", "c"]
    flow = steps(log, broken=broken)
    result = await flow.run(on=hf)
    for name in ("b", "c"):
        assert result.failed
        assert result.failed_node == name
        broken.remove(name)
        result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert log == ["a", "b", "b", "c", "c"]


@pytest.mark.covers("R-2", "RS-FLOW-9")
async def test_an_unknown_run_is_an_error_and_starts_nothing_when_resumed(hf: Holdfast) -> None:
    log: list[str] = []
    with pytest.raises(RunNotFoundError):
        await steps(log).resume("99999999-2222-4333-8444-555555555555", on=hf)
    assert log == []


@pytest.mark.covers("RF-3")
async def test_another_flows_run_is_refused_when_resumed(place: Place) -> None:
    hf = await place.hf()
    other = Flow("other", effect="pure")
    other.hold("gate", prompt="?", options=["yes"])
    waiting = await other.run(on=hf)
    log: list[str] = []
    with pytest.raises((VersionMismatchError, FlowNotFoundError)):
        await steps(log).resume(waiting.run_id, on=await place.hf())
    assert log == []
    assert (await other.resume(waiting.run_id, on=hf)).status is RunStatus.pending_input


@pytest.mark.covers("G-39", "R-35", "RF-10")
async def test_exactly_one_wins_when_two_resume_at_once(place: Place) -> None:
    flow = Flow("waits", effect="read")
    log: list[str] = []
    refused = asyncio.Event()
    flow.hold("gate", prompt="?", options=["yes"])

    @flow.node
    async def after() -> dict[str, Any]:
        log.append("after")
        await refused.wait()
        return {"done": True}

    flow.edge("gate", after)
    one, two = await place.hf(), await place.hf()
    await two.service()  # both are open: they start at once
    waiting = await flow.run(on=one)
    await (await one.service()).answer(waiting.holds[0].id, "yes")
    resumed = [asyncio.ensure_future(flow.resume(waiting.run_id, on=each)) for each in (one, two)]
    # The other has the run as long as this one is not refused.
    await asyncio.wait(resumed, return_when=asyncio.FIRST_COMPLETED)
    refused.set()
    both = await asyncio.gather(*resumed, return_exceptions=True)
    assert sum(isinstance(b, RunBusyError) for b in both) == 1
    (won,) = [b for b in both if not isinstance(b, BaseException)]
    assert won.completed
    assert log == ["after"]


@pytest.mark.covers("G-35", "G-37")
async def test_a_skipped_arm_stays_skipped_when_the_run_is_resumed(hf: Holdfast) -> None:
    flow = Flow("arms", effect="read")
    log: list[str] = []
    mended = False

    @flow.node
    async def start() -> dict[str, Any]:
        return {"way": "left"}

    @flow.node
    async def left() -> dict[str, Any]:
        log.append("left")
        if not mended:
            raise ValueError("broken")
        return {}

    @flow.node
    async def right() -> dict[str, Any]:
        log.append("right")
        return {}

    flow.edge(start, left, when="way == 'left'")
    flow.edge(start, right, when="way == 'right'")
    result = await flow.run(on=hf)
    mended = True
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert log == ["left", "left"]


@pytest.mark.covers("G-27", "G-38")
async def test_parallel_work_that_was_stopped_runs_again_when_a_failed_run_is_resumed(
    hf: Holdfast,
) -> None:
    flow = Flow("beside", effect="read")
    log: list[str] = []
    mended = False

    @flow.node
    async def start() -> dict[str, Any]:
        return {}

    @flow.node
    async def breaks() -> dict[str, Any]:
        while not mended and len(log) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        if not mended:
            raise ValueError("broken")
        return {"breaks": 1}

    @flow.node
    async def slow() -> dict[str, Any]:
        log.append("slow")
        await asyncio.sleep(30 if not mended else 0)
        return {"slow": 1}

    @flow.node(effect="external")
    async def pays() -> dict[str, Any]:
        log.append("pays")
        await asyncio.sleep(0.02)
        return {"pays": 1}

    @flow.node
    async def join(s: dict[str, Any]) -> dict[str, Any]:
        return {"sum": s["breaks"] + s["slow"] + s["pays"]}

    for branch in (breaks, slow, pays):
        flow.edge(start, branch)
        flow.edge(branch, join)
    result = await flow.run(on=hf)
    assert result.failed
    # What only read was stopped at once; the payment that was under way was let end, and counts.
    assert sorted(log) == ["pays", "slow"]
    mended = True
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed, result
    assert result.state["sum"] == 3
    assert log.count("pays") == 1


@pytest.mark.covers("R-10", "G-28", "CORE-RUN-04")
async def test_the_result_tells_how_it_ended_when_it_failed_waits_or_is_done(hf: Holdfast) -> None:
    log: list[str] = []
    done = await steps(log).run(on=hf)
    failed = await steps(log, broken=["a"]).run(on=hf)
    gate = Flow("gate")
    gate.hold("gate", prompt="?", options=["yes"])
    waits = await gate.run(on=hf)
    assert (done.completed, done.failed, done.waiting) == (True, False, False)
    assert (failed.completed, failed.failed, failed.waiting) == (False, True, False)
    assert (waits.completed, waits.failed, waits.waiting) == (False, False, True)
    for result, last in ((done, "run.completed"), (failed, "run.failed")):
        assert (await kinds(hf, result))[-2] == last


@pytest.mark.covers("G-38")
async def test_a_resumed_run_survives_a_second_crash(place: Place) -> None:
    log: list[str] = []
    flow = steps(log)
    run = await place.crash(flow, {}, "after_handler", nth=2)
    assert run == RUN
    from holdfast.testing.crashpoints import Crash, armed

    with armed("after_handler", nth=2), pytest.raises(Crash):
        await flow.resume(run, on=await place.hf())
    place.lapse()
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert (await kinds(hf, run)).count("node.completed") == 3
