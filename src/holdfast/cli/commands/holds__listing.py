"""`holds list` and `holds metrics`: what waits, for whom, how long, and until when."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.cli.commands.hold_actor import ActorOptions, HoldSession, open_hold_session
from holdfast.cli.main import Exit
from holdfast.cli.output.results import command
from holdfast.cli.output.screen import print_fields, print_json, print_line, print_note, print_table
from holdfast.holds.queries.hold_view import hold_view
from holdfast.holds.queries.list import MAX_LIMIT, HoldPage
from holdfast.holds.queries.metrics import HoldMetrics, Spread
from holdfast.holds.queries.search import Query, read_query
from holdfast.holds.queries.summary import SHORT, assignee_of, countdown, roughly, title_of
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus

HEADS = ("id", "priority", "title", "flow", "for", "age", "due")
_WIDE = 60
_LOOKED_THROUGH = 50
"""Pages that are read for one: what the store cannot filter is asked of each hold."""


class HoldListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed. `after`: where the page before ended."""

    query: str = ""
    view: str = "all"
    after: str | None = None
    limit: int = 20


async def list_holds(wanted: HoldListOptions, seat: ActorOptions) -> Exit:
    async with open_hold_session(seat) as desk:
        page = await find_holds(desk, wanted)
        now = desk.now
    if seat.json:
        print_json({"holds": [hold_view(row) for row in page.rows], "cursor": page.cursor})
        return Exit.ok
    if not page.rows:
        print_line("Nothing like that." if wanted.query else "Nothing waits for a decision here.")
        return Exit.ok
    print_table(HEADS, [_cells(row, now) for row in page.rows])
    if page.cursor is not None:
        rest = f"--after {page.cursor}{_next_page_command(wanted, seat)}"
        print_note(f"There are more: {command('holds list', rest, seat.store)}")
    return Exit.ok


async def find_holds(desk: HoldSession, wanted: HoldListOptions) -> HoldPage:
    """What is open, unless the query says otherwise."""
    query = read_query(wanted.query, me=desk.actor.id, now=desk.now)
    where = query.where
    if wanted.view == "all" and not where.status:
        where = msgspec.structs.replace(where, status=(HoldStatus.pending,))
    kept: list[HoldRow] = []
    cursor = wanted.after
    for _ in range(_LOOKED_THROUGH):
        room = min(wanted.limit - len(kept), MAX_LIMIT)
        page = await desk.holds.list(desk.actor, view=wanted.view, where=where, cursor=cursor, limit=room)
        kept += [row for row in page.rows if await _has_notes(desk, row, query)]
        cursor = page.cursor
        if cursor is None or len(kept) >= wanted.limit:
            break
    return HoldPage(tuple(kept), cursor)


async def _has_notes(desk: HoldSession, row: HoldRow, query: Query) -> bool:
    """Whether there are notes of each kind that is asked for."""
    found = [await desk.holds.store.hold_notes(row.id, kinds=(kind,)) for kind in query.has]
    return all(found)


def _cells(row: HoldRow, now: int) -> tuple[str, ...]:
    title = title_of(row)
    short = title if len(title) <= _WIDE else f"{title[: _WIDE - 1]}…"
    age = roughly(now - row.created_at)
    return (row.id[:SHORT], row.priority, short, row.flow, assignee_of(row), age, countdown(row, now))


def _next_page_command(wanted: HoldListOptions, seat: ActorOptions) -> str:
    from shlex import quote

    given = f" --view {wanted.view}" if wanted.view != "all" else ""
    given += f" --as {quote(seat.as_)}" if seat.as_ else ""
    given += f" --limit {wanted.limit}" if wanted.limit != 20 else ""
    return given + (f" -- {quote(wanted.query)}" if wanted.query else "")


# ---------------------------------------------------------------------- figures


async def print_metrics(query: str, seat: ActorOptions) -> Exit:
    async with open_hold_session(seat) as desk:
        where = read_query(query, me=desk.actor.id, now=desk.now).where
        found = await desk.holds.metrics(desk.actor, where=where)
    if seat.json:
        print_json(found)
    else:
        print_fields(_figures(found))
    return Exit.ok


def _figures(found: HoldMetrics) -> list[tuple[str, str]]:
    shares = ("breach", "reminder", "escalation", "expiry", "auto", "late", "conflict")
    return [
        ("holds", f"{found.holds:,}"),
        ("waiting for", _counts(found.pending_by_queue)),
        ("by priority", _counts(found.pending_by_priority)),
        ("by age", _counts(found.pending_by_age)),
        ("to first view", _spread(found.time_to_view)),
        ("to claim", _spread(found.time_to_claim)),
        ("to decision", _spread(found.time_to_decision)),
        ("to resumed", _spread(found.resume_lag)),
        *((f"{name} rate", _share(getattr(found, f"{name}_rate"))) for name in shares),
        ("failed notices", str(found.notifier_failures)),
    ]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "nothing"


def _spread(spread: Spread) -> str:
    if spread.p50 is None or spread.p95 is None:
        return "none yet"
    half, most = (roughly(round(each * MICROS)) for each in (spread.p50, spread.p95))
    return f"half within {half}, 95 % within {most} (of {spread.count:,})"


def _share(value: Any) -> str:
    return "" if value is None else f"{value:.0%}"
