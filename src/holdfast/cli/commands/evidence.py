"""`holdfast evidence`: a decision as a file that can be verified offline."""

from __future__ import annotations

import json as jsons
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async
from holdfast.cli.hold_session import find_in_any_tenant
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.errors import InputError
from holdfast.types.terms import operator


@app.command(
    epilog="Examples:  holdfast evidence 3fa9c1 -o refund.json --page refund.html   ·   "
    "holdfast evidence 3fa9c1 --key audit.key",
)
def evidence(
    which: Annotated[
        str,
        typer.Argument(help="Hold id or a prefix of it, or a run with exactly one hold", metavar="RUN|HOLD"),
    ],
    out: Annotated[
        Text,
        typer.Option(
            "--out", "-o", help="Output file; - for stdout (default: HOLD.evidence.json)", metavar="FILE|-"
        ),
    ] = None,
    page: Annotated[
        Text, typer.Option("--page", help="Also write a readable page: FILE.html or FILE.md", metavar="FILE")
    ] = None,
    key: Annotated[Text, typer.Option("--key", help="Sign with the key in this file", metavar="FILE")] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Include the audit log only up to this hold's last record")
    ] = False,
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Write one decision to a file that can be verified offline.

    The file has what was shown, what was decided, by whom, and its place in the audit log.
    `tools/verify_evidence.py` verifies it offline, with Python alone.
    """
    wanted = EvidenceOptions(which, out, page, key, short, by)
    return run_async(write_evidence(wanted, store=store, json=json))


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
        raise InputError("--out - and --json both write to stdout.", hint="Name a file, or leave --json out.")


def write_pack(wanted: EvidenceOptions, hold: str, data: bytes, *, json: bool) -> Exit:
    """Write the evidence to a file or stdout, and its page."""
    from holdfast.reports.evidence import page_of

    form = "" if wanted.page is None else Path(wanted.page).suffix.removeprefix(".")
    pack: dict[str, Any] = jsons.loads(data)
    if wanted.page is not None:
        _write(Path(wanted.page), page_of(pack, form).encode())
    if wanted.out == "-":
        # The bytes themselves: the digest covers every one of them, also the line ends.
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
