"""`evidence`: the file, and a page to read."""

from __future__ import annotations

import json as jsons
import sys
from pathlib import Path
from typing import Any

import msgspec

from holdfast.cli.main import Exit
from holdfast.cli.opening import open_house
from holdfast.cli.screen import note, print_json, say
from holdfast.errors import InputError
from holdfast.holds.evidence import make_pack
from holdfast.reports.evidence import page_of


class Wanted(msgspec.Struct, frozen=True):
    """The command line."""

    hold: str
    out: str | None
    page: str | None
    key: str | None
    short: bool
    tenant: str


async def write_evidence(wanted: Wanted, *, store: str | None, json: bool) -> Exit:
    if wanted.out == "-" and json:
        raise InputError("--out - and --json both want stdout.", hint="Name a file, or leave --json out.")
    key = None if wanted.key is None else _read(Path(wanted.key)).strip()
    form = "" if wanted.page is None else Path(wanted.page).suffix.removeprefix(".")
    async with open_house(store, must_exist=True) as house:
        opened = await house.open()
        data = await make_pack(opened, wanted.hold, tenant=wanted.tenant, key=key, to_head=not wanted.short)
    pack: dict[str, Any] = jsons.loads(data)
    if wanted.page is not None:
        _write(Path(wanted.page), page_of(pack, form).encode())
    if wanted.out == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return Exit.ok
    file = Path(wanted.out or f"{wanted.hold}.evidence.json")
    _write(file, data)
    if json:
        print_json({"hold": wanted.hold, "file": str(file), "page": wanted.page, "digest": pack["digest"]})
        return Exit.ok
    say(f"The evidence of hold {wanted.hold} is in {file}: {len(data):,} bytes, {pack['digest'][:19]}…")
    note("Check it anywhere: python verify_evidence.py FILE (the script is tools/verify_evidence.py).")
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
