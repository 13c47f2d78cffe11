"""A step of a run is read from its own records, and is the same as in the run's whole story."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.runs.history.visit_loader import load_visit
from tests.flows.conftest import node
from tests.flows.whole_steps import assert_steps_alike

pytestmark = pytest.mark.anyio


def shapes() -> Flow[Any]:
    """Turns of a loop, attempts, sub-steps, items of a map, a question and a failure."""

    async def weigh(item: str) -> int:
        return len(item)

    flow = Flow[Any]("shapes", effect="pure")
    node(flow, "turn", {"turned": True})
    flow.loop("turn", "turn", when="true", max=3, on_limit="continue")
    flow.map("each", over="items", body=weigh, into="weights")

    @flow.node(retry=2)
    async def tries(state: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.emit("tries")
        await ctx.step("look", lambda: 1, effect="read")
        if ctx.attempt == 1:
            raise ValueError("once more")
        return {"tried": True}

    flow.hold("sure", prompt="Sure?", options=["yes"])

    @flow.node
    def fails(state: dict[str, Any]) -> None:
        raise KeyError("nothing here")

    flow.chain("turn", "each", "tries", "sure", "fails")
    return flow


@pytest.mark.covers("WB-65")
async def test_each_step_read_alone_is_the_one_of_the_whole_story(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.runs.driver.record_writer.SNAPSHOT_RECORDS", 6)
    flow = shapes()
    run = (await flow.run({"items": ["a", "bb", "ccc"]}, on=hf)).run_id
    service = await hf.service()
    assert await assert_steps_alike(service, run) > 20
    (hold,) = await service.holds(run)
    await service.answer(hold.id, "yes")
    await flow.resume(run, on=hf)
    await flow.resume(run, on=hf)
    await assert_steps_alike(service, run)
    await service.prune(run, keep=1)
    row = await service.get(run)
    first = await load_visit(service, row, row.horizon, past=True)
    assert row.horizon > 0
    assert first is not None
    assert first.visit.label == "fails"
    # The timeline of a pruned run still lists its steps: each is found, without the state before it.
    earlier = [
        each for each in (await service.story(run)).visits if each.run == run and each.seq < row.horizon
    ]
    assert earlier
    for each in earlier:
        kept = await load_visit(service, row, each.seq, past=False)
        assert kept is not None
        assert (kept.visit.label, kept.state) == (each.label, None)
    assert await load_visit(service, row, 0, past=False) is None


@pytest.mark.covers("WB-65")
async def test_a_step_of_a_long_run_is_read_without_the_records_of_the_others(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.runs.driver.record_writer.SNAPSHOT_RECORDS", 20)
    flow = Flow[Any]("long", effect="pure")

    @flow.node
    async def work(state: dict[str, Any]) -> dict[str, Any]:
        return {"n": state["n"] + 1}

    flow.loop("work", "work", when="n < 300", max=1000)
    run = (await flow.run({"n": 0}, on=hf)).run_id
    service = await hf.service()
    row = await service.get(run)
    snapshot = await service.store.last_snapshot(row.id, 249)
    assert row.head > 300
    assert snapshot
    whole, columns = 0, 0
    read = type(service.store).read

    async def counted(self: Any, *given: Any, payloads: bool = True, **named: Any) -> Any:
        nonlocal whole, columns
        found = await read(self, *given, payloads=payloads, **named)
        whole, columns = whole + len(found) * payloads, columns + len(found) * (not payloads)
        return found

    monkeypatch.setattr(type(service.store), "read", counted)
    found = await load_visit(service, row, 250, past=False)
    assert found is not None
    assert (found.visit.node, found.visit.seq) == ("work", 250)
    assert found.state["n"] == found.visit.visit - 1
    # The records since a snapshot for the position; its worker is found by halving.
    assert whole <= 250 - snapshot + 3
    assert columns < 20
