"""`ctx.step(retry=, timeout=, idempotency_key=)`: attempts and waits of a sub-step are durable."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, NotDone, Retry, RunStatus
from holdfast.errors import InputError, StepFailedError
from tests.flows.places import HOT, Place, open_holds, told
from tests.flows.test_two_folds import assert_alike

pytestmark = pytest.mark.anyio

HOURLY = Retry(3, backoff="fixed", delay="1h", cap=None)


def failing(log: list[str], *, times: int, error: type[Exception] = ValueError, **policy: Any) -> Flow:
    """A script whose step fails that many times; if it fails for good, the script handles the error."""
    flow = Flow("failing", effect="read")
    policy = {"effect": "read", "retry": HOURLY, **policy}

    def attempt() -> str:
        log.append("try")
        if log.count("try") <= times:
            raise error("not yet")
        return "done"

    @flow.script(retry=Retry(2, delay="1s"))
    async def work(ctx: Context) -> dict[str, Any]:
        await ctx.step("before", lambda: log.append("before"), effect="read")
        try:
            result = await ctx.step("attempt", attempt, **policy)
        except StepFailedError as failed:
            result = str(failed)
        await ctx.step("after", lambda: log.append("after"), effect="read")
        return {"result": result}

    return flow


@pytest.mark.covers("USERS-STEP-RETRY")
async def test_a_step_backs_off_without_a_process_and_keeps_its_attempts(place: Place) -> None:
    log: list[str] = []
    flow = failing(log, times=2)
    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.waiting
    # Early: the wake time is not moved.
    place.clock.advance(minutes=30)
    assert (await flow.resume(result.run_id, on=await place.hf())).status is RunStatus.waiting
    place.clock.advance(minutes=30)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert (result.status, log) == (RunStatus.waiting, ["before", "try", "try"])
    place.clock.advance(hours=1)
    hf = await place.hf()
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["result"] == "done"
    assert log == ["before", "try", "try", "try", "after"]
    retried = await told(hf, result, "node.step_retried", "node.step_woke")
    assert [(e.type, e.data["failures"]) for e in retried] == [
        ("node.step_retried", 1),
        ("node.step_woke", 1),
        ("node.step_retried", 2),
        ("node.step_woke", 2),
    ]
    await assert_alike(hf, result.run_id)


@pytest.mark.covers("USERS-STEP-ERROR")
async def test_the_final_error_of_a_step_is_a_result_that_the_script_handles(place: Place) -> None:
    log: list[str] = []
    flow = failing(log, times=9)
    result = await flow.run(on=await place.hf())
    for _ in range(2):
        place.clock.advance(hours=1)
        result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["result"] == "ValueError: not yet"
    assert log.count("try") == 3


@pytest.mark.covers("USERS-STEP-ERROR")
async def test_a_retry_of_the_node_does_not_repeat_an_error_that_the_script_handled(place: Place) -> None:
    flow, log = Flow("handled", effect="read"), list[str]()

    def refuse() -> None:
        log.append("refuse")
        raise ValueError("no")

    @flow.script(retry=Retry(2, delay="1h", cap=None))
    async def work(ctx: Context) -> dict[str, Any]:
        try:
            await ctx.step("refuse", refuse, effect="read", retry=1)
        except StepFailedError:
            await ctx.step("instead", lambda: log.append("instead"), effect="read")
        if ctx.attempt == 1:
            raise RuntimeError("of the script")
        return {"ok": True}

    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.waiting
    place.clock.advance(hours=1)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert (result.status, log) == (RunStatus.completed, ["refuse", "instead"])


@pytest.mark.covers("USERS-STEP-ERROR", "USERS-STEP-RETRY")
async def test_an_error_that_no_one_handles_fails_the_node_without_its_retries_and_a_resume_repeats_it(
    place: Place,
) -> None:
    flow, log = Flow("unhandled", effect="read"), list[str]()

    def refuse() -> str:
        log.append("refuse")
        if len(log) == 1:
            raise ValueError("no")
        return "yes"

    @flow.script(retry=3)
    async def work(ctx: Context) -> dict[str, Any]:
        return {"said": await ctx.step("refuse", refuse, effect="read", retry=1)}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert (result.status, log) == (RunStatus.failed, ["refuse"])
    assert result.error is not None
    assert "ValueError: no" in result.error.message
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["said"] == "yes"


async def test_steps_that_back_off_run_beside_each_other(place: Place) -> None:
    flow, log = Flow("beside", effect="read"), list[str]()

    def once(name: str) -> str:
        log.append(name)
        if log.count(name) == 1:
            raise ValueError(name)
        return name

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        steps = (ctx.step(n, once, n, effect="read", retry=Retry(2, delay=d), key=n) for n, d in WAITS)
        return {"said": await asyncio.gather(*steps)}

    hf = await place.hf(HOT)
    running = asyncio.create_task(flow.run(on=hf))
    while not running.done():
        place.clock.advance(seconds=1)
        await asyncio.sleep(0.001)
    assert (await running).expect().state["said"] == ["short", "long"]
    assert sorted(log) == ["long", "long", "short", "short"]


WAITS = (("short", "1s"), ("long", "5s"))


@pytest.mark.covers("USERS-STEP-EFFECT", "USERS-STEP-TIMEOUT")
async def test_an_effect_outside_is_retried_only_if_nothing_can_have_happened(place: Place) -> None:
    log: list[str] = []
    flow = failing(log, times=1, effect="external")
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    (hold,) = await open_holds(hf, result)
    assert hold.type == "in_doubt"


@pytest.mark.covers("USERS-STEP-EFFECT")
@pytest.mark.parametrize(
    "policy",
    [
        {"error": NotDone},
        {"retry": Retry(3, backoff="fixed", delay="1h", cap=None, retry_on=[ValueError])},
        {"retry": Retry(3, backoff="fixed", delay="1h", cap=None, retry_on=["not yet"])},
        {"idempotent": True},
        {"idempotency_key": "pay-A17"},
    ],
)
async def test_an_effect_is_retried_if_it_certainly_did_not_happen_or_has_a_key(
    place: Place, policy: dict[str, Any]
) -> None:
    log: list[str] = []
    flow = failing(log, times=1, effect="external", **policy)
    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.waiting
    place.clock.advance(hours=1)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert (result.expect().state["result"], log.count("try")) == ("done", 2)


@pytest.mark.covers("USERS-STEP-EFFECT")
async def test_a_step_gets_its_own_key_in_each_attempt(place: Place) -> None:
    flow, keys = Flow("keyed", effect="read"), list[str]()

    async def pay(amount: int, idempotency_key: str) -> int:
        keys.append(idempotency_key)
        if len(keys) == 1:
            raise ConnectionError
        return amount

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        return {
            "paid": await ctx.step("pay", pay, 5, idempotency_key="A17", retry=Retry(2, delay="1h", cap=None))
        }

    result = await flow.run(on=await place.hf())
    place.clock.advance(hours=1)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert (result.expect().state["paid"], keys) == (5, ["A17", "A17"])


@pytest.mark.covers("USERS-STEP-TIMEOUT")
@pytest.mark.parametrize(("effect", "status"), [("read", "completed"), ("external", "pending_input")])
async def test_an_attempt_that_takes_too_long_is_stopped(place: Place, effect: str, status: str) -> None:
    flow, log = Flow("slow", effect="read"), list[str]()

    async def slow() -> str:
        log.append("slow")
        if len(log) == 1:
            await asyncio.Event().wait()
        return "in time"

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        return {"said": await ctx.step("slow", slow, effect=effect, timeout="10ms", retry=Retry(2, delay=0))}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert (result.status, len(log)) == (RunStatus(status), 2 if effect == "read" else 1)
    if effect == "read":
        (retried,) = await told(hf, result, "node.step_retried")
        assert retried.data["error"]["code"] == "step_timeout"


@pytest.mark.covers("USERS-STEP-RETRY")
@pytest.mark.parametrize(
    "wrong", [{"retry": 0}, {"retry": True}, {"retry": "3"}, {"timeout": "soon"}, {"timeout": -1}]
)
async def test_retries_and_times_that_are_none_are_refused_before_the_step_runs(
    place: Place, wrong: dict[str, Any]
) -> None:
    log: list[str] = []
    flow = Flow("wrong", effect="read")

    @flow.script
    async def work(ctx: Context) -> None:
        await ctx.step("attempt", lambda: log.append("try"), effect="read", **wrong)

    result = await flow.run(on=await place.hf())
    assert result.error is not None
    assert (result.error.code, log) == (InputError.code, [])


@pytest.mark.covers("USERS-STEP-RETRY")
async def test_a_script_in_a_thread_backs_off_without_its_thread(place: Place) -> None:
    flow, log = Flow("threaded", effect="read"), list[str]()

    def once() -> str:
        log.append("try")
        if len(log) == 1:
            raise ValueError("not yet")
        return "done"

    @flow.script
    def work(ctx: Context) -> dict[str, Any]:
        return {"said": ctx.step("once", once, effect="read", retry=Retry(2, delay="1h", cap=None))}

    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.waiting
    place.clock.advance(hours=1)
    assert (await flow.resume(result.run_id, on=await place.hf())).expect().state["said"] == "done"


@pytest.mark.covers("USERS-STEP-RETRY")
async def test_what_a_failed_attempt_has_used_counts(place: Place) -> None:
    flow, log = Flow("paid", effect="read"), list[str]()

    @flow.script
    async def work(ctx: Context) -> None:
        def ask() -> None:
            ctx.spent(tokens=10)
            log.append("ask")
            if len(log) == 1:
                raise ValueError

        await ctx.step("ask", ask, effect="read", retry=Retry(2, delay="1h", cap=None))

    result = await flow.run(on=await place.hf())
    place.clock.advance(hours=1)
    hf = await place.hf()
    result = await flow.resume(result.run_id, on=hf)
    assert (result.status, result.totals["tokens"]) == (RunStatus.completed, 20)
