"""Holds as they stand: how their rows are read."""

from __future__ import annotations

import msgspec

from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.types.hold import HoldRow, HoldTerms, Option
from holdfast.types.ids import HoldId, RunId
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
"""What has a column of its own; the rest is that of the run."""
COLUMNS = ", ".join(_OF_RUN.get(field, f"holds.{field}") for field in FIELDS)
FROM = "FROM holds JOIN runs ON runs.key = holds.run_key"
_BY_ID = f"SELECT {COLUMNS} {FROM} WHERE holds.id = ?"
WITH_KEY = f"SELECT holds.run_key, {COLUMNS} {FROM} WHERE holds.id = ?"
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
    fields["tags"] = () if fields["tags"] == "[]" else _read_tags(fields["tags"])
    fields["terms"] = _PLAIN if fields["terms"] == "{}" else _read_terms(fields["terms"])
    if fields["options"] is not None:
        fields["options"] = _read_options(fields["options"])
    return HoldRow(**fields)


def get(cur: Cursor, hold: HoldId) -> HoldRow | None:
    found = row(cur, _BY_ID, (hold,))
    return None if found is None else hold_row(found)


def of_run(
    cur: Cursor, run: RunId, status: HoldStatus | None, tenant: str | None, limit: int
) -> list[HoldRow]:
    given = {"runs.id": run, "holds.status": status, "holds.tenant": tenant}
    wanted = {column: value for column, value in given.items() if value is not None}
    text = " AND ".join(f"{column} = ?" for column in wanted) or "1"
    sql = f"SELECT {COLUMNS} {FROM} WHERE {text} ORDER BY holds.created_at, holds.number LIMIT ?"
    return [hold_row(r) for r in rows(cur, sql, (*wanted.values(), limit))]
