"""How the rows of holds are read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.store.sql.connection import Conn, Row
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
"""Fields with their own column; the others come from the run."""
COLUMNS = ", ".join(_OF_RUN.get(field, f"holds.{field}") for field in FIELDS)
FROM = "FROM @holds AS holds JOIN @runs AS runs ON runs.key = holds.run_key"
_BY_ID = f"SELECT {COLUMNS} {FROM} WHERE holds.id = ?"
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
