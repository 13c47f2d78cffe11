"""`holdfast prune`: deletes old checkpoints and ended runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_error, print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.tables import print_table
from holdfast.errors import HoldfastError, InputError, RunBusyError
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.retention import KEEP, Retention
from holdfast.types.status import run_label

if TYPE_CHECKING:
    from holdfast.runs.retention import CleanupResult, RetentionItem
    from holdfast.runs.service import RunService

SHOWN = 20
EACH = 50


@app.command(
    epilog="Examples:  holdfast prune --dry-run   ·   holdfast prune --older 30d --flow refund --yes"
    "   ·   holdfast prune 3fa9c1 --keep 3"
)
def prune(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Only these runs (default: all ended runs)", metavar="RUN")
    ] = None,
    keep: Annotated[
        int | None, typer.Option(help="Number of checkpoints to keep per run (default: 10)", min=1)
    ] = None,
    older: Annotated[
        Text, typer.Option(help="Delete runs that ended longer ago: 30d, 12h", metavar="DURATION")
    ] = None,
    flow: Annotated[Text, typer.Option(help="Only runs of this flow")] = None,
    blobs: Annotated[bool, typer.Option("--blobs", help="Also delete blobs that no run refers to")] = False,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="Also delete objects of the blob store that no row names")
    ] = False,
    grace: Annotated[str, typer.Option(help="Only blobs older than this", metavar="DURATION")] = "24h",
    feed: Annotated[
        Text,
        typer.Option(help="Also delete entries of the event feed older than this: 7d", metavar="DURATION"),
    ] = None,
    worktrees: Annotated[
        bool,
        typer.Option(
            "--worktrees",
            help="Delete only refs and worktrees of ended pipelines, in the current repository",
        ),
    ] = False,
    unmerged: Annotated[
        bool, typer.Option("--unmerged", help="With --worktrees and RUN: include work that is on no branch")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; change nothing")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Delete old checkpoints and ended runs.

    Active and waiting runs are never touched, and forks stay complete.
    """
    if worktrees:
        return run_async(_prune_worktrees(runs or [], store, unmerged=unmerged, dry_run=dry_run, json=json))
    if unmerged:
        raise InputError("--unmerged is an option of --worktrees.", hint="Give both, or none.")
    wanted = PruneOptions(runs or [], keep, older, flow, blobs, grace, dry_run, yes, feed, orphans)
    return run_async(prune_runs(wanted, store=store, json=json))


async def _prune_worktrees(
    runs: list[str], store: str | None, *, unmerged: bool, dry_run: bool, json: bool
) -> Exit:
    from holdfast.cli.prune_worktrees import prune_worktrees

    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        return await prune_worktrees(service, runs, unmerged=unmerged, dry_run=dry_run, json=json)


class PruneOptions(msgspec.Struct, frozen=True):
    """The command line."""

    runs: list[str]
    keep: int | None
    older: str | None
    flow: str | None
    blobs: bool
    grace: str
    dry_run: bool
    yes: bool
    feed: str | None = None
    orphans: bool = False


async def prune_runs(wanted: PruneOptions, *, store: str | None, json: bool) -> Exit:
    from holdfast.runs import retention as pruning
    from holdfast.runs.collect_blobs import collect_orphans

    retention = _retention(wanted)
    grace = _seconds("--grace", wanted.grace)
    feed = None if wanted.feed is None else _seconds("--feed", wanted.feed)
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        if wanted.flow is not None:
            await _require_flow(service, wanted.flow)
        shares, refused = await _plan(service, wanted, retention)
        if wanted.dry_run:
            found = await _garbage(service, wanted, grace)
            if wanted.blobs and found and not json:
                print_note(f"Blobs younger than {wanted.grace} stay.")
            return _print_outcome(shares, refused, None, found, dry=True, json=json)
        if not _confirm(shares, wanted, json=json):
            return _print_outcome(shares, refused, None, 0, dry=False, json=json)
        done = await _prune_shares(service, shares, retention, quiet=json)
        # After the runs: only then are their blobs unreferenced.
        collected = await service.collect_blobs(grace=grace) if wanted.blobs else 0
        if wanted.orphans:
            collected += await collect_orphans(service, grace=grace)
        if feed is not None:
            done.feed = await pruning.trim_feed(service, feed)
    return _print_outcome(shares, refused, done, collected, dry=False, json=json)


async def _garbage(service: RunService, wanted: PruneOptions, grace: float) -> int:
    """Blobs and objects that belong to no run, as they are before runs are deleted."""
    from holdfast.runs.collect_blobs import collect_orphans

    found = await collect_orphans(service, grace=grace, dry_run=True) if wanted.orphans else 0
    if wanted.blobs:
        # Not only those older than the grace period: the store tells no times of unreferenced blobs.
        found += (await service.store.examine(deep=False)).unreferenced
    return found


def _retention(wanted: PruneOptions) -> Retention:
    if wanted.older is not None:
        # With --older alone, younger runs keep all their checkpoints.
        return Retention(wanted.keep, _seconds("--older", wanted.older) / 86_400)
    return Retention(wanted.keep or KEEP)


def _seconds(option: str, text: str) -> float:
    try:
        return parse_duration(text, allow_zero=True).total_seconds()
    except DurationError as error:
        raise InputError(f"{option}: {error}.") from error


async def _require_flow(service: RunService, flow: str) -> None:
    known = {row.name for row in await service.store.flows()}
    if flow not in known:
        raise InputError(
            f"there is no flow {flow!r} in this store.",
            hint=f"There are: {', '.join(sorted(known)) or 'none'}.",
        )


async def _plan(
    service: RunService, wanted: PruneOptions, retention: Retention
) -> tuple[list[RetentionItem], list[HoldfastError]]:
    """A named run that cannot be pruned is reported; the others are still pruned."""
    from holdfast.runs import retention as pruning

    if not wanted.runs:
        return [share async for share in pruning.plan(service, retention, flow=wanted.flow)], []
    shares: list[RetentionItem] = []
    refused: list[HoldfastError] = []
    for name in dict.fromkeys(wanted.runs):
        try:
            shares += [share async for share in pruning.plan(service, retention, runs=(name,))]
        except RunBusyError as error:
            refused.append(error)
    return shares, refused


def _confirm(shares: list[RetentionItem], wanted: PruneOptions, *, json: bool) -> bool:
    """A person at a terminal is asked once; a script is not."""
    # A script could not answer, and would hang; it has asked for the deletion by calling the command.
    if not shares or wanted.yes or json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    _show(shares)
    print_line(_sentence(shares, "would be deleted"))
    return input("Continue? [y/N] ").strip().lower() in ("y", "yes")


async def _prune_shares(
    service: RunService, shares: list[RetentionItem], retention: Retention, *, quiet: bool
) -> CleanupResult:
    from holdfast.runs import retention as pruning
    from holdfast.runs.retention import CleanupResult

    done = CleanupResult()
    for number, share in enumerate(shares, 1):
        await pruning.apply_item(service, share, retention, done)
        if not quiet and number % EACH == 0:
            print_note(f"{number:,} of {len(shares):,} runs pruned")
    return done


def _print_outcome(
    shares: list[RetentionItem],
    refused: list[HoldfastError],
    done: CleanupResult | None,
    collected: int,
    *,
    dry: bool,
    json: bool,
) -> Exit:
    if json:
        print_json(_outcome_json(shares, refused, done, collected, dry=dry))
    else:
        _print_summary(shares, done, collected, dry=dry)
        for error in refused:
            print_error(str(error))
        if done is not None and done.skipped:
            print_error(f"{_count(done.skipped, 'run')} could not be read and were not changed: {done.why}")
    if done is not None and done.skipped:
        return Exit.store_trouble
    return Exit.bad_input if refused else Exit.ok


def _outcome_json(
    shares: list[RetentionItem],
    refused: list[HoldfastError],
    done: CleanupResult | None,
    collected: int,
    *,
    dry: bool,
) -> dict[str, Any]:
    return {
        "dry_run": dry,
        "planned": shares,
        "done": done,
        "blobs": collected,
        "refused": [{"run": error.facts.get("run"), "error": str(error)} for error in refused],
    }


def _print_summary(
    shares: list[RetentionItem], done: CleanupResult | None, collected: int, *, dry: bool
) -> None:
    if done is None:
        if dry:
            _show(shares)
        if dry and shares:
            print_line(_sentence(shares, "would be deleted"))
        if dry and collected:
            print_line(f"{_count(collected, 'blob')} that no run refers to would be deleted.")
        if not dry or not (shares or collected):
            print_line("Nothing would be deleted." if dry else "Nothing was changed.")
        return
    if not shares:
        if not done.feed:
            print_line("Nothing to delete.")
    else:
        print_line(f"Deleted: {_count(done.runs, 'whole run')}, {_count(done.records, 'record')} of others.")
    if done.feed:
        print_line(f"Deleted: {_count(done.feed, 'row')} of the feed.")
    if collected:
        print_line(f"Deleted: {_count(collected, 'blob')} that no run refers to.")


def _show(shares: list[RetentionItem]) -> None:
    if not shares:
        return
    rows = [
        (
            s.run[:8],
            s.flow,
            run_label(s.status),
            "all" if s.whole else f"before {s.horizon}",
            f"{s.records:,}",
            _size(s.bytes),
        )
        for s in shares[:SHOWN]
    ]
    print_table(("run", "flow", "status", "deleted", "records", "size"), rows)
    if len(shares) > SHOWN:
        print_line(f"… and {len(shares) - SHOWN:,} more; --json lists all.")


def _sentence(shares: list[RetentionItem], verb: str) -> str:
    whole = sum(1 for share in shares if share.whole)
    records, size = sum(s.records for s in shares), sum(s.bytes for s in shares)
    parts = [_count(whole, "whole run")] if whole else []
    if len(shares) > whole:
        parts.append(f"old records of {_count(len(shares) - whole, 'run')}")
    text = " and ".join(parts)
    return f"{text[0].upper()}{text[1:]} {verb}: {_count(records, 'record')}, {_size(size)}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"
