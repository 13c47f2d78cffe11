from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Holdfast, append
from holdfast.errors import CheckpointNotFoundError, RunBusyError
from holdfast.runs.history.checkpoint_store import CheckpointView
from holdfast.runs.retention import CleanupResult
from holdfast.testing.clock import FakeClock
from holdfast.types.ids import RunId
from holdfast.types.record import Kind
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio


def counting() -> Flow:
    flow = Flow("count", effect="pure", reducers={"seen": append})

    async def turn(s: dict[str, Any]) -> dict[str, Any]:
        return {"n": s["n"] + 1, "seen": [s["n"]]}

    node = flow.node()(turn)
    flow.loop(node, node, when="n < 40", max=50)
    return flow


@pytest.mark.covers("D-27")
async def test_pruned_run_keeps_its_last_checkpoints_whole(bare_hf: Holdfast) -> None:
    flow = counting()
    run = (await flow.run({"n": 0}, on=bare_hf)).expect().run_id
    service = await bare_hf.service()
    listed = await service.checkpoints(run, limit=0)
    kept = [await service.checkpoint(m.id) for m in listed[:10]]
    gone = await service.prune(run)
    row = await service.get(run)
    assert gone == row.horizon == listed[9].seq > 0
    after = await service.checkpoints(run, limit=0)
    assert [(m.id, m.seq, m.status) for m in after] == [(m.id, m.seq, m.status) for m in listed[:10]]
    again = [await service.checkpoint(m.id) for m in after]
    assert [p.state for p in again] == [p.state for p in kept]
    assert [p.executions for p in again] == [p.executions for p in kept]
    assert [p.diagnostics for p in again] == [p.diagnostics for p in kept]
    assert [p.as_interface() for p in again] == [p.as_interface() for p in kept]
    with pytest.raises(CheckpointNotFoundError, match="pruned"):
        await service.checkpoint(listed[-1].id)
    assert await service.prune(run) == 0, "a second time changes nothing"


@pytest.mark.covers("D-27")
async def test_lists_are_whole_when_a_later_snapshot_named_pruned_records(
    bare_hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.runs.driver.record_writer.SNAPSHOT_RECORDS", 7)
    monkeypatch.setattr("holdfast.model.snapshot.SEGMENT_ITEMS", 2)
    flow = counting()
    run = (await flow.run({"n": 0}, on=bare_hf)).expect().run_id
    service = await bare_hf.service()
    whole = await service.latest(run)
    assert whole.state["seen"] == list(range(40))
    await service.prune(run, keep=20)
    pruned = await service.latest(run)
    assert (pruned.state, pruned.executions) == (whole.state, whole.executions)
    forked = await flow.fork(pruned.id, on=bare_hf)
    assert forked.expect().state["seen"] == list(range(40))


@pytest.mark.covers("SAFE-READ-02", "D-27")
@pytest.mark.parametrize("every", [1, 4, 200])
@pytest.mark.parametrize("keep", [1, 2, 10])
async def test_prune_keeps_as_many_checkpoints_as_asked_whatever_the_snapshots(
    bare_hf: Holdfast, monkeypatch: pytest.MonkeyPatch, every: int, keep: int
) -> None:
    monkeypatch.setattr("holdfast.runs.driver.record_writer.SNAPSHOT_RECORDS", every)
    monkeypatch.setattr("holdfast.model.snapshot.SEGMENT_ITEMS", 2)
    flow = counting()
    run = (await flow.run({"n": 0}, on=bare_hf)).expect().run_id
    service = await bare_hf.service()
    listed = await service.checkpoints(run, limit=0)
    later = await service.store.read(RunId(run), first=listed[9].seq + 1, payloads=False)
    assert any(record.kind == Kind.snapshot for record in later) is (every < 200)
    whole = [(await service.checkpoint(m.id)).as_interface() for m in listed[:keep]]
    for again in (keep + 1, keep):
        # In two steps: the second time the snapshots that the first rewrote are pruned.
        await service.prune(run, keep=again)
        assert [m.id for m in await service.checkpoints(run, limit=0)] == [m.id for m in listed[:again]]
    assert [(await service.checkpoint(m.id)).as_interface() for m in listed[:keep]] == whole
    forked = (await flow.fork(listed[keep - 1].id, on=bare_hf)).expect()
    assert forked.state["seen"] == list(range(40))
    assert await service.prune(run, keep=keep) == 0


@pytest.mark.covers("D-35", "R-55", "RF-6")
async def test_fork_lives_on_when_its_source_is_pruned_and_deleted(bare_hf: Holdfast) -> None:
    flow = refund_flow()
    source = await flow.run(GIVEN, on=bare_hf)
    service = await bare_hf.service()
    row = await service.rewind((await service.latest(source.run_id)).id)
    other = await flow.run({**GIVEN, "amount": 5}, on=bare_hf)
    assert await service.prune(source.run_id, keep=1) > 0
    assert (await service.latest(row.id)).visited == ["assess"]
    assert await service.store.delete_run(source.run_id)
    with pytest.raises(CheckpointNotFoundError):
        await service.checkpoint(source.holds[0].id)
    (hold,) = await service.holds(row.id)
    await service.answer(hold.id, "approve")
    assert (await flow.resume(row.id, on=bare_hf)).expect().state.receipt == "r-250"
    assert (await service.latest(row.id)).visited == ["assess", "approve", "pay"]
    assert len(await service.checkpoints(other.run_id)) == 4, "other runs keep theirs"


@pytest.mark.covers("R-56")
async def test_waiting_run_is_not_pruned(bare_hf: Holdfast) -> None:
    result = await refund_flow().run(GIVEN, on=bare_hf)
    service = await bare_hf.service()
    with pytest.raises(RunBusyError):
        await service.prune(result.run_id, keep=1)
    assert len(await service.checkpoints(result.run_id)) == 3


@pytest.mark.covers("G-1")
async def test_oldest_checkpoint_is_deleted_when_its_run_has_ended(bare_hf: Holdfast) -> None:
    run = (await refund_flow().run({**GIVEN, "amount": 5}, on=bare_hf)).expect().run_id
    service = await bare_hf.service()
    view = CheckpointView(service)
    oldest = (await service.checkpoints(run))[-1]
    await view.delete(oldest.id)
    assert await view.get(oldest.id) is None
    await view.delete(oldest.id)
    assert [m.node for m in await service.checkpoints(run)] == ["", "pay", "assess"]


@pytest.mark.covers("D-37", "CORE-CKPT-04")
async def test_blob_is_collected_when_the_last_run_that_names_it_is_gone(bare_hf: Holdfast) -> None:
    flow = Flow("heavy", effect="pure")

    async def write() -> dict[str, str]:
        return {"text": "z" * 300_000}

    flow.node()(write)
    service = await bare_hf.service()
    runs = [(await flow.run({}, on=bare_hf)).expect().run_id for _ in range(2)]
    assert await service.collect_blobs(grace=-1) == 0
    assert await service.store.delete_run(runs[0])
    assert await service.collect_blobs(grace=-1) == 0
    assert len((await service.latest(runs[1])).state["text"]) == 300_000
    assert await service.store.delete_run(runs[1])
    assert await service.collect_blobs() == 0, "within the grace period nothing goes"
    assert await service.collect_blobs(grace=-1) == 1


@pytest.mark.covers("R-54", "R-56", "RF-6")
async def test_clean_up_goes_by_count_and_age_and_leaves_waiting_runs() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        service = await hf.service()
        flow, other = counting(), refund_flow()
        old = (await flow.run({"n": 0}, on=hf)).expect().run_id
        waiting = (await other.run(GIVEN, on=hf)).run_id
        clock.advance(hours=48)
        young = (await flow.run({"n": 0}, on=hf)).expect().run_id
        failed = (await other.run(GIVEN, on=hf)).run_id
        await service.cancel(failed)
        await other.resume(failed, on=hf)
        before = await service.checkpoints(waiting)
        done = await service.clean(keep=3, older_than=24 * 3600)
        assert done.runs == 1
        assert done.records > 0
        assert await service.store.get_run(old) is None
        assert len(await service.checkpoints(young, limit=0)) == 3
        assert len(await service.checkpoints(failed, limit=0)) == 3, (
            "a run that was stopped is cleaned as well"
        )
        assert await service.checkpoints(waiting) == before
        assert await service.clean(keep=3, older_than=24 * 3600, flow="nobody") == CleanupResult()
