"""The audit: one chain of records per tenant, each bound to the one before it by its hash."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

GENESIS = bytes(32)


class NewAudit(msgspec.Struct, frozen=True, kw_only=True):
    """An action on a hold, done or refused. `data` is JSON without secrets or blob keys."""

    at: int
    actor: str
    action: str  # past tense: created, notified, claimed, resolved, refused, ...
    hold: str | None = None
    run: str | None = None
    data: bytes = b"{}"


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str
    seq: int  # from 1, without gaps
    at: int
    actor: str
    action: str
    hold: str | None
    run: str | None
    data: bytes
    prev: bytes
    hash: bytes
    sealed: bytes | None = None  # the stored bytes if `data` was encrypted: the chain covers these

    @property
    def data_digest(self) -> str:
        """The digest of the stored bytes. The chain covers only this digest of `data`."""
        return sha256(self.data if self.sealed is None else self.sealed).hexdigest()


def next_row(tenant: str, seq: int, prev: bytes, new: NewAudit) -> AuditRow:
    """The row that follows the one whose hash is `prev`."""
    row = AuditRow(tenant=tenant, seq=seq, prev=prev, hash=b"", **msgspec.structs.asdict(new))
    return msgspec.structs.replace(row, hash=hash_of(row))


def hash_of(row: AuditRow) -> bytes:
    """sha256(prev || canonical JSON): sorted keys, no spaces, UTF-8; `data` by its own digest, so that its
    bytes may be destroyed without breaking the chain."""
    return sha256(row.prev + hashed_bytes(row)).digest()


def hashed_bytes(row: AuditRow) -> bytes:
    """The bytes that are hashed after the previous record's hash."""
    return canonical(_hashed_fields(row))


def canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _hashed_fields(row: AuditRow) -> dict[str, Any]:
    return {
        "tenant": row.tenant,
        "seq": row.seq,
        "at": row.at,
        "actor": row.actor,
        "action": row.action,
        "hold": row.hold,
        "run": row.run,
        "data": row.data_digest,
    }
