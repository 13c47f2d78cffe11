"""`holdfast audit`: the audit log of holds, and its verification."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError
from holdfast.types.audit import AuditRow
from holdfast.types.clock import iso

if TYPE_CHECKING:
    from holdfast.holds.queries.audit import AuditCheck, SignedHead

group = typer.Typer(
    no_args_is_help=True,
    help="List, sign and verify the audit log of holds.\n\n"
    "It records every action on a hold and every refusal, in one hash chain per tenant.",
    epilog="Examples:  holdfast audit verify   ·   holdfast audit head --key audit.key -o head.json   ·   "
    "holdfast audit verify --against head.json --key audit.key",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="audit")
Tenant = Annotated[Text, typer.Option("--tenant", help="Tenant (default: all tenants)")]


@group.command(
    epilog="Examples:  holdfast audit verify   ·   holdfast audit verify --tenant acme --json   ·   "
    "holdfast audit verify --against head.json --key audit.key"
)
def verify(
    tenant: Tenant = None,
    against: Annotated[
        Text, typer.Option("--against", help="Compare with this signed head", metavar="FILE")
    ] = None,
    key: Annotated[
        Text, typer.Option("--key", help="Key that the head was signed with", metavar="FILE")
    ] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Verify the whole chain. Exit code 4: a record was edited, removed or moved."""
    return run_async(verify_chain(tenant, against=against, key=key, store=store, json=json))


@group.command(
    "list",
    epilog="Examples:  holdfast audit list   ·   holdfast audit list --after 1200 --limit 50   ·   "
    "holdfast audit list --hold 3fa9c1d2-0000-4000-8000-000000000000 --json",
)
def list_(
    tenant: Annotated[str, typer.Option("--tenant", help="Tenant")] = "default",
    hold: Annotated[Text, typer.Option("--hold", help="Only this hold, by its id", metavar="HOLD")] = None,
    after: Annotated[int, typer.Option("--after", help="Start after this record", metavar="N", min=0)] = 0,
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of rows", min=1, max=10_000)] = 100,
    store: Store = None,
    json: Json = False,
) -> int:
    """List the records in order, each with its hash."""
    return run_async(list_records(tenant, hold=hold, after=after, limit=limit, store=store, json=json))


@group.command(epilog="Example:  holdfast audit head --tenant acme --key audit.key -o head.json")
def head(
    key: Annotated[
        str,
        typer.Option(
            "--key", help="Signing key, at least 16 bytes; keep it outside the store", metavar="FILE"
        ),
    ],
    out: Annotated[
        Text, typer.Option("--out", "-o", help="Output file (default: stdout)", metavar="FILE")
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="Tenant")] = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Sign the current head. Stored elsewhere, it reveals a truncated or rewritten chain."""
    return run_async(write_head(tenant, key=key, out=out, store=store, json=json))


async def verify_chain(
    tenant: str | None, *, against: str | None, key: str | None, store: str | None, json: bool
) -> Exit:
    from holdfast.holds.queries.audit import verify_audit

    head = _head(against, key)
    async with open_store_for_command(store, must_exist=True) as hf:
        opened = await hf.open()
        tenants = [head.tenant] if head is not None else [tenant] if tenant else await opened.audit_tenants()
        found = [await verify_audit(opened, each, against=head) for each in tenants]
    if json:
        print_list(found)
    else:
        _print_findings(found)
    return Exit.ok if all(each.whole for each in found) else Exit.store_trouble


def _print_findings(found: list[AuditCheck]) -> None:
    if not found:
        print_line("The audit log is empty.")
    for each in found:
        state = "intact" if each.whole else f"NOT intact: {each.why}"
        print_line(f"{each.tenant}: {each.records:,} records, {state}.")


async def list_records(
    tenant: str, *, hold: str | None, after: int, limit: int, store: str | None, json: bool
) -> Exit:
    from holdfast.holds.queries.audit_text import audit_sentence, questions_of

    async with open_store_for_command(store, must_exist=True) as hf:
        opened = await hf.open()
        rows = await opened.audit(tenant, after=after, limit=limit, hold=hold)
        questions = await questions_of(opened, tenant, rows)
    sentences = [audit_sentence(row, questions) for row in rows]
    if json:
        print_list(
            [_item(row, text) for row, text in zip(rows, sentences, strict=True)],
            str(rows[-1].seq) if len(rows) == limit else None,
        )
    elif not rows:
        print_line("No matching records.")
    else:
        cells = [_cells(row, text) for row, text in zip(rows, sentences, strict=True)]
        print_table(("seq", "when", "who", "what happened", "hold", "hash"), cells)
        if len(rows) == limit:
            print_note(f"There may be more: --after {rows[-1].seq}")
    return Exit.ok


def _item(row: AuditRow, text: str) -> dict[str, object]:
    from holdfast.holds.queries.history import entry_of

    entry = msgspec.structs.asdict(entry_of(row))
    return {**entry, "text": text, "hold": row.hold, "hash": row.hash.hex()}


def _cells(row: AuditRow, text: str) -> tuple[str, ...]:
    when = iso(row.at)[:19].replace("T", " ")
    return (str(row.seq), when, row.actor, text, (row.hold or "")[:8], row.hash.hex()[:12])


def _head(against: str | None, key: str | None) -> SignedHead | None:
    from holdfast.holds.queries.audit import SignedHead, check_head

    if against is None:
        return None
    if key is None:
        raise InputError(
            "--against needs the key of the head's signature.", hint="Give the key too: --key FILE."
        )
    try:
        head = msgspec.json.decode(_read(against), type=SignedHead)
    except msgspec.DecodeError as error:
        raise InputError(
            f"{against} is not a signed head: {error}.", hint="`holdfast audit head` writes one."
        ) from None
    check_head(head, [_read(key).strip()])
    return head


async def write_head(tenant: str, *, key: str, out: str | None, store: str | None, json: bool) -> Exit:
    from holdfast.holds.queries.audit import sign_head

    secret = _read(key).strip()
    async with open_store_for_command(store, must_exist=True) as hf:
        head = await sign_head(await hf.open(), tenant, secret)
    if out is not None:
        _write(out, msgspec.json.encode(head) + b"\n")
    if out is None or json:
        print_json(head)
    else:
        print_line(f"The head of {tenant} at record {head.seq:,} is in {out}.")
    return Exit.ok


def _write(file: str, data: bytes) -> None:
    try:
        Path(file).write_bytes(data)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.", hint="Name another.") from error


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
