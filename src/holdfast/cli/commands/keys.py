"""`holdfast keys`: the keys for encryption at rest."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_error, print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_table
from holdfast.errors import ConflictError, InputError, NotFoundError
from holdfast.types.clock import SystemClock, to_datetime

if TYPE_CHECKING:
    from holdfast.checkpoint.keys import KeyFile, KeyScope
    from holdfast.runs.encryption.reencrypt import ReencryptResult

keys = typer.Typer(
    no_args_is_help=True,
    help="Create and rotate keys for encryption at rest.\n\nHOLDFAST_KEYS names the key file.",
    epilog="Examples:  holdfast keys new --file keys.json   ·   holdfast keys rotate",
)
app.add_typer(keys, name="keys")
File = Annotated[Text, typer.Option("--file", help="Key file (default: HOLDFAST_KEYS)", metavar="FILE")]
Whose = Annotated[
    Text, typer.Option("--tenant", help="Tenant (default: all tenants without a key of their own)")
]


@keys.command(epilog="Examples:  holdfast keys new --file keys.json   ·   holdfast keys new --tenant acme")
def new(file: File = None, tenant: Whose = None, json: Json = False) -> int:
    """Create a key file, or a tenant's own key in it. Keep a copy of the file."""
    return new_key(file, tenant, json=json)


@keys.command("list", epilog="Example:  holdfast keys list")
def list_(file: File = None, json: Json = False) -> int:
    """List keys and which are current. Secrets are not shown."""
    return list_keys(file, json=json)


@keys.command(epilog="Example:  holdfast keys rotate && holdfast keys reencrypt")
def rotate(file: File = None, tenant: Whose = None, json: Json = False) -> int:
    """Create a new current key. Older keys stay for reading."""
    return rotate_key(file, tenant, json=json)


@keys.command(epilog="Example:  holdfast keys reencrypt --store sqlite:runs.db")
def reencrypt(file: File = None, store: Store = None, json: Json = False) -> int:
    """Re-encrypt a store with the current keys, while runs continue."""
    return run_async(reencrypt_store(file, store=store, json=json))


def _path(file: str | None) -> Path:
    from holdfast.checkpoint.keys import ENVIRONMENT

    named = file or os.environ.get(ENVIRONMENT)
    if not named or named.lstrip().startswith("{"):
        raise InputError("no key file is named.", hint=f"Name it: --file keys.json, or {ENVIRONMENT}.")
    return Path(named)


def _now() -> datetime:
    return to_datetime(SystemClock().now())


def _tenant_text(name: str) -> str:
    from holdfast.checkpoint.keys import EVERYBODY

    return "every tenant without its own key" if name == EVERYBODY else f"tenant {name}"


def new_key(file: str | None, tenant: str | None, *, json: bool) -> Exit:
    from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope

    path, name = _path(file), tenant or EVERYBODY
    known = StaticKeys.read(path).file if path.exists() else None
    if known is not None and name in known.scopes:
        raise ConflictError(
            f"{path} has a key for {_tenant_text(name)} already.",
            hint="`holdfast keys rotate` makes the next one.",
        )
    return _save(path, known, name, new_scope(_now()), json=json)


def rotate_key(file: str | None, tenant: str | None, *, json: bool) -> Exit:
    from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, rotated

    path, name = _path(file), tenant or EVERYBODY
    known = StaticKeys.read(path).file
    scope = known.scopes.get(name)
    if scope is None:
        raise NotFoundError(
            f"{path} has no key for {_tenant_text(name)}.", hint="`holdfast keys new` makes one."
        )
    return _save(path, known, name, rotated(scope, _now()), json=json)


def _save(path: Path, known: KeyFile | None, name: str, scope: KeyScope, *, json: bool) -> Exit:
    from holdfast.checkpoint.keys import ENVIRONMENT, with_scope, write_keys

    write_keys(path, with_scope(known, name, scope))
    if json:
        print_json({"file": str(path), "tenant": name, "current": scope.current})
        return Exit.ok
    print_line(f"Key {scope.current} is current for {_tenant_text(name)}, in {path}.")
    if known is None:
        print_note(f"Use it: export {ENVIRONMENT}={path.absolute()}. Keep a copy: the store needs it.")
    elif len(scope.keys) > 1:
        print_note("Restart workers, then: holdfast keys reencrypt")
    return Exit.ok


def list_keys(file: str | None, *, json: bool) -> Exit:
    from holdfast.checkpoint.keys import StaticKeys

    scopes = StaticKeys.read(_path(file)).file.scopes
    rows = [
        (name, entry.id, "current" if entry.id == scope.current else "older", entry.created_at)
        for name, scope in sorted(scopes.items())
        for entry in reversed(scope.keys)
    ]
    if json:
        print_list([dict(zip(("tenant", "key", "state", "created_at"), row, strict=True)) for row in rows])
    else:
        print_table(("tenant", "key", "state", "created"), rows)
    return Exit.ok


async def reencrypt_store(file: str | None, *, store: str | None, json: bool) -> Exit:
    from holdfast.checkpoint.keys import StaticKeys
    from holdfast.runs.encryption.reencrypt import reencrypt

    keys = StaticKeys.read(_path(file))
    async with open_store_for_command(store, must_exist=True, keys=keys) as hf:
        done = await reencrypt(await hf.service(), None if json else _progress)
    if json:
        print_json(done)
    else:
        print_line(f"Re-encrypted: {done.rows:,} rows and {done.blobs:,} blobs of {done.looked_at:,}.")
        for engine, runs in done.on_engines.items():
            print_note(_histories_text(engine, runs))
    if done.unreadable:
        print_error(_missed_text(done))
        return Exit.store_trouble
    return Exit.ok


def _progress(table_name: str, looked_at: int) -> None:
    print_note(f"{table_name}: {looked_at:,} rows so far")


def _histories_text(engine: str, runs: int) -> str:
    return (
        f"{runs:,} runs are on {engine}: their histories there are not re-encrypted and may need older keys. "
        "Keep those until these runs have ended, or move them to the built-in workers and back: "
        "holdfast promote STORE --engine none, then --engine ADDRESS"
    )


def _missed_text(done: ReencryptResult) -> str:
    parts: list[Any] = [f"{count:,} rows ({what})" for what, count in done.unreadable.items()]
    return f"not re-encrypted: {', '.join(parts)}. Add the missing keys and run this again."
