"""What is encrypted of a hold's later life: changes, notes, the audit, messages, documents.

Who, when, of whom and until when stay readable, as do the terms and tags: sweeps, lists and routing go by
them in stores that hold no key. What people say and decide does not.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.errors import KeyMissingError
from holdfast.runs.encryption.cipher import Vault
from holdfast.types.audit import AuditRow, NewAudit, canonical
from holdfast.types.ciphertext import TEXT, is_encrypted, is_encrypted_text
from holdfast.types.document import Document
from holdfast.types.hold import HoldChange, HoldKey, HoldRow, Note
from holdfast.types.outbox import OutboxRow

_MARK = TEXT.encode()


# ---------------------------------------------------------------------- changes


def close_change(vault: Vault, change: HoldChange, row: HoldRow) -> HoldChange:
    tenant, run = row.tenant, row.run
    mail, event = change.mail, change.event
    return replace(
        change,
        fields=_close_fields(vault, change.fields, row),
        audit=tuple(close_audit(vault, entry, tenant) for entry in change.audit),
        notes=tuple(_close_note(vault, note, tenant) for note in change.notes),
        outbox=tuple(vault.close_message(message, tenant) for message in change.outbox),
        mail=None if mail is None else (mail[0], vault.close(mail[1], tenant, "inbox", run, mail[0])),
        event=None if event is None else vault.close_event(event, tenant, run),
        more_events=tuple(vault.close_event(each, tenant, run) for each in change.more_events),
        key=None if change.key is None else _close_key(vault, change.key, row),
        let_go=tuple(place for digest in change.let_go for place in vault.places(digest, tenant)),
    )


def _close_fields(vault: Vault, fields: dict[str, Any], row: HoldRow) -> dict[str, Any]:
    closed = dict(fields)
    for name in ("resolution", "placed"):
        if closed.get(name) is not None:
            closed[name] = vault.close(closed[name], row.tenant, name, row.id)
    reason = closed.get("closed_reason")
    if reason is not None:
        closed["closed_reason"] = vault.close_text(reason, row.tenant, "closed", row.run)
    return closed


def _close_key(vault: Vault, key: HoldKey, row: HoldRow) -> HoldKey:
    """The digest is of what was decided, of which there are few: it could be guessed."""
    return replace(key, digest=vault.close_text(key.digest, row.tenant, "key", row.id, key.actor, key.key))


def open_key(vault: Vault, key: HoldKey, hold: str) -> HoldKey:
    return replace(key, digest=vault.open_text(key.digest, "key", hold, key.actor, key.key))


def _close_note(vault: Vault, note: Note, tenant: str) -> Note:
    return replace(note, body=vault.close(note.body, tenant, "note", note.hold, note.kind, note.slot))


def open_note(vault: Vault, note: Note) -> Note:
    return replace(note, body=vault.open(note.body, "note", note.hold, note.kind, note.slot))


# ---------------------------------------------------------------------- the audit


def close_audit(vault: Vault, entry: NewAudit, tenant: str) -> NewAudit:
    """Its chain is over the encrypted bytes: it can be verified without keys, and is never encrypted anew."""
    return replace(entry, data=vault.close(entry.data, tenant, *_place(tenant, entry)))


def open_audit(vault: Vault, row: AuditRow) -> AuditRow:
    """An entry whose key is gone still stands in the chain, and says so."""
    try:
        data = _opened(vault, row)
    except KeyMissingError as error:
        data = canonical({"encrypted_under": error.facts.get("key")})
    return row if data == row.data else replace(row, data=data, sealed=row.data)


def _opened(vault: Vault, row: AuditRow) -> bytes:
    if is_encrypted(row.data):
        return vault.open(row.data, *_place(row.tenant, row))
    return _opened_within(vault, row) if _MARK in row.data else row.data


def _opened_within(vault: Vault, row: AuditRow) -> bytes:
    """What the store itself wrote has two texts from the hold's row, encrypted as they are there."""
    places = {"request_hash": ("request", row.hold or ""), "reason": ("closed", row.run or "")}
    data = msgspec.json.decode(row.data)
    for name, place in places.items():
        if is_encrypted_text(data.get(name)):
            data[name] = vault.open_text(data[name], *place)
    return canonical(data)


def _place(tenant: str, entry: NewAudit | AuditRow) -> tuple[str | int, ...]:
    return ("audit", tenant, entry.hold or "", entry.action, entry.actor, entry.at)


# ---------------------------------------------------------------------- messages and documents


def open_message(vault: Vault, row: OutboxRow) -> OutboxRow:
    return replace(row, payload=vault.open(row.payload, "outbox", row.tenant, row.key))


def close_document(vault: Vault, document: Document) -> Document:
    return replace(document, body=vault.close(document.body, document.tenant, *_place_of(document)))


def open_document(vault: Vault, document: Document) -> Document:
    return replace(document, body=vault.open(document.body, *_place_of(document)))


def _place_of(document: Document) -> tuple[str, ...]:
    return ("document", document.tenant, document.kind, document.name)
