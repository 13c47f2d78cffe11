"""`audit`: the chain walked, and its head signed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.screen import print_json, print_line, print_note, print_table
from holdfast.errors import InputError
from holdfast.holds.queries.audit import AuditCheck, SignedHead, check_head, sign_head, verify_audit
from holdfast.holds.queries.history import entry_of
from holdfast.types.audit import AuditRow
from holdfast.types.clock import iso


async def verify_chain(
    tenant: str | None, *, against: str | None, key: str | None, store: str | None, json: bool
) -> Exit:
    head = _head(against, key)
    async with open_store_for_command(store, must_exist=True) as hf:
        opened = await hf.open()
        tenants = [head.tenant] if head is not None else [tenant] if tenant else await opened.audit_tenants()
        found = [await verify_audit(opened, each, against=head) for each in tenants]
    if json:
        print_json(found)
    else:
        _print_findings(found)
    return Exit.ok if all(each.whole for each in found) else Exit.store_trouble


def _print_findings(found: list[AuditCheck]) -> None:
    if not found:
        print_line("Nothing was done to holds yet.")
    for each in found:
        state = "whole" if each.whole else f"NOT whole: {each.why}"
        print_line(f"{each.tenant}: {each.records:,} records, {state}.")


async def list_records(
    tenant: str, *, hold: str | None, after: int, limit: int, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        rows = await (await hf.open()).audit(tenant, after=after, limit=limit, hold=hold)
    if json:
        print_json(
            [
                {**msgspec.structs.asdict(entry_of(row)), "hold": row.hold, "hash": row.hash.hex()}
                for row in rows
            ]
        )
    elif not rows:
        print_line("No records like that.")
    else:
        print_table(("seq", "when", "who", "did", "hold", "hash"), [_cells(row) for row in rows])
        if len(rows) == limit:
            print_note(f"There may be more: --after {rows[-1].seq}")
    return Exit.ok


def _cells(row: AuditRow) -> tuple[str, ...]:
    when = iso(row.at)[:19].replace("T", " ")
    did = row.action.replace("_", " ")
    return (str(row.seq), when, row.actor, did, (row.hold or "")[:8], row.hash.hex()[:12])


def _head(against: str | None, key: str | None) -> SignedHead | None:
    if against is None:
        return None
    if key is None:
        raise InputError("a head is worth what its signature is.", hint="Give the key too: --key FILE.")
    try:
        head = msgspec.json.decode(_read(against), type=SignedHead)
    except msgspec.DecodeError as error:
        raise InputError(
            f"{against} is no signed head: {error}.", hint="`holdfast audit head` writes one."
        ) from None
    check_head(head, [_read(key).strip()])
    return head


async def write_head(tenant: str, *, key: str, out: str | None, store: str | None, json: bool) -> Exit:
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
