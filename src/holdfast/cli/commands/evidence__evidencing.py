"""`evidence`: the file, and a page to read."""

from __future__ import annotations

import json as jsons
import sys
from pathlib import Path
from typing import Any

import msgspec

from holdfast.cli.commands.hold_actor import find_in_any_tenant
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.screen import print_json, print_line, print_note
from holdfast.errors import InputError
from holdfast.reports.evidence import page_of
from holdfast.types.terms import operator


class EvidenceOptions(msgspec.Struct, frozen=True):
    """The command line."""

    which: str
    out: str | None
    page: str | None
    key: str | None
    short: bool
    by: str


async def write_evidence(wanted: EvidenceOptions, *, store: str | None, json: bool) -> Exit:
    require_one_output(wanted, json=json)
    key = None if wanted.key is None else _read(Path(wanted.key)).strip()
    async with open_store_for_command(store, must_exist=True) as hf:
        hold = await find_in_any_tenant(hf, wanted.which)
        actor = operator(wanted.by, tenant=hold.tenant, channel="cli")
        data = await (await hf.holds()).evidence(actor, hold.id, key=key, to_head=not wanted.short)
    return write_pack(wanted, hold.id, data, json=json)


def require_one_output(wanted: EvidenceOptions, *, json: bool) -> None:
    """Raises InputError."""
    if wanted.out == "-" and json:
        raise InputError("--out - and --json both want stdout.", hint="Name a file, or leave --json out.")


def write_pack(wanted: EvidenceOptions, hold: str, data: bytes, *, json: bool) -> Exit:
    """The pack as a file, or on stdout, and its page."""
    form = "" if wanted.page is None else Path(wanted.page).suffix.removeprefix(".")
    pack: dict[str, Any] = jsons.loads(data)
    if wanted.page is not None:
        _write(Path(wanted.page), page_of(pack, form).encode())
    if wanted.out == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return Exit.ok
    file = Path(wanted.out or f"{hold}.evidence.json")
    _write(file, data)
    if json:
        print_json({"hold": hold, "file": str(file), "page": wanted.page, "digest": pack["digest"]})
        return Exit.ok
    print_line(f"The evidence of hold {hold} is in {file}: {len(data):,} bytes, {pack['digest'][:19]}…")
    print_note("Check it anywhere: python verify_evidence.py FILE (the script is tools/verify_evidence.py).")
    return Exit.ok


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error


def _write(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.", hint="Name another.") from error
