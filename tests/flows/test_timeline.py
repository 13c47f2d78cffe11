"""Visits, as told by events, are what the checkpoints know; and every flow can be drawn with its states."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast
from holdfast.checkpoint.visit import path_of
from holdfast.drawing import Picture, State, to_svg, to_text
from holdfast.model.events import DerivedEvent
from holdfast.reports.run_graph import picture_of
from holdfast.runs import events
from holdfast.runs.history.timeline import Timeline, make_timeline
from holdfast.testing.conformance.flows import FLOWS, FlowCase
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.record import Record
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio

_STATES = {"success": "done", "partial_success": "done", "fail": "failed", "skipped": "failed"}


async def timeline_of(hf: Holdfast, run: str, keep: int | None = None) -> Timeline:
    service = await hf.service()
    return await make_timeline(service, await service.get(run), keep)


def states(picture: Picture) -> dict[str, State]:
    return {node.id: node.state for node in picture.nodes if node.label}


@pytest.mark.covers("TOOL-CLI-05", "TOOL-DRAW-03", "TOOL-DRAW-04")
@pytest.mark.parametrize("case", FLOWS, ids=lambda case: case.name)
async def test_visits_are_the_executions_of_the_checkpoint(case: FlowCase, bare_hf: Holdfast) -> None:
    flow = case.build()
    result = await flow.run(case.given, on=bare_hf)

    line = await timeline_of(bare_hf, result.run_id)
    checkpoint = await (await bare_hf.service()).latest(result.run_id)

    lines = [(v.label, v.visit, v.state) for v in line.visits.all() if v.outcome]
    executed = [(e.label, e.visit, _STATES[e.outcome]) for e in checkpoint.executions]
    assert sorted(lines) == sorted(executed)
    picture = picture_of(line.graph, line.visits, expand=True)
    assert to_svg(picture).count("<svg") == 1
    assert all(label.rpartition("/")[2] in to_text(picture, width=200).plain for label, *_ in executed)


@pytest.mark.covers("TOOL-CLI-05")
async def test_a_failure_that_was_repaired_is_one_visit_with_two_attempts(bare_hf: Holdfast) -> None:
    flow, broken = Flow("mended", effect="read"), [True]

    @flow.node
    async def work() -> None:
        if broken.pop() if broken else False:
            raise ValueError("not yet")

    flow.start(work)
    failed = await flow.run({}, on=bare_hf)
    before = await timeline_of(bare_hf, failed.run_id)
    await flow.resume(failed.run_id, on=bare_hf)
    after = await timeline_of(bare_hf, failed.run_id)

    assert [(v.state, v.error_text) for v in before.visits.all()] == [("failed", "ValueError: not yet")]
    assert [(v.state, v.error_text, v.visit) for v in after.visits.all()] == [("done", "", 1)]
    node = after.visits.nodes["work"]
    assert (node.visits, node.open, node.done, node.failed) == (1, 0, 1, 0)


@pytest.mark.covers("WB-65-timeline")
async def test_a_timeline_that_is_asked_for_again_reads_only_what_is_new(
    bare_hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, broken = Flow("repaired", effect="read"), [True]

    @flow.node
    async def prepare() -> None: ...

    @flow.node
    async def work() -> None:
        if broken.pop() if broken else False:
            raise ValueError("not yet")

    flow.chain(prepare, work)
    run = (await flow.run({}, on=bare_hf)).run_id
    service, asked = await bare_hf.service(), list[int]()
    read = service.store.events

    async def counted(run: RunId, *, after: int = 0, limit: int) -> list[Record | EventRow]:
        asked.append(after)
        return await read(run, after=after, limit=limit)

    monkeypatch.setattr(service.store, "events", counted)
    first = [msgspec.json.encode(v) for v in (await timeline_of(bare_hf, run)).visits.all()]
    assert asked[0] == 0
    asked.clear()
    again = await timeline_of(bare_hf, run)
    assert asked
    assert 0 not in asked
    assert [msgspec.json.encode(v) for v in again.visits.all()] == first
    await flow.resume(run, on=bare_hf)
    asked.clear()
    after = await timeline_of(bare_hf, run)
    assert asked
    assert 0 not in asked
    # What was given out before is not changed by what happened since.
    assert [msgspec.json.encode(v) for v in again.visits.all()] == first
    service.caches.timelines.clear()
    fresh = await timeline_of(bare_hf, run)
    for one, other in ((after, fresh), (await timeline_of(bare_hf, run), fresh)):
        assert [*map(msgspec.json.encode, one.visits.all())] == [
            *map(msgspec.json.encode, other.visits.all())
        ]
        assert (one.visits.nodes, one.visits.edges, one.visits.marks) == (
            other.visits.nodes, other.visits.edges, other.visits.marks,
        )  # fmt: skip
    # Another journal under the same numbers is not continued.
    kept = service.caches.timelines[RunId(run)]
    service.caches.timelines[RunId(run)] = msgspec.structs.replace(
        kept, last=msgspec.structs.replace(kept.last, at=1)
    )
    asked.clear()
    await timeline_of(bare_hf, run)
    assert 0 in asked


@pytest.mark.covers("TOOL-CLI-05")
async def test_a_wait_for_a_time_is_reported_with_its_end(bare_hf: Holdfast) -> None:
    flow = Flow("nap", effect="pure")
    nap = flow.timer("nap", "1h")
    flow.start(nap)
    result = await flow.run({}, on=bare_hf)

    line = await timeline_of(bare_hf, result.run_id)

    (visit,) = line.visits.all()
    assert (visit.state, visit.ended_at, visit.waits[0].kind) == ("waiting", None, "time")
    assert (visit.waits[0].wake_at or 0) - visit.waits[0].since == 3_600_000_000
    assert states(picture_of(line.graph, line.visits)) == {"nap": State.waiting}


@pytest.mark.covers("TOOL-CLI-04")
async def test_what_waited_is_stopped_when_its_run_is_cancelled(bare_hf: Holdfast) -> None:
    flow = refund_flow()
    result = await flow.run(GIVEN, on=bare_hf)
    service = await bare_hf.service()
    await service.cancel(result.run_id, reason="ordered twice", by="user:ada")
    await flow.resume(result.run_id, on=bare_hf)

    line = await timeline_of(bare_hf, result.run_id)

    assert {v.label: v.state for v in line.visits.all()} == {"assess": "done", "approve": "stopped"}
    assert states(picture_of(line.graph, line.visits))["approve"] == State.skipped


@pytest.mark.covers("TOOL-CLI-04")
async def test_a_question_inside_a_sub_flow_is_seen_on_the_node_around_it(bare_hf: Holdfast) -> None:
    around = Flow("around", effect="pure")
    child = around.subflow("child", refund_flow(), inputs={name: f"{name}" for name in GIVEN})
    around.start(child)
    result = await around.run(GIVEN, on=bare_hf)

    line = await timeline_of(bare_hf, result.run_id)
    picture = picture_of(line.graph, line.visits, expand=True)

    assert states(picture) == {"child": State.asking}
    assert picture.nodes[1].inside is not None
    assert states(picture.nodes[1].inside)["approve"] == State.asking
    assert {edge.mark for edge in picture.nodes[1].inside.edges if edge.target == "approve"} == {"taken"}


@pytest.mark.covers("TOOL-CLI-05")
async def test_sums_are_whole_when_visits_are_left_out(bare_hf: Holdfast) -> None:
    flow = Flow("long", effect="pure")

    @flow.node
    async def tick(s: dict[str, int]) -> dict[str, int]:
        return {"n": s["n"] + 1}

    flow.start(tick)
    flow.loop(tick, tick, when="n < 50", max=99)
    result = await flow.run({"n": 0}, on=bare_hf)

    line = await timeline_of(bare_hf, result.run_id, keep=7)

    assert [v.visit for v in line.visits.all()] == list(range(44, 51))
    assert line.visits.left_out == 43
    assert line.visits.nodes["tick"].done == 50


def test_a_scope_says_where_in_the_graph_it_is() -> None:
    assert path_of("") == ""
    assert path_of("send.1[0]/pay.later.2[13]/") == "send/pay.later/"


@pytest.mark.covers("TOOL-CLI-04", "TOOL-CLI-05")
async def test_a_renamed_node_goes_on_under_its_new_name(bare_hf: Holdfast) -> None:
    old, new = Flow("order", effect="read", version="1"), Flow("order", effect="read", version="2")
    for flow, gate in ((old, "gate"), (new, "approve")):
        flow.start(flow.hold(gate, prompt="Go?", options=["yes"]))
    new.migrate("1", rename={"gate": "approve"})
    waiting = await old.run({}, on=bare_hf)
    (verdict,) = await new.migrate_runs(on=bare_hf)
    assert verdict.migrated

    line = await timeline_of(bare_hf, waiting.run_id)

    assert [(v.label, v.state) for v in line.visits.all()] == [("approve", "asking")]
    assert states(picture_of(line.graph, line.visits)) == {"approve": State.asking}


@pytest.mark.covers("WB-65-timeline")
async def test_a_timeline_derives_only_events_that_change_visits_and_each_once(
    bare_hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three for a step: its end, the edge, and the start of the next. Not its checkpoint, whose id is long to
    make."""
    flow = Flow[Any]("ring", effect="pure")

    @flow.node
    async def count(state: dict[str, Any]) -> dict[str, Any]:
        return {"number": state.get("number", 0) + 1}

    flow.start(count)
    flow.loop(count, count, when="number < 200", max=300)
    run = (await flow.run({}, on=bare_hf)).run_id
    derived = list[str]()
    derive = events.derive_events

    def counted(*given: Any, **options: Any) -> list[DerivedEvent]:
        found = list(derive(*given, **options))
        derived.extend(kind for kind, *_ in found)
        return found

    monkeypatch.setattr(events, "derive_events", counted)
    service = await bare_hf.service()
    service.caches.timelines.clear()
    assert len((await timeline_of(bare_hf, run)).visits.all()) == 200
    assert "checkpoint.created" not in derived
    assert len(derived) <= 200 * 4 + 3
    derived.clear()
    await timeline_of(bare_hf, run)
    assert len(derived) <= 4
