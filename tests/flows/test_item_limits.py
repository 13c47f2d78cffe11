"""Items of maps that start at a rate, and those that share a limit by a key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from holdfast import Context, Flow, FlowInvalidError, RunSettings, RunStatus, Worker
from holdfast.runs.concurrency_limits.item_limits import SharedLimit, limits_in_use
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED
from tests.deadlines import HANG
from tests.flows.places import HOT, RUN, Place, answer

pytestmark = pytest.mark.anyio

# No lease expires while a test moves the clock, and a run that waits is parked.
PATIENT = RunSettings(hot_timer=0.0, hot_hold=0.0, lease_ttl=3600.0 * 24 * 365, poll=0.02, grace=0.5)


class Items:
    """What a map calls: when each item began, and how many were at work at once."""

    def __init__(self, place: Place) -> None:
        self.clock = place.clock
        self.start = place.clock.now()
        self.began: list[tuple[Any, int]] = []
        self.at_work = self.most = self.go_at = 0
        self.go = asyncio.Event()
        self.go.set()
        self.first = asyncio.Event()

    async def work(self, item: Any) -> Any:
        self.began.append((item, (self.clock.now() - self.start) // 1_000_000))
        self.first.set()
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        if self.at_work == self.go_at:
            self.go.set()
        await asyncio.sleep(0)
        await self.go.wait()
        self.at_work -= 1
        return item


def by_script(items: Items, name: str = "paced", *, effect: str = "external", **options: Any) -> Flow:
    flow = Flow(name, effect="read")

    @flow.script
    async def each(s: Any, ctx: Context) -> dict[str, Any]:
        async def one(item: Any) -> Any:
            return await ctx.step("work", items.work, item, effect=effect)

        return {"out": await ctx.map(one, s["items"], **options)}

    return flow


def by_node(items: Items, name: str = "paced", *, effect: str = "external", **options: Any) -> Flow:
    flow = Flow(name, effect="read")
    flow.map("each", over="items", body=items.work, into="out", effect=effect, **options)
    return flow


MAPS = pytest.mark.parametrize("mapped", [by_script, by_node])
Mapped = Callable[..., Flow]


async def work_on(place: Place, flow: Flow, *, seconds: int, turns: int, run: str | None = None) -> None:
    """Worker after worker, each on a new process, as time goes by; or until this run has ended."""
    for _ in range(turns):
        place.clock.advance(seconds=seconds)
        hf = await place.hf()
        await Worker(flow, on=hf).run_until_idle()
        row = await (await hf.open()).get_run(RunId(run)) if run else None
        if row and row.status in ENDED:
            return


@MAPS
@pytest.mark.covers("USERS-MAP-RATE")
async def test_items_start_at_even_distances_and_a_run_that_waits_has_no_worker(
    place: Place, mapped: Mapped
) -> None:
    items = Items(place)
    flow = mapped(items, rate="3/min")
    result = await flow.run({"items": [1, 2, 3, 4]}, on=await place.hf())
    assert result.status is RunStatus.waiting
    assert items.began == [(1, 0)]
    await work_on(place, flow, seconds=5, turns=13)
    assert [at for _, at in items.began] == [0, 20, 40, 60]
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["out"] == [1, 2, 3, 4]


@MAPS
@pytest.mark.covers("USERS-MAP-RATE")
async def test_items_that_follow_slow_ones_do_not_make_up_for_lost_time(place: Place, mapped: Mapped) -> None:
    items = Items(place)
    flow = mapped(items, rate="1/min", concurrency=1)
    items.go.clear()
    running = asyncio.ensure_future(flow.run({"items": [1, 2, 3]}, on=await place.hf(PATIENT)))
    await items.first.wait()
    place.clock.advance(minutes=10)
    items.go.set()
    assert (await running).status is RunStatus.waiting
    assert [at for _, at in items.began] == [0, 600]


@MAPS
@pytest.mark.covers("USERS-MAP-RATE")
async def test_maps_of_many_runs_share_a_rate_by_key(place: Place, mapped: Mapped) -> None:
    items = Items(place)
    flow, other = (
        mapped(items, rate="1/min", limit_key="mail"),
        mapped(items, "other", rate="1/min", limit_key="sms"),
    )
    await flow.run({"items": ["a"]}, on=await place.hf())
    second = await flow.run({"items": ["b", "c"]}, on=await place.hf())
    assert second.status is RunStatus.waiting
    assert items.began == [("a", 0)]
    assert (await other.run({"items": ["x"]}, on=await place.hf())).status is RunStatus.completed
    await work_on(place, flow, seconds=20, turns=7)
    assert [at for item, at in items.began if item != "x"] == [0, 60, 120]
    assert (await flow.resume(second.run_id, on=await place.hf())).expect().state["out"] == ["b", "c"]


@MAPS
@pytest.mark.covers("USERS-MAP-RATE")
async def test_an_item_that_waits_long_for_its_rate_keeps_neither_place_nor_worker(
    place: Place, mapped: Mapped
) -> None:
    items = Items(place)
    flow = mapped(items, rate="1/h", concurrency=1, limit_key="mail")
    result = await flow.run({"items": ["a", "b"]}, on=await place.hf())
    assert result.status is RunStatus.waiting
    other = mapped(items, "other", concurrency=1, limit_key="mail")
    assert (await other.run({"items": ["x"]}, on=await place.hf())).completed
    await work_on(place, flow, seconds=1200, turns=4)
    assert [(item, at) for item, at in items.began if item != "x"] == [("a", 0), ("b", 3600)]
    assert (await flow.resume(result.run_id, on=await place.hf())).expect().state["out"] == ["a", "b"]


@MAPS
@pytest.mark.covers("USERS-MAP-RATE")
async def test_maps_of_many_runs_share_the_number_of_items_at_work(place: Place, mapped: Mapped) -> None:
    items = Items(place)
    flow = mapped(items, concurrency=2, limit_key="mail")
    items.go_at = 2
    items.go.clear()
    hf, other = await place.hf(HOT), await place.hf(HOT)
    runs = [flow.run({"items": [1, 2, 3, 4]}, on=each) for each in (hf, other, hf)]
    for result in await asyncio.gather(*runs):
        assert result.expect().state["out"] == [1, 2, 3, 4]
    assert items.most == 2


@pytest.mark.covers("USERS-MAP-RATE")
async def test_each_item_may_have_a_limit_of_its_own(place: Place) -> None:
    items = Items(place)

    class Names(Items):
        async def work(self, item: Any) -> Any:
            return await items.work(item["who"])

    names = Names(place)
    given = {"items": [{"who": who} for who in ("ann", "bob", "ann", "cy")]}
    for flow in (
        by_node(names, rate="1/h", limit_key="mail:{{who}}"),
        by_script(names, "scripted", rate="1/h", limit_key=lambda item: f"sms:{item['who']}"),
    ):
        items.began.clear()
        result = await flow.run(given, on=await place.hf())
        assert result.status is RunStatus.waiting
        assert sorted(who for who, _ in items.began) == ["ann", "bob", "cy"]


@MAPS
@pytest.mark.covers("USERS-MAP-RATE")
@pytest.mark.parametrize("nth", range(1, 7))
@pytest.mark.parametrize("concurrency", [None, 1])
@pytest.mark.parametrize("point", ["after_substep", "after_intent", "after_handler"])
async def test_a_worker_that_dies_repeats_no_item_and_keeps_to_the_rate(
    place: Place, mapped: Mapped, point: str, nth: int, concurrency: int | None
) -> None:
    items = Items(place)
    flow = mapped(items, rate="1/min", **({"concurrency": concurrency} if concurrency else {}))

    async def work() -> None:
        await flow.run({"items": [1, 2, 3]}, on=await place.hf(), run_id=RUN)
        await work_on(place, flow, seconds=60, turns=4, run=RUN)

    await place.die_at(point, nth, work, may_miss=True)
    place.lapse()
    await work_on(place, flow, seconds=31, turns=12, run=RUN)
    starts = [at for _, at in items.began]
    assert all(after - before >= 60 for before, after in pairwise(starts)), items.began
    assert len({item for item, _ in items.began}) == len(items.began)


@MAPS
@pytest.mark.covers("USERS-MAP-RATE")
async def test_places_of_a_dead_worker_are_free_when_its_run_is(place: Place, mapped: Mapped) -> None:
    items = Items(place)
    flow = mapped(items, concurrency=1, limit_key="mail")
    with armed("after_intent") as reached, pytest.raises(Crash):
        await flow.run({"items": [1, 2]}, on=await place.hf(), run_id=RUN)
    assert reached.reached
    place.lapse()
    hf = await place.hf(HOT)
    await Worker(flow, on=hf).run_until_idle()
    result = await asyncio.wait_for(flow.run({"items": [3]}, on=hf), HANG)
    assert result.expect().state["out"] == [3]


@MAPS
@pytest.mark.covers("USERS-MAP-RATE")
async def test_an_item_that_begins_again_after_a_kill_waits_for_a_place(place: Place, mapped: Mapped) -> None:
    items = Items(place)
    flow = mapped(items, concurrency=1, limit_key="mail", effect="read")
    # When its work has ended, and is not recorded yet.
    with armed("after_substep", nth=2), pytest.raises(Crash):
        await flow.run({"items": [1]}, on=await place.hf(), run_id=RUN, mode="strict")
    items.first.clear()
    place.lapse()
    items.go.clear()
    hf = await place.hf(HOT)
    store = await hf.open()
    await store.reclaim(limit=1, max_recoveries=9)
    other = asyncio.ensure_future(flow.run({"items": [2]}, on=hf))
    await asyncio.wait_for(items.first.wait(), HANG)
    killed = asyncio.ensure_future(flow.resume(RUN, on=hf))
    for _ in range(500):
        if items.at_work == 2 or any(use.waiters for use in await limits_in_use(store, "default")):
            break
        await asyncio.sleep(0.01)
    at_work = items.at_work
    items.go.set()
    found = await asyncio.wait_for(asyncio.gather(other, killed), HANG)
    assert at_work == 1
    assert [each.expect().state["out"] for each in found] == [[2], [1]]
    assert items.most == 1


@pytest.mark.covers("USERS-MAP-RATE")
async def test_an_item_that_fails_or_is_given_up_frees_its_place(place: Place) -> None:
    items = Items(place)
    flow = Flow("fails", effect="read")

    @flow.script
    async def each(ctx: Context) -> dict[str, Any]:
        async def one(item: int) -> Any:
            if item == 1:
                raise ValueError("no")
            return await ctx.sleep(3600)

        try:
            await ctx.map(one, [0, 1], concurrency=2, limit_key="mail")
        except ValueError:
            # The same run goes on for long, and other runs need the places.
            return {"out": await other.run({"items": [1, 2]}, on=hf)}
        return {}

    other = by_node(items, "other", concurrency=1, limit_key="mail")
    hf = await place.hf(HOT)
    result = await asyncio.wait_for(flow.run({}, on=hf), HANG)
    assert items.began[0][0] == 1, result
    assert len(items.began) == 2


@pytest.mark.covers("USERS-MAP-RATE")
async def test_a_person_may_decide_inside_an_item_while_the_run_is_parked(place: Place) -> None:
    flow = Flow("asks", effect="read")

    @flow.script
    async def each(ctx: Context) -> dict[str, Any]:
        async def one(item: int) -> Any:
            return (await ctx.ask(f"Item {item}?", options=["yes"])).decision

        return {"out": await ctx.map(one, [1, 2, 3], concurrency=1, limit_key=lambda _item: "mail")}

    result = await flow.run({}, on=await place.hf())
    for _ in range(3):
        assert result.status is RunStatus.pending_input
        hf = await place.hf()
        await answer(hf, result, "yes")
        result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["out"] == ["yes", "yes", "yes"]


@pytest.mark.covers("USERS-MAP-RATE")
async def test_a_map_inside_an_item_may_not_wait_for_the_place_that_its_item_has(place: Place) -> None:
    flow = Flow("nested", effect="read")

    @flow.script
    async def each(ctx: Context) -> dict[str, Any]:
        async def inner(_item: int) -> int:
            return 1

        async def outer(_item: int) -> Any:
            return await ctx.map(inner, [1], concurrency=1, limit_key="mail")

        return {"out": await ctx.map(outer, [1], concurrency=1, limit_key="mail")}

    result = await flow.run({}, on=await place.hf())
    assert result.error is not None
    assert "has the same limit_key, 'mail'" in result.error.message


@pytest.mark.covers("USERS-MAP-RATE")
async def test_keys_that_are_used_no_more_do_not_pile_up(place: Place) -> None:
    items = Items(place)
    flow = by_script(items, rate="1000/s", limit_key=lambda item: f"key {item}")
    hf = await place.hf(HOT)
    store = (await hf.service()).store
    for day in range(8):
        (await flow.run({"items": list(range(100 * day, 100 * day + 100))}, on=hf)).expect()
        place.clock.advance(days=2)
    assert len(await store.documents("default", "item_limit")) < 400


WRONG = [
    ({"rate": "soon"}, "'soon' is not a rate"),
    ({"rate": 5}, "5 is not a rate"),
    ({"limit_key": "mail"}, "has neither concurrency= nor rate="),
    ({"limit_key": "", "rate": "1/s"}, "is neither a text nor a function"),
]


@pytest.mark.covers("USERS-MAP-RATE")
@pytest.mark.parametrize(("options", "why"), WRONG)
async def test_limits_that_make_no_sense_are_refused(place: Place, options: dict[str, Any], why: str) -> None:
    result = await by_script(Items(place), **options).run({"items": [1]}, on=await place.hf())
    assert result.error is not None
    assert why in result.error.message
    with pytest.raises(FlowInvalidError, match=why.replace("(", r"\(")):
        by_node(Items(place), **options).compile()


@pytest.mark.covers("USERS-MAP-RATE")
async def test_a_key_that_is_no_text_is_refused(place: Place) -> None:
    flow = by_script(Items(place), rate="1/s", limit_key=lambda _item: None)
    result = await flow.run({"items": [1]}, on=await place.hf())
    assert result.error is not None
    assert "limit_key= gave None for an item" in result.error.message


@pytest.mark.covers("USERS-MAP-RATE")
async def test_a_key_with_half_a_character_is_refused(place: Place) -> None:
    for key in ("mail \ud83d", lambda _item: "mail \ud83d"):
        flow = by_script(Items(place), f"half-{callable(key)}", rate="1/s", limit_key=key)
        result = await flow.run({"items": [1]}, on=await place.hf())
        assert result.error is not None
        assert "half of a surrogate pair" in result.error.message, result.error


@MAPS
@pytest.mark.covers("USERS-MAP-RATE")
async def test_places_are_given_in_the_order_of_waiting(place: Place, mapped: Mapped) -> None:
    """A run with many items lets another one in after those that it may have at once."""
    items = Items(place)
    items.go.clear()
    flow = mapped(items, concurrency=2, limit_key="mail")
    hf, other = await place.hf(HOT), await place.hf(HOT)
    first = asyncio.create_task(flow.run({"items": list(range(40))}, on=hf))
    await items.first.wait()
    second = asyncio.create_task(flow.run({"items": ["late"]}, on=other))
    store = (await other.service()).store
    while not any(use.waiters for use in await limits_in_use(store, "default")):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    (use,) = await limits_in_use(store, "default")
    assert (use.key, use.concurrency, len(use.holders)) == ("mail", 2, 2)
    (shown,) = await (await other.limits()).list()
    assert (shown.name, shown.concurrency, shown.running, shown.waiting) == ("items:mail", 2, 2, 1)
    assert len({*shown.holders, *shown.waiters}) == 2
    assert await (await other.limits()).list("items:post") == []
    assert await (await other.limits()).list(tenant="another") == []
    items.go.set()
    for result in await asyncio.gather(first, second):
        assert result.completed, result.error
    order = [item for item, _ in items.began]
    assert order.index("late") <= 6, order
    assert await limits_in_use(store, "default") == []


@pytest.mark.covers("USERS-MAP-RATE")
async def test_an_item_that_waits_and_is_given_up_does_not_hold_up_others(place: Place) -> None:
    store = (await (await place.hf()).service()).store
    limit = SharedLimit(store, "default", "mail")
    run, other = RunId(RUN), RunId(RUN.replace("0", "1"))
    flow = by_script(Items(place))
    for each in (run, other):
        await flow.run({"items": []}, on=await place.hf(), run_id=each)
    # Neither run has a worker: their places and their waits are forgotten.
    for each in (run, other, run):
        await limit.enter(each, f"a/{each}", 1)
    (use,) = await limits_in_use(store, "default")
    assert use.holders == [run]
    assert use.waiters == []


@pytest.mark.covers("USERS-MAP-RATE")
async def test_options_that_a_limited_item_cannot_have_are_refused(place: Place) -> None:
    items = Items(place)
    for options, why in (
        ({"isolation": "process"}, "isolation= does not go with rate="),
        ({"probe": items.work}, "probe= does not go with rate="),
    ):
        with pytest.raises(FlowInvalidError, match=why):
            by_node(items, rate="1/s", **options).compile()
    body = Flow("body", effect="pure")
    flow = Flow("over", effect="pure")
    flow.map("each", over="items", body=body, into="out", rate="1/s")
    with pytest.raises(FlowInvalidError, match="a map over a flow takes no options"):
        flow.compile()
