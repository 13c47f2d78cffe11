"""Encryption at rest: nothing of a run can be read on the disk, and everything with the key (D-38)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.checkpoint.keys import StaticKeys
from holdfast.errors import BlobMissingError, CheckpointCorruptError, KeyMissingError, SettingsError
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.runs.retention import RetentionSweep
from holdfast.store.rows import RunFilter
from holdfast.testing.clock import FakeClock
from holdfast.types.status import RunStatus
from tests.storage.canary import (
    CANARY,
    HUGE,
    found_on_disk,
    picture,
    ring,
    tell,
    telling_flow,
    turned,
    without,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'h.db'}"


@pytest.mark.covers("TOOL-KEEP-05", "D-38")
async def test_nothing_that_a_run_said_is_on_the_disk_in_the_clear(address: str, tmp_path: Path) -> None:
    async with Holdfast(address, keys=ring()) as hf:
        run = await tell(hf)
        (interface, holds, events, error) = await picture(hf, run)
        assert not found_on_disk(tmp_path)
    assert not found_on_disk(tmp_path)
    assert interface["state"]["scratch"]["huge"] == HUGE
    assert (holds[0].prompt, holds[0].options[0].id) == (f"May {CANARY} go?", "yes")
    assert CANARY in error
    assert any(event.data.get("data") == {"said": CANARY} for event in events)


async def test_the_same_is_on_the_disk_where_there_are_no_keys(address: str, tmp_path: Path) -> None:
    async with Holdfast(address) as hf:
        await tell(hf)
    assert found_on_disk(tmp_path), "the search above would find it"


@pytest.mark.covers("TOOL-KEEP-05", "D-4")
async def test_run_is_the_same_with_and_without_keys(tmp_path: Path) -> None:
    lines: list[Any] = []
    for name, keys in (("a", None), ("b", ring())):
        async with Holdfast(f"sqlite:{tmp_path / name}.db", keys=keys) as hf:
            run = await tell(hf)
            service = await hf.service()
            records = await service.store.read(run)
            lines.append([(r.kind, r.node, r.effect, r.outcome, r.listed, r.events) for r in records])
            found = await service.store.find_memories(
                tenant="default", scope="global", query="REMEMBER", limit=9
            )
            lines.append([m.content for m in found])
    assert lines[0] == lines[2]
    assert lines[1] == lines[3] == [f"remember {CANARY}"]


@pytest.mark.covers("TOOL-KEEP-06")
async def test_old_data_is_read_and_new_data_is_written_under_the_new_key(address: str) -> None:
    old = ring()
    async with Holdfast(address, keys=old) as hf:
        first = await tell(hf)
        before = await picture(hf, first)
    new = turned(old)
    async with Holdfast(address, keys=new) as hf:
        assert await picture(hf, first) == before
        second = await tell(hf)
    only_old, only_new = without(new, new.file.scopes["*"].current + "x"), without_current(new)
    assert only_old.file == new.file
    async with Holdfast(address, keys=only_new) as hf:
        with pytest.raises(KeyMissingError, match=new.file.scopes["*"].current):
            await picture(hf, second)
        assert await picture(hf, first) == before


def without_current(keys: StaticKeys) -> StaticKeys:
    """As it was before the last rotation."""
    scope = keys.file.scopes["*"]
    back = type(scope)(scope.address, scope.keys[0].id, scope.keys[:1])
    return StaticKeys(type(keys.file)(1, {"*": back}))


@pytest.mark.covers("TOOL-KEEP-06")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_everything_is_under_the_new_key_after_reencrypting(kind: str, tmp_path: Path) -> None:
    old = ring()
    new = turned(old)
    store = await _shared(kind, tmp_path)
    async with Holdfast(store, keys=old) as hf:
        run = await tell(hf)
        before = await picture(hf, run)
        digests = [r.digest for r in await (await hf.service()).store.read(run)]
    async with Holdfast(store, keys=new) as hf:
        done = await reencrypt(await hf.service())
        assert done.rows > 10
        assert done.blobs >= 2 or kind == "memory"
        assert not done.unreadable
        again = await reencrypt(await hf.service())
        assert (again.rows, again.blobs) == (0, 0), "what is done is passed over"
    async with Holdfast(store, keys=without(new, old.file.scopes["*"].current)) as hf:
        assert await picture(hf, run) == before
        service = await hf.service()
        assert [r.digest for r in await service.store.read(run)] == digests, "records keep their meaning"
        found = await service.store.find_memories(tenant="default", scope="global", query="", limit=9)
        assert [m.content for m in found] == [f"remember {CANARY}"]
    await store.close()


async def _shared(kind: str, folder: Path) -> Any:
    from holdfast.store.open import open_store

    return await open_store("memory:" if kind == "memory" else f"sqlite:{folder / 's.db'}")


@pytest.mark.covers("TOOL-KEEP-06")
async def test_store_from_before_there_were_keys_is_encrypted_by_reencrypting(
    address: str, tmp_path: Path
) -> None:
    async with Holdfast(address) as hf:
        run = await tell(hf)
        before = await picture(hf, run)
    keys = ring()
    async with Holdfast(address, keys=keys) as hf:
        assert await picture(hf, run) == before, "plain data is read beside encrypted data"
        service = await hf.service()
        done = await reencrypt(service)
        assert done.blobs == 2
        assert await service.collect_blobs(grace=-1) == 2, "the plain ones are garbage now"
        assert await picture(hf, run) == before
        raw = await service.runtime.blobs.encrypted.inner.history(run)  # type: ignore[union-attr]
        texts = repr(raw)
        assert CANARY not in texts
        assert (await reencrypt(service)).rows == 0


@pytest.mark.covers("TOOL-KEEP-07", "D-38")
async def test_tenants_share_no_blob_and_no_key(address: str) -> None:
    async with Holdfast(address, keys=ring("acme", "*")) as hf:
        runs = [await tell(hf, tenant=tenant) for tenant in ("acme", "acme", "other", "third")]
        service = await hf.service()
        store = service.runtime.blobs.encrypted.inner  # type: ignore[union-attr]
        blobs = [frozenset(await store.blobs_of(run)) for run in runs]
        assert blobs[0] == blobs[1], "within a tenant a blob is stored once"
        assert not blobs[0] & blobs[2]
        assert not blobs[2] & blobs[3]
        assert all(len(found) == 2 for found in blobs)
        for run in runs:
            assert (await service.latest(run)).state["huge"] == HUGE


@pytest.mark.covers("TOOL-KEEP-04", "D-37")
async def test_blobs_of_one_tenant_go_and_anothers_stay(address: str) -> None:
    async with Holdfast(address, keys=ring()) as hf:
        mine, yours = [await tell(hf, tenant=tenant) for tenant in ("acme", "other")]
        service = await hf.service()
        fork = await service.fork((await service.latest(yours)).id)
        assert await service.store.delete_run(mine)
        assert await service.store.delete_run(yours)
        assert await service.collect_blobs(grace=-1) == 2, "those of the deleted run's tenant"
        assert (await service.latest(fork.id)).state["huge"] == HUGE
        assert await service.store.delete_run(fork.id)
        assert await service.collect_blobs(grace=-1) == 2


@pytest.mark.covers("TOOL-KEEP-08")
async def test_missing_key_is_named_and_the_run_goes_on_when_it_is_back(address: str) -> None:
    keys = ring()
    flow = telling_flow()
    async with Holdfast(address, keys=keys) as hf:
        waiting = (await flow.run({"given": "x"}, on=hf)).run_id
    current = keys.file.scopes["*"].current
    for wrong in (None, ring()):
        async with Holdfast(address, keys=wrong) as hf:
            service = await hf.service()
            (row,) = await service.list(RunFilter())
            assert row.status is RunStatus.pending_input
            with pytest.raises(KeyMissingError, match=current):
                await service.latest(waiting)
            with pytest.raises(KeyMissingError, match=current):
                await flow.resume(waiting, on=hf)
            (hold,) = await service.holds()
            assert current in hold.prompt, "it is listed, and says why it cannot be read"
            with pytest.raises(KeyMissingError):
                await service.answer(hold.id, "yes")
    with pytest.raises(KeyMissingError):
        async with Holdfast(address) as hf:
            await flow.run({"given": "x"}, on=hf)
    async with Holdfast(address, keys=keys) as hf:
        service = await hf.service()
        assert len(await service.list(RunFilter())) == 1
        (hold,) = await service.holds(waiting)
        await service.answer(hold.id, "no")
        assert (await flow.resume(waiting, on=hf)).failed
        assert (await service.latest(waiting)).state["huge"] == HUGE


@pytest.mark.covers("TOOL-KEEP-08")
@pytest.mark.parametrize("mail", ["answer", "timer"])
async def test_worker_without_the_key_leaves_a_run_as_it_was_when_it_had_mail(
    address: str, mail: str
) -> None:
    keys, clock = ring(), FakeClock()
    flow = Flow("waits", effect="pure")
    flow.hold("ask", prompt="Go?", options=["yes"]) if mail == "answer" else flow.timer("nap", "1h")
    async with Holdfast(address, keys=keys, clock=clock) as hf:
        service = await hf.service()
        before = await flow.run(on=hf)
        if mail == "answer":
            await service.answer(before.holds[0].id, "yes")
        clock.advance(hours=2)
    async with Holdfast(address, keys=ring(), clock=clock) as hf:
        for _ in range(2):
            await Worker(flow, on=hf).run_until_idle()
            clock.advance(minutes=1)
        left = await (await hf.service()).get(before.run_id)
        assert (left.status, left.worker, left.term > 2) == (before.status, None, True)
    async with Holdfast(address, keys=keys, clock=clock) as hf:
        assert (await flow.resume(before.run_id, on=hf)).completed


@pytest.mark.covers("TOOL-KEEP-08")
async def test_other_key_under_the_same_name_is_reported_from_damage(address: str) -> None:
    keys = ring()
    async with Holdfast(address, keys=keys) as hf:
        run = await tell(hf)
    scope = keys.file.scopes["*"]
    other = ring().file.scopes["*"].keys[0]
    forged = type(scope)(scope.address, scope.current, (type(other)(scope.current, other.secret),))
    async with Holdfast(address, keys=StaticKeys(type(keys.file)(1, {"*": forged}))) as hf:
        with pytest.raises(KeyMissingError, match="is not the one"):
            await (await hf.service()).latest(run)


@pytest.mark.covers("TOOL-KEEP-08")
async def test_worker_without_the_key_leaves_the_run_to_others(address: str) -> None:
    keys = ring()
    flow = Flow("quick", effect="pure")

    async def work() -> dict[str, int]:
        return {"n": 1}

    flow.node()(work)
    async with Holdfast(address, keys=keys) as hf:
        service = await hf.service()
        row, _ = await service.create(flow.program(), {})
    async with Holdfast(address, keys=ring()) as hf:
        await Worker(flow, on=hf).run_until_idle()
        left = await (await hf.service()).get(row.id)
        assert (left.status, left.worker, left.recoveries) == (RunStatus.resumable, None, 0)
    async with Holdfast(address, keys=keys) as hf:
        assert (await flow.resume(row.id, on=hf)).expect().state["n"] == 1


@pytest.mark.covers("D-38", "TOOL-KEEP-05")
async def test_ciphertext_that_was_moved_to_another_place_does_not_open(address: str) -> None:
    async with Holdfast(address, keys=ring()) as hf:
        one, two = [await tell(hf) for _ in range(2)]
        service = await hf.service()
        inner = service.runtime.blobs.encrypted.inner  # type: ignore[union-attr]
        rows = await inner.stored_rows("journal", after=-1, limit=1000)
        (mine, yours) = [next(r for r in rows if r.run == run and r.place == (3,)) for run in (one, two)]
        assert await inner.rewrite("journal", [(mine, yours.values)]) == 1
        with pytest.raises(CheckpointCorruptError):
            await service.checkpoint(one, 3)
        assert (await service.latest(two)).state["text"] == CANARY


async def test_tenant_without_a_key_is_refused_and_nothing_is_written(address: str) -> None:
    async with Holdfast(address, keys=ring("acme")) as hf:
        with pytest.raises(SettingsError, match="no key for tenant 'other'"):
            await telling_flow().run({"given": "x"}, on=hf, tenant="other")
        assert await (await hf.service()).list(RunFilter()) == []


@pytest.mark.covers("TOOL-KEEP-02", "TOOL-KEEP-04")
async def test_pruned_source_leaves_its_fork_whole_under_encryption(address: str) -> None:
    async with Holdfast(address, keys=ring()) as hf:
        source = await tell(hf)
        service = await hf.service()
        fork = await service.fork((await service.latest(source)).id)
        before = (await service.latest(fork.id)).as_interface()
        assert await service.prune(source, keep=1) > 0
        await service.collect_blobs(grace=-1)
        assert (await service.latest(fork.id)).as_interface() == before
        assert (await service.latest(source)).state["huge"] == HUGE


@pytest.mark.covers("TOOL-CLI-18")
async def test_encrypted_file_is_the_same_run_under_another_key_of_the_ring(tmp_path: Path) -> None:
    old = ring()
    new = turned(old)
    async with Holdfast(f"sqlite:{tmp_path / 'a.db'}", keys=old) as hf:
        run = await tell(hf)
        before = await picture(hf, run)
        data = await (await hf.service()).export_run(run)
        clear = await (await hf.service()).export_run(run, decrypt=True)
    assert CANARY.encode() not in data
    async with Holdfast(f"sqlite:{tmp_path / 'b.db'}", keys=new) as hf:
        service = await hf.service()
        first = await service.import_run(data)
        assert await service.import_run(data) == await service.import_run(clear) == first
        assert await picture(hf, run) == before
        assert service.runtime.blobs.encrypted is not None
        raw = await service.runtime.blobs.encrypted.inner.history(first.id)
        assert CANARY not in repr(raw)
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        with pytest.raises(KeyMissingError, match=old.file.scopes["*"].current):
            await service.import_run(data)
        assert await service.list(RunFilter()) == []


@pytest.mark.covers("TOOL-KEEP-08")
async def test_damaged_blob_is_reported_as_such(address: str) -> None:
    async with Holdfast(address, keys=ring()) as hf:
        run = await tell(hf)
        service = await hf.service()
        assert service.runtime.blobs.encrypted is not None
        inner = service.runtime.blobs.encrypted.inner
        for digest in await inner.blobs_of(run):
            data = await service.runtime.blobs.raw(digest)
            assert data is not None
            await service.runtime.blobs.replace(digest, data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(BlobMissingError, match="damaged"):
            await service.latest(run)


@pytest.mark.covers("TOOL-KEEP-06")
async def test_reencrypting_that_was_cut_off_goes_on_while_runs_do(tmp_path: Path) -> None:
    old = ring()
    new = turned(old)
    store = await _shared("memory", tmp_path)
    async with Holdfast(store, keys=old) as hf:
        run = await tell(hf)
        before = await picture(hf, run)

    class Cut(Exception):
        pass

    def cut(table: str, _seen: int) -> None:
        if table == "events":
            raise Cut

    async with Holdfast(store, keys=new) as hf:
        service = await hf.service()
        with pytest.raises(Cut):
            await reencrypt(service, cut)
        assert await picture(hf, run) == before
        done, other = await asyncio.gather(reencrypt(service), tell(hf))
        assert done.rows > 0
    async with Holdfast(store, keys=without(new, old.file.scopes["*"].current)) as hf:
        assert await picture(hf, run) == before
        assert (await (await hf.service()).latest(other)).state["huge"] == HUGE


@pytest.mark.covers("TOOL-KEEP-06")
async def test_worker_brings_everything_under_the_new_key_where_it_is_asked_to(tmp_path: Path) -> None:
    old = ring()
    new = turned(old)
    store = await _shared("memory", tmp_path)
    async with Holdfast(store, keys=old) as hf:
        run = await tell(hf)
    async with Holdfast(store, keys=new, settings=RunSettings(reencrypt=True)) as hf:
        await RetentionSweep(await hf.service()).sweep()
    async with Holdfast(store, keys=without(new, old.file.scopes["*"].current)) as hf:
        assert (await (await hf.service()).latest(run)).state["huge"] == HUGE
