"""The audit: one chain for each tenant, appended at its end and read in order."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from holdfast.store.sql.connection import Conn
from holdfast.types.audit import GENESIS, AuditRow, NewAudit, next_row

_FIELDS = ("tenant", "seq", "at", "actor", "action", "hold", "run", "data", "prev", "hash")
_values = attrgetter(*_FIELDS)
_COLUMNS = ", ".join(_FIELDS)
_HEAD = "SELECT seq, hash FROM @audit_heads WHERE tenant = ?"
# Until the commit no other transaction appends to this chain. Not needed where one transaction writes at a
# time.
_LOCK = """
INSERT INTO @audit_heads AS heads (tenant, seq, hash) VALUES (?, 0, ?)
ON CONFLICT (tenant) DO UPDATE SET seq = heads.seq RETURNING seq, hash"""
_APPEND = f"INSERT INTO @audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_IN_ORDER = f"SELECT {_COLUMNS} FROM @audit WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"
_OF_HOLD = f"SELECT {_COLUMNS} FROM @audit WHERE tenant = ? AND seq > ? AND hold = ? ORDER BY seq LIMIT ?"


class AuditEntries:
    """The entries of a transaction, appended at its end: so the chains are locked only for a moment, and by
    all transactions in the same order."""

    def __init__(self) -> None:
        self._of: dict[str, list[NewAudit]] = {}

    def add(self, tenant: str, entry: NewAudit) -> None:
        self._of.setdefault(tenant, []).append(entry)

    async def append(self, conn: Conn) -> None:
        for tenant in sorted(self._of):
            await append(conn, tenant, self._of[tenant])


async def append(conn: Conn, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]:
    """Each entry contains the hash of the one before it; a trigger updates the chain's head."""
    if not entries:
        return []
    found = await (conn.row(_LOCK, tenant, GENESIS) if conn.locks_rows else conn.row(_HEAD, tenant))
    seq, hash_ = (0, GENESIS) if found is None else (found[0], found[1])
    written: list[AuditRow] = []
    for entry in entries:
        seq += 1
        added = next_row(tenant, seq, hash_, entry)
        hash_ = added.hash
        written.append(added)
    await conn.many(_APPEND, [_values(added) for added in written])
    return written


async def head(conn: Conn, tenant: str) -> tuple[int, bytes]:
    found = await conn.row(_HEAD, tenant)
    return (0, GENESIS) if found is None else (found[0], found[1])


async def select(conn: Conn, tenant: str, after: int, limit: int, hold: str | None) -> list[AuditRow]:
    if hold is None:
        found = await conn.rows(_IN_ORDER, tenant, after, limit)
    else:
        found = await conn.rows(_OF_HOLD, tenant, after, hold, limit)
    return [AuditRow(**dict(zip(_FIELDS, values, strict=True))) for values in found]


async def tenants(conn: Conn) -> list[str]:
    return [tenant for (tenant,) in await conn.rows("SELECT tenant FROM @audit_heads ORDER BY tenant")]
