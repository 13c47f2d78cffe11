"""`holdfast dead`: runs given up after too many lost workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import By, Json, Run, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import is_terminal, print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.results import command, row_json, shown_run
from holdfast.cli.output.tables import print_fields, print_table
from holdfast.types.clock import iso
from holdfast.types.human_time import ago, clock_time
from holdfast.types.status import RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.runs.dead_runs import DeadRun, DeathReport
    from holdfast.runs.run_view import ShownRun

group = typer.Typer(
    no_args_is_help=True,
    help="List, show, retry and discard dead letters.\n\n"
    "A dead letter is a run that was given up because its workers died too often.",
    epilog="Examples:  holdfast dead list   ·   holdfast dead show 3fa9c1   ·   holdfast dead retry 3fa9c1",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="dead")


@group.command("list", epilog="Example:  holdfast dead list --json")
def list_(
    tenant: Annotated[Text, typer.Option(help="Only runs of this tenant")] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of rows", min=1)] = 20,
    store: Store = None,
    json: Json = False,
) -> int:
    """List dead letters, newest first."""
    return run_async(list_dead(tenant, limit, store=store, json=json))


@group.command(epilog="Example:  holdfast dead show 3fa9c1")
def show(run: Run, store: Store = None, json: Json = False) -> int:
    """Show every lost worker and the nodes that were running."""
    return run_async(show_dead(run, store=store, json=json))


@group.command(epilog="Example:  holdfast dead retry 3fa9c1 --by user:dana")
def retry(run: Run, by: By = "user:local", store: Store = None, json: Json = False) -> int:
    """Retry the run after its cause was fixed. Its lost workers stay recorded."""
    return run_async(retry_dead(run, by, store=store, json=json))


@group.command(epilog="Example:  holdfast dead discard 3fa9c1 --reason 'the order was cancelled'")
def discard(
    run: Run,
    reason: Annotated[str, typer.Option(help="Reason, stored with the run")] = "discarded",
    unread: Annotated[bool, typer.Option("--unread", help="Cancel the run here, without loading it")] = False,
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Discard the run: it is cancelled and its holds are withdrawn.

    The next worker that serves its flow does it. If loading the run kills workers, or no worker serves its
    flow: --unread.
    """
    return run_async(discard_dead(run, reason, by, unread=unread, store=store, json=json))


async def list_dead(tenant: str | None, limit: int, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        rows = await service.dead(tenant=tenant, limit=limit)
        found = [await service.deaths(row.id) for row in rows]
        now = service.store.now()
    if json:
        print_list([_as_json(each) for each in found])
    elif not found:
        print_line("No dead letters.")
    else:
        heads = ("run", "flow", "deaths", "given up", "running at most deaths", "last worker")
        print_table(heads, [_line(each, now) for each in found])
        print_note(f"Show details: {command('dead show', found[0].run.id[:8], store)}")
    return Exit.ok


def _line(each: DeadRun, now: int) -> tuple[str, ...]:
    row, short = each.run, is_terminal()
    given_up = row.ended_at or row.updated_at
    node = each.suspects[0][0] if each.suspects else ""
    last = each.deaths[-1].death.worker if each.deaths else ""
    when = ago(given_up, now) if short else clock_time(given_up)
    return row.id[:8] if short else row.id, row.flow, str(len(each.deaths)), when, node, last


async def show_dead(run: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        found = await service.deaths(run)
        found = msgspec.structs.replace(found, run=await shown_run(service.store, found.run))
    if json:
        print_json(_as_json(found))
        return Exit.ok
    row = found.run
    print_fields(
        [
            ("run", row.id),
            ("flow", f"{row.flow} ({row.version})"),
            ("status", f"{run_label(row.status)}{', a dead letter' if row.dead else ''}"),
            ("error", row.error or ""),
            ("given up", clock_time(row.ended_at) if row.dead else ""),
        ]
    )
    print_line()
    if not found.deaths:
        print_line("No worker of this run has died.")
        return Exit.ok
    heads = ("term", "worker", "lease until", "found at", "record", "other runs", "running")
    print_table(heads, [_death_cells(report) for report in found.deaths])
    _advise(found, store)
    return Exit.ok


def _death_cells(report: DeathReport) -> tuple[str, ...]:
    death = report.death
    nodes = ", ".join(report.nodes) or (f"not known: {report.unknown}" if report.unknown else "no node")
    times = clock_time(death.lease_until), clock_time(death.at)
    return str(death.term), death.worker, *times, str(death.head), "" if death.alone else "yes", nodes


def _advise(found: DeadRun, store: str | None) -> None:
    row = found.run
    print_line()
    if not all(report.death.alone for report in found.deaths):
        print_line(
            "A death beside other runs is not counted: the run was claimed alone after it, until it made "
            "progress."
        )
    always = [node for node, count in found.suspects if count == len(found.counted)]
    if always:
        print_line(
            f"{', '.join(always)} was running at every death: check it first (memory, a native library, "
            "an endless loop that stops the heartbeat)."
        )
    else:
        print_line("No node was running at every death: check the machines of these workers too.")
    if row.dead:
        print_note(f"When the cause is fixed: {command('dead retry', row.id[:8], store)}")
        print_note(f"To give it up: {command('dead discard', row.id[:8], store)}")


async def retry_dead(run: str, by: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        row = await shown_run(service.store, await service.retry_dead(run, by=by))
    text = f"Run {row.id} is queued again; a worker resumes it. Completed steps are not repeated."
    return _print_run(row, text, json=json)


async def discard_dead(
    run: str, reason: str, by: str, *, unread: bool, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        ended = await service.discard_dead(run, reason=reason, by=by, unread=unread)
        row = await shown_run(service.store, ended)
    text = f"Run {row.id} will be cancelled by the next worker that serves {row.flow}."
    if row.status is RunStatus.cancelled:
        text = f"Run {row.id} is cancelled without loading it: check yourself what its running steps did."
    return _print_run(row, text, json=json)


def _print_run(row: ShownRun, text: str, *, json: bool) -> Exit:
    if json:
        print_json(row_json(row))
    else:
        print_line(text)
    return Exit.ok


def _as_json(found: DeadRun) -> dict[str, Any]:
    row = found.run
    return {
        "run": row.id,
        "flow": row.flow,
        "tenant": row.tenant,
        "status": row.status,
        "dead": row.dead,
        "error": row.error,
        "given_up_at": iso(row.ended_at) if row.dead and row.ended_at else None,
        "deaths": [
            {
                "term": report.death.term,
                "worker": report.death.worker,
                "at": iso(report.death.at),
                "lease_until": iso(report.death.lease_until),
                "head": report.death.head,
                "status": report.death.status,
                "alone": report.death.alone,
                "nodes": list(report.nodes),
                "unknown": report.unknown or None,
            }
            for report in found.deaths
        ],
    }
