from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, append
from holdfast.errors import (
    CheckpointNotFoundError,
    RunBusyError,
    RunNotFoundError,
    StateError,
    VersionMismatchError,
)
from holdfast.types.ids import RunId, checkpoint_id, new_run_id
from holdfast.types.record import Kind
from tests.flows.places import Place, answer, open_holds
from tests.flows.refunds import GIVEN, Refund, refund_flow

pytestmark = pytest.mark.anyio


async def finished(hf: Holdfast, flow: Flow, decision: str = "approve") -> str:
    result = await flow.run(GIVEN, on=hf)
    await answer(hf, result, decision)
    return (await flow.resume(result.run_id, on=hf)).expect().run_id


async def bytes_of(hf: Holdfast, run: str) -> list[Any]:
    """Everything that is stored of a run."""
    service = await hf.service()
    row = await service.get(run)
    return [row, await service.store.read(row.id), await service.holds(row.id, open_only=False)]


@pytest.mark.covers("G-5", "D-35", "G-40", "CORE-CKPT-13")
async def test_fork_goes_its_own_way_when_its_patch_changes_the_route(hf: Holdfast) -> None:
    flow = refund_flow()
    run = await finished(hf, flow)
    service = await hf.service()
    before = await bytes_of(hf, run)
    at = next(m for m in await service.checkpoints(run) if m.node == "assess")
    result = await flow.fork(checkpoint_id(RunId(run), 0), patch={"scratch": {"amount": 20}}, on=hf)
    assert result.completed
    assert result.run_id != run
    assert result.state.receipt == "r-20"
    row = await service.get(result.run_id)
    assert row.forked_from == checkpoint_id(RunId(run), 0)
    assert row.superseded_by is None
    picture = await service.latest(result.run_id)
    assert picture.lineage["run"] == run
    assert picture.lineage["patched"] == {"scratch": ["amount"]}
    second = await flow.fork(at.id, patch={"scratch": {"customer": "zoe"}}, on=hf)
    assert second.holds[0].prompt == "Refund 250 to zoe?"
    assert await bytes_of(hf, run) == before


@pytest.mark.covers("D-35", "D-18")
async def test_fork_asks_and_acts_under_its_own_names_when_the_source_waits(hf: Holdfast) -> None:
    paid: list[str] = []
    flow = refund_flow(paid)
    source = await flow.run(GIVEN, on=hf)
    service = await hf.service()
    row = await service.fork((await service.latest(source.run_id)).id)
    (mine,), (theirs,) = await open_holds(hf, row.id), await open_holds(hf, source)
    assert mine.id != theirs.id
    assert (mine.prompt, mine.node) == (theirs.prompt, theirs.node)
    await service.answer(mine.id, "reject")
    assert (await flow.resume(row.id, on=hf)).expect().state.receipt == "none"
    assert [h.id for h in await open_holds(hf, source)] == [theirs.id]
    await service.answer(theirs.id, "approve")
    (await flow.resume(source.run_id, on=hf)).expect()
    answered = next(m for m in await service.checkpoints(source.run_id, node="approve"))
    again = await flow.fork(answered.id, on=hf)
    assert again.completed
    assert len({line.split()[-1] for line in paid}) == len(paid) == 2


@pytest.mark.covers("D-35")
async def test_rewind_ends_the_source_when_the_new_run_begins(hf: Holdfast) -> None:
    flow = refund_flow()
    source = await flow.run(GIVEN, on=hf)
    service = await hf.service()
    row = await service.rewind(source.run_id, 0, patch={"scratch": {"amount": 10}})
    old = await service.get(source.run_id)
    assert (old.status, old.superseded_by) == ("cancelled", row.id)
    assert row.forked_from == checkpoint_id(source.run_id, 0)
    assert await open_holds(hf, source) == []
    assert (await flow.resume(row.id, on=hf)).expect().state.receipt == "r-10"
    assert (await flow.resume(source.run_id, on=hf)).status == "cancelled"


@pytest.mark.covers("G-34", "G-39")
async def test_resume_goes_on_with_the_run_when_the_checkpoint_is_its_newest(hf: Holdfast) -> None:
    flow = refund_flow()
    source = await flow.run(GIVEN, on=hf)
    service = await hf.service()
    newest = (await service.latest(source.run_id)).id
    await service.answer(newest, "approve")
    result = await flow.resume(newest, on=hf)
    assert result.run_id == source.run_id
    assert result.completed
    with pytest.raises(RunNotFoundError):
        await flow.resume(new_run_id(), on=hf)
    with pytest.raises(CheckpointNotFoundError, match="does not belong to run"):
        await flow.resume(new_run_id(), checkpoint=newest, on=hf)


@pytest.mark.covers("G-39", "G-34", "R-36", "R-1", "R-59")
async def test_resume_branches_when_the_checkpoint_is_old(hf: Holdfast) -> None:
    flow = refund_flow()
    run = await finished(hf, flow)
    before = await bytes_of(hf, run)
    service = await hf.service()
    old = next(m for m in await service.checkpoints(run) if m.node == "approve" and m.status == "active")
    result = await flow.resume(run, checkpoint=old.id, on=hf)
    assert result.completed
    assert result.run_id != run
    started = [r.node for r in await service.store.read(result.run_id) if r.kind == Kind.step]
    assert started == ["pay"]
    assert await bytes_of(hf, run) == before
    patched = await flow.resume(run, checkpoint=0, patch={"scratch": {"amount": 5}}, on=hf)
    assert patched.state.receipt == "r-5"
    assert patched.run_id not in (run, result.run_id)
    fresh = await flow.resume(run, checkpoint=0, input={"amount": 7}, on=hf)
    assert fresh.state.receipt == "r-7"
    assert (await service.latest(fresh.run_id)).input == {**GIVEN, "amount": 7}
    assert await bytes_of(hf, run) == before


@pytest.mark.covers("G-39")
async def test_one_of_two_resumes_wins_when_they_come_together(hf: Holdfast) -> None:
    flow = refund_flow()
    result = await flow.run(GIVEN, on=hf)
    await answer(hf, result, "approve")
    ends = await asyncio.gather(
        *(flow.resume(result.run_id, on=hf) for _ in range(2)), return_exceptions=True
    )
    assert sorted(type(e).__name__ for e in ends) in (["Result", "RunBusyError"], ["Result", "Result"])
    assert any(isinstance(e, RunBusyError) for e in ends) or all(e.completed for e in ends)  # type: ignore[union-attr]
    steps = [r for r in await (await hf.service()).store.read(result.run_id) if r.kind == Kind.step]
    assert [r.node for r in steps] == ["assess", "approve", "pay"]


@pytest.mark.covers("G-5", "E19")
@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"scratch": {"amoutn": 1}}, "did you mean 'amount'"),
        ({"scratch": {"amount": "much"}}, "'amount' does not fit"),
        ({"scratch": 5}, "not a mapping"),
        ({"artifacts": ["x"]}, "not a mapping"),
        ({"state": {}}, "partitions"),
        ({"input": {"nonsense": 1}}, "nonsense"),
    ],
)
async def test_patch_is_refused_when_it_does_not_fit(hf: Holdfast, patch: dict[str, Any], why: str) -> None:
    result = await refund_flow().run(GIVEN, on=hf)
    service = await hf.service()
    before = await bytes_of(hf, result.run_id)
    with pytest.raises(StateError, match=why):
        await service.fork(result.run_id, 0, patch=patch)
    assert await bytes_of(hf, result.run_id) == before


@pytest.mark.covers("E19", "G-5")
async def test_input_is_replaced_whole_when_the_patch_is_no_mapping(hf: Holdfast) -> None:
    flow = refund_flow()
    source = await flow.run(GIVEN, on=hf)
    given = Refund("B2", "ann", 30)
    result = await flow.fork(source.run_id, 0, patch={"input": given}, on=hf)
    assert result.completed
    assert (result.state.customer, result.state.receipt) == ("ann", "r-30")


@pytest.mark.covers("G-5")
async def test_fork_merges_each_partition_when_patched(hf: Holdfast) -> None:
    flow = refund_flow()
    run = await finished(hf, flow)
    service = await hf.service()
    row = await service.fork(
        run,
        (await service.latest(run)).seq,
        patch={"artifacts": {"note": [1]}, "diagnostics": {"reviewed": True}, "scratch": {"risk": 0.9}},
    )
    picture = await service.latest(row.id)
    assert picture.artifacts == {"letter": "c-9 gets 250", "note": [1]}
    assert picture.state["risk"] == 0.9
    assert picture.state["amount"] == 250
    assert picture.diagnostics["reviewed"] is True
    assert picture.diagnostics["totalTokensUsed"] == 7
    assert picture.visited == ["assess", "approve", "pay"]
    assert (await flow.resume(row.id, on=hf)).completed


@pytest.mark.covers("P6", "CORE-BAD-11", "CORE-CKPT-14", "RF-3")
async def test_checkpoint_of_another_graph_is_refused_when_forked_or_resumed(hf: Holdfast) -> None:
    source = await refund_flow().run(GIVEN, on=hf)
    other = Flow("refund", state=Refund)

    async def assess(s: Refund) -> None:
        return None

    other.node(effect="read")(assess)
    service = await hf.service()
    hf.programs.clear()
    kept, service.runtime.programs = service.runtime.programs, {}
    try:
        for wrong in (other.fork(source.run_id, 0, on=hf), other.resume(source.run_id, on=hf)):
            with pytest.raises(VersionMismatchError):
                await wrong
    finally:
        service.runtime.programs = kept


@pytest.mark.covers("D-35")
async def test_open_effect_is_in_doubt_in_the_fork_when_the_source_may_have_done_it(place: Place) -> None:
    flow = refund_flow()
    run = await place.crash(flow, {**GIVEN, "amount": 50})
    hf = await place.hf()
    service = await (await place.hf()).service()
    hf.register(flow.program())
    service = await hf.service()
    records = await service.store.read(RunId(run))
    intent = next(r.seq for r in records if r.kind == Kind.intent)
    row = await service.fork(run, intent)
    result = await flow.resume(row.id, on=hf)
    (hold,) = result.holds
    assert hold.type == "in_doubt"
    assert hold.node == "pay"
    await service.answer(hold.id, "not_happened")
    assert (await flow.resume(row.id, on=hf)).expect().state.receipt == "r-50"


@pytest.mark.covers("D-35", "D-18")
async def test_sub_step_with_a_key_is_in_doubt_in_the_fork_when_its_key_is_another(place: Place) -> None:
    flow = Flow("keyed")

    async def book() -> str:
        return "booked"

    async def trip(s: Any, ctx: Context) -> dict[str, Any]:
        return {"room": await ctx.step("book", book, effect="external", idempotent=True)}

    flow.script()(trip)
    run = await place.crash(flow, {})
    hf = await place.hf()
    hf.register(flow.program())
    service = await hf.service()
    row = await service.fork(run, (await service.get(run)).head)
    result = await flow.resume(row.id, on=hf)
    assert [h.type for h in result.holds] == ["in_doubt"]


@pytest.mark.covers("D-35")
async def test_question_inside_a_node_is_asked_anew_in_the_fork(hf: Holdfast) -> None:
    flow = Flow("inside")

    async def talk(s: Any, ctx: Context) -> dict[str, Any]:
        reply = await ctx.ask("Sure?", options=["yes", "no"])
        return {"said": reply.decision}

    flow.script()(talk)
    source = await flow.run({}, on=hf)
    service = await hf.service()
    row = await service.fork((await service.latest(source.run_id)).id)
    (hold,) = await open_holds(hf, row.id)
    assert hold.id != source.holds[0].id
    assert hold.prompt == "Sure?"
    await service.answer(hold.id, "no")
    assert (await flow.resume(row.id, on=hf)).expect().state == {"said": "no"}
    assert (await flow.resume(source.run_id, on=hf)).waiting


@pytest.mark.covers("D-35")
async def test_timer_fires_in_the_fork_when_it_was_armed_in_the_source(place: Place) -> None:
    flow = Flow("nap", effect="pure")

    async def done() -> dict[str, bool]:
        return {"done": True}

    flow.edge(flow.timer("wait", "1h"), flow.node()(done))
    hf = await place.hf()
    source = await flow.run({}, on=hf)
    assert source.status == "waiting"
    service = await hf.service()
    row = await service.fork((await service.get(source.run_id)).id, (await service.get(source.run_id)).head)
    assert (await flow.resume(row.id, on=hf)).status == "waiting"
    place.clock.advance(hours=1)
    await service.store.fire_timers(limit=10)
    assert (await flow.resume(row.id, on=hf)).expect().state == {"done": True}


@pytest.mark.covers("D-35", "G-36")
async def test_failed_node_runs_again_in_the_fork_when_its_cause_is_patched(hf: Holdfast) -> None:
    flow = Flow("brittle", effect="pure")

    async def first() -> dict[str, int]:
        return {"n": 0}

    async def divide(s: dict[str, int]) -> dict[str, float]:
        return {"share": 10 / s["n"]}

    flow.edge(flow.node()(first), flow.node()(divide))
    source = await flow.run({}, on=hf)
    assert source.failed
    result = await flow.resume(source.run_id, patch={"scratch": {"n": 5}}, on=hf)
    assert result.completed
    assert result.state["share"] == 2
    assert result.run_id != source.run_id
    assert (await flow.resume(source.run_id, on=hf)).failed


@pytest.mark.covers("CORE-CKPT-13", "CORE-CKPT-16")
async def test_fork_works_at_every_record_when_maps_and_branches_are_under_way(hf: Holdfast) -> None:
    flow = Flow("deep", effect="pure", reducers={"log": append})

    async def begin() -> dict[str, Any]:
        return {"numbers": [1, 2, 3], "log": ["begin"]}

    async def square(item: int) -> int:
        return item * item

    async def side() -> dict[str, Any]:
        return {"log": ["side"]}

    async def total(s: dict[str, Any]) -> dict[str, Any]:
        return {"total": sum(s["squares"]), "log": ["total"]}

    one = flow.node()(begin)
    squares = flow.map("square", over="numbers", body=square, into="squares")
    two, end = flow.node()(side), flow.node()(total)
    for middle in (squares, two):
        flow.edge(one, middle)
        flow.edge(middle, end)
    source = (await flow.run({}, on=hf)).expect()
    service = await hf.service()
    expected = source.state
    for seq in range((await service.get(source.run_id)).head + 1):
        result = await flow.fork(source.run_id, seq, on=hf)
        assert result.completed, (seq, result.error)
        assert result.state == expected, seq


@pytest.mark.covers("G-40")
async def test_patch_wins_over_branches_when_they_have_written_the_field(hf: Holdfast) -> None:
    flow = Flow("wide", effect="pure")

    async def begin() -> dict[str, int]:
        return {"x": 0}

    async def left() -> dict[str, int]:
        return {"x": 1}

    async def right(s: dict[str, int]) -> dict[str, int]:
        return {"seen": s["x"]}

    async def end(s: dict[str, int]) -> dict[str, int]:
        return {"final": s["x"]}

    first, last = flow.node()(begin), flow.node()(end)
    for branch in (left, right):
        handle = flow.node()(branch)
        flow.edge(first, handle)
        flow.edge(handle, last)
    source = (await flow.run({}, on=hf)).expect()
    assert source.state["final"] == 1
    service = await hf.service()
    at = next(m for m in await service.checkpoints(source.run_id) if m.node in ("left", "right"))
    result = await flow.fork(at.id, patch={"scratch": {"x": 9}}, on=hf)
    assert result.state["final"] == 9


@pytest.mark.covers("D-37", "D-35")
async def test_fork_shares_blobs_when_the_source_is_deleted(bare_hf: Holdfast) -> None:
    hf = bare_hf
    flow = Flow("heavy")
    big = "x" * 200_000

    async def write() -> dict[str, str]:
        return {"text": big}

    ask = flow.hold("look", prompt="Fine?", options=["yes"])
    flow.edge(flow.node(effect="pure")(write), ask)
    source = await flow.run({}, on=hf)
    service = await hf.service()
    row = await service.fork((await service.latest(source.run_id)).id)
    blobs = {r.size for r in await service.store.read(row.id)}
    assert max(blobs) < 100_000, "the fork refers to the blob, it does not copy it"
    assert await service.store.delete_run(source.run_id)
    assert await service.collect_blobs(grace=-1) == 0
    assert (await service.latest(row.id)).state["text"] == big
    await answer(hf, row.id, "yes")
    assert (await flow.resume(row.id, on=hf)).expect().state["text"] == big
