"""Resuming and looking: R-1 to R-5, R-9, R-14, R-32, R-33, R-59."""

from __future__ import annotations

import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.errors import CheckpointNotFoundError, NotFoundError, RunNotFoundError, VersionMismatchError
from holdfast.store.rows import RunFilter
from holdfast.types.ids import new_run_id
from tests.flows.places import Place, answer, told
from tests.runtime.people import Seen, State, approval, breaking, line, listed, step

pytestmark = pytest.mark.anyio


@pytest.mark.covers("R-1")
async def test_the_same_run_goes_on_when_it_is_resumed_at_its_latest_checkpoint(hf: Holdfast) -> None:
    seen = Seen()
    flow = approval("goes_on", seen)
    waiting = await flow.run({"amount": 5}, on=hf)
    await answer(hf, waiting, "approve")
    newest = (await listed(hf, waiting.run_id))[0]

    result = await flow.resume(waiting.run_id, checkpoint=newest.id, on=hf)

    assert (result.run_id, result.completed) == (waiting.run_id, True)
    assert seen.calls == ["before", "after"]


@pytest.mark.covers("R-1", "R-59", "RS-CHAIN-6")
async def test_a_fork_with_its_origin_is_made_when_an_older_checkpoint_is_resumed(hf: Holdfast) -> None:
    seen = Seen()
    flow = line("older", seen, "one", "two", "three")
    first = await flow.run({}, on=hf)
    source = await listed(hf, first.run_id)
    after_one = next(c for c in source if c.node == "one")

    result = await flow.resume(first.run_id, checkpoint=after_one.id, on=hf)

    service = await hf.service()
    row = await service.get(result.run_id)
    assert result.run_id != first.run_id
    assert row.forked_from == after_one.id
    assert seen.calls == ["one", "two", "three", "two", "three"]
    assert await listed(hf, first.run_id) == source


@pytest.mark.covers("R-1", "R-32")
async def test_a_fork_is_made_when_a_resume_brings_new_input(hf: Holdfast) -> None:
    seen = Seen()
    flow = approval("new_input", seen)
    waiting = await flow.run({"amount": 5}, on=hf)

    result = await flow.resume(waiting.run_id, input={"amount": 7}, on=hf)

    service = await hf.service()
    assert result.run_id != waiting.run_id
    assert (await service.latest(result.run_id)).input == {"amount": 7}
    assert (await service.latest(waiting.run_id)).input == {"amount": 5}
    assert (await service.get(waiting.run_id)).status == "pending_input"


@pytest.mark.covers("R-1", "R-14")
@pytest.mark.parametrize("end", ["completed", "cancelled"])
async def test_nothing_is_executed_when_a_finished_run_is_resumed(hf: Holdfast, end: str) -> None:
    seen = Seen()
    flow = approval("finished", seen)
    waiting = await flow.run({"amount": 5}, on=hf)
    service = await hf.service()
    if end == "completed":
        await answer(hf, waiting, "approve")
    else:
        await service.cancel(waiting.run_id)
    ended = await flow.resume(waiting.run_id, on=hf)
    calls, head = list(seen.calls), (await service.get(waiting.run_id)).head

    again = await flow.resume(waiting.run_id, on=hf)

    assert ended.status == again.status == end
    assert again.state == ended.state
    assert (seen.calls, (await service.get(waiting.run_id)).head) == (calls, head)


@pytest.mark.covers("R-2", "RS-FLOW-9")
async def test_nothing_is_started_when_an_unknown_run_or_checkpoint_is_resumed(hf: Holdfast) -> None:
    seen = Seen()
    flow = line("unknown", seen, "one")
    known = await flow.run({}, on=hf)
    service = await hf.service()
    with pytest.raises(NotFoundError) as unknown_run:
        await flow.resume(new_run_id(), on=hf)
    assert 400 <= unknown_run.value.status < 500
    with pytest.raises(RunNotFoundError):
        await flow.resume("nobody", on=hf)
    with pytest.raises(CheckpointNotFoundError):
        await flow.resume(known.run_id, checkpoint=new_run_id(), on=hf)
    with pytest.raises(CheckpointNotFoundError):
        await flow.resume(known.run_id, checkpoint=999, on=hf)
    with pytest.raises(NotFoundError):
        await service.fork(new_run_id())
    assert seen.calls == ["one"]
    assert [row.id for row in await service.list(RunFilter())] == [known.run_id]


@pytest.mark.covers("R-3")
async def test_a_checkpoint_is_refused_when_it_belongs_to_another_run(hf: Holdfast) -> None:
    seen = Seen()
    flow = line("foreign", seen, "one", "two")
    mine, other = await flow.run({}, on=hf), await flow.run({}, on=hf)
    foreign = (await listed(hf, other.run_id))[-1]

    with pytest.raises(CheckpointNotFoundError, match="does not belong to run"):
        await flow.resume(mine.run_id, checkpoint=foreign.id, on=hf)

    assert seen.calls == ["one", "two"] * 2


@pytest.mark.covers("RF-3")
async def test_a_flow_refuses_the_run_and_the_checkpoint_of_another_flow(hf: Holdfast) -> None:
    seen = Seen()
    waits, other = approval("waits", seen), line("other", seen, "one")
    waiting = await waits.run({"amount": 1}, on=hf)
    finished = await other.run({}, on=hf)
    await answer(hf, waiting, "approve")
    checkpoint = (await listed(hf, waiting.run_id))[0]
    calls = list(seen.calls)

    for attempt in (
        other.resume(waiting.run_id, on=hf),
        other.resume(checkpoint.id, on=hf),
        other.fork(checkpoint.id, on=hf),
        other.rewind(checkpoint.id, on=hf),
        waits.resume(finished.run_id, on=hf),
    ):
        with pytest.raises(VersionMismatchError, match="is a run of flow"):
            await attempt

    assert seen.calls == calls
    assert len(await (await hf.service()).list(RunFilter())) == 2


@pytest.mark.covers("R-4", "R-5", "RS-FLOW-2", "RS-FLOW-7")
async def test_checkpoints_are_summaries_in_a_list_and_whole_when_opened(hf: Holdfast) -> None:
    flow = line("looking", Seen(), "one", "two", "three")
    result = await flow.run({"amount": 3}, on=hf)
    service = await hf.service()

    two = await service.checkpoints(result.run_id, limit=2)
    every = await service.checkpoints(result.run_id)
    assert two == every[:2]
    assert [c.seq for c in every] == sorted((c.seq for c in every), reverse=True)
    assert not any(hasattr(c, "state") or hasattr(c, "executions") for c in every)

    opened = await service.checkpoint(next(c.id for c in every if c.node == "two"))
    assert opened.state["trace"] == ["one", "two"]
    assert set(opened.node_results) == {"one", "two"}
    assert opened.node_results["one"].outcome == "success"
    assert (opened.run, opened.flow, opened.input) == (result.run_id, "looking", {"amount": 3})


@pytest.mark.covers("R-9")
async def test_my_pending_runs_tell_what_is_asked_newest_first(place: Place) -> None:
    hf = await place.hf()
    flow = approval("mine", Seen())
    runs = []
    for amount, tenant in ((1, "acme"), (2, "acme"), (3, "other"), (4, "acme")):
        place.clock.advance(seconds=1)
        runs.append(await flow.run({"amount": amount}, on=hf, thread=f"t{amount}", tenant=tenant))
    await answer(hf, runs[1], "approve")
    service = await hf.service()

    pending = await service.pending(tenant="acme")

    assert [(p.run, p.thread, p.prompt) for p in pending] == [
        (runs[3].run_id, "t4", "Pay 4?"),
        (runs[0].run_id, "t1", "Pay 1?"),
    ]
    assert [p.checkpoint for p in pending] == [runs[3].holds[0].id, runs[0].holds[0].id]
    assert pending[0].created_at > pending[1].created_at
    assert (await service.checkpoint(pending[0].checkpoint)).status == "pending_input"
    assert [p.run for p in await service.pending(tenant="acme", limit=1)] == [runs[3].run_id]
    assert [p.run for p in await service.pending(thread="t3")] == [runs[2].run_id]


@pytest.mark.covers("R-32", "R-36", "R-33")
async def test_a_resume_has_the_original_input_when_another_worker_takes_over(place: Place) -> None:
    flow, seen = Flow("original", effect="pure"), Seen()
    one = step(flow, "one", seen)

    @flow.node(effect="read")
    async def two(s: State, ctx: object) -> State:
        seen.calls.append("two")
        return {"told": dict(ctx.input)}  # type: ignore[attr-defined]

    flow.edge(one, two)
    run = await place.crash(flow, {"amount": 9}, "after_settle", nth=1)

    hf = await place.hf()
    result = await flow.resume(run, on=hf)

    assert result.completed
    assert result.state["told"] == {"amount": 9}


@pytest.mark.covers("RF-1", "RS-FAIL-3", "R-33")
async def test_the_repaired_node_runs_when_a_failed_run_is_resumed(hf: Holdfast) -> None:
    seen = Seen()
    seen.broken = True
    flow = breaking("mended", seen)
    failed = await flow.run({}, on=hf)
    assert failed.failed
    seen.broken = False

    result = await flow.resume(failed.run_id, on=hf)

    assert (result.run_id, result.completed) == (failed.run_id, True)
    assert result.state["trace"] == ["one", "two", "three"]
    assert seen.calls == ["one", "two", "two", "three"]


@pytest.mark.covers("RS-FLOW-10", "RS-FILE-5")
async def test_a_resume_appends_and_never_overwrites(hf: Holdfast) -> None:
    seen = Seen()
    seen.broken = True
    flow = breaking("appends", seen)
    failed = await flow.run({}, on=hf)
    service = await hf.service()
    before = await service.store.read(failed.run_id)
    seen.broken = False

    await flow.resume(failed.run_id, on=hf)
    other = await flow.run({}, on=hf)

    after = await service.store.read(failed.run_id)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert {c.run for c in await listed(hf, failed.run_id)} == {failed.run_id}
    assert {c.run for c in await listed(hf, other.run_id)} == {other.run_id}


@pytest.mark.covers("R-59", "RS-FLOW-1")
async def test_checkpoints_are_kept_when_nobody_asked_for_them(hf: Holdfast) -> None:
    flow = line("default", Seen(), "one", "two")

    result = await flow.run({"amount": 1}, on=hf)

    last = await (await hf.service()).latest(result.run_id)
    assert (last.status, last.input, last.visited) == ("completed", {"amount": 1}, ["one", "two"])
    assert last.state == {"amount": 1, "trace": ["one", "two"], "one": True, "two": True}


@pytest.mark.covers("RS-FILE-4")
async def test_a_run_is_found_by_its_beginning_and_never_by_another_part(hf: Holdfast) -> None:
    flow = line("whole", Seen(), "one")
    result = await flow.run({}, on=hf, run_id="abcdef01-2222-4333-8444-555555555555")
    service = await hf.service()
    assert (await service.get("abcdef01")).id == result.run_id
    for part in ("2222-4333", "555555555555", "bcdef01", "abc"):
        with pytest.raises(RunNotFoundError):
            await service.get(part)


@pytest.mark.covers("R-6", "R-25")
async def test_an_answer_from_another_process_reaches_the_run_when_its_worker_died(place: Place) -> None:
    seen = Seen()
    flow = approval("device", seen)
    run = await place.crash(flow, {"amount": 1}, "after_park")
    phone = await place.hf()
    await answer(phone, run, "approve")
    hf = await place.hf()

    await Worker(flow, on=hf).run_until_idle()

    assert (await (await hf.service()).get(run)).status == "completed"
    assert seen.count("after") == 1
    assert len(await told(hf, run, "hold.opened")) == 1
