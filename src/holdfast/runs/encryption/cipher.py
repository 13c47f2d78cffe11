"""What is content in each row, and how it is encrypted: every ciphertext is bound to its place (D-38).

Content is what flows compute and what people write. Who, when, of whom and until when stay readable, as do
terms and tags: sweeps, lists and routing go by them in stores that have no key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from holdfast.checkpoint import encrypt
from holdfast.checkpoint.encrypt import place_of
from holdfast.checkpoint.envelope import DIGEST_SIZE
from holdfast.checkpoint.keys import Key, KeyRing
from holdfast.errors import CheckpointCorruptError, KeyMissingError
from holdfast.store.rows import RunHistory, RunRow
from holdfast.types.audit import AuditRow, NewAudit, canonical
from holdfast.types.ciphertext import TEXT_PREFIX, is_encrypted, is_encrypted_text
from holdfast.types.document import Document
from holdfast.types.event import EventRow
from holdfast.types.graph_thread import GraphCheckpointRow, GraphValueRow, GraphWriteRow
from holdfast.types.hold import HoldChange, HoldClosed, HoldKey, HoldRow, NewHold, Note, Option
from holdfast.types.memory import Memory
from holdfast.types.outbox import OutboxMessage, OutboxRow
from holdfast.types.queue_message import MessageChange, MessageRow, NewMessage
from holdfast.types.record import InboxRow, Record, Side
from holdfast.types.schedule import ScheduleRow

R = TypeVar("R", bound=msgspec.Struct)
Part = str | int | bytes
_options = msgspec.json.Decoder(tuple[Option, ...])
_TEXT_MARK = TEXT_PREFIX.encode()


class Content(msgspec.Struct, frozen=True):
    """A field with content. Its ciphertext is bound to a label and to other fields of the row, by name; what
    the row itself does not have (`run`, `tenant`, `hold`) is known to the caller."""

    field: str
    label: str
    bound: tuple[str, ...]

    def place(self, row: Any, known: Mapping[str, Part]) -> tuple[Part, ...]:
        found = (known[name] if name in known else getattr(row, name) for name in self.bound)
        return (self.label, *("" if value is None else value for value in found))


_ASKED = (
    Content("prompt", "prompt", ("id",)),
    Content("options", "options", ("id",)),
    Content("context", "context", ("id",)),
    Content("schema", "schema", ("id",)),
    Content("request_hash", "request", ("id",)),
)
_AUDIT = (Content("data", "audit", ("tenant", "hold", "action", "actor", "at")),)
_MESSAGE = (Content("payload", "outbox", ("tenant", "key")),)
# A digest of a short content could be guessed, so it is content too.
_PUBLISHED = (
    Content("payload", "queue_payload", ("tenant", "id")),
    Content("digest", "queue_digest", ("tenant", "id")),
)
_WORKED = (
    Content("result", "queue_result", ("tenant", "id")),
    Content("error", "queue_error", ("tenant", "id")),
)

# A record is not here: its digest is encrypted along with its payload (`encrypt_record`).
ENCRYPTED: dict[type, tuple[Content, ...]] = {
    RunRow: (Content("error", "error", ("id",)),),
    EventRow: (Content("payload", "event", ("run", "at", "type")),),
    InboxRow: (Content("payload", "inbox", ("run", "kind")),),
    Side: (Content("error", "error", ("run",)), Content("close_all_holds", "closed", ("run",))),
    HoldClosed: (Content("reason", "closed", ("run",)),),
    NewHold: _ASKED,
    HoldRow: (
        *_ASKED,
        Content("resolution", "resolution", ("id",)),
        Content("placed", "placed", ("id",)),
        Content("closed_reason", "closed", ("run",)),
    ),
    # A digest of the decision would have few possible inputs: it could be guessed.
    HoldKey: (Content("digest", "key", ("hold", "actor", "key")),),
    Note: (Content("body", "note", ("hold", "kind", "slot")),),
    # The chain covers the encrypted bytes: it can be verified without keys, and is never encrypted again.
    NewAudit: _AUDIT,
    AuditRow: _AUDIT,
    OutboxMessage: _MESSAGE,
    OutboxRow: _MESSAGE,
    Document: (Content("body", "document", ("tenant", "kind", "name")),),
    NewMessage: _PUBLISHED,
    MessageRow: (*_PUBLISHED, *_WORKED),
    MessageChange: (_PUBLISHED[0], *_WORKED),
    ScheduleRow: (Content("body", "schedule", ("tenant", "name")),),
    Memory: (Content("content", "memory", ("tenant", "id")),),
    # Not bound to the thread, whose copies have the same bytes.
    GraphCheckpointRow: (
        Content("body", "graph_checkpoint", ("tenant", "ns", "id")),
        Content("facets", "graph_facets", ("tenant", "ns", "id")),
    ),
    GraphValueRow: (Content("data", "graph_value", ("tenant", "channel", "number")),),
    GraphWriteRow: (Content("data", "graph_write", ("tenant", "ns", "checkpoint", "task", "idx")),),
}


class FieldCipher:
    """Encrypts with the current key of a tenant, and decrypts what any key of the ring encrypted. Without a
    ring it can do neither."""

    def __init__(self, ring: KeyRing | None) -> None:
        self.ring = ring

    # ------------------------------------------------------------------ bytes and texts
    def key(self, tenant: str) -> Key:
        if self.ring is None:
            raise KeyMissingError(
                f"this store is encrypted, and there is no key of tenant {tenant!r} to write with.",
                hint="Name the key file: HOLDFAST_KEYS=path/to/keys.json. Nothing was written.",
                tenant=tenant,
            )
        return self.ring.current(tenant)

    def encrypt_bytes(self, data: bytes, tenant: str, *place: Part) -> bytes:
        return encrypt.encrypt(data, self.key(tenant), tenant, place_of(*place))

    def decrypt_bytes(self, data: bytes, *place: Part) -> bytes:
        """Plain bytes are returned as they are: they were written before there were keys."""
        return encrypt.decrypt(data, self.ring, place_of(*place)) if is_encrypted(data) else data

    def encrypt_text(self, text: str, tenant: str, *place: Part) -> str:
        return encrypt.encrypt_text(text, self.key(tenant), tenant, place_of(*place))

    def decrypt_text(self, text: str, *place: Part) -> str:
        return encrypt.decrypt_text(text, self.ring, place_of(*place)) if is_encrypted_text(text) else text

    # ------------------------------------------------------------------ rows
    def encrypt(self, row: R, tenant: str, **known: Part) -> R:
        return replace(row, **self._encrypted_fields(row, tenant, partial(getattr, row), known))

    def _encrypted_fields(
        self, row: Any, tenant: str, value_of: Callable[[str], Any], known: dict[str, Part]
    ) -> dict[str, Any]:
        """Only the fields that have content."""
        known["tenant"] = tenant
        return {
            content.field: self._encrypted_value(value, tenant, content.place(row, known))
            for content in ENCRYPTED[type(row)]
            if (value := value_of(content.field)) is not None
        }

    def _encrypted_value(self, value: Any, tenant: str, place: tuple[Part, ...]) -> Any:
        if isinstance(value, str):
            return self.encrypt_text(value, tenant, *place)
        if isinstance(value, bytes):
            return self.encrypt_bytes(value, tenant, *place)
        return self.encrypt_options(value, tenant, *place)

    def encrypt_options(self, options: tuple[Option, ...], tenant: str, *place: Part) -> tuple[Option, ...]:
        """All of them as one text, in the place of a first option's id."""
        return (Option(self.encrypt_text(msgspec.json.encode(options).decode(), tenant, *place), ""),)

    def decrypt(self, row: R, **known: Part) -> R:
        """Raises KeyMissingError, and CheckpointCorruptError where a value was changed or moved."""
        opened: dict[str, Any] = {}
        for content in ENCRYPTED[type(row)]:
            value = getattr(row, content.field)
            if isinstance(value, bytes):
                if is_encrypted(value):
                    opened[content.field] = self.decrypt_bytes(value, *content.place(row, known))
            elif isinstance(value, str):
                if is_encrypted_text(value):
                    opened[content.field] = self.decrypt_text(value, *content.place(row, known))
            elif value:
                opened[content.field] = self.decrypt_options(value, *content.place(row, known))
        return replace(row, **opened) if opened else row

    def decrypt_options(self, options: tuple[Option, ...], *place: Part) -> tuple[Option, ...]:
        if not is_encrypted_text(options[0].id):
            return options
        return _options.decode(self.decrypt_text(options[0].id, *place))

    def decrypt_or_mark(self, row: R, **known: Part) -> R:
        """For lists: a row whose key is missing is still listed, and marked where that is possible."""
        try:
            return self.decrypt(row, **known)
        except KeyMissingError as error:
            unreadable = _UNREADABLE.get(type(row))
            if unreadable is None:
                raise
            return cast("R", unreadable(row, error))

    # ------------------------------------------------------------------ the journal
    def encrypt_record(self, record: Record, tenant: str, run: str) -> Record:
        """A record keeps its identity: its digest (D-8) is that of its plain payload, encrypted along with
        it. The column has a keyed digest of it, so that a record that is settled twice is still recognised,
        and guesses cannot be checked without the key."""
        plain = bytes([len(record.digest)]) + record.digest + record.payload
        closed = replace(record, payload=self.encrypt_bytes(plain, tenant, "record", run, record.seq))
        closed.digest = self.keyed_digest(record.digest, tenant)
        return closed

    def keyed_digest(self, digest: bytes, tenant: str) -> bytes:
        """The column's digest: the same for the same record, and useless without the key."""
        secret = self._addresses(tenant)[0]
        return encrypt.keyed_digest(secret, "record", tenant, digest)[:DIGEST_SIZE]

    def decrypt_record(self, record: Record, run: str) -> Record:
        if is_encrypted(record.payload):
            try:
                plain = self.decrypt_bytes(record.payload, "record", run, record.seq)
            except CheckpointCorruptError:
                return record  # its digest does not match: the codec reports it, with the record's number
            end = 1 + plain[0]
            record.digest, record.payload = plain[1:end], plain[end:]
        return record

    def encrypt_side(self, side: Side, tenant: str, run: str, blobs: list[bytes]) -> Side:
        return replace(
            self.encrypt(side, tenant, run=run),
            holds=[self.encrypt(hold, tenant) for hold in side.holds],
            close_holds=[self.encrypt(closed, tenant, run=run) for closed in side.close_holds],
            outbox=[self.encrypt(message, tenant) for message in side.outbox],
            memories=[self.encrypt(memory, memory.tenant) for memory in side.memories],
            blobs=blobs,
        )

    def decrypt_history(self, found: RunHistory) -> RunHistory:
        """Decrypted, except for its blobs: their addresses are those of the store they are in."""
        run = found.run.id
        return replace(
            found,
            run=self.decrypt_or_mark(found.run),
            records=[self.decrypt_record(record, run) for record in found.records],
            events=[self.decrypt(event, run=run) for event in found.events],
            holds=[self.decrypt(hold) for hold in found.holds],
            late=[(seq, self.decrypt_bytes(data, "late", run, seq)) for seq, data in found.late],
        )

    # ------------------------------------------------------------------ holds and the audit
    def encrypt_change(self, change: HoldChange, row: HoldRow, blobs: tuple[bytes, ...]) -> HoldChange:
        tenant, run, mail = row.tenant, row.run, change.mail
        return replace(
            change,
            fields=change.fields | self._encrypted_fields(row, tenant, change.fields.get, {}),
            audit=tuple(self.encrypt(entry, tenant) for entry in change.audit),
            notes=tuple(self.encrypt(note, tenant) for note in change.notes),
            outbox=tuple(self.encrypt(message, tenant) for message in change.outbox),
            mail=mail and (mail[0], self.encrypt_bytes(mail[1], tenant, "inbox", run, mail[0])),
            event=change.event and self.encrypt(change.event, tenant, run=run),
            more_events=tuple(self.encrypt(each, tenant, run=run) for each in change.more_events),
            key=change.key and self.encrypt(change.key, tenant, hold=row.id),
            message=change.message and self.encrypt(change.message, tenant),
            released_blobs=tuple(
                place for digest in change.released_blobs for place in self.places(digest, tenant)
            ),
            blobs=blobs,
        )

    def decrypt_audit(self, row: AuditRow) -> AuditRow:
        """An entry whose key is missing stays in the chain, and is marked."""
        try:
            data = self.decrypt(row).data if is_encrypted(row.data) else self._decrypted_within(row)
        except KeyMissingError as error:
            data = canonical({"encrypted_under": error.facts.get("key")})
        return row if data == row.data else replace(row, data=data, sealed=row.data)

    def _decrypted_within(self, row: AuditRow) -> bytes:
        """An entry that the store wrote has two texts of the hold's row, encrypted as in that row."""
        if _TEXT_MARK not in row.data:
            return row.data
        places = {"request_hash": ("request", row.hold or ""), "reason": ("closed", row.run or "")}
        data = msgspec.json.decode(row.data)
        for name, place in places.items():
            if is_encrypted_text(data.get(name)):
                data[name] = self.decrypt_text(data[name], *place)
        return canonical(data)

    # ------------------------------------------------------------------ blobs
    def address(self, digest: bytes, tenant: str) -> bytes:
        """Where a new blob of this tenant is stored."""
        return encrypt.keyed_digest(self._addresses(tenant)[0], "blob", tenant, digest)

    def places(self, digest: bytes, tenant: str) -> list[bytes]:
        """Where a blob may be: at an address of its tenant, or at its plain digest if it was written before
        there were keys."""
        secrets: Sequence[bytes] = () if self.ring is None else self.ring.addresses(tenant)
        return [*(encrypt.keyed_digest(secret, "blob", tenant, digest) for secret in secrets), digest]

    def encrypt_blob(self, data: bytes, address: bytes, tenant: str) -> bytes:
        return self.encrypt_bytes(data, tenant, "blob", address)

    def decrypt_blob(self, data: bytes, address: bytes) -> bytes:
        return self.decrypt_bytes(data, "blob", address)

    def _addresses(self, tenant: str) -> Sequence[bytes]:
        self.key(tenant)
        return () if self.ring is None else self.ring.addresses(tenant)


# ---------------------------------------------------------------------- rows whose key is missing


def _notice(error: KeyMissingError) -> str:
    return f"(encrypted under key {error.facts.get('key')}, which is not here)"


def _unreadable_run(row: RunRow, error: KeyMissingError) -> RunRow:
    return replace(row, error=_notice(error))


def _unreadable_hold(row: HoldRow, error: KeyMissingError) -> HoldRow:
    hidden: dict[str, Any] = {"options": None, "schema": None, "resolution": None, "placed": None}
    return replace(row, prompt=_notice(error), context=b"{}", **hidden)


def _unreadable_message(row: OutboxRow, error: KeyMissingError) -> OutboxRow:
    return replace(row, payload=b"{}", error=str(error))


def _unreadable_schedule(row: ScheduleRow, _error: KeyMissingError) -> ScheduleRow:
    return row  # still encrypted; the scheduler passes it over, so that the others need not wait for its key


def _unreadable_queue_message(row: MessageRow, error: KeyMissingError) -> MessageRow:
    hidden = msgspec.json.encode({"encrypted_under": error.facts.get("key")})
    return replace(row, payload=hidden, result=None, error=_notice(error), digest="")


_UNREADABLE: dict[type, Any] = {
    RunRow: _unreadable_run,
    HoldRow: _unreadable_hold,
    OutboxRow: _unreadable_message,
    ScheduleRow: _unreadable_schedule,
    MessageRow: _unreadable_queue_message,
}
