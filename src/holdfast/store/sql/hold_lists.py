"""Lists of holds, for dialects with a server: one range of an index for each assignee and status, merged by
the server; then the rows of those that are shown. Text is compared here, so that upper and lower case are
treated the same on every server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.store.hold_order import SHARED_ASSIGNEE, Place, Range, ranges, require_place
from holdfast.store.sql.connection import Conn, Row
from holdfast.store.sql.hold_rows import (
    COLUMNS,
    FROM,
    RUN_COLUMNS,
    Condition,
    hold_row,
    span_conditions,
)
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow
from holdfast.types.status import HoldStatus

_PLACES = {
    HoldOrder.inbox: ("urgency", "due", "created_at", "number"),
    HoldOrder.oldest: ("created_at", "number"),
    HoldOrder.newest: ("created_at", "number"),
}
_BY_NUMBER = f"SELECT holds.number, {COLUMNS} {FROM} WHERE holds.number = ANY(?::bigint[])"
_OF_RUN = """EXISTS (
    SELECT 1 FROM @runs AS runs WHERE runs.key = holds.run_key AND {column} = ANY(?::text[]))"""
_NOTED = "holds.id IN (SELECT hold FROM @hold_notes WHERE kind = ? AND slot = ?)"
_NOT_NOTED = """NOT EXISTS (
    SELECT 1 FROM @hold_notes AS notes
    WHERE notes.hold = holds.id AND kind = ? AND slot = ? AND coalesce(until > ?, true))"""
_RUNS = "holds.run_key IN (SELECT key FROM @runs WHERE id = ANY(?::text[]))"
_PAGE = 500  # prompts that are searched at once


class HoldListDialect(msgspec.Struct, frozen=True):
    """What searches in lists takes different statements. `tagged`: a hold has one of the tags. `shared`: the
    conditions of a hold that is shared with one of these assignees ("kind:value") and assigned to none of
    them."""

    tagged: str
    shared: Callable[[HoldFilter, HoldStatus, list[str]], list[Condition]]


async def select(
    conn: Conn,
    lists: HoldListDialect,
    where: HoldFilter,
    order: HoldOrder,
    after: Sequence[Any] | None,
    limit: int,
) -> list[tuple[HoldRow, Place]]:
    require_place(after, order)
    places = await _places(conn, lists, where, order, after, limit)
    found = await conn.rows(_BY_NUMBER, [place[-1] for place in places])
    whole = {values[0]: hold_row(values[1:]) for values in found}
    return [(whole[place[-1]], place) for place in places if place[-1] in whole]


async def count(conn: Conn, lists: HoldListDialect, where: HoldFilter, limit: int) -> int:
    if where.text:
        return len(await _places(conn, lists, where, HoldOrder.oldest, None, limit))
    text, args = _stretches(lists, where, HoldOrder.oldest, None, limit)
    found = await conn.row(f"SELECT count(*) FROM ({text} LIMIT ?) AS found", *args, limit)
    return 0 if found is None else found[0]


async def _places(
    conn: Conn,
    lists: HoldListDialect,
    where: HoldFilter,
    order: HoldOrder,
    after: Sequence[Any] | None,
    limit: int,
) -> list[Place]:
    if not where.text:
        return [tuple(values[:-1]) for values in await _page(conn, lists, where, order, after, limit)]
    wanted = where.text.casefold()
    places: list[Place] = []
    while len(places) < limit:
        page = await _page(conn, lists, where, order, after, _PAGE)
        places += [tuple(values[:-1]) for values in page if _has_text(values[-1].casefold(), wanted)]
        if len(page) < _PAGE:
            break
        after = page[-1][:-1]
    return places[:limit]


def _has_text(searched: str, wanted: str) -> bool:
    """`searched`: the id, a space and the prompt."""
    name, _, prompt = searched.partition(" ")
    return wanted in prompt or name.startswith(wanted)


async def _page(
    conn: Conn,
    lists: HoldListDialect,
    where: HoldFilter,
    order: HoldOrder,
    after: Sequence[Any] | None,
    limit: int,
) -> list[Row]:
    """Places, each with its id and prompt if they are searched."""
    text, args = _stretches(lists, where, order, after, limit)
    return await conn.rows(f"{text} ORDER BY {_sorting(order)} LIMIT ?", *args, limit)


def _sorting(order: HoldOrder) -> str:
    way = " DESC" if order is HoldOrder.newest else ""
    return ", ".join(f"{column}{way}" for column in _PLACES[order])


def _stretches(
    lists: HoldListDialect, where: HoldFilter, order: HoldOrder, after: Sequence[Any] | None, limit: int
) -> tuple[str, list[Any]]:
    """Each range returns as many as could be shown; they are combined."""
    each = [_stretch(lists, where, order, after, of) for of in ranges(where)]
    columns = ", ".join(f"holds.{column}" for column in _PLACES[order])
    searched = "concat(holds.id, ' ', holds.prompt)" if where.text else "''"
    select = f"SELECT {columns}, {searched} AS searched FROM @holds AS holds"
    parts = [f"({select} WHERE {text} ORDER BY {_sorting(order)} LIMIT ?)" for text, _ in each]
    args = [value for _, values in each for value in (*values, limit)]
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS stretches", args


def _stretch(
    lists: HoldListDialect, where: HoldFilter, order: HoldOrder, after: Sequence[Any] | None, of: Range
) -> tuple[str, list[Any]]:
    conditions = [*_beginning(lists, where, of), *_filters(lists, where)]
    if after is not None:
        beyond = "<" if order is HoldOrder.newest else ">"
        place = ", ".join(f"holds.{column}" for column in _PLACES[order])
        conditions.append((f"({place}) {beyond} ({', '.join('?' * len(after))})", after))
    text = " AND ".join(condition for condition, _ in conditions)
    return text, [value for _, values in conditions for value in values]


def _beginning(lists: HoldListDialect, where: HoldFilter, of: Range) -> list[Condition]:
    """The columns that an index begins with; the status is in the text, because partial indexes name it."""
    assignee, status = of
    conditions: list[Condition] = [(f"holds.status = '{status}'", ())]
    if status is not HoldStatus.pending:
        conditions.append(("holds.status <> 'pending'", ()))
    if where.live:
        conditions.append(("NOT holds.read_only", ()))
    if where.tenant is not None:
        conditions.append(("holds.tenant = ?", (where.tenant,)))
    if assignee == SHARED_ASSIGNEE:
        own = [f"{kind}:{value}" for kind, value in where.assignees or ()]
        conditions += lists.shared(where, status, own)
    elif assignee is not None:
        conditions.append(("holds.assignee_type = ? AND holds.assignee_value = ?", assignee))
    return conditions


def _filters(lists: HoldListDialect, where: HoldFilter) -> list[Condition]:
    conditions: list[Condition] = []
    for name, column in (("ids", "id"), ("type", "type"), ("priority", "priority"), ("resolved_by",) * 2):
        if values := getattr(where, name):
            conditions.append((f"holds.{column} = ANY(?::text[])", (list(values),)))
    if where.not_type:
        conditions.append(("holds.type <> ALL(?::text[])", (list(where.not_type),)))
    return conditions + span_conditions(where) + _of_others(lists, where)


def _of_others(lists: HoldListDialect, where: HoldFilter) -> list[Condition]:
    """Conditions on the run, on notes and on tags."""
    conditions: list[Condition] = []
    for name, column in RUN_COLUMNS.items():
        if values := getattr(where, name):
            conditions.append((_OF_RUN.format(column=column), (list(values),)))
    if where.run:
        conditions.append((_RUNS, (list(where.run),)))
    if where.tags:
        conditions.append((lists.tagged, (list(where.tags),)))
    if where.noted is not None:
        conditions.append((_NOTED, where.noted))
    if where.not_noted is not None:
        conditions.append((_NOT_NOTED, where.not_noted))
    return conditions
