"""`holdfast holds list` and `holds metrics`: open holds, and figures about them."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import Json, Store, Text, run_async
from holdfast.cli.commands.holds.group import As, Whose, group
from holdfast.cli.hold_session import ActorOptions, HoldListOptions, find_holds, open_hold_session
from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.results import command
from holdfast.cli.output.tables import print_fields, print_table
from holdfast.types.clock import MICROS

if TYPE_CHECKING:
    from holdfast.holds.queries.metrics import HoldMetrics, Spread
    from holdfast.types.hold import HoldRow

HEADS = ("id", "priority", "title", "flow", "for", "age", "due")
_WIDE = 60
QueryWords = Annotated[
    list[str] | None,
    typer.Argument(
        help="Search terms, e.g. flow:NAME, priority>=high, due<2d, or words of the question", metavar="QUERY"
    ),
]


@group.command(
    "list",
    epilog="Examples:  holdfast holds list   ·   "
    "holdfast holds list 'priority>=high due<2d' flow:refund   ·   "
    "holdfast holds list --view mine --as user:dana@acme   ·   holdfast holds list status:any tag:vat --json",
)
def list_(
    query: QueryWords = None,
    view: Annotated[
        str,
        typer.Option(
            help="View: all, mine, groups, asked, unassigned, watching, snoozed, done or breakpoints",
            metavar="VIEW",
        ),
    ] = "all",
    limit: Annotated[int, typer.Option(help="Maximum number of rows", min=1, max=500)] = 20,
    after: Annotated[
        Text, typer.Option(help="Cursor of the previous page (`next` in its JSON)", metavar="CURSOR")
    ] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """List open holds, the most urgent first.

    Search terms: status: assignee:me group: role: flow: type: priority>=high due<2d due:overdue age>1h tag:
    run: key: has:comment decided_by:me decided<2d decided:2026-11-18; other words are searched
    in the question.
    """
    wanted = HoldListOptions(query=" ".join(query or ()), view=view, after=after, limit=limit)
    return run_async(list_holds(wanted, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(
    epilog="Examples:  holdfast holds metrics   ·   holdfast holds metrics flow:refund 'age<7d' --json"
)
def metrics(
    query: QueryWords = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Print figures: open holds by age, times to decision, rates."""
    return run_async(
        print_metrics(" ".join(query or ()), ActorOptions(as_=as_, tenant=tenant, store=store, json=json))
    )


async def list_holds(wanted: HoldListOptions, options: ActorOptions) -> Exit:
    from holdfast.holds.queries.hold_view import hold_view

    async with open_hold_session(options) as session:
        page = await find_holds(session, wanted)
        now = session.now
    if options.json:
        print_list([hold_view(row) for row in page.rows], page.cursor)
        return Exit.ok
    if not page.rows:
        print_line("No matching holds." if wanted.query else "No open holds.")
        return Exit.ok
    print_table(HEADS, [_cells(row, now) for row in page.rows])
    if page.cursor is not None:
        rest = f"--after {page.cursor}{_next_page_command(wanted, options)}"
        print_note(f"More: {command('holds list', rest, options.store)}")
    return Exit.ok


def _cells(row: HoldRow, now: int) -> tuple[str, ...]:
    from holdfast.holds.queries.summary import SHORT, assignee_of, countdown, roughly, title_of

    title = title_of(row)
    short = title if len(title) <= _WIDE else f"{title[: _WIDE - 1]}…"
    age = roughly(now - row.created_at)
    return (row.id[:SHORT], row.priority, short, row.flow, assignee_of(row), age, countdown(row, now))


def _next_page_command(wanted: HoldListOptions, options: ActorOptions) -> str:
    given = f" --view {wanted.view}" if wanted.view != "all" else ""
    given += f" --as {quote(options.as_)}" if options.as_ else ""
    given += f" --limit {wanted.limit}" if wanted.limit != 20 else ""
    return given + (f" -- {quote(wanted.query)}" if wanted.query else "")


async def print_metrics(query: str, options: ActorOptions) -> Exit:
    from holdfast.holds.queries.search import read_query

    async with open_hold_session(options) as session:
        where = read_query(query, me=session.actor.id, now=session.now).where
        found = await session.holds.metrics(session.actor, where=where)
    if options.json:
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
    from holdfast.holds.queries.summary import roughly

    if spread.p50 is None or spread.p95 is None:
        return "none yet"
    half, most = (roughly(round(each * MICROS)) for each in (spread.p50, spread.p95))
    return f"half within {half}, 95 % within {most} (of {spread.count:,})"


def _share(value: Any) -> str:
    return "" if value is None else f"{value:.0%}"
