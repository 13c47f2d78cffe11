from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Join, append
from holdfast.errors import CheckpointNotFoundError, ConflictError
from holdfast.runs.history.checkpoint_store import CheckpointView
from holdfast.testing.clock import FakeClock
from holdfast.types.ids import checkpoint_id, new_run_id
from holdfast.types.record import Kind
from tests.flows.conftest import node
from tests.flows.places import as_it_lies
from tests.flows.refunds import GIVEN, refund_flow
from tests.operations import async_operations

pytestmark = pytest.mark.anyio


async def finished(hf: Holdfast, flow: Flow) -> str:
    """A run that was asked, answered and completed."""
    result = await flow.run(GIVEN, on=hf)
    service = await hf.service()
    await service.answer(result.holds[0].id, "approve")
    return (await flow.resume(result.run_id, on=hf)).expect().run_id


@pytest.mark.covers("G-1", "G-7", "D-4", "R-4", "R-11", "CORE-CKPT-09")
async def test_checkpoints_are_listed_newest_first_when_no_state_is_loaded(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await finished(hf, refund_flow())
    service = await hf.service()
    journal = {r.seq: r for r in await as_it_lies(service.store).read(run)}  # type: ignore[arg-type]
    read = service.store.read

    async def bare(*args: Any, **options: Any) -> Any:
        assert options.get("payloads") is False, "a list reads no payloads"
        return await read(*args, **options)

    monkeypatch.setattr(service.store, "read", bare)
    listed = await service.checkpoints(run, limit=0)
    monkeypatch.setattr(service.store, "read", read)
    assert [m.seq for m in listed] == sorted((r.seq for r in journal.values() if r.listed), reverse=True)
    assert [m.node for m in listed] == ["", "pay", "approve", "approve", "assess", ""]
    assert [m.status for m in listed] == [
        "completed",
        "active",
        "active",
        "pending_input",
        "active",
        "active",
    ]
    assert all(m.state_size == len(journal[m.seq].payload) > 0 for m in listed)
    assert all(m.at == journal[m.seq].at and m.flow == "refund" and m.run == run for m in listed)
    assert [m.seq for m in await service.checkpoints(run, limit=2)] == [m.seq for m in listed[:2]]
    assert [m.node for m in await service.checkpoints(run, node="approve")] == ["approve", "approve"]
    assert [m.seq for m in await service.checkpoints(run, before=listed[2].seq, limit=1)] == [listed[3].seq]


@pytest.mark.covers("G-2", "E6", "CORE-CKPT-11", "CORE-CKPT-12")
async def test_latest_is_the_last_record_when_all_have_the_same_time() -> None:
    flow = Flow("quick", effect="pure")

    async def one() -> dict[str, int]:
        return {"x": 1}

    async def two() -> dict[str, int]:
        return {"x": 2}

    flow.edge(flow.node()(one), flow.node()(two))
    async with Holdfast("memory:", clock=FakeClock()) as hf:
        run = (await flow.run({}, on=hf)).run_id
        service = await hf.service()
        listed = await service.checkpoints(run)
        assert len({m.at for m in listed}) == 1
        latest = await service.latest(run)
        assert (latest.status, latest.seq, latest.state) == ("completed", listed[0].seq, {"x": 2})
        assert (await service.latest(run, node="one")).state == {"x": 1}


@pytest.mark.covers("G-3", "E5", "CORE-CKPT-10")
async def test_checkpoint_is_the_same_when_the_run_has_gone_on(hf: Holdfast) -> None:
    flow = refund_flow()
    result = await flow.run(GIVEN, on=hf)
    service = await hf.service()
    metas = await service.checkpoints(result.run_id)
    before = [await service.checkpoint(m.id) for m in metas]
    lines = [c.as_interface() for c in before]
    lines[0]["state"]["scratch"]["amount"] = 1
    lines[0]["visitedNodes"].append("nonsense")
    await service.answer(result.holds[0].id, "approve")
    (await flow.resume(result.run_id, on=hf)).expect()
    after = [await service.checkpoint(m.id) for m in metas]
    assert after == before
    assert after[0].visited == ["assess"]
    assert after[0].state["amount"] == 250
    assert (await service.latest(result.run_id)).visited == ["assess", "approve", "pay"]


@pytest.mark.covers("G-32", "R-5", "CORE-CKPT-01")
async def test_picture_tells_results_and_pending_edges_when_read_at_each_checkpoint(hf: Holdfast) -> None:
    run = await finished(hf, refund_flow())
    service = await hf.service()
    pictures = [await service.checkpoint(run, m.seq) for m in reversed(await service.checkpoints(run))]
    assert [(p.node, p.visited, p.pending_edges) for p in pictures] == [
        ("", [], ["__START__->assess"]),
        ("assess", ["assess"], ["assess->approve"]),
        ("approve", ["assess"], []),
        ("approve", ["assess", "approve"], ["approve->pay"]),
        ("pay", ["assess", "approve", "pay"], []),
        ("", ["assess", "approve", "pay"], []),
    ]
    asked, last = pictures[2], pictures[-1]
    (question,) = asked.pending_input
    assert (question.prompt, question.hold, question.node) == ("Refund 250 to c-9?", asked.id, "approve")
    assert last.pending_input == []
    assert last.skipped == ["refuse"]
    paid = last.node_results["pay"]
    assert (paid.effect, paid.outcome, paid.visit, paid.attempts) == ("external", "success", 1, 1)
    assert paid.output == {"receipt": "r-250"}
    assert last.artifacts == {"letter": "c-9 gets 250"}
    assert last.input == GIVEN
    assert last.state["receipt"] == "r-250"
    assert next(p.parent for p in pictures[1:]) == pictures[0].id


@pytest.mark.covers("G-13", "P5")
async def test_diagnostics_are_filled_when_a_run_was_resumed(hf: Holdfast) -> None:
    run = await finished(hf, refund_flow())
    found = (await (await hf.service()).latest(run)).diagnostics
    assert found["totalTokensUsed"] == 7
    assert found["checkpointsSaved"] == 6
    assert set(found["nodeTimings"]) == {"assess", "approve", "pay"}
    assert all(t["startMs"] <= t["endMs"] for t in found["nodeTimings"].values())
    assert found["nodeTimings"]["pay"]["tokensUsed"] == 7
    assert found["totalDurationMs"] > 0
    assert found["guardrailResults"] == {}
    assert found["memoryReads"] == 0


@pytest.mark.covers("G-13")
async def test_diagnostics_name_guardrails_when_one_judged(hf: Holdfast) -> None:
    flow = Flow("guarded", effect="pure")

    async def write() -> dict[str, str]:
        return {"text": "fine"}

    async def polite() -> None:
        return None

    flow.edge(flow.node()(write), flow.guardrail()(polite))
    run = (await flow.run({}, on=hf)).expect().run_id
    found = (await (await hf.service()).latest(run)).diagnostics["guardrailResults"]
    assert found["polite"]["guardrailId"] == "polite"
    assert found["polite"]["passed"] is True


@pytest.mark.covers("G-31")
async def test_branch_is_visited_only_with_its_writes_when_a_batch_is_looked_at(hf: Holdfast) -> None:
    flow = Flow("wide", effect="pure", reducers={"log": append})

    async def begin() -> dict[str, Any]:
        return {"log": ["begin"]}

    start = flow.node()(begin)

    async def last() -> None:
        return None

    end = flow.node(join=Join("all"))(last)
    for name in ("left", "middle", "right"):
        handle = node(flow, name, {name: True, "log": [name]})
        flow.edge(start, handle)
        flow.edge(handle, end)
    run = (await flow.run({}, on=hf)).expect().run_id
    service = await hf.service()
    for meta in await service.checkpoints(run, limit=0):
        picture = await service.checkpoint(run, meta.seq)
        done = [name for name in ("left", "middle", "right") if name in picture.visited]
        assert [name for name in ("left", "middle", "right") if name in picture.state] == done
        assert sorted(set(picture.state.get("log", [])) - {"begin"}) == sorted(done)


@pytest.mark.covers("CORE-CKPT-01")
async def test_loops_show_each_execution_when_a_node_ran_often(hf: Holdfast) -> None:
    flow = Flow("round", effect="pure")

    async def turn(s: dict[str, int]) -> dict[str, int]:
        return {"n": s["n"] + 1}

    async def done() -> None:
        return None

    again, end = flow.node()(turn), flow.node()(done)
    flow.loop(again, again, when="n < 3", max=5)
    flow.edge(again, end, when="n >= 3")
    run = (await flow.run({"n": 0}, on=hf)).expect().run_id
    picture = await (await hf.service()).latest(run)
    turns = [e for e in picture.executions if e.node == "turn"]
    assert [(e.visit, e.output) for e in turns] == [(1, {"n": 1}), (2, {"n": 2}), (3, {"n": 3})]
    assert picture.visited == ["turn", "done"]
    assert picture.visits == {"turn": 3, "done": 1}
    assert picture.node_results["turn"].output == {"n": 3}


async def test_checkpoint_serves_versions_when_the_flow_is_compiled_again(hf: Holdfast) -> None:
    run = await finished(hf, refund_flow())
    picture = await (await hf.service()).latest(run)
    again = refund_flow().program()
    assert picture.version == again.version
    assert picture.version.startswith("g1-")
    assert picture.schema_version == 1
    assert picture.code.startswith("c1-")


@pytest.mark.covers("D-26")
async def test_history_is_read_when_the_code_is_not_loaded(hf: Holdfast) -> None:
    run = await finished(hf, refund_flow())
    service = await hf.service()
    known = (await service.latest(run), await service.events(run))
    programs, service.runtime.programs = service.runtime.programs, {}
    try:
        assert (await service.latest(run), await service.events(run)) == known
    finally:
        service.runtime.programs = programs


@pytest.mark.covers("G-4")
async def test_second_process_reads_checkpoints_when_the_first_has_closed(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'two.db'}"
    async with Holdfast(address) as first:
        run = await finished(first, refund_flow())
        before = await (await first.service()).latest(run)
    async with Holdfast(address) as second:
        assert await (await second.service()).checkpoint(before.id) == before


@pytest.mark.covers("R-3", "G-34")
async def test_foreign_checkpoint_is_refused_when_it_is_not_of_this_store(hf: Holdfast) -> None:
    run = await finished(hf, refund_flow())
    service = await hf.service()
    metas = await service.checkpoints(run)
    made_up = metas[0].id[:-4] + ("0000" if metas[0].id[-4:] != "0000" else "1111")
    for ref in (made_up, checkpoint_id(new_run_id(), 3), "nonsense", checkpoint_id(run, 99)):  # type: ignore[arg-type]
        with pytest.raises(CheckpointNotFoundError):
            await service.checkpoint(ref)
    with pytest.raises(CheckpointNotFoundError, match="no record 99"):
        await service.checkpoint(run, 99)
    with pytest.raises(CheckpointNotFoundError):
        await service.latest(run, node="nobody")


@pytest.mark.covers("G-30", "E14", "CORE-FLOW-37", "CORE-FLOW-38")
@pytest.mark.parametrize(
    ("policy", "own", "listed"),
    [
        ("every_node", None, {"after"}),
        ("every_node", "none", set[str]()),
        ("every_node", "before", {"before"}),
        ("every_node", "both", {"before", "after"}),
        ("explicit", None, set[str]()),
        ("explicit", "after", {"after"}),
        ("none", None, set[str]()),
        ("none", "both", {"before", "after"}),
    ],
)
async def test_node_setting_wins_over_the_flow_when_both_speak_of_checkpoints(
    policy: str, own: str | None, listed: set[str]
) -> None:
    flow = Flow("policy", effect="pure", checkpoints=policy)
    options = {} if own is None else {"checkpoint": own}

    async def work() -> dict[str, int]:
        return {"x": 1}

    flow.node(**options)(work)
    async with Holdfast("memory:") as hf:
        run = (await flow.run({}, on=hf)).expect().run_id
        service = await hf.service()
        records = await service.store.read(run)
        assert any(r.kind == Kind.step and r.node == "work" for r in records), "the journal is complete"
        found = {
            "after" if r.kind == Kind.step else "before" for r in records if r.listed and r.node == "work"
        }
        assert found == listed


@pytest.mark.covers("E13", "G-30")
async def test_resumed_run_lists_checkpoints_like_a_fresh_one(hf: Holdfast) -> None:
    run = await finished(hf, refund_flow())
    service = await hf.service()
    small = await refund_flow().run({**GIVEN, "amount": 50}, on=hf)
    resumed = [m.node for m in await service.checkpoints(run)]
    fresh = [m.node for m in await service.checkpoints(small.expect().run_id)]
    assert resumed == ["", "pay", "approve", "approve", "assess", ""]
    assert fresh == ["", "pay", "assess", ""]


@pytest.mark.covers("G-1")
async def test_checkpoint_view_keeps_the_store_contract(hf: Holdfast) -> None:
    flow = refund_flow()
    run = await finished(hf, flow)
    other = (await flow.run({**GIVEN, "amount": 5}, on=hf)).expect().run_id
    service = await hf.service()
    view = CheckpointView(service)
    latest = await view.latest(run)
    assert latest is not None
    assert latest == await view.load(run) == await view.get(latest["id"])
    await view.save(latest)
    assert await view.get(latest["id"]) == latest
    with pytest.raises(ConflictError, match="differs from the stored one"):
        await view.save({**latest, "visitedNodes": []})
    assert await view.get(new_run_id()) is None
    assert await view.load(new_run_id()) is None
    assert await view.load(run, "nobody") is None
    at_pay = await view.load(run, "pay")
    assert at_pay is not None
    assert at_pay["nodeId"] == "pay"
    graph = latest["graphId"]
    listed = await view.list(graph)
    assert [m["timestamp"] for m in listed] == sorted((m["timestamp"] for m in listed), reverse=True)
    assert {m["runId"] for m in listed} == {run, other}
    assert len(await view.list(graph, limit=3)) == 3
    assert next(m["id"] for m in await view.list(graph, run_id=run)) == latest["id"]
    assert await view.list("g1-unknown") == []
    await view.delete(new_run_id())
    with pytest.raises(ConflictError, match="middle of a history"):
        await view.delete(latest["id"])
    with pytest.raises(CheckpointNotFoundError):
        await view.fork(new_run_id())
    forked = await view.fork(at_pay["id"])
    assert forked != run
    assert (await service.get(forked)).forked_from == at_pay["id"]


@pytest.mark.covers("CORE-CKPT-09")
async def test_listing_stays_quick_when_a_run_is_long(hf: Holdfast) -> None:
    flow = Flow("long", effect="pure")

    async def turn(s: dict[str, int]) -> dict[str, int]:
        return {"n": s["n"] + 1}

    again = flow.node()(turn)
    flow.loop(again, again, when="n < end", max=400)
    service = await hf.service()
    counts: dict[int, int] = {}
    for end in (30, 300):
        run = (await flow.run({"n": 0, "end": end}, on=hf)).expect().run_id
        assert len(await service.checkpoints(run, limit=10)) == 10
        counts[end] = await async_operations(partial(service.checkpoints, run, limit=10))
    # The memory store passes over keys in order; no store reads what it does not list.
    assert counts[300] < 4 * counts[30]
    middle = (await service.checkpoints(run, limit=0))[150]
    picture = await service.checkpoint(middle.id)
    assert picture.state["n"] == len(picture.executions)
