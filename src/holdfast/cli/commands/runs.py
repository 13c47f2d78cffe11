"""`holdfast runs`: the list of runs."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import is_terminal, print_line, print_note
from holdfast.cli.output.json_output import print_list
from holdfast.cli.output.results import command, row_json, shown_runs, status_text
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError
from holdfast.types.clock import micros
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.human_time import ago, clock_time
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, RUN_LABELS, HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.run_view import ShownRun
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow

DEFAULT_TENANT = "default"


@app.command(
    epilog="Examples:  holdfast runs --status pending_input   ·   holdfast runs --flow refund --newer 2d"
)
def runs(
    status: Annotated[
        list[str] | None, typer.Option(help="Only runs with this status; may be repeated")
    ] = None,
    flow: Annotated[Text, typer.Option(help="Only runs of this flow")] = None,
    tenant: Annotated[Text, typer.Option(help="Only runs of this tenant")] = None,
    instance_key: Annotated[Text, typer.Option(help="Only runs of this entity", metavar="KEY")] = None,
    newer: Annotated[
        Text, typer.Option(help="Only runs created within this time: 2d", metavar="DURATION")
    ] = None,
    older: Annotated[Text, typer.Option(help="Only runs created longer ago: 12h", metavar="DURATION")] = None,
    after: Annotated[Text, typer.Option(help="Next page: runs listed after this run", metavar="RUN")] = None,
    dead: Annotated[bool, typer.Option("--dead", help="Only dead letters")] = False,
    limit: Annotated[int, typer.Option(help="Maximum number of rows", min=1)] = 20,
    store: Store = None,
    json: Json = False,
) -> int:
    """List runs, newest first."""
    wanted = RunListOptions(
        status=status or [], flow=flow, tenant=tenant, newer=newer, older=older, after=after, limit=limit,
        dead=dead, instance_key=instance_key,
    )  # fmt: skip
    return run_async(list_runs(wanted, store=store, json=json))


class RunListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The filters. `newer` and `older` are ages; `after` is the last run of the previous page."""

    status: list[str] = []
    flow: str | None = None
    tenant: str | None = None
    instance_key: str | None = None
    newer: str | None = None
    older: str | None = None
    after: str | None = None
    limit: int = 20
    dead: bool = False

    @property
    def has_filter(self) -> bool:
        return any(
            (
                self.status,
                self.flow,
                self.tenant,
                self.instance_key,
                self.newer,
                self.older,
                self.after,
                self.dead,
            )
        )


async def list_runs(wanted: RunListOptions, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        now = service.store.now()
        rows = await _page(service, wanted, now)
        shown = await shown_runs(service.store, rows[: wanted.limit])
        asks = {row.id: await _question(service, row) for row in shown}
    if json:
        more = len(rows) > len(shown)
        print_list([row_json(row) for row in shown], shown[-1].id if more else None)
    elif not rows:
        print_line("No matching runs." if wanted.has_filter else "No runs.")
    else:
        _print_runs(shown, asks, now)
    if len(rows) > len(shown) and not json:
        following = f"--after {shown[-1].id[:8]}{_next_page_command(wanted)}"
        print_note(f"More: {command('runs', following, store)}")
    return Exit.ok


async def _page(service: RunService, wanted: RunListOptions, now: int) -> list[RunRow]:
    from holdfast.store.rows import RunFilter

    where = RunFilter(
        status=tuple(_status(word) for word in wanted.status),
        flow=wanted.flow,
        tenant=wanted.tenant,
        instance_key=wanted.instance_key,
        created_after=_moment(wanted.newer, "--newer", now),
        created_before=_moment(wanted.older, "--older", now),
        dead=True if wanted.dead else None,
        shown_at=now,
    )
    last = await service.get(wanted.after) if wanted.after else None
    after = None if last is None else (last.created_at, last.key)
    # One more than asked for, to see whether there are more.
    return await service.store.list_runs(where, after=after, limit=wanted.limit + 1)


def _status(word: str) -> RunStatus:
    for status, label in RUN_LABELS.items():
        if word in (status, label):
            return status
    raise InputError(f"{word!r} is not a status.", hint=f"They are: {', '.join(RunStatus)}.")


def _moment(age: str | None, option: str, now: int) -> int | None:
    if age is None:
        return None
    try:
        return now - micros(parse_duration(age))
    except DurationError as error:
        raise InputError(f"{option}: {error}.", hint="An age is written as 30m, 12h or 2d.") from None


def _next_page_command(wanted: RunListOptions) -> str:
    """The same filters, for the next page."""
    given = [f" --status {quote(word)}" for word in wanted.status]
    for name in ("flow", "tenant", "instance_key", "newer", "older"):
        value = getattr(wanted, name)
        given += [f" --{name.replace('_', '-')} {quote(value)}"] if value else []
    given += [" --dead"] if wanted.dead else []
    return "".join(given) + (f" --limit {wanted.limit}" if wanted.limit != 20 else "")


async def _question(service: RunService, row: RunRow) -> str:
    """The oldest open hold; for a wait for the answer to a managed run, the question of that run."""
    from holdfast.runs.child_questions import is_child_question

    if row.status in ENDED:
        return ""
    found = await service.store.holds(run=row.id, status=HoldStatus.pending, limit=1)
    if found and is_child_question(found[0]):
        found = await service.questions(row.id)
    return found[0].prompt if found else ""


def _print_runs(shown: list[ShownRun], asks: dict[RunId, str], now: int) -> None:
    """A column for the tenant, if not all runs are of the default tenant."""
    tenants = any(row.tenant != DEFAULT_TENANT for row in shown)
    heads = (
        "run",
        "flow",
        *(("tenant",) if tenants else ()),
        "status",
        "created",
        "changed",
        "asks or error",
    )
    print_table(heads, [_cells(row, asks[row.id], now, tenants=tenants) for row in shown])


def _cells(row: ShownRun, asks: str, now: int, *, tenants: bool) -> tuple[str, ...]:
    """In a terminal short ids and ages; in a pipe full ids and times."""
    last = next(iter((row.error or asks).splitlines()), "")
    short = is_terminal()
    times = [ago(at, now) if short else clock_time(at) for at in (row.created_at, row.updated_at)]
    whose = (row.tenant,) if tenants else ()
    return (row.id[:8] if short else row.id, row.flow, *whose, status_text(row), *times, last)
