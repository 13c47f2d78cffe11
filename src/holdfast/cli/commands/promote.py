"""`holdfast promote`: moves a whole store to another database, or runs that wait to an engine and back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import Json, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import PATIENCE, print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_table
from holdfast.errors import ConflictError, EngineError, InputError
from holdfast.types.duration import DurationError, parse_duration

if TYPE_CHECKING:
    from holdfast.runs.driver.services import RunEngine
    from holdfast.runs.service import RunService
    from holdfast.runs.transfer.promote import PromoteProgress, PromoteResult, Survey
    from holdfast.store.copy import WorkerLeases
    from holdfast.store.rows import RunRow

PAGE = 500
MEASURED = 23_000
"""Rows copied and compared per second, measured with PostgreSQL on the same two cores (ADR 40)."""


@app.command(
    epilog="Examples:  holdfast promote sqlite:runs.db postgresql://holdfast@db/holdfast --dry-run"
    "   ·   holdfast promote sqlite:runs.db postgresql://holdfast@db/holdfast"
    "   ·   holdfast promote postgresql://holdfast@db/holdfast sqlite:back.db"
    "   ·   holdfast promote --undo sqlite:runs.db postgresql://holdfast@db/holdfast"
    "   ·   holdfast promote sqlite:runs.db --engine temporal://localhost:7233/default"
    "   ·   holdfast promote sqlite:runs.db --engine none --run 3fa9c1",
)
def promote(
    source: Annotated[str, typer.Argument(help="Store to move", metavar="FROM")],
    target: Annotated[
        Text,
        typer.Argument(
            help="Empty target store; it is created if it does not exist. Not with --engine", metavar="TO"
        ),
    ] = None,
    engine: Annotated[
        Text,
        typer.Option(
            help="Move the waiting runs of FROM to this engine, or with `none` to the built-in workers",
            metavar="ADDRESS",
        ),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            help="With --engine: only this run; can be repeated (default: all that wait)", metavar="RUN"
        ),
    ] = None,
    wait: Annotated[
        str, typer.Option(help="How long to wait for workers of the old store to stop", metavar="DURATION")
    ] = "10m",
    force: Annotated[
        bool, typer.Option("--force", help="Release the runs of workers instead of waiting")
    ] = False,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Undo an unfinished move: FROM works again, TO is empty"),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be moved; change nothing")
    ] = False,
    json: Json = False,
) -> int:
    """Move a whole store, or move waiting runs to an engine and back.

    A store moves between SQLite, PostgreSQL and MariaDB.

    Active runs, open holds, timers, history and all ids are moved. When it starts, workers of the old store
    get no more runs and stop with a message that names the new store. Then everything is copied, compared by
    count and hash, and the new store opens. The old one stays readable. If it is interrupted, run the same
    command again: it continues.

    With --engine, runs that wait for a person, an event or a time move to a Temporal cluster, or with `none`
    from there to the built-in workers. A run that is running is refused. The store stays where it is.
    """
    if engine is not None:
        if target is not None or undo or force:
            raise InputError(
                "--engine moves runs within one store.", hint="Leave TO, --undo and --force out."
            )
        return run_async(move_runs(source, engine, run or [], dry_run=dry_run, json=json))
    if target is None or run:
        raise InputError(
            "a store to move to is missing." if target is None else "--run is given without --engine.",
            hint="Give FROM and TO, or FROM and --engine ADDRESS.",
        )
    wish = PromoteOptions(source=source, target=target, wait=wait, force=force, undo=undo, dry_run=dry_run)
    return run_async(promote_store(wish, json=json))


class PromoteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line."""

    source: str
    target: str
    wait: str
    force: bool
    undo: bool
    dry_run: bool


async def promote_store(wish: PromoteOptions, *, json: bool) -> Exit:
    from holdfast.runs.transfer.promote import promote, survey, undo

    if wish.dry_run:
        return _print_survey(await survey(wish.source, wish.target), json=json)
    if wish.undo:
        await undo(wish.source, wish.target)
        if json:
            print_json({"undone": True})
        else:
            print_line("The move is undone: the old store works again, the new one is empty.")
        return Exit.ok
    moved = await promote(
        wish.source,
        wish.target,
        force=wish.force,
        wait=_seconds(wish.wait),
        on_progress=None if json else _Progress(),
    )
    if json:
        print_json(_as_json(moved))
    else:
        _print_moved(moved)
    return Exit.ok


def _seconds(text: str) -> float:
    try:
        return parse_duration(text).total_seconds()
    except DurationError as error:
        raise InputError(f"--wait: {error}.", hint="Such as 30s, 10m or 1h.") from error


class _Progress:
    """A line every two seconds, the first after two."""

    def __init__(self) -> None:
        self._due = time.monotonic() + PATIENCE

    def __call__(self, step: PromoteProgress) -> None:
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + PATIENCE
        if step.phase == "waiting":
            print_note(f"Waiting for {_workers_text(step.held)} to stop; --force does not wait.")
        elif step.phase == "copying":
            share = 100 * step.done // max(step.total, 1)
            print_note(f"Copying {step.table}: {step.done:,} of {step.total:,} rows in all ({share} %)")
        elif step.phase == "comparing":
            print_note(f"Compared {step.table}, {step.done} of {step.total} tables")


def _workers_text(held: Sequence[WorkerLeases]) -> str:
    names = ", ".join(f"{each.worker} ({_count(each.runs, 'run')})" for each in held)
    return f"{_count(len(held), 'worker')}: {names}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _print_moved(moved: PromoteResult) -> None:
    if moved.already:
        print_line(f"{moved.source} was already moved to {moved.target}. Nothing to do.")
        return
    shown = [each for each in moved.tables if each.rows]
    print_table(
        ("table", "rows", "sha-256 in both"),
        [(each.table, f"{each.rows:,}", f"{each.sha256[:16]}…") for each in shown],
    )
    rows = sum(each.rows for each in moved.tables)
    print_line(f"Moved: {moved.source} is now {moved.target}. {_count(rows, 'row')}, all compared.")
    if moved.anew:
        print_note("Positions of the event feed are new: its readers have to start again.")
    if moved.outside:
        values = _count(moved.outside, "large value")
        print_note(f"{values} stay in your blob store: configure the new store with the same `objects`.")
    password = " (and its password)" if moved.target.startswith(("postgresql:", "mariadb:")) else ""
    print_note(f"Start workers with --store {moved.target}{password}; the old store can still be read.")


def _as_json(moved: PromoteResult) -> dict[str, object]:
    return {
        "source": moved.source,
        "target": moved.target,
        "already": moved.already,
        "copied_now": moved.copied,
        "copy_seconds": round(moved.seconds, 3),
        "feed_anew": moved.anew,
        "blobs_elsewhere": moved.outside,
        "tables": [{"table": t.table, "rows": t.rows, "sha256": t.sha256} for t in moved.tables],
    }


def _print_survey(found: Survey, *, json: bool) -> Exit:
    rows = sum(found.tables.values())
    seconds = rows / MEASURED
    if json:
        print_json({**msgspec.to_builtins(found), "rows": rows, "estimated_seconds": round(seconds, 1)})
        return Exit.ok
    print_table(("table", "rows"), [(name, f"{count:,}") for name, count in found.tables.items() if count])
    print_line(f"{_count(rows, 'row')} would move from {found.source} to {found.target}.")
    print_line(f"About {max(seconds, 1):,.0f} s, at {MEASURED:,} rows per second (measured on two cores).")
    if found.held:
        print_line(f"It would wait for {_workers_text(found.held)}.")
    if found.state is not None:
        print_line(f"A move is in progress ({found.state}); the same command without --dry-run continues it.")
    print_note("Nothing was changed.")
    return Exit.ok


class _MovedRun(msgspec.Struct):
    """`refused`: why it was not moved."""

    run: str
    flow: str
    status: str
    refused: str | None = None


async def move_runs(store: str, engine: str, runs: Sequence[str], *, dry_run: bool, json: bool) -> Exit:
    """Exit code 1: at least one run that was named is refused."""
    address = "" if engine == "none" else engine
    async with open_store_for_command(store, must_exist=True, engine=address) as hf:
        service = await hf.service()
        target = service.runtime.engine
        if target is not None:
            await target.check()
        if runs:
            rows, busy = [await service.get(each) for each in runs], 0
        else:
            rows, busy = await _elsewhere(service, target)
        done = [await _move(service, row, target, dry_run=dry_run) for row in rows]
    refused = [each for each in done if each.refused is not None]
    if json:
        print_list([msgspec.to_builtins(each) for each in done])
    else:
        where = "the built-in workers" if target is None else target.name
        _print_runs(done, refused, where, dry_run=dry_run)
        if busy:
            print_note(
                f"{_count(busy, 'run')} more: running, queued or in the memory of a worker. They stay until "
                "this command is run again while they wait."
            )
    return Exit.run_failed if runs and refused else Exit.ok


async def _elsewhere(service: RunService, target: RunEngine | None) -> tuple[list[RunRow], int]:
    """Runs that wait and are not there already, and how many others are not there."""
    from holdfast.runs.engine_moves import is_parked
    from holdfast.runs.engine_report import is_of_engine
    from holdfast.store.rows import RunFilter
    from holdfast.types.status import ENDED, RunStatus

    waiting: list[RunRow] = []
    busy, after = 0, None
    where = RunFilter(status=tuple(each for each in RunStatus if each not in ENDED))
    while rows := await service.store.list_runs(where, after=after, limit=PAGE):
        for row in rows:
            if row.read_only or is_of_engine(row.worker) is (target is not None):
                continue
            if is_parked(row):
                waiting.append(row)
            else:
                busy += 1
        after = (rows[-1].created_at, rows[-1].key)
    return waiting, busy


async def _move(service: RunService, row: RunRow, target: RunEngine | None, *, dry_run: bool) -> _MovedRun:
    from holdfast.runs.engine_moves import move_from_engine, move_to_engine, require_parked

    made = _MovedRun(row.id, row.flow, row.status)
    try:
        if dry_run:
            require_parked(row)
        elif target is not None:
            await move_to_engine(service, row, target.name)
        else:
            await move_from_engine(service, row)
    except (ConflictError, EngineError) as error:
        made.refused = error.message
    return made


def _print_runs(done: list[_MovedRun], refused: list[_MovedRun], where: str, *, dry_run: bool) -> None:
    for each in refused:
        print_line(f"Not moved: {each.refused}")
    moved = _count(len(done) - len(refused), "run")
    print_line(f"{moved} would move to {where}." if dry_run else f"Moved {moved} to {where}.")
    if dry_run:
        print_note("Nothing was changed.")
    elif where.startswith("temporal:") and len(done) > len(refused):
        print_note(f"Its workers start them there: holdfast worker FILE --engine {where}")
