"""`holdfast migrate`: updates the store's schema."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import Json, Store, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import address_of, shown_address, store_exists
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.errors import InputError, OlderWorkerError, StoreUnavailableError

if TYPE_CHECKING:
    from holdfast.store.upgrade import Upgrade, UpgradeStep


@app.command(
    epilog="Examples:  holdfast migrate --dry-run   ·   holdfast migrate   ·   holdfast migrate --finish",
)
def migrate(
    finish: Annotated[
        bool,
        typer.Option("--finish", help="Second step: afterwards older versions are refused"),
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Finish even if an older version seems to be running")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Update the schema of a shared store.

    Workers do this themselves where they may change the schema; use this command where only the owner may.
    It only adds, so workers of the previous version keep working. When all workers are updated, --finish
    removes what only the previous version needed; it lists workers of an older version that are still
    running.
    """
    wanted = MigrateOptions(finish=finish, anyway=anyway, dry_run=dry_run, yes=yes)
    return run_async(migrate_store(wanted, store=store, json=json))


class MigrateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line."""

    finish: bool
    anyway: bool
    dry_run: bool
    yes: bool


async def migrate_store(wanted: MigrateOptions, *, store: str | None, json: bool) -> Exit:
    from holdfast.store import upgrade

    if wanted.anyway and not wanted.finish:
        raise InputError("--anyway needs --finish.", hint="Without --finish no worker is refused.")
    if not store_exists(store):
        raise StoreUnavailableError(
            f"there is no store at {shown_address(store)}.", hint="--store or HOLDFAST_STORE names another."
        )
    address = address_of(store)
    before = await upgrade.read_upgrade(address)
    if not wanted.dry_run and not before.shared and wanted.finish:
        await upgrade.finish_upgrade(address)  # raises, because such a store has no second step
    if wanted.dry_run or not before.shared or not _confirm(before, wanted, json=json):
        return _print_upgrade(before, before, wanted, store, json=json)
    if wanted.finish:
        after = await upgrade.finish_upgrade(address, anyway=wanted.anyway)
    else:
        after = await upgrade.begin_upgrade(address)
    return _print_upgrade(before, after, wanted, store, json=json)


def _confirm(before: Upgrade, wanted: MigrateOptions, *, json: bool) -> bool:
    """A person at a terminal is asked once, before the step that cannot be undone."""
    if not wanted.finish or wanted.yes or json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    _show("would be finished", before.to_begin + before.to_finish)
    return input("Older versions will be refused. Continue? [y/N] ").strip().lower() in (
        "y",
        "yes",
    )


def _print_upgrade(
    before: Upgrade, after: Upgrade, wanted: MigrateOptions, store: str | None, *, json: bool
) -> Exit:
    if json:
        print_json({"dry_run": wanted.dry_run, "before": before, "after": after})
        return Exit.ok
    where = shown_address(store)
    if not after.shared:
        print_line(f"{where} is a local file with schema {after.number}: opening it updates it completely,")
        print_line("and there is nothing to finish.")
        return Exit.ok
    if wanted.dry_run:
        _show("would be added", before.to_begin)
        _show("would be finished" if wanted.finish else "can be finished (--finish)", before.to_finish)
        if wanted.finish and before.older:
            raise OlderWorkerError(
                f"it would be refused: {', '.join(before.older)} may run an older version.",
                hint="Stop or update them first.",
            )
    else:
        _show("added", [step for step in before.to_begin if step not in after.to_begin])
        _show("finished", [step for step in before.to_finish if step not in after.to_finish])
    print_line(_state(after, where))
    return Exit.ok


def _state(now: Upgrade, where: str) -> str:
    if now.to_begin:
        return f"{where} has schema {now.number}; this version adds up to {now.to_begin[-1].number}."
    if now.to_finish:
        newest = now.to_finish[-1].number
        return (
            f"{where} has everything that this version needs (schema {newest}); the previous version still "
            "works too. When every worker is updated: holdfast migrate --finish."
        )
    return f"{where} is up to date: schema {now.number}, nothing to finish."


def _show(what: str, steps: list[UpgradeStep]) -> None:
    """The statements are in the JSON."""
    for step in steps:
        print_line(f"{what}: migration {step.number:04d} ({step.name})")
