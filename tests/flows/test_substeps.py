from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, NotDone, Retry, RunStatus
from holdfast.errors import StepFailedError
from tests.flows.places import Place, answer, told

pytestmark = pytest.mark.anyio


class Log(list[str]):
    """What was really executed."""

    def step(self, name: str, value: Any = None) -> Any:
        async def run() -> Any:
            self.append(name)
            return value if value is not None else name

        return run


@pytest.mark.covers("D-21", "CORE-CTX-01", "CORE-FLOW-41", "RS-PAUSE-13")
async def test_sub_steps_run_once_when_the_node_is_entered_again(place: Place) -> None:
    log = Log()
    flow = Flow("memo")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        log.append("entered")
        a = await ctx.step("a", log.step("a", {"n": 1}), effect="read")
        b = await ctx.step("b", log.step("b", ("t", 2)), effect="external")
        reply = await ctx.ask("Well?", options=["yes", "no"])
        c = await ctx.step("c", log.step("c"), effect="write")
        return {"a": a, "b": b, "said": reply.decision, "c": c}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert result.state == {"a": {"n": 1}, "b": ("t", 2), "said": "yes", "c": "c"}
    assert log == ["entered", "a", "b", "entered", "c"]


@pytest.mark.covers("D-21", "CORE-CTX-01")
async def test_sub_steps_before_a_crash_are_not_repeated_when_another_worker_goes_on(place: Place) -> None:
    log = Log()
    flow = Flow("crash")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        await ctx.step("a", log.step("a"), effect="external")
        await ctx.step("b", log.step("b"), effect="external")
        return {"ok": True}

    # The intent of b is committed, and with it the result of a.
    run = await place.crash(flow, {}, "after_intent", nth=2)
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.status is RunStatus.pending_input
    await answer(hf, run, "not_happened")
    assert (await flow.resume(run, on=hf)).completed
    assert log == ["a", "b"]
    assert await told(hf, run, "node.restarted")


def changing(log: Log, plan: dict[str, list[str]]) -> Flow:
    """A node that calls the steps that the plan names now."""
    flow = Flow("changing")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        for name in plan["steps"]:
            if name == "?":
                await ctx.ask("Well?", options=["yes"])
            else:
                await ctx.step(name, log.step(name), effect="read")
        return {}

    return flow


@pytest.mark.covers("D-21")
async def test_a_mismatch_shows_both_sequences_before_anything_runs_when_the_order_changed(
    place: Place,
) -> None:
    log, plan = Log(), {"steps": ["a", "b", "?"]}
    flow = changing(log, plan)
    hf = await place.hf()
    result = await flow.run(on=hf)
    await answer(hf, result, "yes")
    plan["steps"] = ["a", "x", "?"]
    result = await flow.resume(result.run_id, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "replay_mismatch"
    assert "recorded: 0:a, 1:b" in result.error.message
    assert "now:      0:a, 1:x" in result.error.message
    assert log == ["a", "b"]


@pytest.mark.covers("D-21")
async def test_a_record_that_is_never_asked_for_is_a_mismatch_when_the_node_ends(place: Place) -> None:
    log, plan = Log(), {"steps": ["a", "b", "?"]}
    flow = changing(log, plan)
    hf = await place.hf()
    result = await flow.run(on=hf)
    await answer(hf, result, "yes")
    plan["steps"] = ["a"]
    result = await flow.resume(result.run_id, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "replay_mismatch"
    assert "1:b" in result.error.message


@pytest.mark.covers("D-21")
async def test_keys_stand_for_ordinals_when_the_order_of_calls_depends_on_arrival(place: Place) -> None:
    log, order = Log(), ["a", "b"]
    flow = Flow("keyed")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        found = {name: await ctx.step("fetch", log.step(name), effect="read", key=name) for name in order}
        await ctx.ask("Well?", options=["yes"])
        return found

    hf = await place.hf()
    result = await flow.run(on=hf)
    await answer(hf, result, "yes")
    order.reverse()
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert result.state == {"a": "a", "b": "b"}
    assert log == ["a", "b"]


@pytest.mark.covers("D-21", "CORE-CTX-01")
async def test_concurrent_sub_steps_take_their_ordinals_when_called(place: Place) -> None:
    flow = Flow("gather")
    running, most, log = 0, 0, list[str]()

    async def fetch(name: str, turns: int) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(turns):
            await asyncio.sleep(0)
        running -= 1
        log.append(name)
        return name.upper()

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        found = await asyncio.gather(
            ctx.step("a", fetch, "a", 9, effect="read"),
            ctx.step("b", fetch, "b", 1, effect="external"),
            ctx.step("c", fetch, "c", 5, effect="read"),
        )
        await ctx.ask("Well?", options=["yes"])
        return {"found": found}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert most > 1
    assert sorted(log) == ["a", "b", "c"]
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert result.state == {"found": ["A", "B", "C"]}
    assert len(log) == 3


@pytest.mark.covers("D-20")
async def test_a_sub_step_goes_on_when_a_question_beside_it_waits(place: Place) -> None:
    flow = Flow("beside")
    log = Log()

    async def slow() -> str:
        for _ in range(50):
            await asyncio.sleep(0)
        log.append("slow")
        return "slow"

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        reply, found = await asyncio.gather(
            ctx.ask("Well?", options=["yes"]), ctx.step("slow", slow, effect="external")
        )
        return {"said": reply.decision, "found": found}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    assert log == ["slow"]
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert result.state == {"said": "yes", "found": "slow"}
    assert log == ["slow"]


@pytest.mark.covers("D-20")
async def test_a_failed_sub_step_fails_again_when_the_handler_had_gone_on_after_it(place: Place) -> None:
    flow = Flow("fails")
    calls: list[str] = []

    async def fetch() -> str:
        calls.append("fetch")
        if len(calls) == 1:
            raise ValueError("not there")
        return "there"

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        try:
            found = await ctx.step("fetch", fetch, effect="read")
        except StepFailedError as error:
            found = error.info.message
        await ctx.ask("Well?", options=["yes"])
        return {"found": found}

    hf = await place.hf()
    result = await flow.run(on=hf)
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert result.state == {"found": "not there"}
    assert calls == ["fetch"]
    assert len(await told(hf, result, "node.step_failed")) == 1


@pytest.mark.parametrize("error", [ValueError("later"), NotDone("later")])
@pytest.mark.covers("D-20", "G-24")
async def test_a_failed_sub_step_runs_again_when_its_node_is_retried(place: Place, error: Exception) -> None:
    flow = Flow("retries")
    calls: list[str] = []

    async def first() -> str:
        calls.append("first")
        return "first"

    async def second() -> str:
        calls.append("second")
        if calls.count("second") == 1:
            raise error
        return "second"

    effect = "external" if isinstance(error, NotDone) else "read"

    @flow.script(retry=Retry(2, delay=0))
    async def work(ctx: Context) -> dict[str, Any]:
        a = await ctx.step("first", first, effect="external")
        return {"both": [a, await ctx.step("second", second, effect=effect)]}

    hf = await place.hf()
    result = await flow.run(on=hf)
    if result.status is RunStatus.waiting:
        result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert result.state["both"] == ["first", "second"]
    assert calls == ["first", "second", "second"]


@pytest.mark.covers("D-18", "D-20")
async def test_an_idempotent_sub_step_gets_the_same_key_when_its_worker_died_in_it(place: Place) -> None:
    flow = Flow("keys")
    keys: list[str] = []

    async def pay(idempotency_key: str) -> str:
        keys.append(idempotency_key)
        return "paid"

    async def pay_again(idempotency_key: str) -> str:
        keys.append(idempotency_key)
        return "paid"

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        one = await ctx.step("one", pay, effect="external", idempotent=True)
        two = await ctx.step("two", pay_again, effect="external", idempotent=True)
        return {"paid": [one, two]}

    run = await place.crash(flow, {}, "after_substep")
    result = await flow.resume(run, on=await place.hf())
    assert result.completed
    assert len(keys) == 3
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.covers("D-20", "CORE-FLOW-02", "R-60")
async def test_sync_handlers_have_sub_steps_and_questions_too(place: Place) -> None:
    log = Log()
    flow = Flow("threads")

    def look() -> int:
        log.append("look")
        return 3

    @flow.script
    def work(ctx: Context) -> dict[str, Any]:
        seen = ctx.step("look", look, effect="read")
        wired = ctx.step("wire", log.step("wire"), effect="external")
        reply = ctx.ask("Well?", options=["yes", "no"])  # type: ignore[misc]
        return {"seen": seen, "wired": wired, "said": reply.decision}  # type: ignore[attr-defined]

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    await answer(hf, result, "no")
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed, result
    assert result.state == {"seen": 3, "wired": "wire", "said": "no"}
    assert log == ["look", "wire"]


@pytest.mark.parametrize("effect", ["write", "external"])
@pytest.mark.covers("D-20")
async def test_sub_steps_are_refused_when_the_node_itself_is_an_effect(hf: Holdfast, effect: str) -> None:
    log = Log()
    flow = Flow("leaf")

    async def hidden(c: Context) -> Any:
        return await c.step("a", log.step("a"))

    @flow.node(effect=effect)
    async def leaf(ctx: Context) -> dict[str, Any]:
        await hidden(ctx)
        return {}

    result = await flow.run(on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "script"
    assert "@flow.script" in result.error.message
    assert log == []


@pytest.mark.covers("D-20")
async def test_a_node_of_class_read_may_have_sub_steps_when_it_is_no_script(hf: Holdfast) -> None:
    log = Log()
    flow = Flow("reader")

    @flow.node(effect="read")
    async def leaf(ctx: Context) -> dict[str, Any]:
        return {"a": await ctx.step("a", log.step("a"), effect="write")}

    assert (await flow.run(on=hf)).state == {"a": "a"}


@pytest.mark.covers("TOOL-AGENT-04")
async def test_what_a_sub_step_spent_counts_once_when_the_node_is_entered_again(place: Place) -> None:
    flow = Flow("spending")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        async def buy() -> str:
            ctx.spent(tokens=7, cost=0.5)
            return "bought"

        def buy_in_a_thread() -> str:
            ctx.spent(tokens=100)
            return "bought"

        await ctx.step("buy", buy, effect="read")
        await ctx.step("more", buy_in_a_thread, effect="read")
        await ctx.ask("Well?", options=["yes"])
        ctx.spent(tokens=1000)
        return {}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.totals["tokens"] == 107
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert (result.totals["tokens"], result.totals["cost"]) == (1107, 0.5)
    service = await hf.service()
    (execution,) = (await service.latest(result.run_id)).executions
    assert (execution.tokens, execution.cost) == (1107, 0.5)


@pytest.mark.covers("D-21")
async def test_two_calls_with_one_key_do_not_share_an_answer(place: Place) -> None:
    asked, done = Flow("asked", effect="read"), list[str]()

    @asked.script
    async def pay(s: Any, ctx: Context) -> dict[str, Any]:
        first = await ctx.ask("Pay?", options=["yes", "no"], key="pay")
        second = await ctx.ask("Pay?", options=["yes", "no"], key="pay")
        return {"decisions": [first.decision, second.decision]}

    result = await asked.run({}, on=await place.hf())
    (hold,) = result.holds
    await (await (await place.hf()).service()).answer(hold.id, "yes")
    result = await asked.resume(result.run_id, on=await place.hf())
    assert result.error is not None
    assert "two calls with the key 'pay'" in result.error.message
    steps = Flow("steps", effect="read")

    @steps.script
    async def charge(s: Any, ctx: Context) -> None:
        for order in ("A1", "A2"):
            await ctx.step("charge", done.append, order, effect="write", key="charge")

    result = await steps.run({}, on=await place.hf())
    assert (result.failed, done) == (True, ["A1"])
    reads = Flow("reads", effect="read")

    @reads.script
    async def look(s: Any, ctx: Context) -> dict[str, Any]:
        return {"found": [await ctx.step("look", done.copy, effect="read", key="look") for _ in range(2)]}

    result = await reads.run({}, on=await place.hf())
    assert result.state["found"] == [["A1"], ["A1"]]
