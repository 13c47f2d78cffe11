"""Holds that a run opens, closes and goes on from: the row, its audit entry and its message, together."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

import msgspec

from holdfast.store import hold_rules
from holdfast.store.sql.sqlite import audit, outbox
from holdfast.store.sql.sqlite.connect import Cursor, Row, rows
from holdfast.types.audit import NewAudit
from holdfast.types.hold import OPEN_ONLY_FIELDS, HoldTerms, NewHold
from holdfast.types.outbox import OutboxMessage
from holdfast.types.record import Side

_FIELDS = NewHold.__struct_fields__
_all_of = attrgetter(*_FIELDS)
JSON_FIELDS = ("options", "tags", "terms")
"""What columns keep in another form."""
_JSON_INDEXES = [(_FIELDS.index(field), field) for field in JSON_FIELDS]
_OPEN = f"""
INSERT INTO holds (run_key, tenant, updated_at, {", ".join(_FIELDS)})
VALUES (?, ?, ?, {", ".join("?" * len(_FIELDS))}) ON CONFLICT DO NOTHING"""
_CLOSING = f"""
UPDATE holds SET status = ?, closed_reason = ?, closed_by = 'system:engine', closed_at = ?, updated_at = ?,
                 version = version + 1, {", ".join(f"{name} = NULL" for name in OPEN_ONLY_FIELDS)}"""
_CLOSE = f"{_CLOSING} WHERE id = ? AND run_key = ? AND status = 'pending' RETURNING id, type, epoch"
_CLOSE_ALL = f"{_CLOSING} WHERE run_key = ? AND status = 'pending' RETURNING id, type, epoch"
_RESUME = """
UPDATE holds SET resumed_at = ?
WHERE id = ? AND run_key = ? AND status <> 'pending' AND resumed_at IS NULL"""
_PLAIN = HoldTerms()


class SqliteRunRef(NamedTuple):
    """The run that a transaction is about."""

    key: int
    id: str
    tenant: str


class SqliteRunHoldChanges:
    """The changes to one run's holds in one transaction. Entries of the audit are gathered, and appended to
    the chain at once."""

    def __init__(self, cur: Cursor, now: int, run: SqliteRunRef) -> None:
        self._cur = cur
        self._now = now
        self._run = run
        self._entries: list[NewAudit] = []

    def open(self, hold: NewHold) -> None:
        run = self._run
        self._cur.execute(_OPEN, (run.key, run.tenant, self._now, *values_of(hold)))
        if self._cur.connection.changes():  # else the same hold, asked again (CP-17)
            self._tell(hold_rules.opened_entries(hold, run.id, self._now), hold_rules.created_message(hold))

    def close(self, hold: str, status: str, reason: str) -> None:
        found = rows(self._cur, _CLOSE, (status, reason, self._now, self._now, hold, self._run.key))
        self._closed(found, status, reason)

    def close_all(self, reason: str) -> None:
        found = rows(self._cur, _CLOSE_ALL, ("cancelled", reason, self._now, self._now, self._run.key))
        self._closed(found, "cancelled", reason)

    def _closed(self, found: list[Row], status: str, reason: str) -> None:
        for hold, kind, epoch in found:
            entry = hold_rules.closed_entry(hold, self._run.id, self._now, status=status, reason=reason)
            self._tell([entry], hold_rules.withdrawal_message(hold, kind, epoch, status=status))

    def resume(self, hold: str) -> None:
        self._cur.execute(_RESUME, (self._now, hold, self._run.key))

    def _tell(self, entries: list[NewAudit], message: OutboxMessage | None) -> None:
        self._entries += entries
        if message is not None:
            outbox.put(self._cur, self._now, self._run.tenant, self._run.key, message)

    def finish(self) -> None:
        audit.append(self._cur, self._run.tenant, self._entries)


def apply(cur: Cursor, now: int, run: SqliteRunRef, side: Side) -> None:
    if not (side.holds or side.close_holds or side.resumed_holds or side.close_all_holds is not None):
        return
    of_run = SqliteRunHoldChanges(cur, now, run)
    for hold in side.holds:
        of_run.open(hold)
    for closed in side.close_holds:
        if closed.id not in side.resumed_holds:  # else it was decided before
            of_run.close(closed.id, closed.status, closed.reason)
    for hold in side.resumed_holds:
        of_run.resume(hold)
    if side.close_all_holds is not None:
        of_run.close_all(side.close_all_holds)
    of_run.finish()


def close_all(cur: Cursor, now: int, run: SqliteRunRef, reason: str) -> None:
    of_run = SqliteRunHoldChanges(cur, now, run)
    of_run.close_all(reason)
    of_run.finish()


def values_of(hold: NewHold) -> list[object]:
    """As the columns keep them."""
    values = list(_all_of(hold))
    for place, field in _JSON_INDEXES:
        values[place] = column(field, values[place])
    return values


def column(field: str, value: object) -> object:
    if field == "options":
        return None if value is None else msgspec.json.encode(value)
    if field == "tags":
        return msgspec.json.encode(value).decode() if value else "[]"
    if field == "terms":
        return "{}" if value == _PLAIN else msgspec.json.encode(value).decode()
    return value
