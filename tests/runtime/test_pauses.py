"""Pauses on time, under barrier and strict (RS-PAUSE)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Result
from holdfast.app.flow import run_blocking
from holdfast.errors import StoreError
from tests.flows.places import Place, kinds, told
from tests.runtime.people import Seen, State, listed, step

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("mode", ["barrier", "strict"])]
HOUR = 3_600_000_000


def loan(seen: Seen, mode: str, **given: Any) -> Flow:
    """assess, an hour of cooling off, pay."""
    flow = Flow("loan", effect="pure", mode=mode)
    assess = step(flow, "assess", seen)
    rest = flow.timer("rest", **(given or {"duration": "1h"}))
    pay = step(flow, "pay", seen)
    flow.edge(assess, rest)
    flow.edge(rest, pay)
    return flow


async def wakes_at(hf: Holdfast, run: Result) -> list[int]:
    return [e.data["wake_at"] for e in await told(hf, run, "timer.started")]


@pytest.mark.covers("RS-PAUSE-1", "RS-PAUSE-2", "RS-PAUSE-8", "R-30", "R-10")
async def test_a_pause_records_finished_steps_and_its_wake_time_and_is_no_failure(
    place: Place, mode: str
) -> None:
    seen = Seen()
    flow = loan(seen, mode)
    hf = await place.hf()
    begun = place.clock.now()

    paused = await flow.run({}, on=hf)

    assert (paused.status, paused.waiting, paused.failed, paused.error) == ("waiting", True, False, None)
    assert seen.calls == ["assess"]
    assert await wakes_at(hf, paused) == [begun + HOUR]
    picture = await (await hf.service()).latest(paused.run_id)
    assert (picture.visited, picture.status) == (["assess"], "active")
    assert not {"run.failed", "run.completed", "node.failed"} & set(await kinds(hf, paused))


@pytest.mark.covers("RS-PAUSE-3", "RS-PAUSE-4")
async def test_an_early_resume_keeps_the_wake_time_and_one_on_time_runs_every_step_once(
    place: Place, mode: str
) -> None:
    seen = Seen()
    flow = loan(seen, mode)
    paused = await flow.run({}, on=await place.hf())
    for _ in range(3):
        place.clock.advance(minutes=15)
        early = await flow.resume(paused.run_id, on=await place.hf())
        assert early.status == "waiting"
    hf = await place.hf()
    assert len(await wakes_at(hf, paused)) == 1
    assert await (await hf.open()).next_timer() == (await wakes_at(hf, paused))[0]

    place.clock.advance(minutes=15)
    result = await flow.resume(paused.run_id, on=hf)

    assert result.completed
    assert seen.calls == ["assess", "pay"]


@pytest.mark.covers("RS-PAUSE-5", "R-60", "RS-FLOW-3", "RS-FLOW-10")
async def test_sync_and_async_runs_pause_and_go_on_alike(place: Place, mode: str) -> None:
    stories: list[Any] = []
    for sync in (False, True):
        seen = Seen()
        flow = loan(seen, mode)
        hf = await place.hf()
        paused = flow.run_sync({}, on=hf) if sync else await flow.run({}, on=hf)
        assert paused.status == "waiting"
        place.clock.advance(hours=1)
        going = flow.resume(paused.run_id, on=hf)
        result = run_blocking(going) if sync else await going
        stories.append((result.status, result.state, seen.calls, await kinds(hf, result)))
    assert stories[0] == stories[1]


@pytest.mark.covers("RS-PAUSE-6", "RF-7", "RS-FLOW-5")
async def test_runs_of_one_flow_keep_their_own_wake_times(place: Place, mode: str) -> None:
    seen = Seen()
    flow = loan(seen, mode, until="seconds")
    hf = await place.hf()
    runs = [await flow.run({"seconds": n * 60}, on=hf) for n in (3, 1, 2)]

    for minute, run in ((1, runs[1]), (2, runs[2]), (3, runs[0])):
        place.clock.advance(minutes=1)
        for each in runs:
            status = (await flow.resume(each.run_id, on=hf)).status
            assert status == ("completed" if each.state["seconds"] <= minute * 60 else "waiting"), run


@pytest.mark.covers("RS-PAUSE-7")
async def test_an_independent_branch_finishes_during_the_pause_and_is_not_repeated(
    place: Place, mode: str
) -> None:
    seen = Seen()
    flow = loan(seen, mode)
    beside, further = step(flow, "beside", seen), step(flow, "further", seen)
    flow.edge(beside, further)
    paused = await flow.run({}, on=await place.hf())
    assert sorted(seen.calls) == ["assess", "beside", "further"]

    place.clock.advance(hours=1)
    result = await flow.resume(paused.run_id, on=await place.hf())

    assert result.completed
    assert sorted(seen.calls) == ["assess", "beside", "further", "pay"]


@pytest.mark.covers("RS-PAUSE-9")
async def test_a_real_failure_wins_over_a_pause(place: Place, mode: str) -> None:
    seen = Seen()
    flow = loan(seen, mode)

    @flow.node
    async def broken(s: State) -> State:
        raise ValueError("no money")

    hf = await place.hf()
    result = await flow.run({}, on=hf)

    assert (result.failed, result.failed_node) == (True, "broken")
    assert await (await hf.open()).next_timer() is None
    place.clock.advance(hours=2)
    assert "pay" not in seen.calls


@pytest.mark.covers("RS-PAUSE-10", "R-43", "RF-8")
@pytest.mark.parametrize("pause", ["timer", "hold"])
async def test_a_pause_that_cannot_be_saved_is_an_error_and_never_reported_as_a_pause(
    place: Place, mode: str, pause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen()
    flow = Flow("unsavable", effect="pure", mode=mode, allow_uncheckpointed=True)
    first = step(flow, "first", seen)
    wait = flow.timer("rest", "1h") if pause == "timer" else flow.hold("gate", prompt="Go?", options=["yes"])
    flow.edge(first, wait)
    hf = await place.hf()
    store = await hf.open()

    def fails(*_args: Any, **_more: Any) -> Any:
        raise StoreError("the disk is gone")

    async def fails_later(*_args: Any, **_more: Any) -> Any:
        fails()

    row = None
    service = await hf.service()
    row, _ = await service.create(flow.program(), {})
    for name in ("settle", "park"):
        monkeypatch.setattr(store, name, fails_later)
    monkeypatch.setattr(store, "settle_now", fails)

    with pytest.raises(StoreError, match="the disk is gone"):
        await flow.resume(row.id, on=hf)

    monkeypatch.undo()
    place.lapse()
    again = await flow.resume(row.id, on=await place.hf())
    assert again.waiting


@pytest.mark.covers("RS-PAUSE-11", "RF-9")
async def test_values_are_exact_after_a_pause(place: Place, mode: str) -> None:
    flow = Flow("exact", effect="pure", mode=mode)
    told_to: list[Any] = []
    values = {
        "tuple": (1, ("a", b"\x00")),
        "keys": {1: "one", "1": "text", (2, 3): "pair"},
        "money": Decimal("1.10"),
        "big": 1 << 90,
        "when": datetime(2030, 1, 1, tzinfo=UTC),
        "set": frozenset({1, 2}),
        "float": 1e300,
    }

    @flow.node
    async def make(s: State) -> State:
        return values

    rest = flow.timer("rest", "1h")

    @flow.node
    async def look(s: State) -> State:
        told_to.append({name: s[name] for name in values})
        return {}

    flow.edge(make, rest)
    flow.edge(rest, look)
    paused = await flow.run({}, on=await place.hf())
    place.clock.advance(hours=1)
    result = await flow.resume(paused.run_id, on=await place.hf())

    for found in (told_to[0], {name: result.state[name] for name in values}):
        assert found == values
        assert {name: type(found[name]) for name in ("tuple", "money", "when", "float")} == {
            "tuple": tuple, "money": Decimal, "when": datetime, "float": float,
        }  # fmt: skip
        assert list(found["keys"]) == [1, "1", (2, 3)]


@pytest.mark.covers("RS-PAUSE-12")
async def test_the_branch_chosen_before_a_pause_is_honoured_after_it(place: Place, mode: str) -> None:
    seen = Seen()
    flow = Flow("chosen", effect="pure", mode=mode)
    choose = step(flow, "choose", seen)
    rest = flow.timer("rest", "1h")
    left, right = step(flow, "left", seen), step(flow, "right", seen)
    answers = ["left", "right", "right", "right"]
    flow.branch(choose, lambda s: answers.pop(0), {"left": rest, "right": right})
    flow.edge(rest, left)

    paused = await flow.run({}, on=await place.hf())
    place.clock.advance(hours=1)
    result = await flow.resume(paused.run_id, on=await place.hf())

    assert result.completed
    assert seen.calls == ["choose", "left"]
    assert answers == ["right"] * 3


@pytest.mark.covers("RS-PAUSE-13")
async def test_steps_before_an_approval_are_not_repeated_after_it(place: Place, mode: str) -> None:
    seen = Seen()
    flow = Flow("approve", effect="pure", mode=mode)
    before, gate = step(flow, "before", seen), flow.hold("gate", prompt="Go?", options=["yes"])
    after = step(flow, "after", seen)
    flow.edge(before, gate)
    flow.edge(gate, after)
    hf = await place.hf()
    waiting = await flow.run({}, on=hf)
    assert (await listed(hf, waiting.run_id))[0].status == "pending_input"
    await (await hf.service()).answer(waiting.holds[0].id, "yes")
    assert (await flow.resume(waiting.run_id, on=await place.hf())).completed
    assert seen.calls == ["before", "after"]
