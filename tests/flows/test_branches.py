"""Branches of scripts: `ctx.gather`, `ctx.race`, `ctx.first`, `ctx.map`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, RunStatus, Worker
from holdfast.errors import InputError, MapFailedError, NotDone, StepFailedError, WaitTimeoutError
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.ids import RunId
from tests.flows.places import RUN, Place, answer, open_holds

pytestmark = pytest.mark.anyio


def script(code: Callable[[Context], Any], name: str = "branches") -> Flow:
    flow = Flow(name, effect="read")

    @flow.script(id="script")
    async def run(ctx: Context) -> Any:
        return {"out": await code(ctx)}

    return flow


async def out(place: Place, code: Callable[[Context], Any]) -> Any:
    result = await script(code).run({}, on=await place.hf())
    return result.expect().state["out"]


@pytest.mark.covers("USERS-GATHER")
async def test_branches_run_beside_each_other_and_their_calls_are_numbered_apart(place: Place) -> None:
    entered: list[str] = []
    order = [0.003, 0.0]

    async def effect(name: str, pause: float) -> str:
        entered.append(name)
        await asyncio.sleep(pause)
        return name

    async def branch(ctx: Context, name: str, pause: float) -> list[str]:
        found = [await ctx.step("first", effect, f"{name}1", pause)]
        return [*found, await ctx.step("second", effect, f"{name}2", 0)]

    async def code(ctx: Context) -> Any:
        both = await ctx.gather(branch(ctx, "a", order[0]), branch(ctx, "b", order[1]))
        await ctx.ask("Go on?", options=["yes"])
        return both

    hf = await place.hf()
    flow = script(code)
    result = await flow.run({}, on=hf)
    assert entered.index("b2") < entered.index("a2")
    order.reverse()
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["out"] == [["a1", "a2"], ["b1", "b2"]]
    assert sorted(entered) == ["a1", "a2", "b1", "b2"]


@pytest.mark.covers("USERS-GATHER")
async def test_a_node_parks_only_when_no_branch_can_continue(place: Place) -> None:
    done: list[str] = []

    async def busy(ctx: Context) -> str:
        for _ in range(5):
            await asyncio.sleep(0.002)  # not in a step: the handler itself works
        done.append("busy")
        return await ctx.step("count", lambda: "counted", effect="pure")

    async def asks(ctx: Context, what: str) -> str:
        return str((await ctx.ask(what, options=["yes", "no"])).decision)

    async def code(ctx: Context) -> Any:
        return await ctx.gather(asks(ctx, "A?"), busy(ctx), asks(ctx, "B?"))

    hf = await place.hf()
    flow = script(code)
    result = await flow.run({}, on=hf)
    assert result.status is RunStatus.pending_input
    assert done == ["busy"]
    holds = await open_holds(hf, result.run_id)
    assert sorted(hold.prompt for hold in holds) == ["A?", "B?"]
    second = next(hold for hold in holds if hold.prompt == "B?")
    await (await hf.service()).answer(second.id, "no")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.status is RunStatus.pending_input
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["out"] == ["yes", "counted", "no"]


@pytest.mark.covers("USERS-GATHER")
async def test_the_first_error_stops_the_other_branches_and_is_the_same_on_every_re_entry(
    place: Place,
) -> None:
    caught: list[str] = []

    async def fails(ctx: Context) -> None:
        await ctx.step("fail", refuse, effect="read")

    def refuse() -> None:
        raise ValueError("no")

    async def code(ctx: Context) -> Any:
        try:
            await ctx.gather(ctx.ask("Never answered?", options=["yes"]), fails(ctx))
        except StepFailedError as error:
            caught.append(str(error))
        await ctx.ask("Go on?", options=["yes"])
        return caught[-1]

    hf = await place.hf()
    flow = script(code)
    result = await flow.run({}, on=hf)
    assert [hold.prompt for hold in await open_holds(hf, result.run_id)] == ["Go on?"]
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["out"] == "ValueError: no"
    assert caught == ["ValueError: no"] * 2


@pytest.mark.covers("USERS-GATHER")
async def test_errors_are_results_where_the_script_wants_them(place: Place) -> None:
    async def fail() -> None:
        raise KeyError("x")

    async def code(ctx: Context) -> Any:
        found = await ctx.gather(ctx.step("one", lambda: 1), fail(), return_exceptions=True)
        return [found[0], type(found[1]).__name__]

    assert await out(place, code) == [1, "KeyError"]


@pytest.mark.covers("USERS-GATHER")
async def test_a_race_records_its_winner_and_withdraws_the_rest(place: Place) -> None:
    """The clock wins: the question is withdrawn, and a later answer changes nothing."""
    entered: list[str] = []

    async def asks(ctx: Context) -> str:
        entered.append("asks")
        return str((await ctx.ask("Approve?", options=["yes"])).decision)

    async def code(ctx: Context) -> Any:
        won, _ = await ctx.race(asks(ctx), ctx.sleep(3600))
        await ctx.ask("Go on?", options=["yes"])
        return won

    hf = await place.hf()
    flow = script(code)
    result = await flow.run({}, on=hf)
    assert [hold.prompt for hold in await open_holds(hf, result.run_id)] == ["Approve?"]
    place.clock.advance(hours=2)
    await (await hf.open()).fire_timers(limit=10)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert [hold.prompt for hold in await open_holds(hf, result.run_id)] == ["Go on?"]
    before = len(entered)
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["out"] == 1
    assert len(entered) == before  # a loser is not entered again


@pytest.mark.covers("USERS-GATHER")
async def test_an_answer_that_wins_a_race_closes_the_timer(place: Place) -> None:
    async def code(ctx: Context) -> Any:
        won, said = await ctx.race(ctx.ask("Approve?", options=["yes"]), ctx.sleep(3600))
        return [won, said.decision]

    hf = await place.hf()
    flow = script(code)
    result = await flow.run({}, on=hf)
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["out"] == [0, "yes"]
    place.clock.advance(hours=2)
    assert await (await hf.open()).fire_timers(limit=10) == 0


@pytest.mark.covers("USERS-GATHER")
async def test_branches_are_over_in_time_the_same_on_every_re_entry(place: Place) -> None:
    async def code(ctx: Context) -> Any:
        late = ""
        try:
            await ctx.race(ctx.ask("Approve?", options=["yes"]), timeout="1h")
        except WaitTimeoutError as error:
            late = str(error)
        # Ends in time; later it is not asked again whether it did.
        found = await ctx.gather(ctx.step("one", lambda: 1), ctx.step("two", lambda: 2), timeout="1h")
        await ctx.ask("Go on?", options=["yes"])
        return [late, *found]

    hf = await place.hf()
    flow = script(code)
    result = await flow.run({}, on=hf)
    place.clock.advance(hours=2)
    await (await hf.open()).fire_timers(limit=10)
    result = await flow.resume(result.run_id, on=await place.hf())
    place.clock.advance(hours=5)
    assert await (await hf.open()).fire_timers(limit=10) == 0
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    late, *found = result.expect().state["out"]
    assert "ctx.race did not end within 1h" in late
    assert found == [1, 2]


async def decided(ctx: Context) -> None:
    """Until the race has a winner."""
    while "0/" not in ctx.execution.subs:  # noqa: ASYNC110 (the decision sets no event that a step could see)
        await asyncio.sleep(0)


@pytest.mark.covers("USERS-GATHER")
async def test_a_timeout_whose_wait_fails_is_not_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_given: Any) -> None:
        raise OSError("no timer is left")

    async def code(ctx: Context) -> Any:
        monkeypatch.setattr(Context, "sleep", broken)
        return await ctx.race(ctx.ask("Approve?", options=["yes"]), timeout="1h")

    result = await script(code).run({}, on=await place.hf())
    assert result.error is not None
    assert result.error.type == "OSError"


@pytest.mark.covers("USERS-GATHER")
async def test_an_effect_of_a_loser_that_has_begun_is_recorded_and_nothing_follows_it(place: Place) -> None:
    did: list[str] = []
    begun = asyncio.Event()

    async def pay(ctx: Context) -> str:
        begun.set()
        await decided(ctx)
        did.append("paid")
        return "paid"

    async def slow(ctx: Context) -> None:
        await ctx.step("pay", pay, ctx)
        await ctx.step("send", did.append, "sent")

    async def quick() -> str:
        await begun.wait()
        return "quick"

    async def code(ctx: Context) -> Any:
        return list(await ctx.race(slow(ctx), quick()))

    hf = await place.hf()
    result = await script(code).run({}, on=hf)
    assert result.expect().state["out"] == [1, "quick"]
    assert did == ["paid"]
    assert not await open_holds(hf, result.run_id)


@pytest.mark.covers("USERS-GATHER")
@pytest.mark.parametrize("dies", [False, True])
async def test_an_effect_of_a_loser_with_an_unknown_outcome_is_asked_about_and_not_repeated(
    place: Place, dies: bool
) -> None:
    """The winner stays the winner if that was committed; a worker that dies before has recorded none."""
    did: list[str] = []
    begun = asyncio.Event()

    async def pay(ctx: Context) -> str:
        did.append("paid")
        begun.set()
        if dies:
            await asyncio.Event().wait()
        await decided(ctx)
        raise ConnectionError("cut off")

    async def quick() -> str:
        await begun.wait()
        return "quick"

    async def code(ctx: Context) -> Any:
        return list(await ctx.race(ctx.step("pay", pay, ctx), quick()))

    hf = await place.hf()
    flow = script(code)
    with armed("after_substep", nth=1 if dies else 99), suppress(Crash):
        await flow.run({}, on=hf, run_id=RUN)
    place.lapse()
    later = await place.hf()
    if dies:
        await flow.resume(RUN, on=later)
    (hold,) = await open_holds(later, RunId(RUN))
    assert hold.type == "in_doubt"
    assert "'pay'" in hold.prompt
    await (await later.service()).answer(hold.id, "happened", data={"value": "paid"})
    result = await flow.resume(RUN, on=later)
    assert result.expect().state["out"] == ([0, "paid"] if dies else [1, "quick"])
    assert did == ["paid"]


@pytest.mark.covers("USERS-GATHER")
async def test_the_first_success_wins_and_failures_are_passed_over(place: Place) -> None:
    async def fail(ctx: Context) -> None:
        await ctx.step("fail", refuse, effect="read")

    def refuse() -> None:
        raise NotDone("no")

    async def code(ctx: Context) -> Any:
        won = await ctx.first(fail(ctx), ctx.step("ok", lambda: "ok"))
        try:
            await ctx.first(fail(ctx), fail(ctx))
        except ExceptionGroup as group:
            return [*won, len(group.exceptions)]
        return None

    assert await out(place, code) == [1, "ok", 2]


@pytest.mark.covers("USERS-GATHER")
async def test_the_runs_that_a_loser_has_started_are_cancelled(place: Place) -> None:
    asking = Flow("asking", effect="read")
    asking.hold("ask", prompt="How many?", type="freeform", bind="many")

    async def code(ctx: Context) -> Any:
        return list(await ctx.race(ctx.call(asking, {}), ctx.sleep(60)))

    hf = await place.hf()
    hf.register(asking.compile())
    flow = script(code)
    result = await flow.run({}, on=hf)
    place.clock.advance(seconds=90)
    await (await hf.open()).fire_timers(limit=10)
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["out"] == [1, None]
    (child,) = await (await hf.service()).children(result.run_id)
    await Worker(flow, asking, on=hf).run_until_idle()
    assert (await (await hf.service()).get(child.id)).status is RunStatus.cancelled


# ---------------------------------------------------------------------- maps


@pytest.mark.covers("USERS-MAP-NESTED", "USERS-MAP-FAILURES")
async def test_maps_inside_maps_keep_the_places_of_their_calls(place: Place) -> None:
    calls: list[str] = []

    def work(name: str) -> str:
        calls.append(name)
        return name

    async def cell(ctx: Context, row: str, index: int) -> str:
        return await ctx.step("cell", work, f"{row}{index}", effect="write")

    async def line(ctx: Context, row: str, key: str) -> Any:
        cells = await ctx.map(lambda _item, index: cell(ctx, row, index), range(2), concurrency=1)
        said = await ctx.ask(f"{key}?", options=["yes"])
        return [*cells, said.decision]

    async def code(ctx: Context) -> Any:
        return await ctx.map(
            lambda row, key: line(ctx, row, key), ["a", "b"], item_key=lambda row: f"row/{row}"
        )

    hf = await place.hf()
    flow = script(code)
    result = await flow.run({}, on=hf)
    for _ in range(2):
        hold = (await open_holds(hf, result.run_id))[-1]
        await (await hf.service()).answer(hold.id, "yes")
        result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["out"] == [["a0", "a1", "yes"], ["b0", "b1", "yes"]]
    assert sorted(calls) == ["a0", "a1", "b0", "b1"]


async def _items(ctx: Context, **options: Any) -> Any:
    async def body(item: int) -> int:
        if item % 3 == 0:
            raise ValueError(f"item {item}")
        return item

    found = await ctx.map(body, range(9), **options)
    return [each if isinstance(each, int) else str(each) for each in found]


@pytest.mark.covers("USERS-MAP-FAILURES")
@pytest.mark.parametrize(
    "options", [{"tolerated_failures": 3}, {"tolerated_failures": "34%"}, {"min_successes": 6}]
)
async def test_failures_that_are_tolerated_are_among_the_results(
    place: Place, options: dict[str, Any]
) -> None:
    found = await out(place, lambda ctx: _items(ctx, **options))
    assert found == ["item 0", 1, 2, "item 3", 4, 5, "item 6", 7, 8]


@pytest.mark.covers("USERS-MAP-FAILURES")
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tolerated_failures": 2}, "3 of 9 items failed; 2 may"),
        ({"tolerated_failures": "30%"}, "3 of 9 items failed; 30% may"),
        ({"min_successes": 7}, "3 of 9 items failed; 7 must succeed"),
        ({"min_successes": 10}, "0 of 9 items failed; 10 must succeed"),
    ],
)
async def test_a_map_fails_the_same_on_every_re_entry_when_too_many_items_fail(
    place: Place, options: dict[str, Any], why: str
) -> None:
    async def code(ctx: Context) -> Any:
        said = ""
        try:
            await _items(ctx, concurrency=2, **options)
        except MapFailedError as error:
            said = str(error)
        await ctx.ask("Go on?", options=["yes"])
        return said

    hf = await place.hf()
    flow = script(code)
    result = await flow.run({}, on=hf)
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert why in result.expect().state["out"]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda ctx: ctx.gather(3), "was given 3"),
        (lambda ctx: ctx.race(), "has no branch"),
        (lambda ctx: ctx.race(ctx.sleep(1), timeout="soon"), "timeout of ctx.race"),
        (lambda ctx: ctx.map(str, [1], concurrency=0), "concurrency=0"),
        (lambda ctx: ctx.map(str, [1], tolerated_failures=1.5), "tolerated_failures=1.5"),
        (lambda ctx: ctx.map(str, [1], min_successes="all"), "min_successes='all'"),
        (lambda ctx: ctx.map([1], str), "was given [1] and"),
        (lambda ctx: ctx.map(str, [1], join="all"), "has no option 'join'. It has concurrency, rate"),
        (lambda ctx: ctx.map(str, [1, 1], item_key=str), "two items have the key '1'"),
    ],
)
@pytest.mark.covers("USERS-GATHER", "USERS-MAP-FAILURES")
async def test_what_is_no_branch_is_refused(hf: Holdfast, call: Callable[[Context], Any], why: str) -> None:
    async def code(ctx: Context) -> Any:
        with pytest.raises(InputError) as refused:
            await call(ctx)
        return str(refused.value)

    assert why in (await script(code).run({}, on=hf)).expect().state["out"]


async def test_a_script_in_a_thread_has_no_branches(hf: Holdfast) -> None:
    flow = Flow("thread", effect="read")

    @flow.script
    def run(ctx: Context) -> Any:
        return ctx.gather()

    result = await flow.run({}, on=hf)
    assert result.error is not None
    assert "Make the script async" in str(result.error) or "cannot run beside" in result.error.message


# ---------------------------------------------------------------------- crashes


@pytest.mark.covers("USERS-GATHER", "USERS-MAP-NESTED")
@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("after_substep", 3),
        ("after_substep", 9),
        ("after_settle", 3),
        ("after_intent", 4),
        ("before_park", 1),
    ],
)
async def test_each_effect_of_branches_happens_once_when_workers_die(
    place: Place, point: str, nth: int
) -> None:
    await kill_in_branches(place, point, nth)


@pytest.mark.soak
@pytest.mark.covers("USERS-GATHER", "USERS-MAP-NESTED")
@pytest.mark.parametrize("nth", range(1, 14))
@pytest.mark.parametrize(
    "point", ["after_substep", "after_settle", "inside_settle", "after_intent", "before_park", "after_answer"]
)
async def test_each_effect_of_branches_happens_once_when_workers_die_at_any_commit(
    place: Place, point: str, nth: int
) -> None:
    await kill_in_branches(place, point, nth, may_miss=True)


async def kill_in_branches(place: Place, point: str, nth: int, *, may_miss: bool = False) -> None:
    ledger: dict[str, int] = {}

    def charge(what: str, idempotency_key: str) -> str:
        ledger.setdefault(idempotency_key, 0)
        ledger[idempotency_key] += 1
        return what

    async def item(ctx: Context, item: str) -> str:
        charged = await ctx.step("charge", charge, item, effect="external", idempotent=True)
        await ctx.sleep(60)
        return await ctx.step("book", charge, charged, effect="external", idempotent=True)

    async def line(ctx: Context, row: str) -> Any:
        return await ctx.map(lambda one: item(ctx, f"{row}{one}"), [1, 2])

    async def code(ctx: Context) -> Any:
        rows = await ctx.gather(line(ctx, "a"), line(ctx, "b"))
        won = await ctx.race(ctx.ask("Ship?", options=["yes"]), ctx.sleep(600))
        return [rows, won.branch]

    flow = script(code)
    with armed(point, nth=nth) as reached, suppress(Crash):
        hf = await place.hf()
        await (await hf.service()).create(flow.compile(), {}, run_id=RUN)
        await drive(place, hf, flow)
    assert reached.reached or may_miss
    place.lapse()
    later = await place.hf()
    await drive(place, later, flow)
    result = await flow.result(RUN, on=later)
    assert result.expect().state["out"] == [[["a1", "a2"], ["b1", "b2"]], 1]
    assert len(ledger) == 8
    assert (await later.replay(RunId(RUN))).same


async def drive(place: Place, hf: Holdfast, flow: Flow) -> None:
    for _ in range(4):
        await Worker(flow, on=hf).run_until_idle()
        place.clock.advance(seconds=700)
        await (await hf.open()).fire_timers(limit=100)
    await Worker(flow, on=hf).run_until_idle()
