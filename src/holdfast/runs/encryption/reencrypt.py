"""Everything under the key that is current: what was written under older keys, or before there were any.

Rows are taken table by table in small transactions, each only if it is still as it was read, so that runs go
on meanwhile and a pass that was cut off is simply begun again: what is done is passed over. Records keep
their meaning: the same payload and the same digest, under another key (D-4). The audit is left alone: its
chain is over the bytes that were written, so that it is read with the keys of its time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint.encrypt import bytes_of_text, header_of
from holdfast.checkpoint.spill import Blob
from holdfast.errors import CheckpointCorruptError, KeyMissingError, SettingsError
from holdfast.runs.encryption.cipher import FieldCipher
from holdfast.store.protocols import RunFilter
from holdfast.types.ciphertext import StoredRow, is_encrypted, is_encrypted_text
from holdfast.types.hold import Option
from holdfast.types.value import BlobRef

if TYPE_CHECKING:
    from holdfast.runs.access import RunAccess
    from holdfast.runs.encryption.store import EncryptedStore

BATCH = 200
TABLES = (
    "journal",
    "events",
    "inbox",
    "holds",
    "late_reports",
    "outbox",
    "hold_notes",
    "hold_keys",
    "documents",
    "schedules",
    "runs",
    "memories",
)
_options = msgspec.json.Decoder(tuple[Option, ...])

Progress = Callable[[str, int], None]


class ReencryptResult(msgspec.Struct):
    """`unreadable`: keys that are missing, and rows that were damaged, with their number."""

    rows: int = 0
    blobs: int = 0
    looked_at: int = 0
    unreadable: dict[str, int] = {}

    def miss(self, what: str) -> None:
        self.unreadable[what] = self.unreadable.get(what, 0) + 1


async def reencrypt(service: RunAccess, progress: Progress | None = None) -> ReencryptResult:
    """Raises SettingsError where the store is opened without keys."""
    vaulted = service.runtime.desk.vaulted
    if vaulted is None or vaulted.vault.ring is None:
        raise SettingsError(
            "there are no keys to encrypt with.", hint="Name the key file: HOLDFAST_KEYS=keys.json."
        )
    done = ReencryptResult()
    # What was written for SQL before there were keys.
    await vaulted.inner.blank_projections()
    for table in TABLES:
        await _table(vaulted, table, done)
        if progress is not None:
            progress(table, done.looked_at)
    await _plain_blobs(service, vaulted, done)
    await _blobs(service, vaulted, done)
    return done


async def _table(vaulted: EncryptedStore, table: str, done: ReencryptResult) -> None:
    after = -1
    while rows := await vaulted.inner.kept(table, after=after, limit=BATCH):
        after = rows[-1].row
        done.looked_at += len(rows)
        changes = [(row, new) for row in rows if (new := _renewed(vaulted.vault, table, row, done))]
        if changes:
            done.rows += await vaulted.inner.rewrite(table, changes)


def _renewed(vault: FieldCipher, table: str, row: StoredRow, done: ReencryptResult) -> dict[str, Any] | None:
    """Other values for a row; None where it is as it should be, or cannot be read."""
    try:
        new = _RENEW.get(table, _payload(table))(vault, row)
    except KeyMissingError as error:
        done.miss(f"key {error.facts.get('key')}")
        return None
    except CheckpointCorruptError:
        done.miss("damaged")
        return None
    return None if new == row.values else new


# ---------------------------------------------------------------------- values


def _bytes(vault: FieldCipher, data: bytes | None, tenant: str, *place: Any) -> bytes | None:
    if data is None or (is_encrypted(data) and _is_current(vault, data)):
        return data
    return vault.close(vault.open(data, *place), tenant, *place)


def _text(vault: FieldCipher, text: str | None, tenant: str, *place: Any) -> str | None:
    if text is None or (is_encrypted_text(text) and _is_current(vault, bytes_of_text(text))):
        return text
    return vault.encrypt_text(vault.decrypt_text(text, *place), tenant, *place)


def _is_current(vault: FieldCipher, data: bytes) -> bool:
    head = header_of(data)
    return head.key == vault.key(head.tenant).id


# ---------------------------------------------------------------------- tables

_PLACES = {"late_reports": "late", "events": "event"}


def _payload(table: str) -> Callable[[FieldCipher, StoredRow], dict[str, Any]]:
    def renew(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
        place = (_PLACES.get(table, table), row.run, *row.place)
        return {"payload": _bytes(vault, row.values["payload"], row.tenant, *place)}

    return renew


def _record(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
    payload, digest = row.values["payload"], row.values["digest"]
    place = ("record", row.run, *row.place)
    if is_encrypted(payload):
        return {"payload": _bytes(vault, payload, row.tenant, *place), "digest": digest}
    plain = bytes([len(digest)]) + digest + payload
    return {"payload": vault.close(plain, row.tenant, *place), "digest": vault.mark(digest, row.tenant)}


def _hold(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
    old, tenant, (hold,) = row.values, row.tenant, row.place
    return {
        "prompt": _text(vault, old["prompt"], tenant, "prompt", hold),
        "options": _hold_options(vault, old["options"], tenant, hold),
        "context": _bytes(vault, old["context"], tenant, "context", hold),
        "schema": _bytes(vault, old["schema"], tenant, "schema", hold),
        "request_hash": _text(vault, old["request_hash"], tenant, "request", hold),
        "resolution": _bytes(vault, old["resolution"], tenant, "resolution", hold),
        "closed_reason": _text(vault, old["closed_reason"], tenant, "closed", row.run),
        "placed": _bytes(vault, old["placed"], tenant, "placed", hold),
    }


def _hold_options(vault: FieldCipher, data: bytes | None, tenant: str, hold: str) -> bytes | None:
    options = None if data is None else _options.decode(data)
    if not options:
        return data
    first = options[0].id
    if is_encrypted_text(first) and _is_current(vault, bytes_of_text(first)):
        return data
    plain = (
        _options.decode(vault.decrypt_text(first, "options", hold)) if is_encrypted_text(first) else options
    )
    return msgspec.json.encode((Option(vault.encrypt_options(plain, tenant, hold), ""),))


def _message(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
    return {"payload": _bytes(vault, row.values["payload"], row.tenant, "outbox", row.tenant, *row.place)}


def _note(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
    return {"body": _bytes(vault, row.values["body"], row.tenant, "note", *row.place)}


def _key(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
    return {"digest": _text(vault, row.values["digest"], row.tenant, "key", *row.place)}


def _document(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
    return {"body": _bytes(vault, row.values["body"], row.tenant, "document", row.tenant, *row.place)}


def _schedule(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
    return {"body": _bytes(vault, row.values["body"], row.tenant, "schedule", row.tenant, *row.place)}


def _run(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
    return {"error": _text(vault, row.values["error"], row.tenant, "error", row.run)}


def _memory(vault: FieldCipher, row: StoredRow) -> dict[str, Any]:
    old = row.values["content"]
    content = _text(vault, old, row.tenant, "memory", row.tenant, *row.place)
    return (
        row.values
        if content == old or content is None
        else {"content": content, "folded": content.casefold()}
    )


_RENEW: dict[str, Callable[[FieldCipher, StoredRow], dict[str, Any]]] = {
    "journal": _record, "holds": _hold, "runs": _run, "memories": _memory,
    "outbox": _message, "hold_notes": _note, "hold_keys": _key, "documents": _document,
    "schedules": _schedule,
}  # fmt: skip


# ---------------------------------------------------------------------- blobs


async def _blobs(service: RunAccess, vaulted: EncryptedStore, done: ReencryptResult) -> None:
    desk, after = service.runtime.desk, -1
    while rows := await vaulted.inner.kept("blobs", after=after, limit=BATCH):
        after = rows[-1].row
        for row in rows:
            (address,) = row.place
            data = await desk.raw(address)
            if data is not None and is_encrypted(data):
                await _blob(service, vaulted, address, data, done)


async def _blob(
    service: RunAccess, vaulted: EncryptedStore, address: bytes, data: bytes, done: ReencryptResult
) -> None:
    try:
        new = _bytes(vaulted.vault, data, header_of(data).tenant, "blob", address)
    except KeyMissingError as error:
        done.miss(f"key {error.facts.get('key')}")
        return
    except CheckpointCorruptError:
        done.miss("damaged")
        return
    if new is not None and new != data:
        await service.runtime.desk.replace(address, new)
        done.blobs += 1


async def _plain_blobs(service: RunAccess, vaulted: EncryptedStore, done: ReencryptResult) -> None:
    """Those from before there were keys go to their tenants' addresses; the collector takes what is left."""
    after: tuple[int, int] | None = None
    while rows := await vaulted.list_runs(RunFilter(), after=after, limit=BATCH):
        after = (rows[-1].created_at, rows[-1].key)
        for row in rows:
            desk = service.runtime.desk.of(row.tenant)
            for digest in await vaulted.inner.blobs_of(row.id):
                data = await desk.raw(digest)
                if data is not None and not is_encrypted(data):
                    await desk.put([Blob(BlobRef(digest, len(data)), data)])
                    await vaulted.inner.replace_blob_reference(
                        row.id, digest, vaulted.vault.address(digest, row.tenant)
                    )
                    done.blobs += 1
