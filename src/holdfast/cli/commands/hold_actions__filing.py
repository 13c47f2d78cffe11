"""`holds attach` and `holds files`: what goes with an answer, and what others have attached."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from holdfast.cli.commands.evidence__evidencing import EvidenceOptions, require_one_output, write_pack
from holdfast.cli.commands.hold_actor import ActorOptions, open_hold_session
from holdfast.cli.main import Exit
from holdfast.cli.output.screen import print_json, print_line, print_note, print_table
from holdfast.errors import InputError


async def attach_file(which: str, field: str, file: str, seat: ActorOptions) -> Exit:
    """The file is kept with the hold, and named in the draft of whoever attached it."""
    path = local_path(file)
    async with open_hold_session(seat) as desk:
        row = await desk.find(which)
        kept = await desk.holds.attach(desk.actor, row.id, field, path.name, path)
        draft = await desk.holds.draft(desk.actor, row.id)
        before: Any = None if draft is None else draft.response_data
        data = cast("dict[str, Any]", before) if isinstance(before, dict) else {}
        said = {"decision": None if draft is None else draft.decision, "response_data": {**data, field: kept}}
        await desk.holds.save_draft(desk.actor, row.id, said)
    if seat.json:
        print_json(kept)
        return Exit.ok
    print_line(f"{path.name} is kept for {field}: {kept['size']:,} bytes, sha256 {kept['sha256'][:12]}…")
    print_note(f"It is in your draft: holdfast holds resolve {row.id[:8]} DECISION --draft")
    return Exit.ok


async def list_files(which: str, folder: str | None, seat: ActorOptions) -> Exit:
    """`folder`: where they are written to; what is there stays."""
    async with open_hold_session(seat) as desk:
        row = await desk.find(which)
        found = await desk.holds.files(desk.actor, row.id)
        for each in found if folder is not None else ():
            reference, data = await desk.holds.read_file(desk.actor, row.id, each.file["sha256"])
            await asyncio.to_thread(_write, Path(folder or "."), reference["name"], data)
    if seat.json:
        print_json([{"field": each.field, **each.file} for each in found])
    elif not found:
        print_line("No files are attached.")
    else:
        rows = [
            (each.field, each.file["name"], f"{each.file['size']:,}", each.file["media_type"])
            for each in found
        ]
        print_table(("field", "name", "bytes", "type"), rows)
    return Exit.ok


async def write_hold_evidence(wanted: EvidenceOptions, seat: ActorOptions) -> Exit:
    """For whoever may see the hold; that they asked is in the audit."""
    require_one_output(wanted, json=seat.json)
    async with open_hold_session(seat) as desk:
        row = await desk.find(wanted.which)
        data = await desk.holds.evidence(desk.actor, row.id)
    return write_pack(wanted, row.id, data, json=seat.json)


def local_path(file: str) -> Path:
    """As a shell would read it."""
    return Path(file).expanduser()


def _write(folder: Path, name: str, data: bytes) -> None:
    """Raises InputError: a file of that name is never overwritten, and none is written elsewhere."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / Path(name).name).open("xb") as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"{name} cannot be written to {folder}: {error.strerror}.") from error
