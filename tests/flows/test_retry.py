from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, NotDone, Retry, RunStatus
from holdfast.testing.crashpoints import Crash, armed
from tests.flows.places import COLD, Place, told

pytestmark = pytest.mark.anyio


class BusyError(Exception):
    pass


def failing_times(
    times: int, retry: Retry, *, effect: str = "read", error: Exception | None = None
) -> tuple[Flow, list[int]]:
    """A flow of one node that fails so often and then succeeds; the list has the attempts that were made."""
    calls: list[int] = []
    flow = Flow("wobbly")

    @flow.node(effect=effect, retry=retry)
    async def work(ctx: Context) -> dict[str, Any]:
        calls.append(ctx.attempt)
        if len(calls) <= times:
            raise error or BusyError("come back later")
        return {"done": len(calls)}

    return flow, calls


def at_once(attempts: int, **more: Any) -> Retry:
    return Retry(attempts, delay=0, **more)


@pytest.mark.covers("G-24", "CORE-FLOW-23")
async def test_a_node_runs_again_until_it_succeeds_when_attempts_are_left(hf: Holdfast) -> None:
    flow, calls = failing_times(2, at_once(3))
    result = await flow.run(on=hf)
    assert result.completed
    assert calls == [1, 2, 3]
    assert [e.data["attempt"] for e in await told(hf, result, "node.retried")] == [2, 3]
    (done,) = await told(hf, result, "node.completed")
    assert done.data["attempt"] == 3
    assert not await told(hf, result, "node.failed")


@pytest.mark.covers("G-24", "CORE-FLOW-23")
async def test_a_run_fails_when_its_attempts_are_used_up(hf: Holdfast) -> None:
    flow, calls = failing_times(9, at_once(2))

    @flow.node(effect="pure")
    async def after() -> dict[str, Any]:
        calls.append(99)
        return {}

    flow.edge("work", after)
    result = await flow.run(on=hf)
    assert result.failed
    assert calls == [1, 2]
    assert result.error is not None
    assert result.error.message == "come back later"


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [("fixed", [2, 2, 2]), ("linear", [2, 4, 6]), ("exponential", [2, 4, 8])],
)
@pytest.mark.covers("G-24", "CORE-FLOW-24", "D-5", "P9")
async def test_back_off_grows_as_declared_when_a_node_keeps_failing(
    place: Place, backoff: str, waits: list[int]
) -> None:
    hf = await place.hf()
    flow, calls = failing_times(3, Retry(4, backoff=backoff, delay="2s", cap=None))
    result = await flow.run(on=hf)
    for i, seconds in enumerate(waits):
        assert result.status is RunStatus.waiting
        assert len(calls) == i + 1
        place.clock.advance(seconds=seconds, milliseconds=-1)
        result = await flow.resume(result.run_id, on=hf)
        assert len(calls) == i + 1, "it did not wait long enough"
        place.clock.advance(milliseconds=1)
        result = await flow.resume(result.run_id, on=hf)
    assert result.completed


@pytest.mark.covers("CORE-FLOW-25", "P9")
async def test_back_off_stays_under_its_cap_when_it_grows(place: Place) -> None:
    hf = await place.hf()
    flow, calls = failing_times(3, Retry(4, backoff="exponential", delay="2s", cap="3s"))
    result = await flow.run(on=hf)
    for seconds in (2, 3, 3):
        place.clock.advance(seconds=seconds)
        result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert len(calls) == 4


@pytest.mark.covers("CORE-FLOW-25", "D-5", "P9")
async def test_jitter_is_the_same_when_the_same_run_is_made_again(place: Place) -> None:
    run = "aaaaaaaa-2222-4333-8444-555555555555"
    first, second = await place.hf(), await Place(place.address.replace("p.db", "q.db")).hf()
    waits: list[list[int]] = []
    for hf in (first, second):
        flow, _ = failing_times(9, Retry(2, delay="8s", jitter=0.5))
        result = await flow.run(on=hf, run_id=run)
        (retried,) = await told(hf, result, "node.retried")
        waits.append([retried.data["wake_at"] - retried.at])
    await second.close()
    assert waits[0] == waits[1]
    assert 4_000_000 <= waits[0][0] < 8_000_000
    other = await failing_times(9, Retry(2, delay="8s", jitter=0.5))[0].run(on=first)
    (retried,) = await told(first, other, "node.retried")
    assert retried.data["wake_at"] - retried.at != waits[0][0]


@pytest.mark.parametrize("only", [BusyError, "come back", "busyerror"])
@pytest.mark.covers("CORE-FLOW-26", "G-24")
async def test_an_error_is_retried_when_the_policy_names_it(hf: Holdfast, only: Any) -> None:
    flow, calls = failing_times(1, at_once(3, retry_on=[only]))
    assert (await flow.run(on=hf)).completed
    assert calls == [1, 2]


@pytest.mark.parametrize("only", [KeyError, "no such text"])
@pytest.mark.covers("CORE-FLOW-26", "G-24")
async def test_an_error_is_not_retried_when_the_policy_names_others(hf: Holdfast, only: Any) -> None:
    flow, calls = failing_times(1, at_once(3, retry_on=[only]))
    assert (await flow.run(on=hf)).failed
    assert calls == [1]


@pytest.mark.covers("G-24", "CORE-FLOW-23", "P9")
async def test_the_count_of_attempts_survives_when_the_worker_dies_in_the_back_off(place: Place) -> None:
    flow, calls = failing_times(9, Retry(3, delay="40s", cap=None, backoff="fixed"))
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.waiting
    place.clock.advance(seconds=40)
    with armed("after_claim"), pytest.raises(Crash):
        await flow.resume(result.run_id, on=hf)
    place.lapse()
    later = await place.hf()
    result = await flow.resume(result.run_id, on=later)
    assert (result.status, calls) == (RunStatus.waiting, [1, 2])
    place.clock.advance(seconds=40)
    result = await flow.resume(result.run_id, on=later)
    assert result.failed
    assert calls == [1, 2, 3]


@pytest.mark.covers("G-24")
async def test_a_resumed_run_retries_when_its_node_fails_again(hf: Holdfast) -> None:
    flow, calls = failing_times(3, at_once(2))
    result = await flow.run(on=hf)
    assert result.failed
    assert len(calls) == 2
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert calls == [1, 2, 3, 4]


@pytest.mark.covers("D-15", "CORE-FLOW-26")
async def test_an_effect_is_retried_when_it_says_that_it_was_not_done(hf: Holdfast) -> None:
    flow, calls = failing_times(1, at_once(3), effect="external", error=NotDone("the line was busy"))
    assert (await flow.run(on=hf)).completed
    assert calls == [1, 2]


@pytest.mark.covers("G-24")
async def test_a_question_is_not_a_failed_attempt_when_the_node_has_retries(place: Place) -> None:
    hf = await place.hf(COLD)
    flow = Flow("asks")
    calls: list[int] = []

    @flow.script(retry=Retry(3, delay=0))
    async def work(ctx: Context) -> dict[str, Any]:
        calls.append(ctx.attempt)
        reply = await ctx.ask("Go on?", options=["yes", "no"])
        return {"said": reply.decision}

    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    service = await hf.service()
    await service.answer(result.holds[0].id, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert set(calls) == {1}
    assert not await told(hf, result, "node.retried")
