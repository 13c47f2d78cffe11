"""The state of a run that asks a person, as a JSON object that other programs read: written before the hold.

The object is the checkpoint at the hold in its published form (docs/reference/checkpoint.schema.json). Runs
resume from their journal; nothing here reads the object again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.errors import (
    BlobDamagedError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    FlowNotFoundError,
    StoreError,
)
from holdfast.model.program import Program
from holdfast.runs.blobs import BlobStore
from holdfast.runs.hold_preparation import facts_of
from holdfast.runs.record_codec import RecordCodec
from holdfast.store.blob.objects import NamedObject, NamedObjects
from holdfast.store.protocols import Store
from holdfast.store.rows import NewRun, RunRow
from holdfast.telemetry import crashpoint, log
from holdfast.types.ciphertext import is_encrypted, is_encrypted_text
from holdfast.types.hold import HoldRow
from holdfast.types.ids import CheckpointId, HoldId, RunId
from holdfast.types.record import Kind, Record, Side
from holdfast.types.redaction import tenant_scope
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.checkpoint.checkpoint import Checkpoint
    from holdfast.runs.driver.services import PutHoldStates
    from holdfast.runs.encryption.store import EncryptedStore
    from holdfast.runs.service_protocol import RunAccess

FOLDER = "holds"
_STARTS = (Kind.created, Kind.snapshot)


class UnwrittenStore:
    """A store as if these records of one run were written: as far as a checkpoint is folded from it."""

    def __init__(self, store: Store, records: Sequence[Record]) -> None:
        self._store, self._records = store, records
        self._first = records[0].seq if records else 1 << 62

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(
        self, run: RunId, *, first: int = 0, last: int | None = None, payloads: bool = True
    ) -> list[Record]:
        # A run that is about to be created has nothing in the store yet.
        written = (
            [] if not self._first else await self._store.read(run, first=first, last=last, payloads=payloads)
        )
        return self._with_unwritten(written, first, last)

    def read_now(self, run: RunId, *, first: int, last: int) -> list[Record]:
        written = [] if not self._first else self._store.read_now(run, first=first, last=last)
        return self._with_unwritten(written, first, last)

    async def last_snapshot(self, run: RunId, at_most: int) -> int | None:
        starts = [r.seq for r in self._records if r.kind in _STARTS and r.seq <= at_most]
        return starts[-1] if starts else await self._store.last_snapshot(run, at_most)

    def _with_unwritten(self, written: list[Record], first: int, last: int | None) -> list[Record]:
        # The store may have them already, if the answer to an earlier write was lost.
        before = [record for record in written if record.seq < self._first]
        return before + [r for r in self._records if r.seq >= first and (last is None or r.seq <= last)]


class _Readers(msgspec.Struct, frozen=True):
    programs: Mapping[str, Program]
    blobs: BlobStore
    codec_for: Callable[[Program, str], RecordCodec]


class _Journal(msgspec.Struct, frozen=True):
    """A `JournalAccess`."""

    store: Store
    runtime: _Readers


def put_hold_states_for(service: RunAccess) -> PutHoldStates | None:
    """None if no states are wanted, or the blob store gives objects no names."""
    runtime = service.runtime
    wanted = runtime.settings.state_blobs and _named(runtime.blobs) is not None
    return partial(put_hold_states, service) if wanted else None


async def put_hold_states(
    service: RunAccess, program: Program, row: RunRow, unwritten: Sequence[Record], side: Side
) -> None:
    """The state at the record with that side, for each hold that it opens. `unwritten`: the records of the
    run that the store does not have, with that one."""
    if all(hold.state_key is not None for hold in side.holds):
        return  # they were put before something else failed
    seq = next(record.seq for record in unwritten if record.side is side)
    try:
        checkpoint = await _checkpoint(service, program, row, unwritten, seq)
    except (CheckpointCorruptError, CheckpointNotFoundError, FlowNotFoundError) as error:
        # The question matters more than a copy of what the journal has.
        log.warning("run %s asks without a state in the blob store: %s", row.id, error)
        return
    blobs = service.runtime.blobs.of(row.tenant)
    keys = [await put_state(blobs, row.id, hold.id, _json(checkpoint, hold.id)) for hold in side.holds]
    crashpoint("after_blob_put")
    side.holds = [
        msgspec.structs.replace(hold, state_key=key) for hold, key in zip(side.holds, keys, strict=True)
    ]


async def _checkpoint(
    service: RunAccess, program: Program, row: RunRow, unwritten: Sequence[Record], seq: int
) -> Checkpoint:
    from holdfast.runs.history.checkpoints import make_checkpoint

    store = cast("Store", UnwrittenStore(service.store, unwritten))
    blobs = service.runtime.blobs.of(row.tenant)
    readers = _Readers({program.version: program}, blobs, service.runtime.codec_for)
    return await make_checkpoint(_Journal(store, readers), row, seq)


async def prepare_first_holds(service: RunAccess, program: Program, new: NewRun) -> None:
    """The holds that the first records of a run open, before it is created."""
    if not any(each.side is not None and each.side.holds for each in new.first):
        return
    put_states = service.runtime.put_hold_states
    with tenant_scope(new.tenant):
        if put_states is not None:
            row = _row_of(new)
            for side in [each.side for each in new.first if each.side is not None and each.side.holds]:
                await put_states(program, row, new.first, side)
        await service.runtime.preparer.prepare_all(new.first, facts_of(new))


def _row_of(new: NewRun) -> RunRow:
    """As the store will have it."""
    return RunRow(
        key=0, id=new.id, tenant=new.tenant, flow=new.flow, version=new.version, code=new.code,
        status=RunStatus.pending, lane=new.lane, priority=new.priority, term=0, worker=None, lease_until=None,
        head=new.first[-1].seq, event_seq=0, inbox_seq=0, ready_at=new.ready_at, thread=new.thread,
        instance_key=new.instance_key, parent_run=new.parent_run, forked_from=new.forked_from,
        superseded_by=None, created_at=new.created_at, updated_at=new.created_at, ended_at=None, recoveries=0,
        error=None, horizon=0, started_by=new.started_by, deployment=new.deployment,
    )  # fmt: skip


def _json(checkpoint: Checkpoint, hold: HoldId) -> bytes:
    shown = msgspec.structs.replace(checkpoint, id=CheckpointId(hold)).as_interface()
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")


# ---------------------------------------------------------------------- the objects


def _named(blobs: BlobStore) -> NamedObjects | None:
    return None if blobs.objects is None else blobs.objects.named


async def put_state(blobs: BlobStore, run: RunId, hold: HoldId, data: bytes) -> str:
    """Encrypted as everything else of an encrypted store. `blobs`: those of the run's tenant."""
    named, encrypted = _named(blobs), blobs.encrypted
    assert named is not None, "asked for only where objects have names"
    assert blobs.tenant is not None, "those of a tenant"
    await blobs.name_owner()
    if encrypted is not None:
        data = encrypted.cipher.encrypt_bytes(data, blobs.tenant, "state", hold)
    return await named.put_named(f"{FOLDER}/{run}/{hold}", data)


async def read_state(blobs: BlobStore, row: HoldRow, key: str) -> dict[str, Any]:
    """Decrypted. Raises BlobMissingError, and BlobDamagedError for what is not the state of this hold:
    a person who may write to the bucket may have replaced it."""
    named = _named(blobs)
    if named is None:
        raise StoreError(
            "the state of this hold is in S3, and this process has no blob store there.",
            hint="Set HOLDFAST_BLOBS to the address of the blob store.",
        )
    data = await named.get_key(key)
    if blobs.encrypted is not None:
        data = await _decrypted(blobs.encrypted, row.id, key, data)
    try:
        state: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(key, "it is not JSON") from error
    if not isinstance(state, dict) or (state.get("id"), state.get("runId")) != (row.id, row.run):  # pyright: ignore[reportUnknownMemberType]
        raise _damaged(key, "it is not the state of this hold")
    return cast("dict[str, Any]", state)


async def _decrypted(encrypted: EncryptedStore, hold: HoldId, key: str, data: bytes) -> bytes:
    if not is_encrypted(data) and not await may_be_plain(encrypted, hold):
        raise _damaged(key, "it is not encrypted, and its hold is")
    try:
        return encrypted.cipher.decrypt_bytes(data, "state", hold)
    except CheckpointCorruptError as error:
        raise _damaged(key, "it was changed or moved") from error


async def may_be_plain(encrypted: EncryptedStore, hold: HoldId) -> bool:
    """Only beside a row that is plain, too: both are from before there were keys."""
    stored = await encrypted.inner.hold(hold)
    return stored is not None and not (is_encrypted_text(stored.prompt) or is_encrypted(stored.context))


def _damaged(key: str, why: str) -> BlobDamagedError:
    return BlobDamagedError(
        f"the object {key} is damaged: {why}.",
        hint="Read the checkpoint of the run instead, or restore an older version of the object.",
    )


async def state_keys(service: RunAccess, run: RunId) -> list[str]:
    """Those of a run that is about to be deleted."""
    if _named(service.runtime.blobs) is None:
        return []
    holds = await service.store.holds(run=run, limit=1_000_000)
    return [hold.state_key for hold in holds if hold.state_key is not None]


async def delete_states(service: RunAccess, tenant: str, keys: Sequence[str]) -> None:
    """After their run is deleted. What cannot be deleted now is an orphan, which `collect_states` finds."""
    named = _named(service.runtime.blobs.of(tenant))
    if named is None or not keys:
        return
    try:
        await named.delete_keys(keys)
    except StoreError as error:
        log.warning("the states of a deleted run stay in the blob store (`prune --orphans`): %s", error)


async def collect_states(service: RunAccess, than: float, *, dry_run: bool = False) -> int:
    """Delete states that no hold names and that were written before `than`. Returns their number. `dry_run`:
    only count them."""
    blobs, collected = service.runtime.blobs, 0
    named = _named(blobs)
    if named is None:
        return 0
    # The rows as they are stored: a missing key must not end the clean-up.
    store = service.store if blobs.encrypted is None else blobs.encrypted.inner
    async for found in named.list_named(FOLDER, than):
        row = await store.hold(hold_of(found))
        if row is None or row.state_key != found.key:
            of_tenant = _named(blobs.of(found.tenant))
            assert of_tenant is not None, "the same objects, of one tenant"
            if not dry_run:
                await of_tenant.delete_keys([found.key])
            collected += 1
    return collected


def hold_of(found: NamedObject) -> HoldId:
    return HoldId(found.key.rpartition("/")[2])
