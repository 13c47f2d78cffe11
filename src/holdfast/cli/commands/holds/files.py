"""`holdfast holds attach`, `files` and `evidence`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from holdfast.cli.app import Json, Store, Text, run_async
from holdfast.cli.commands.evidence import EvidenceOptions, require_one_output, write_pack
from holdfast.cli.commands.holds.group import As, Hold, Whose, group
from holdfast.cli.hold_session import ActorOptions, open_hold_session
from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError
from holdfast.types.own_threads import in_thread


@group.command(epilog="Example:  holdfast holds evidence 3fa9c1d2-0000-4000-8000-000000000000 -o refund.json")
def evidence(
    hold: Hold,
    out: Annotated[
        Text,
        typer.Option(
            "--out", "-o", help="Output file; - for stdout (default: HOLD.evidence.json)", metavar="FILE|-"
        ),
    ] = None,
    page: Annotated[
        Text, typer.Option("--page", help="Also write a readable page: FILE.html or FILE.md", metavar="FILE")
    ] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Write one decision to a file. See also `holdfast evidence`."""
    wanted = EvidenceOptions(hold, out, page, None, False, as_ or "user:local")
    return run_async(
        write_hold_evidence(wanted, ActorOptions(as_=as_, tenant=tenant, store=store, json=json))
    )


@group.command(
    epilog="Example:  holdfast holds attach 3fa9c1d2 contract ./contract.pdf --as user:dana@acme",
)
def attach(
    hold: Hold,
    field: Annotated[str, typer.Argument(help="Form field", metavar="FIELD")],
    file: Annotated[str, typer.Argument(help="File to attach", metavar="FILE")],
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Attach a file to your draft; `resolve --draft` uses it."""
    return run_async(
        attach_file(hold, field, file, ActorOptions(as_=as_, tenant=tenant, store=store, json=json))
    )


@group.command(
    epilog="Examples:  holdfast holds files 3fa9c1d2   ·   holdfast holds files 3fa9c1d2 --save ./papers"
)
def files(
    hold: Hold,
    save: Annotated[
        Text, typer.Option("--save", help="Write the files into this folder", metavar="FOLDER")
    ] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """List the files of a hold."""
    return run_async(list_files(hold, save, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


async def attach_file(which: str, field: str, file: str, options: ActorOptions) -> Exit:
    """The file is stored with the hold, and named in the draft of the person who attached it."""
    path = local_path(file)
    async with open_hold_session(options) as session:
        row = await session.find(which)
        kept = await session.holds.attach(session.actor, row.id, field, path.name, path)
        draft = await session.holds.draft(session.actor, row.id)
        before: Any = None if draft is None else draft.response_data
        data = cast("dict[str, Any]", before) if isinstance(before, dict) else {}
        draft_fields = {
            "decision": None if draft is None else draft.decision,
            "response_data": {**data, field: kept},
        }
        await session.holds.save_draft(session.actor, row.id, draft_fields)
    if options.json:
        print_json(kept)
        return Exit.ok
    print_line(f"{path.name} is attached to {field}: {kept['size']:,} bytes, sha256 {kept['sha256'][:12]}…")
    print_note(f"It is in your draft: holdfast holds resolve {row.id[:8]} DECISION --draft")
    return Exit.ok


async def list_files(which: str, folder: str | None, options: ActorOptions) -> Exit:
    """`folder`: where they are written; existing files are not overwritten."""

    async with open_hold_session(options) as session:
        row = await session.find(which)
        found = await session.holds.files(session.actor, row.id)
        for each in found if folder is not None else ():
            reference, data = await session.holds.read_file(session.actor, row.id, each.file["sha256"])
            await in_thread(_write, Path(folder or "."), reference["name"], data)
    if options.json:
        print_list([{"field": each.field, **each.file} for each in found])
    elif not found:
        print_line("No files are attached.")
    else:
        rows = [
            (each.field, each.file["name"], f"{each.file['size']:,}", each.file["media_type"])
            for each in found
        ]
        print_table(("field", "name", "bytes", "type"), rows)
    return Exit.ok


async def write_hold_evidence(wanted: EvidenceOptions, options: ActorOptions) -> Exit:
    """For anyone who may see the hold; the access is in the audit log."""
    require_one_output(wanted, json=options.json)
    async with open_hold_session(options) as session:
        row = await session.find(wanted.which)
        data = await session.holds.evidence(session.actor, row.id)
    return write_pack(wanted, row.id, data, json=options.json)


def local_path(file: str) -> Path:
    """The file's path, with ~ expanded."""
    return Path(file).expanduser()


def _write(folder: Path, name: str, data: bytes) -> None:
    """Raises InputError: no file is overwritten, and none is written outside the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / Path(name).name).open("xb") as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"{name} cannot be written to {folder}: {error.strerror}.") from error
