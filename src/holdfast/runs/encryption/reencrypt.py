"""Re-encryption: everything under the current key, whether written under older keys or before there were any.

Rows are rewritten table by table in small transactions, each only if it is still as it was read. Runs
continue meanwhile, and an interrupted pass is started again: rows under the current key are skipped. Records
keep their meaning: the same payload and the same digest, under another key (D-4). The audit is not rewritten:
its chain is over the stored bytes, so it is read with the keys of its time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint.encrypt import bytes_of_text, header_of
from holdfast.checkpoint.spill import Blob
from holdfast.errors import CheckpointCorruptError, KeyMissingError, SettingsError
from holdfast.runs.encryption.cipher import ENCRYPTED, Content, FieldCipher
from holdfast.runs.engine_report import is_of_engine
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.ciphertext import StoredRow, is_encrypted, is_encrypted_text
from holdfast.types.document import Document
from holdfast.types.event import EventRow
from holdfast.types.graph_thread import GraphCheckpointRow, GraphValueRow, GraphWriteRow
from holdfast.types.hold import HoldKey, HoldRow, Note, Option
from holdfast.types.memory import Memory
from holdfast.types.outbox import OutboxRow
from holdfast.types.queue_message import MessageRow
from holdfast.types.record import InboxRow
from holdfast.types.schedule import ScheduleRow
from holdfast.types.value import BlobRef

if TYPE_CHECKING:
    from holdfast.runs.encryption.store import EncryptedStore
    from holdfast.runs.service_protocol import RunAccess

BATCH = 200
# Table -> the row whose content it keeps. The journal and the late reports have no such row.
TABLES: dict[str, type | None] = {
    "journal": None,
    "events": EventRow,
    "inbox": InboxRow,
    "holds": HoldRow,
    "late_reports": None,
    "outbox": OutboxRow,
    "hold_notes": Note,
    "hold_keys": HoldKey,
    "documents": Document,
    "schedules": ScheduleRow,
    "queue_messages": MessageRow,
    "runs": RunRow,
    "memories": Memory,
    "graph_checkpoints": GraphCheckpointRow,
    "graph_values": GraphValueRow,
    "graph_writes": GraphWriteRow,
}
_options = msgspec.json.Decoder(tuple[Option, ...])

Progress = Callable[[str, int], None]


class ReencryptResult(msgspec.Struct):
    """`unreadable`: missing keys, and damaged rows, with their number. `on_engines`: how many live runs each
    engine has, whose histories there are as they were written."""

    rows: int = 0
    blobs: int = 0
    looked_at: int = 0
    unreadable: dict[str, int] = {}
    on_engines: dict[str, int] = {}

    def miss(self, what: str) -> None:
        self.unreadable[what] = self.unreadable.get(what, 0) + 1


async def reencrypt(service: RunAccess, progress: Progress | None = None) -> ReencryptResult:
    """Raises SettingsError if the store is opened without keys."""
    encrypted = service.runtime.blobs.encrypted
    if encrypted is None or encrypted.cipher.ring is None:
        raise SettingsError(
            "there are no keys to encrypt with.", hint="Name the key file: HOLDFAST_KEYS=keys.json."
        )
    done = ReencryptResult()
    # What was written for SQL before there were keys.
    await encrypted.inner.blank_projections()
    # Before the rows: a plain state is genuine only beside a row that is plain, too.
    await _states(service, encrypted, done)
    for table in TABLES:
        await _table(encrypted, table, done)
        if progress is not None:
            progress(table, done.looked_at)
    await _plain_blobs(service, encrypted, done)
    await _plain_blobs_of_threads(service, encrypted, done)
    await _blobs(service, encrypted, done)
    await _count_on_engines(service, done)
    return done


async def _count_on_engines(service: RunAccess, done: ReencryptResult) -> None:
    leased, after = RunFilter(leased=True), None
    while rows := await service.store.list_runs(leased, after=after, limit=BATCH):
        after = rows[-1].created_at, rows[-1].key
        for row in rows:
            if row.worker is not None and is_of_engine(row.worker):
                done.on_engines[row.worker] = done.on_engines.get(row.worker, 0) + 1


async def _table(encrypted: EncryptedStore, table: str, done: ReencryptResult) -> None:
    # The numbers of compressed values are negative.
    after = -(1 << 63)
    while rows := await encrypted.inner.stored_rows(table, after=after, limit=BATCH):
        after = rows[-1].row
        done.looked_at += len(rows)
        changes = [(row, new) for row in rows if (new := _renewed(encrypted.cipher, table, row, done))]
        if changes:
            done.rows += await encrypted.inner.rewrite(table, changes)


def _renewed(cipher: FieldCipher, table: str, row: StoredRow, done: ReencryptResult) -> dict[str, Any] | None:
    """New values for a row; None if it is under the current key already, or cannot be read."""
    try:
        new = _new_values(cipher, table, row)
    except KeyMissingError as error:
        done.miss(f"key {error.facts.get('key')}")
        return None
    except CheckpointCorruptError:
        done.miss("damaged")
        return None
    return None if new == row.values else new


# ---------------------------------------------------------------------- values


def _new_values(cipher: FieldCipher, table: str, row: StoredRow) -> dict[str, Any]:
    old, rows = row.values, TABLES[table]
    if table == "journal":
        return _record(cipher, row)
    if rows is None:
        return {"payload": _value(cipher, old["payload"], row.tenant, ("late", row.run, *row.place))}
    new = old | {
        content.field: _value(cipher, old[content.field], row.tenant, _place(content, row))
        for content in ENCRYPTED[rows]
    }
    if table == "memories" and new["content"] != old["content"]:
        new["folded"] = new["content"].casefold()  # the column that plain stores search
    if table == "graph_checkpoints" and not is_encrypted(old["body"]):
        new["digest"] = cipher.keyed_digest(old["digest"], row.tenant)
    return new


def _place(content: Content, row: StoredRow) -> tuple[Any, ...]:
    """As in `Content.place`: a stored row has its run, its tenant, and then what else identifies it."""
    rest = iter(row.place)
    known = {"run": row.run, "tenant": row.tenant}
    # The row of a run is identified by its id alone.
    return (content.label, *(known[name] if name in known else next(rest, row.run) for name in content.bound))


def _value(cipher: FieldCipher, value: Any, tenant: str, place: tuple[Any, ...]) -> Any:
    if value is None:
        return None
    if place[0] == "options":
        return _hold_options(cipher, value, tenant, place)
    if isinstance(value, str):
        if is_encrypted_text(value) and _is_current(cipher, bytes_of_text(value)):
            return value
        return cipher.encrypt_text(cipher.decrypt_text(value, *place), tenant, *place)
    if is_encrypted(value) and _is_current(cipher, value):
        return value
    return cipher.encrypt_bytes(cipher.decrypt_bytes(value, *place), tenant, *place)


def _is_current(cipher: FieldCipher, data: bytes) -> bool:
    head = header_of(data)
    return head.key == cipher.key(head.tenant).id


def _record(cipher: FieldCipher, row: StoredRow) -> dict[str, Any]:
    payload, digest = row.values["payload"], row.values["digest"]
    place = ("record", row.run, *row.place)
    if is_encrypted(payload):
        return {"payload": _value(cipher, payload, row.tenant, place), "digest": digest}
    plain = bytes([len(digest)]) + digest + payload
    return {
        "payload": cipher.encrypt_bytes(plain, row.tenant, *place),
        "digest": cipher.keyed_digest(digest, row.tenant),
    }


def _hold_options(cipher: FieldCipher, data: bytes, tenant: str, place: tuple[Any, ...]) -> bytes:
    options = _options.decode(data)
    if not options:
        return data
    first = options[0].id
    if is_encrypted_text(first) and _is_current(cipher, bytes_of_text(first)):
        return data
    plain = cipher.decrypt_options(options, *place)
    return msgspec.json.encode(cipher.encrypt_options(plain, tenant, *place))


# ---------------------------------------------------------------------- blobs


async def _blobs(service: RunAccess, encrypted: EncryptedStore, done: ReencryptResult) -> None:
    blobs, after = service.runtime.blobs, -1
    while rows := await encrypted.inner.stored_rows("blobs", after=after, limit=BATCH):
        after = rows[-1].row
        for row in rows:
            (address,) = row.place
            data = await blobs.raw(address)
            if data is not None and is_encrypted(data):
                await _blob(service, encrypted, address, data, done)


async def _blob(
    service: RunAccess, encrypted: EncryptedStore, address: bytes, data: bytes, done: ReencryptResult
) -> None:
    try:
        new = _value(encrypted.cipher, data, header_of(data).tenant, ("blob", address))
    except KeyMissingError as error:
        done.miss(f"key {error.facts.get('key')}")
        return
    except CheckpointCorruptError:
        done.miss("damaged")
        return
    if new is not None and new != data:
        await service.runtime.blobs.replace(address, new)
        done.blobs += 1


async def _states(service: RunAccess, encrypted: EncryptedStore, done: ReencryptResult) -> None:
    """The states of holds in the blob store, also those from before there were keys."""
    from holdfast.runs.hold_states import FOLDER, hold_of, may_be_plain

    objects = service.runtime.blobs.objects
    named = None if objects is None else objects.named
    if objects is None or named is None:
        return
    async for found in named.list_named(FOLDER, math.inf):
        of_tenant = objects.of(found.tenant).named
        assert of_tenant is not None, "the same objects, of one tenant"
        data = await of_tenant.get_key(found.key)
        if not is_encrypted(data) and not await may_be_plain(encrypted, hold_of(found)):
            done.miss("damaged")
            continue
        try:
            new = _value(encrypted.cipher, data, found.tenant, ("state", hold_of(found)))
        except KeyMissingError as error:
            done.miss(f"key {error.facts.get('key')}")
            continue
        except CheckpointCorruptError:
            done.miss("damaged")
            continue
        if new != data:
            await of_tenant.replace_key(found.key, new)
            done.blobs += 1


async def _plain_blobs(service: RunAccess, encrypted: EncryptedStore, done: ReencryptResult) -> None:
    """Blobs from before there were keys are moved to their tenants' addresses; the collector deletes what is
    left."""
    after: tuple[int, int] | None = None
    while rows := await encrypted.inner.list_runs(RunFilter(), after=after, limit=BATCH):
        after = (rows[-1].created_at, rows[-1].key)
        for row in rows:
            blobs = service.runtime.blobs.of(row.tenant)
            for digest in await encrypted.inner.blobs_of(row.id):
                data = await blobs.raw(digest)
                if data is not None and not is_encrypted(data):
                    # The new blob before the new reference: a crash between the two leaves garbage, not a
                    # missing blob.
                    await blobs.put([Blob(BlobRef(digest, len(data)), data)])
                    await encrypted.inner.replace_blob_reference(
                        row.id, digest, encrypted.cipher.address(digest, row.tenant)
                    )
                    done.blobs += 1


async def _plain_blobs_of_threads(
    service: RunAccess, encrypted: EncryptedStore, done: ReencryptResult
) -> None:
    """The same for values of graphs' threads. `data` of such a value is encrypted already, and stays."""
    after = -(1 << 63)
    while rows := await encrypted.inner.stored_rows("graph_values", after=after, limit=BATCH):
        after = rows[-1].row
        for row in rows:
            at = row.values["blob_digest"]
            if at is None or not row.tenant:  # no thread needs it any more
                continue
            blobs = service.runtime.blobs.of(row.tenant)
            data = await blobs.raw(at)
            if data is not None and not is_encrypted(data):
                await blobs.put([Blob(BlobRef(at, len(data)), data)])
                moved = row.values | {"blob_digest": encrypted.cipher.address(at, row.tenant)}
                done.blobs += await encrypted.inner.rewrite("graph_values", [(row, moved)])
