"""What is encrypted of each row, and where it belongs: every ciphertext is bound to its place (D-38).

Records keep their meaning: the digest that a record is known by (D-8) is that of its plain payload. It is
encrypted along with the payload, and the column has a keyed digest of it, so that a record that is settled
twice is still found out, and nobody without the key can try guesses on it.

What is encrypted of a hold's later life: changes, notes, the audit, messages, documents.

Who, when, of whom and until when stay readable, as do the terms and tags: sweeps, lists and routing go by
them in stores that hold no key. What people say and decide does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.checkpoint import encrypt
from holdfast.checkpoint.encrypt import place_of
from holdfast.checkpoint.envelope import DIGEST_SIZE
from holdfast.checkpoint.keys import Key, KeyRing
from holdfast.errors import CheckpointCorruptError, KeyMissingError
from holdfast.store.protocols import RunHistory, RunRow
from holdfast.types.audit import AuditRow, NewAudit, canonical
from holdfast.types.ciphertext import TEXT_PREFIX, is_encrypted, is_encrypted_text
from holdfast.types.document import Document
from holdfast.types.event import EventRow
from holdfast.types.hold import HoldChange, HoldClosed, HoldKey, HoldRow, NewHold, Note, Option
from holdfast.types.memory import Memory
from holdfast.types.outbox import OutboxMessage, OutboxRow
from holdfast.types.record import InboxRow, Record, Side

H = TypeVar("H", bound=NewHold)
_options = msgspec.json.Decoder(tuple[Option, ...])


class FieldCipher:
    """Encrypts for a tenant, and opens what any key of the ring encrypted; without a ring, nothing."""

    def __init__(self, ring: KeyRing | None) -> None:
        self.ring = ring

    # ------------------------------------------------------------------ bytes and texts
    def key(self, tenant: str) -> Key:
        if self.ring is None:
            raise KeyMissingError(
                f"this store is encrypted, and no key of tenant {tenant!r} is here to write with.",
                hint="Name the key file: HOLDFAST_KEYS=path/to/keys.json. Nothing was written.",
                tenant=tenant,
            )
        return self.ring.current(tenant)

    def close(self, data: bytes, tenant: str, *place: str | int | bytes) -> bytes:
        return encrypt.encrypt(data, self.key(tenant), tenant, place_of(*place))

    def open(self, data: bytes, *place: str | int | bytes) -> bytes:
        """Plain bytes pass: they were written before there were keys."""
        return encrypt.decrypt(data, self.ring, place_of(*place)) if is_encrypted(data) else data

    def encrypt_text(self, text: str, tenant: str, *place: str | int | bytes) -> str:
        return encrypt.encrypt_text(text, self.key(tenant), tenant, place_of(*place))

    def decrypt_text(self, text: str, *place: str | int | bytes) -> str:
        return encrypt.decrypt_text(text, self.ring, place_of(*place)) if is_encrypted_text(text) else text

    # ------------------------------------------------------------------ the journal
    def encrypt_record(self, record: Record, tenant: str, run: str) -> Record:
        plain = bytes([len(record.digest)]) + record.digest + record.payload
        closed = replace(record, payload=self.close(plain, tenant, "record", run, record.seq))
        closed.digest = self.mark(record.digest, tenant)
        return closed

    def mark(self, digest: bytes, tenant: str) -> bytes:
        """The column's digest: the same for the same record, and of no use to whoever has no key."""
        secret = self._addresses(tenant)[0]
        return encrypt.keyed_digest(secret, "record", tenant, digest)[:DIGEST_SIZE]

    def decrypt_record(self, record: Record, run: str) -> Record:
        if is_encrypted(record.payload):
            try:
                plain = self.open(record.payload, "record", run, record.seq)
            except CheckpointCorruptError:
                return record  # its digest does not fit: whoever opens it finds out
            end = 1 + plain[0]
            record.digest, record.payload, record.size = plain[1:end], plain[end:], len(plain) - end
        return record

    def encrypt_event(self, event: EventRow, tenant: str, run: str) -> EventRow:
        return replace(event, payload=self.close(event.payload, tenant, "event", run, event.at, event.type))

    def decrypt_event(self, event: EventRow, run: str) -> EventRow:
        if not is_encrypted(event.payload):
            return event
        return replace(event, payload=self.open(event.payload, "event", run, event.at, event.type))

    def decrypt_record_or_event(self, told: Record | EventRow, run: str) -> Record | EventRow:
        return self.decrypt_record(told, run) if isinstance(told, Record) else self.decrypt_event(told, run)

    def decrypt_inbox_row(self, mail: InboxRow, run: str) -> InboxRow:
        if not is_encrypted(mail.payload):
            return mail
        return replace(mail, payload=self.open(mail.payload, "inbox", run, mail.kind))

    # ------------------------------------------------------------------ what a record brings along
    def encrypt_side(self, side: Side, tenant: str, run: str, blobs: list[bytes]) -> Side:
        reason = side.close_all_holds
        return replace(
            side,
            error=None if side.error is None else self.encrypt_text(side.error, tenant, "error", run),
            holds=[self.encrypt_hold(hold, tenant) for hold in side.holds],
            close_holds=[self._closed(closed, tenant, run) for closed in side.close_holds],
            close_all_holds=None if reason is None else self.encrypt_text(reason, tenant, "closed", run),
            outbox=[self.encrypt_message(message, tenant) for message in side.outbox],
            memories=[self.encrypt_memory(memory) for memory in side.memories],
            blobs=blobs,
        )

    def _closed(self, closed: HoldClosed, tenant: str, run: str) -> HoldClosed:
        return replace(closed, reason=self.encrypt_text(closed.reason, tenant, "closed", run))

    def encrypt_message(self, message: OutboxMessage, tenant: str) -> OutboxMessage:
        return replace(message, payload=self.close(message.payload, tenant, "outbox", tenant, message.key))

    # ------------------------------------------------------------------ holds
    def encrypt_hold(self, hold: H, tenant: str) -> H:
        """What was asked. The row's plain columns say where and when, of whom, and until when."""
        asked: dict[str, Any] = {
            "prompt": self.encrypt_text(hold.prompt, tenant, "prompt", hold.id),
            "context": self.close(hold.context, tenant, "context", hold.id),
            "request_hash": self.encrypt_text(hold.request_hash, tenant, "request", hold.id),
        }
        if hold.options is not None:
            asked["options"] = (Option(self.encrypt_options(hold.options, tenant, hold.id), ""),)
        if hold.schema is not None:
            asked["schema"] = self.close(hold.schema, tenant, "schema", hold.id)
        if isinstance(hold, HoldRow):
            asked |= self._encrypt_outcome(hold, tenant)
        return replace(hold, **asked)

    def _encrypt_outcome(self, hold: HoldRow, tenant: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if hold.resolution is not None:
            found["resolution"] = self.close(hold.resolution, tenant, "resolution", hold.id)
        if hold.placed is not None:
            found["placed"] = self.close(hold.placed, tenant, "placed", hold.id)
        if hold.closed_reason is not None:
            found["closed_reason"] = self.encrypt_text(hold.closed_reason, tenant, "closed", hold.run)
        return found

    def encrypt_options(self, options: tuple[Option, ...], tenant: str, hold: str) -> str:
        return self.encrypt_text(msgspec.json.encode(options).decode(), tenant, "options", hold)

    def decrypt_hold(self, hold: HoldRow) -> HoldRow:
        opened: dict[str, Any] = {
            "prompt": self.decrypt_text(hold.prompt, "prompt", hold.id),
            "context": self.open(hold.context, "context", hold.id),
            "request_hash": self.decrypt_text(hold.request_hash, "request", hold.id),
            "options": self._decrypt_options(hold),
        }
        for name in ("schema", "resolution", "placed"):
            value = getattr(hold, name)
            if value is not None:
                opened[name] = self.open(value, name, hold.id)
        if hold.closed_reason is not None:
            opened["closed_reason"] = self.decrypt_text(hold.closed_reason, "closed", hold.run)
        return replace(hold, **opened)

    def _decrypt_options(self, hold: HoldRow) -> tuple[Option, ...] | None:
        if not hold.options or not is_encrypted_text(hold.options[0].id):
            return hold.options
        return _options.decode(self.decrypt_text(hold.options[0].id, "options", hold.id))

    # ------------------------------------------------------------------ runs and memories
    def decrypt_row(self, row: RunRow) -> RunRow:
        """A list of runs can be read without a key; then it says that there is an error, and not which."""
        if not is_encrypted_text(row.error):
            return row
        return replace(
            row, error=text_or_key_notice(lambda: self.decrypt_text(row.error or "", "error", row.id))
        )

    def encrypt_memory(self, memory: Memory) -> Memory:
        closed = self.encrypt_text(memory.content, memory.tenant, "memory", memory.tenant, memory.id)
        return replace(memory, content=closed)

    def decrypt_memory(self, memory: Memory) -> Memory:
        return replace(memory, content=self.decrypt_text(memory.content, "memory", memory.tenant, memory.id))

    def decrypt_history(self, found: RunHistory) -> RunHistory:
        """As plain as without keys, but for its blobs: their addresses stay those of the store it lay in."""
        run = found.run.id
        return replace(
            found,
            run=self.decrypt_row(found.run),
            records=[self.decrypt_record(record, run) for record in found.records],
            events=[self.decrypt_event(event, run) for event in found.events],
            holds=[self.decrypt_hold(hold) for hold in found.holds],
            late=[(seq, self.open(data, "late", run, seq)) for seq, data in found.late],
        )

    # ------------------------------------------------------------------ blobs
    def address(self, digest: bytes, tenant: str) -> bytes:
        """Where a new blob of this tenant lies."""
        return encrypt.keyed_digest(self._addresses(tenant)[0], "blob", tenant, digest)

    def places(self, digest: bytes, tenant: str) -> list[bytes]:
        """Where a blob may lie: under the scope of its tenant, or plain from before there were keys."""
        secrets: Sequence[bytes] = () if self.ring is None else self.ring.addresses(tenant)
        return [*(encrypt.keyed_digest(secret, "blob", tenant, digest) for secret in secrets), digest]

    def encrypt_blob(self, data: bytes, address: bytes, tenant: str) -> bytes:
        return self.close(data, tenant, "blob", address)

    def decrypt_blob(self, data: bytes, address: bytes) -> bytes:
        return self.open(data, "blob", address)

    def _addresses(self, tenant: str) -> Sequence[bytes]:
        self.key(tenant)
        return () if self.ring is None else self.ring.addresses(tenant)


def text_or_key_notice(read: Callable[[], str]) -> str:
    try:
        return read()
    except KeyMissingError as error:
        return f"(encrypted under key {error.facts.get('key')}, which is not here)"


_MARK = TEXT_PREFIX.encode()


# ---------------------------------------------------------------------- changes


def encrypt_change(vault: FieldCipher, change: HoldChange, row: HoldRow) -> HoldChange:
    tenant, run = row.tenant, row.run
    mail, event = change.mail, change.event
    return replace(
        change,
        fields=_encrypt_fields(vault, change.fields, row),
        audit=tuple(encrypt_audit(vault, entry, tenant) for entry in change.audit),
        notes=tuple(_encrypt_note(vault, note, tenant) for note in change.notes),
        outbox=tuple(vault.encrypt_message(message, tenant) for message in change.outbox),
        mail=None if mail is None else (mail[0], vault.close(mail[1], tenant, "inbox", run, mail[0])),
        event=None if event is None else vault.encrypt_event(event, tenant, run),
        more_events=tuple(vault.encrypt_event(each, tenant, run) for each in change.more_events),
        key=None if change.key is None else _encrypt_key(vault, change.key, row),
        let_go=tuple(place for digest in change.let_go for place in vault.places(digest, tenant)),
    )


def _encrypt_fields(vault: FieldCipher, fields: dict[str, Any], row: HoldRow) -> dict[str, Any]:
    closed = dict(fields)
    for name in ("resolution", "placed"):
        if closed.get(name) is not None:
            closed[name] = vault.close(closed[name], row.tenant, name, row.id)
    reason = closed.get("closed_reason")
    if reason is not None:
        closed["closed_reason"] = vault.encrypt_text(reason, row.tenant, "closed", row.run)
    return closed


def _encrypt_key(vault: FieldCipher, key: HoldKey, row: HoldRow) -> HoldKey:
    """The digest is of what was decided, of which there are few: it could be guessed."""
    return replace(key, digest=vault.encrypt_text(key.digest, row.tenant, "key", row.id, key.actor, key.key))


def decrypt_key(vault: FieldCipher, key: HoldKey, hold: str) -> HoldKey:
    return replace(key, digest=vault.decrypt_text(key.digest, "key", hold, key.actor, key.key))


def _encrypt_note(vault: FieldCipher, note: Note, tenant: str) -> Note:
    return replace(note, body=vault.close(note.body, tenant, "note", note.hold, note.kind, note.slot))


def decrypt_note(vault: FieldCipher, note: Note) -> Note:
    return replace(note, body=vault.open(note.body, "note", note.hold, note.kind, note.slot))


# ---------------------------------------------------------------------- the audit


def encrypt_audit(vault: FieldCipher, entry: NewAudit, tenant: str) -> NewAudit:
    """Its chain is over the encrypted bytes: it can be verified without keys, and is never encrypted anew."""
    return replace(entry, data=vault.close(entry.data, tenant, *_place(tenant, entry)))


def decrypt_audit(vault: FieldCipher, row: AuditRow) -> AuditRow:
    """An entry whose key is gone still stands in the chain, and says so."""
    try:
        data = _decrypted(vault, row)
    except KeyMissingError as error:
        data = canonical({"encrypted_under": error.facts.get("key")})
    return row if data == row.data else replace(row, data=data, sealed=row.data)


def _decrypted(vault: FieldCipher, row: AuditRow) -> bytes:
    if is_encrypted(row.data):
        return vault.open(row.data, *_place(row.tenant, row))
    return _decrypted_within(vault, row) if _MARK in row.data else row.data


def _decrypted_within(vault: FieldCipher, row: AuditRow) -> bytes:
    """What the store itself wrote has two texts from the hold's row, encrypted as they are there."""
    places = {"request_hash": ("request", row.hold or ""), "reason": ("closed", row.run or "")}
    data = msgspec.json.decode(row.data)
    for name, place in places.items():
        if is_encrypted_text(data.get(name)):
            data[name] = vault.decrypt_text(data[name], *place)
    return canonical(data)


def _place(tenant: str, entry: NewAudit | AuditRow) -> tuple[str | int, ...]:
    return ("audit", tenant, entry.hold or "", entry.action, entry.actor, entry.at)


# ---------------------------------------------------------------------- messages and documents


def decrypt_message(vault: FieldCipher, row: OutboxRow) -> OutboxRow:
    return replace(row, payload=vault.open(row.payload, "outbox", row.tenant, row.key))


def encrypt_document(vault: FieldCipher, document: Document) -> Document:
    return replace(document, body=vault.close(document.body, document.tenant, *_place_of(document)))


def decrypt_document(vault: FieldCipher, document: Document) -> Document:
    return replace(document, body=vault.open(document.body, *_place_of(document)))


def _place_of(document: Document) -> tuple[str, ...]:
    return ("document", document.tenant, document.kind, document.name)
