"""Holds as they stand, and the one compare-and-set that decides them."""

from __future__ import annotations

import msgspec

from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.store.sql.sqlite.inbox import add_event, put
from holdfast.types.event import EventRow
from holdfast.types.hold import Answer, HoldRow, Option
from holdfast.types.ids import HoldId, RunId
from holdfast.types.status import HoldStatus

_FIELDS = HoldRow.__struct_fields__
_OF_RUN = {"run": "runs.id", "tenant": "runs.tenant", "flow": "runs.flow"}
_COLUMNS = ", ".join(_OF_RUN.get(field, f"holds.{field}") for field in _FIELDS)
_FROM = "FROM holds JOIN runs ON runs.key = holds.run_key"
_BY_ID = f"SELECT {_COLUMNS} {_FROM} WHERE holds.id = ?"
_DECIDE = """
UPDATE holds SET status = 'resolved', version = version + 1, resolution = ?, resolved_by = ?, resolved_at = ?
WHERE id = ? AND status = 'pending'"""
_OPEN = (
    f"SELECT holds.run_key, {_COLUMNS} {_FROM} "
    "WHERE holds.id = ? AND holds.status = 'pending' AND NOT runs.read_only"
)
_STATUSES = {str(status): status for status in HoldStatus}

_read_options = msgspec.json.Decoder(tuple[Option, ...]).decode


def _hold_row(values: Row) -> HoldRow:
    fields = dict(zip(_FIELDS, values, strict=True))
    fields["status"] = _STATUSES[fields["status"]]
    if fields["options"] is not None:
        fields["options"] = _read_options(fields["options"])
    return HoldRow(**fields)


def get(cur: Cursor, hold: HoldId) -> HoldRow | None:
    found = row(cur, _BY_ID, (hold,))
    return None if found is None else _hold_row(found)


def select(
    cur: Cursor, run: RunId | None, status: HoldStatus | None, tenant: str | None, limit: int
) -> list[HoldRow]:
    given = {"runs.id": run, "holds.status": status, "runs.tenant": tenant}
    wanted = {column: value for column, value in given.items() if value is not None}
    text = " AND ".join(f"{column} = ?" for column in wanted) or "1"
    sql = f"SELECT {_COLUMNS} {_FROM} WHERE {text} ORDER BY holds.created_at, holds.number LIMIT ?"
    return [_hold_row(r) for r in rows(cur, sql, (*wanted.values(), limit))]


def answer(cur: Cursor, now: int, answer: Answer, event: EventRow) -> HoldRow | None:
    """The decision, the run's inbox row (its payload is the hold's id), the event and the wake-up."""
    found = row(cur, _OPEN, (answer.hold,))
    if found is None:
        return None
    key, hold = found[0], _hold_row(found[1:])
    cur.execute(_DECIDE, (answer.resolution, answer.resolved_by, answer.at, answer.hold))
    put(cur, now, key, "answer", answer.hold.encode())
    add_event(cur, key, event)
    return msgspec.structs.replace(
        hold,
        status=HoldStatus.resolved,
        version=hold.version + 1,
        resolution=answer.resolution,
        resolved_by=answer.resolved_by,
        resolved_at=answer.at,
    )
