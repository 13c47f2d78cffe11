"""The audit: chains that grow at their end, read in order."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from holdfast.store.sql.sqlite.connect import Cursor, row, rows
from holdfast.types.audit import GENESIS, AuditRow, NewAudit, next_row

_FIELDS = ("tenant", "seq", "at", "actor", "action", "hold", "run", "data", "prev", "hash")
_COLUMNS = ", ".join(_FIELDS)
_values = attrgetter(*_FIELDS)
_HEAD = "SELECT seq, hash FROM audit_heads WHERE tenant = ?"
_APPEND = f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_IN_ORDER = f"SELECT {_COLUMNS} FROM audit WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"
_OF_HOLD = f"SELECT {_COLUMNS} FROM audit WHERE tenant = ? AND seq > ? AND hold = ? ORDER BY seq LIMIT ?"


def append(cur: Cursor, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
    """Each bound to the one before it; the write lock keeps others from the chain's end meanwhile, and a
    trigger moves its head."""
    if not entries:
        return []
    seq, hash_ = head(cur, tenant)
    written: list[AuditRow] = []
    for entry in entries:
        seq += 1
        added = next_row(tenant, seq, hash_, entry)
        hash_ = added.hash
        cur.execute(_APPEND, _values(added))
        written.append(added)
    return written


def append_to(cur: Cursor, _now: int, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
    return append(cur, tenant, entries)


def head(cur: Cursor, tenant: str) -> tuple[int, bytes]:
    found = row(cur, _HEAD, (tenant,))
    return (0, GENESIS) if found is None else (found[0], found[1])


def select(cur: Cursor, tenant: str, after: int, limit: int, hold: str | None) -> list[AuditRow]:
    if hold is None:
        found = rows(cur, _IN_ORDER, (tenant, after, limit))
    else:
        found = rows(cur, _OF_HOLD, (tenant, after, hold, limit))
    return [AuditRow(**dict(zip(_FIELDS, values, strict=True))) for values in found]


def tenants(cur: Cursor) -> list[str]:
    return [tenant for (tenant,) in rows(cur, "SELECT tenant FROM audit_heads ORDER BY tenant")]
