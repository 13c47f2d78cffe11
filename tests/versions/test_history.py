"""A migrated run has one history of two graphs: read, forked, replayed, moved and pruned as any other."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunStatus
from tests.flows.places import Place, answer, kinds, open_holds, told

pytestmark = pytest.mark.anyio


def order(label: str) -> Flow:
    """Version 2 calls two nodes otherwise, has a node more before it, and counts nodes from another start."""
    flow = Flow("order", effect="read", version=label)
    gate = "gate" if label == "1" else "approve"

    async def look(s: Any) -> dict[str, Any]:
        return {"seen": (*s.get("seen", ()), label)}

    if label == "2":
        flow.node(id="audit")(look)
    first = "look" if label == "1" else "peek"
    flow.node(id=first)(look)
    flow.hold(gate, prompt="Go?", options=["yes"])
    flow.node(id="done")(look)
    if label == "2":
        flow.start("audit")
        flow.edge("audit", first)
        flow.migrate("1", rename={"gate": "approve", "look": "peek"}, state={"checked": False})
    flow.edge(first, gate)
    flow.edge(gate, "done")
    return flow


async def migrated(place: Place) -> tuple[Holdfast, str]:
    waiting = await order("1").run({"n": 1}, on=await place.hf())
    hf = await place.hf()
    (verdict,) = await order("2").migrate_runs(on=hf)
    assert verdict.migrated, verdict
    return hf, waiting.run_id


@pytest.mark.covers("TOOL-VER-06", "G-6")
async def test_each_checkpoint_is_read_with_the_graph_of_its_version(place: Place) -> None:
    hf, run = await migrated(place)
    await answer(hf, run, "yes")
    result = await order("2").resume(run, on=hf)
    assert result.completed
    assert result.state["seen"] == ("1", "2")
    service = await hf.service()
    row = await service.get(run)
    at = row.migrated
    before, after = await service.checkpoint(run, at - 1), await service.checkpoint(run, at)
    assert before.version != after.version == row.version
    assert set(before.visits) == {"look", "gate"}
    assert set(after.visits) == {"peek", "approve"}
    assert [asked.node for asked in before.pending_input] == ["gate"]
    assert [asked.node for asked in after.pending_input] == ["approve"]
    assert after.status == "pending_input"
    assert ("checked" in before.state, after.state["checked"]) == (False, False)
    last = await service.latest(run)
    assert last.pending_input == []
    assert last.visited == ["look", "approve", "done"]


@pytest.mark.covers("TOOL-VER-06")
async def test_events_tell_the_story_in_the_words_of_each_version(place: Place) -> None:
    hf, run = await migrated(place)
    await answer(hf, run, "yes")
    await order("2").resume(run, on=hf)
    resumed = (await told(hf, run, "run.resumed"))[-1]
    assert resumed.data["skipped_nodes"] == ["peek"]
    started = [event.node for event in await told(hf, run, "node.started")]
    assert started == ["look", "gate", "done"]
    numbers = [event.number for event in await told(hf, run)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert (await kinds(hf, run)).count("run.migrated") == 1


@pytest.mark.covers("TOOL-VER-01", "D-35")
async def test_a_fork_is_of_the_version_that_the_run_was_on_there(place: Place) -> None:
    hf, run = await migrated(place)
    hf.register(order("1").program())
    service = await hf.service()
    row = await service.get(run)
    early, late = await service.fork(run, row.migrated - 1), await service.fork(run, row.migrated)
    assert early.version == order("1").program().version
    assert late.version == order("2").program().version
    for flow, fork, gate in ((order("1"), early, "gate"), (order("2"), late, "approve")):
        await flow.resume(fork.id, on=hf)
        (hold,) = await open_holds(hf, fork.id)
        assert hold.node == gate
        await service.answer(hold.id, "yes")
        assert (await flow.resume(fork.id, on=hf)).completed


@pytest.mark.covers("TOOL-VER-06")
async def test_a_replay_decides_each_part_with_its_own_graph(place: Place) -> None:
    hf, run = await migrated(place)
    await answer(hf, run, "yes")
    await order("2").resume(run, on=hf)
    found = await (await hf.service()).replay(run)
    assert found.same, found.difference
    assert found.replayed == found.recorded


@pytest.mark.covers("D-36", "TOOL-VER-06")
async def test_an_exported_run_takes_the_graphs_of_all_its_versions_along(place: Place) -> None:
    hf, run = await migrated(place)
    service = await hf.service()
    data = await service.export_run(run)
    async with Holdfast("memory:") as elsewhere:
        there = await elsewhere.service()
        row = await there.import_run(data)
        assert row.migrated
        early, late = await there.checkpoint(run, row.migrated - 1), await there.checkpoint(run, row.migrated)
        assert (set(early.visits), set(late.visits)) == ({"look", "gate"}, {"peek", "approve"})
        assert len(await there.events(run)) == len(await service.events(run))


@pytest.mark.covers("TOOL-VER-06")
async def test_a_migrated_run_is_pruned_like_any_other(place: Place) -> None:
    hf, run = await migrated(place)
    await answer(hf, run, "yes")
    await order("2").resume(run, on=hf)
    service = await hf.service()
    whole = await service.latest(run)
    assert await service.prune(run, keep=1)
    kept = await service.latest(run)
    assert (kept.state, kept.visited, kept.visits) == (whole.state, whole.visited, whole.visits)
    assert (await service.get(run)).status is RunStatus.completed
    assert await service.events(run)


@pytest.mark.covers("TOOL-VER-03")
async def test_a_run_goes_through_versions_one_after_the_other(place: Place) -> None:
    """Migrated twice, each time by what that version declared."""
    hf, run = await migrated(place)
    third = order("2")
    third.label = "3"
    third.migrations.clear()
    third.migrate("2", state={"more": 3})
    (verdict,) = await third.migrate_runs(on=hf)
    assert verdict.migrated, verdict
    service = await hf.service()
    row = await service.get(run)
    seen = [(await service.checkpoint(run, seq)).version for seq in range(row.head + 1)]
    assert len(set(seen)) == 3
    assert (await service.latest(run)).state["more"] == 3
    assert len(await told(hf, run, "run.migrated")) == 2
