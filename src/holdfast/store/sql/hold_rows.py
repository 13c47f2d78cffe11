"""How the rows of holds are read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from holdfast.store import hold_transitions
from holdfast.store.sql import outbox, queues
from holdfast.store.sql.audit import AuditEntries
from holdfast.store.sql.connection import Conn, Row
from holdfast.types.audit import NewAudit
from holdfast.types.hold import OPEN_ONLY_FIELDS, HoldFilter, HoldRow, HoldTerms, NewHold, Option
from holdfast.types.ids import HoldId, RunId
from holdfast.types.outbox import OutboxMessage
from holdfast.types.record import Side
from holdfast.types.status import HoldStatus

FIELDS = HoldRow.__struct_fields__
_OF_RUN = {
    "run": "runs.id",
    "flow": "runs.flow",
    "deployment": "runs.deployment",
    "instance_key": "runs.instance_key",
    "started_by": "runs.started_by",
}
OWN = tuple(field for field in FIELDS if field not in _OF_RUN)
"""Fields with their own column; the others come from the run."""
COLUMNS = ", ".join(_OF_RUN.get(field, f"holds.{field}") for field in FIELDS)
FROM = "FROM @holds AS holds JOIN @runs AS runs ON runs.key = holds.run_key"
RUN_COLUMNS = {
    "flow": "runs.flow",
    "instance_key": "runs.instance_key",
    "deployment": "coalesce(runs.deployment, 'flow:' || runs.flow)",
    "started_by": "runs.started_by",
}
"""Fields of a filter that are columns of the run."""
_BY_ID = f"SELECT {COLUMNS} {FROM} WHERE holds.id = ?"
Condition = tuple[str, Sequence[Any]]
"""A part of a WHERE clause, and its arguments."""
_STATUSES = {str(status): status for status in HoldStatus}
_PLAIN = HoldTerms()

_read_options = msgspec.json.Decoder(tuple[Option, ...]).decode
_read_tags = msgspec.json.Decoder(tuple[str, ...]).decode
_read_terms = msgspec.json.Decoder(HoldTerms).decode


def hold_row(values: Row) -> HoldRow:
    fields = dict(zip(FIELDS, values, strict=True))
    fields["status"] = _STATUSES[fields["status"]]
    fields["read_only"] = bool(fields["read_only"])
    fields["notification_sent"] = bool(fields["notification_sent"])
    tags = fields["tags"]  # a list, or a list as JSON
    if type(tags) is str:
        fields["tags"] = () if tags == "[]" else _read_tags(tags)
    else:
        fields["tags"] = tuple(tags)
    fields["terms"] = _PLAIN if fields["terms"] == "{}" else _read_terms(fields["terms"])
    if fields["options"] is not None:
        fields["options"] = _read_options(fields["options"])
    return HoldRow(**fields)


def span_conditions(where: HoldFilter) -> list[Condition]:
    given = {
        "holds.created_at >= ?": where.created_from,
        "holds.created_at < ?": where.created_to,
        "holds.expires_at >= ?": where.expires_from,
        "holds.expires_at < ?": where.expires_to,
        "holds.resolved_at >= ?": where.resolved_from,
        "holds.resolved_at < ?": where.resolved_to,
    }
    return [(text, (value,)) for text, value in given.items() if value is not None]


def columns(fields: Iterable[str], values: Iterable[Any]) -> list[Any]:
    """The values of a hold's fields as their columns store them."""
    # Most fields are stored as they are; a call for each of them would be felt by every hold.
    return [
        _STORED_AS[field](value) if field in _STORED_AS else value
        for field, value in zip(fields, values, strict=True)
    ]


def _options(value: Any) -> bytes | None:
    return None if value is None else msgspec.json.encode(value)


def _terms(value: Any) -> str:
    return "{}" if value == _PLAIN else msgspec.json.encode(value).decode()


_STORED_AS: dict[str, Callable[[Any], Any]] = {"options": _options, "tags": list, "terms": _terms}


async def get(conn: Conn, hold: HoldId) -> HoldRow | None:
    found = await conn.row(_BY_ID, hold)
    return None if found is None else hold_row(found)


async def of_run(
    conn: Conn, run: RunId, status: HoldStatus | None, tenant: str | None, limit: int
) -> list[HoldRow]:
    given = {"runs.id": run, "holds.status": status, "holds.tenant": tenant}
    wanted = {column: value for column, value in given.items() if value is not None}
    text = " AND ".join(f"{column} = ?" for column in wanted)
    sql = f"SELECT {COLUMNS} {FROM} WHERE {text} ORDER BY holds.created_at, holds.number LIMIT ?"
    return [hold_row(r) for r in await conn.rows(sql, *wanted.values(), limit)]


_FIELDS = NewHold.__struct_fields__
_values = attrgetter(*_FIELDS)
_CONVERTED = [(_FIELDS.index(field), stored) for field, stored in _STORED_AS.items() if field in _FIELDS]
_OPEN = f"""
INSERT INTO @holds (run_key, tenant, updated_at, {", ".join(_FIELDS)})
VALUES (?, ?, ?, {", ".join("?" * len(_FIELDS))}) ON CONFLICT DO NOTHING"""
_OPEN_SHARED = _OPEN.replace("updated_at,", "updated_at, shared,").replace("(?, ?, ?,", "(?, ?, ?, ?,")
_CLOSING = f"""
UPDATE @holds SET status = ?, closed_reason = ?, closed_by = 'system:engine', closed_at = ?, updated_at = ?,
                  version = version + 1, {", ".join(f"{name} = NULL" for name in OPEN_ONLY_FIELDS)}"""
_CLOSED = "RETURNING id, type, epoch, number, message_id"
_CLOSE = f"{_CLOSING} WHERE id = ? AND run_key = ? AND status = 'pending' {_CLOSED}"
_CLOSE_ALL = f"{_CLOSING} WHERE run_key = ? AND status = 'pending' {_CLOSED}"
_RESUME = """
UPDATE @holds SET resumed_at = ?
WHERE id = ? AND run_key = ? AND status <> 'pending' AND resumed_at IS NULL"""


class RunRef(NamedTuple):
    """The run that a transaction is about."""

    key: int
    id: str
    tenant: str


class RunHoldChanges:
    """The changes to one run's holds in one transaction."""

    def __init__(self, conn: Conn, now: int, run: RunRef, entries: AuditEntries) -> None:
        self._conn = conn
        self._now = now
        self._run = run
        self._entries = entries

    async def open(self, hold: NewHold) -> None:
        run = self._run
        values = list(_values(hold))
        for place, stored in _CONVERTED:
            values[place] = stored(values[place])
        sql = _OPEN
        if self._conn.keeps_shared:
            sql, values = _OPEN_SHARED, [list(hold.terms.also_for), *values]
        # Nothing was inserted: the same hold was asked for before (CP-17).
        if await self._conn.run(sql, run.key, run.tenant, self._now, *values):
            await self._record(
                hold_transitions.opened_entries(hold, run.id, self._now),
                hold_transitions.created_message(hold),
                hold_transitions.queue_message(hold, 1),
            )

    async def close(self, hold: str, status: str, reason: str) -> None:
        closing = (status, reason, self._now, self._now, hold, self._run.key)
        await self._closed(await self._conn.rows(_CLOSE, *closing), status, reason)

    async def close_all(self, reason: str) -> None:
        closing = ("cancelled", reason, self._now, self._now, self._run.key)
        await self._closed(await self._conn.rows(_CLOSE_ALL, *closing), "cancelled", reason)

    async def _closed(self, found: list[Row], status: str, reason: str) -> None:
        for hold, kind, epoch, _, published in sorted(found, key=lambda row: row[3]):
            entry = hold_transitions.closed_entry(hold, self._run.id, self._now, status=status, reason=reason)
            await self._record(
                [entry],
                hold_transitions.withdrawal_message(hold, kind, epoch, status=status),
                hold_transitions.queue_end_message(hold, published, status),
            )
        if found:
            await queues.end_of_holds(self._conn, self._now, [row[0] for row in found], HoldStatus(status))

    async def resume(self, hold: str) -> None:
        await self._conn.run(_RESUME, self._now, hold, self._run.key)

    async def _record(self, entries: list[NewAudit], *messages: OutboxMessage | None) -> None:
        for entry in entries:
            self._entries.add(self._run.tenant, entry)
        for message in filter(None, messages):
            await outbox.put(self._conn, self._now, self._run.tenant, self._run.key, message)


async def apply(conn: Conn, now: int, run: RunRef, side: Side, entries: AuditEntries) -> None:
    if not (side.holds or side.close_holds or side.resumed_holds or side.close_all_holds is not None):
        return
    of_run = RunHoldChanges(conn, now, run, entries)
    for hold in side.holds:
        await of_run.open(hold)
    for closed in side.close_holds:
        if closed.id not in side.resumed_holds:  # otherwise it was decided before
            await of_run.close(closed.id, closed.status, closed.reason)
    for hold in side.resumed_holds:
        await of_run.resume(hold)
    if side.close_all_holds is not None:
        await of_run.close_all(side.close_all_holds)


async def close_all(conn: Conn, now: int, run: RunRef, reason: str, entries: AuditEntries) -> None:
    await RunHoldChanges(conn, now, run, entries).close_all(reason)
