"""`export --attractor` and `run --resume DIR`: run directories of pipelines."""

from __future__ import annotations

from pathlib import Path

from holdfast.attractor.exporting import export_directory
from holdfast.cli.main import Exit
from holdfast.cli.opening import open_house
from holdfast.cli.screen import note, print_json, say
from holdfast.errors import InputError


async def export_attractor(
    run: str, out: str | None, *, decrypt: bool, store: str | None, json: bool
) -> Exit:
    """Values that are encrypted in the store stand there in the clear: that has to be said."""
    if out == "-":
        raise InputError("a run directory is no stream.", hint="Name a folder: -o DIR.")
    async with open_house(store, must_exist=True) as house:
        service = await house.service()
        row = await service.get(run)
        if service.runtime.desk.of(row.tenant).vaulted is not None and not decrypt:
            raise InputError(
                "this store is encrypted, and a run directory is not.",
                hint="Say that the content may be written in the clear: --decrypt.",
            )
        found = await export_directory(service, row.id, Path(out or row.id))
    if json:
        print_json({"run_id": found.run, "folder": str(found.folder), "files": list(found.files)})
    else:
        say(f"Run {found.run} is in {found.folder}: {len(found.files)} files.")
        note(f"Go on with it elsewhere: holdfast run --resume {found.folder}")
    return Exit.ok
