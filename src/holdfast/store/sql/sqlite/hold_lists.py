"""Lists of holds: one range of an index for each assignee and status, merged; never a scan of the others.

First only the places, which an index contains; then the rows of those that are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Any

from msgspec.structs import replace

from holdfast.store.hold_order import SHARED_ASSIGNEE, Place, Range, ranges, require_place
from holdfast.store.sql.hold_rows import (
    COLUMNS,
    FROM,
    RUN_COLUMNS,
    Condition,
    hold_row,
    span_conditions,
)
from holdfast.store.sql.sqlite.connect import Cursor, row, rows, statement
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow
from holdfast.types.status import HoldStatus

_PLACES = {
    HoldOrder.inbox: "holds.urgency, holds.due, holds.created_at, holds.number",
    HoldOrder.oldest: "holds.created_at, holds.number",
    HoldOrder.newest: "holds.created_at, holds.number",
}
_BY_NUMBER = f"SELECT holds.number, {COLUMNS} {statement(FROM)} WHERE holds.number IN ({{marks}})"
_AT_ONCE = 500
# One index lookup for each, however many holds they have.
_TENANTS = """
WITH RECURSIVE known (tenant) AS (
    SELECT min(tenant) FROM holds
    UNION ALL SELECT (SELECT min(tenant) FROM holds WHERE tenant > known.tenant) FROM known
    WHERE known.tenant IS NOT NULL)
SELECT tenant FROM known WHERE tenant IS NOT NULL"""
_OF_RUN = """EXISTS (
    SELECT 1 FROM runs WHERE runs.key = holds.run_key AND {column} IN ({marks}))"""
_NOTED = "holds.id IN (SELECT hold FROM hold_notes WHERE kind = ? AND slot = ?)"
_NOT_NOTED = """NOT EXISTS (
    SELECT 1 FROM hold_notes WHERE hold = holds.id AND kind = ? AND slot = ? AND coalesce(until > ?, 1))"""
_TAGGED = "EXISTS (SELECT 1 FROM json_each(holds.tags) WHERE value IN ({marks}))"
_SHARED = """json_extract(holds.terms, '$.also_for') IS NOT NULL
    AND holds.assignee_type || ':' || holds.assignee_value NOT IN ({marks})
    AND EXISTS (SELECT 1 FROM json_each(holds.terms, '$.also_for') WHERE value IN ({marks}))"""
_SHARES = "hold_shares CROSS JOIN holds ON holds.number = hold_shares.number"
_SHARED_NOW = """hold_shares.tenant = ? AND hold_shares.assignee IN ({marks})
    AND holds.assignee_type || ':' || holds.assignee_value NOT IN ({marks})"""
_RUNS = "holds.run_key IN (SELECT key FROM runs WHERE id IN ({marks}))"


def select(
    cur: Cursor, where: HoldFilter, order: HoldOrder, after: Sequence[Any] | None, limit: int
) -> list[tuple[HoldRow, Place]]:
    require_place(after, order)
    found = [rows(cur, *places(each, order, after, limit, of)) for each, of in stretches(cur, where)]
    shown = list(islice(merge(*found, reverse=order is HoldOrder.newest), limit))
    whole = _rows(cur, [place[-1] for place in shown])
    return [(whole[place[-1]], place) for place in shown]


def count(cur: Cursor, where: HoldFilter, limit: int) -> int:
    total = 0
    for each, of in stretches(cur, where):
        source, text, args = _query(each, HoldOrder.oldest, of)
        sql = f"SELECT count(*) FROM (SELECT {_once(source)}holds.number FROM {source} WHERE {text} LIMIT ?)"
        found = row(cur, sql, (*args, limit - total))
        total += 0 if found is None else found[0]
        if total >= limit:
            break
    return total


def stretches(cur: Cursor, where: HoldFilter) -> list[tuple[HoldFilter, Range]]:
    """Indexes are by tenant: a list of all tenants is read tenant by tenant."""
    each = [where]
    if where.tenant is None and not _is_narrow(where):
        each = [replace(where, tenant=tenant) for (tenant,) in rows(cur, _TENANTS)]
    return [(one, of) for one in each for of in ranges(one)]


def places(
    where: HoldFilter, order: HoldOrder, after: Sequence[Any] | None, limit: int, of: Range
) -> tuple[str, list[Any]]:
    """The statement for one range."""
    place = _PLACES[order]
    source, text, args = _query(where, order, of)
    if after is not None:
        beyond = "<" if order is HoldOrder.newest else ">"
        text += f" AND ({place}) {beyond} ({_marks(after)})"
        args += after
    way = " DESC" if order is HoldOrder.newest else ""
    sorting = ", ".join(f"{column}{way}" for column in place.split(", "))
    sql = f"SELECT {_once(source)}{place} FROM {source} WHERE {text} ORDER BY {sorting} LIMIT ?"
    return sql, [*args, limit]


def _query(where: HoldFilter, order: HoldOrder, of: Range) -> tuple[str, str, list[Any]]:
    """(source, text, arguments)."""
    conditions = [*_stretch(where, of), *_filters(where)]
    text = " AND ".join(condition for condition, _ in conditions)
    return _source(where, order, of), text, [value for _, values in conditions for value in values]


def _source(where: HoldFilter, order: HoldOrder, of: Range) -> str:
    """Names the index where SQLite could choose a worse one: it does not know how many rows there are."""
    assignee, status = of
    if _is_narrow(where):
        return "holds"
    if where.resolved_by:
        return "holds INDEXED BY holds_resolved_by"
    open_ = _is_open(where, status)
    urgent = open_ and order is HoldOrder.inbox
    if assignee is None:
        return f"holds INDEXED BY {'holds_of_tenant' if urgent else 'holds_by_age'}"
    if assignee == SHARED_ASSIGNEE:
        return _SHARES if open_ else "holds INDEXED BY holds_shared_by_age"
    if status is HoldStatus.pending:
        # Sorted by age afterwards: one assignee has few open holds.
        return f"holds INDEXED BY {'holds_of_assignee' if open_ else 'holds_by_age'}"
    return "holds INDEXED BY holds_asked_of"


def _once(source: str) -> str:
    """Removes holds that were found in two ways."""
    return "DISTINCT " if source is _SHARES else ""


def _is_open(where: HoldFilter, status: HoldStatus) -> bool:
    """Whether indexes of open holds contain them."""
    return status is HoldStatus.pending and where.live


def _is_narrow(where: HoldFilter) -> bool:
    """Whether the list is asked for by an id, a run or a note: then few holds are found."""
    return bool(where.ids or where.run or where.noted)


def _stretch(where: HoldFilter, of: Range) -> list[Condition]:
    """The columns that an index begins with. A plus keeps SQLite from using them if there is a better index;
    the status is in the text, because partial indexes name it."""
    plus = "+" if _is_narrow(where) else ""
    assignee, status = of
    conditions: list[Condition] = [(f"{plus}holds.status = '{status}'", ())]
    if status is not HoldStatus.pending:
        conditions.append(("holds.status <> 'pending'", ()))
    if where.live:
        conditions.append(("NOT holds.read_only", ()))
    if where.tenant is not None:
        conditions.append((f"{plus}holds.tenant = ?", (where.tenant,)))
    if assignee == SHARED_ASSIGNEE:
        conditions.append(_shared(where, status))
    elif assignee is not None:
        conditions.append(
            (f"{plus}holds.assignee_type = ? AND {plus}holds.assignee_value = ?", assignee),
        )
    return conditions


def _shared(where: HoldFilter, status: HoldStatus) -> Condition:
    """Open holds have a row for each assignee that shares them; ended ones with several assignees are
    filtered."""
    texts = [f"{kind}:{value}" for kind, value in where.assignees or ()]
    if not _is_open(where, status) or _is_narrow(where) or where.resolved_by:
        return _SHARED.format(marks=_marks(texts)), texts * 2
    return _SHARED_NOW.format(marks=_marks(texts)), [where.tenant, *texts, *texts]


def _filters(where: HoldFilter) -> list[Condition]:
    conditions: list[Condition] = []
    for name, column in (("ids", "id"), ("type", "type"), ("priority", "priority")):
        if values := getattr(where, name):
            conditions.append((f"holds.{column} IN ({_marks(values)})", values))
    if where.resolved_by:
        text = f"holds.resolved_by IN ({_marks(where.resolved_by)}) AND holds.resolved_by IS NOT NULL"
        conditions.append((text, where.resolved_by))
    if where.not_type:
        conditions.append((f"holds.type NOT IN ({_marks(where.not_type)})", where.not_type))
    return conditions + span_conditions(where) + _of_others(where)


def _of_others(where: HoldFilter) -> list[Condition]:
    """Conditions on the run, on notes, on tags and on the text."""
    conditions: list[Condition] = []
    for name, column in RUN_COLUMNS.items():
        if values := getattr(where, name):
            conditions.append((_OF_RUN.format(column=column, marks=_marks(values)), values))
    if where.run:
        conditions.append((_RUNS.format(marks=_marks(where.run)), where.run))
    if where.tags:
        conditions.append((_TAGGED.format(marks=_marks(where.tags)), where.tags))
    if where.noted is not None:
        conditions.append((_NOTED, where.noted))
    if where.not_noted is not None:
        conditions.append((_NOT_NOTED, where.not_noted))
    if where.text:
        wanted = where.text.casefold()
        found = "(instr(folded(holds.prompt), ?) OR substr(holds.id, 1, ?) = ?)"
        conditions.append((found, (wanted, len(wanted), wanted)))
    return conditions


def _rows(cur: Cursor, numbers: list[int]) -> dict[int, HoldRow]:
    found: dict[int, HoldRow] = {}
    for some in (numbers[i : i + _AT_ONCE] for i in range(0, len(numbers), _AT_ONCE)):
        for values in rows(cur, _BY_NUMBER.format(marks=_marks(some)), some):
            found[values[0]] = hold_row(values[1:])
    return found


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
