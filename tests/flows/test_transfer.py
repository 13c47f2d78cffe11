from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.errors import (
    BlobMissingError,
    ConflictError,
    FlowNotFoundError,
    RunNotFoundError,
    RunReadOnlyError,
)
from holdfast.runs.service import RunService
from holdfast.runs.transfer.archive import unpack
from holdfast.store.rows import RunFilter
from holdfast.types.ids import RunId, checkpoint_id, new_run_id
from holdfast.types.status import RunStatus
from tests.flows.moves import NOTHING, contents, exported, waiting
from tests.flows.places import answer, as_it_lies, open_holds
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = [pytest.mark.anyio, pytest.mark.covers("D-36")]

# Noise: what can be compressed would be no large blob.
MIDDLE, LARGE = Random(1).randbytes(200_000), Random(2).randbytes(1_500_000)


def heavy_flow() -> Flow:
    flow = Flow("heavy", effect="pure")

    async def load() -> dict[str, Any]:
        return {"middle": MIDDLE, "large": LARGE}

    async def measure(s: dict[str, Any]) -> dict[str, Any]:
        return {"size": len(s["middle"]) + len(s["large"])}

    first, last = flow.node()(load), flow.node()(measure)
    ask = flow.hold("ask", prompt="Keep it?", options=["yes", "no"])
    flow.start(first)
    flow.edge(first, ask)
    flow.edge(ask, last)
    return flow


@pytest.fixture
async def file_hf(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Holdfast]:
    async with Holdfast(f"sqlite:{tmp_path / 'moved.db'}") as opened:
        yield opened


@pytest.fixture
async def far_hf(anyio_backend: str) -> AsyncIterator[Holdfast]:
    """Another machine: nothing of the flows' code is loaded there."""
    async with Holdfast("memory:") as opened:
        yield opened


async def told_of(service: RunService, run: str) -> list[Any]:
    """Everything that can be seen of a run: row, checkpoints with their ids, pictures, events, questions."""
    row = await service.get(run)
    listed = await service.checkpoints(run, limit=0)
    pictures = [(await service.checkpoint(meta.id)).as_interface() for meta in listed]
    shown = msgspec.structs.replace(row, key=0, read_only=False, ready_at=None)
    holds = [
        msgspec.structs.replace(h, read_only=False) for h in await service.holds(row.id, open_only=False)
    ]
    return [shown, listed, pictures, await service.events(run), holds]


# ---------------------------------------------------------------------- there and back


async def test_waiting_run_looks_the_same_when_it_went_from_memory_to_sqlite_to_memory(
    file_hf: Holdfast, far_hf: Holdfast, tmp_path: Path
) -> None:
    async with Holdfast("memory:") as home:
        run = await waiting(home, heavy_flow(), {})
        data = await exported(home, run)
        seen = await told_of(await home.service(), run)
    for hf in (file_hf, far_hf):
        service = await hf.service()
        row = await service.import_run(data)
        assert (row.id, row.read_only, row.status) == (run, True, RunStatus.pending_input)
        assert await told_of(service, run) == seen
        assert [one.id for one in await service.list(RunFilter())] == [run]
        data_again = await service.export_run(run)
        if as_it_lies(service.store) is service.store:
            # Under keys no two files are alike: every value has a nonce of its own.
            assert data_again == data, "the same history is the same file, wherever it lies"
    sizes = sorted([len(blob) for blob in unpack(data).blobs])
    assert sizes[0] > 64 * 1024
    assert sizes[-1] > 1 << 20
    assert list((tmp_path / "moved.db-blobs").rglob("*")), "the largest lies in a file again"


async def test_ended_run_with_answers_is_moved_whole(bare_hf: Holdfast, far_hf: Holdfast) -> None:
    flow = refund_flow()
    run = await waiting(bare_hf, flow)
    await answer(bare_hf, run, "approve", comment="fine", by="user:ada")
    (await flow.resume(run, on=bare_hf)).expect()
    home, far = await bare_hf.service(), await far_hf.service()
    row = await far.import_run(await home.export_run(run))
    assert row.status is RunStatus.completed
    (hold,) = await far.holds(row.id, open_only=False)
    assert (hold.resolved_by, b"fine" in (hold.resolution or b"")) == ("user:ada", True)
    far_hf.register(flow.program())
    assert await told_of(far, run) == await told_of(home, run)
    assert (await flow.resume(run, on=far_hf)).state.receipt == "r-250", "how it ended can be asked"


async def test_failed_run_keeps_its_error_and_goes_on_only_as_a_new_run(
    bare_hf: Holdfast, far_hf: Holdfast
) -> None:
    broken = [True]
    flow = Flow("fragile", effect="pure")

    async def work() -> dict[str, Any]:
        if broken:
            raise ValueError("boom")
        return {"done": True}

    flow.node()(work)
    failed = await flow.run({}, on=bare_hf)
    assert failed.failed
    data = await exported(bare_hf, failed.run_id)
    far = await far_hf.service()
    row = await far.import_run(data)
    assert row.status is RunStatus.failed
    assert row.error == (await (await bare_hf.service()).get(row.id)).error
    with pytest.raises(RunReadOnlyError, match="as_new_run=True"):
        await flow.resume(row.id, on=far_hf)
    broken.clear()
    new = await far.import_run(data, as_new_run=True)
    assert (await flow.resume(new.id, on=far_hf)).expect().state["done"]
    assert await far.get(row.id) == row


async def test_pruned_run_is_moved_from_its_horizon_on(bare_hf: Holdfast, far_hf: Holdfast) -> None:
    flow = refund_flow()
    run = (await flow.run({**GIVEN, "amount": 5}, on=bare_hf)).expect().run_id
    home, far = await bare_hf.service(), await far_hf.service()
    assert await home.prune(run, keep=2) > 0
    far_hf.register(flow.program())
    row = await far.import_run(await home.export_run(run))
    assert row.horizon == (await home.get(run)).horizon > 0
    assert await told_of(far, run) == await told_of(home, run)


async def test_run_under_way_is_exported_without_its_worker(bare_hf: Holdfast, far_hf: Holdfast) -> None:
    flow, files = Flow("busy", effect="pure"), list[bytes]()

    async def work(ctx: Context) -> None:
        files.append(await exported(bare_hf, ctx.run_id))

    flow.node()(work)
    (await flow.run({}, on=bare_hf)).expect()
    row = await (await far_hf.service()).import_run(files[0])
    assert (row.status, row.worker, row.lease_until) == (RunStatus.resumable, None, None)


# ---------------------------------------------------------------------- history stays history


async def test_imported_run_refuses_to_go_on_and_says_how(bare_hf: Holdfast, far_hf: Holdfast) -> None:
    flow = refund_flow()
    run = await waiting(far_hf, flow)
    data = await exported(far_hf, run)
    service = await bare_hf.service()
    await service.import_run(data)
    bare_hf.register(flow.program())
    (hold,) = await open_holds(bare_hf, run)
    latest = await service.latest(run)
    before = await contents(service)
    tries: list[Callable[[], Any]] = [
        lambda: service.answer(hold.id, "approve"),
        lambda: service.say(run, "approve"),
        lambda: service.cancel(run),
        lambda: service.request_resume(run),
        lambda: service.rewind(latest.id),
        lambda: flow.resume(run, on=bare_hf),
    ]
    for attempt in tries:
        with pytest.raises(RunReadOnlyError, match="as_new_run=True"):
            await attempt()
    assert await service.pending() == [], "nobody is asked what nobody can answer"
    assert await contents(service) == before


async def test_fork_of_an_imported_run_goes_its_own_way(bare_hf: Holdfast, far_hf: Holdfast) -> None:
    flow = refund_flow()
    run = await waiting(far_hf, flow)
    service = await bare_hf.service()
    await service.import_run(await exported(far_hf, run))
    first = (await service.checkpoints(run))[-1]
    result = await flow.fork(first.id, patch={"scratch": {"amount": 20}}, on=bare_hf)
    assert result.expect().state.receipt == "r-20"
    row = await service.get(result.run_id)
    assert (row.forked_from, row.read_only) == (first.id, False)


async def test_new_run_goes_on_from_the_last_checkpoint_and_is_made_once(
    bare_hf: Holdfast, far_hf: Holdfast
) -> None:
    flow = heavy_flow()
    run = await waiting(far_hf, flow, {})
    data = await exported(far_hf, run)
    bare_hf.register(flow.program())
    service = await bare_hf.service()
    new = await service.import_run(data, as_new_run=True)
    assert await service.import_run(data, as_new_run=True) == new, "a repeat makes no second run that lives"
    assert new.id != run
    (last,) = await service.checkpoints(run, limit=1)
    assert new.forked_from == checkpoint_id(RunId(run), last.seq)
    await answer(bare_hf, new.id, "yes")
    assert (await flow.resume(new.id, on=bare_hf)).expect().state["size"] == len(MIDDLE) + len(LARGE)
    assert (await service.import_run(data)).read_only
    assert len(await service.list(RunFilter())) == 2


async def test_new_run_needs_the_code_and_changes_nothing_without_it(
    bare_hf: Holdfast, far_hf: Holdfast
) -> None:
    data = await exported(far_hf, await waiting(far_hf, refund_flow()))
    service = await bare_hf.service()
    with pytest.raises(FlowNotFoundError):
        await service.import_run(data, as_new_run=True)
    assert await contents(service) == NOTHING


# ---------------------------------------------------------------------- twice, and otherwise


async def test_same_file_is_the_same_row_and_another_history_a_conflict(
    bare_hf: Holdfast, far_hf: Holdfast
) -> None:
    flow = refund_flow()
    run = await waiting(far_hf, flow)
    early = await exported(far_hf, run)
    assert not (await (await far_hf.service()).import_run(early)).read_only, "it is there, and lives"
    service = await bare_hf.service()
    row = await service.import_run(early)
    assert await service.import_run(early) == row
    await answer(far_hf, run, "approve")
    answered = await exported(far_hf, run)
    (await flow.resume(run, on=far_hf)).expect()
    before = await contents(service)
    for later in (answered, await exported(far_hf, run)):
        with pytest.raises(ConflictError, match="differs"):
            await service.import_run(later)
    with pytest.raises(ConflictError):
        await (await far_hf.service()).import_run(early)
    assert await contents(service) == before


async def test_run_that_is_not_there_or_not_whole_is_not_exported(bare_hf: Holdfast) -> None:
    service = await bare_hf.service()
    with pytest.raises(RunNotFoundError):
        await service.export_run(new_run_id())
    run = await waiting(bare_hf, heavy_flow(), {})
    history = await service.store.history(RunId(run))
    assert history is not None

    async def gone(digest: bytes) -> None:
        return None

    service.store.blob = gone  # type: ignore[method-assign]
    with pytest.raises(BlobMissingError, match="missing"):
        await service.export_run(run)
