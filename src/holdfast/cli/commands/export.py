"""`holdfast export`: a run as a file, the run directory of a pipeline, or threads for LangGraph."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.app import Json, Run, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.errors import InputError


@app.command(
    epilog="Examples:  holdfast export 3fa9c1   ·   holdfast export 3fa9c1 -o - | ssh box holdfast import -"
    "   ·   holdfast export --attractor 3fa9c1 -o logs/   ·   holdfast export langgraph threads.db",
)
def export(
    run: Run,
    file: Annotated[
        Text,
        typer.Argument(help="After `langgraph` instead of a run: the file to write", metavar="[DEST]"),
    ] = None,
    out: Annotated[
        Text,
        typer.Option("--out", "-o", help="Output file; - for stdout (default: RUN.hfrun)", metavar="FILE|-"),
    ] = None,
    decrypt: Annotated[
        bool, typer.Option("--decrypt", help="Write the content of an encrypted store unencrypted")
    ] = False,
    attractor: Annotated[
        bool,
        typer.Option("--attractor", help="Pipelines: write the run directory, made from the journal"),
    ] = False,
    tenant: Annotated[Text, typer.Option(help="LangGraph: the tenant of the threads")] = None,
    thread: Annotated[
        list[str] | None, typer.Option(help="LangGraph: only this thread; repeatable", metavar="ID")
    ] = None,
    serde: Annotated[
        Text, typer.Option(help="LangGraph: the serializer, as module:factory", metavar="NAME")
    ] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Write a run with its whole history to a file.

    The file can be imported on another machine or into another store. The run is not changed.
    `holdfast export langgraph DEST` writes the threads of LangGraph as a file that its SqliteSaver opens;
    with an encrypted store it needs --decrypt.
    """
    if run == "langgraph" and file is not None:
        from holdfast.cli.langgraph_threads import export_langgraph

        return run_async(
            export_langgraph(
                file,
                threads=thread or [],
                tenant=tenant,
                serde=serde,
                decrypt=decrypt,
                store=store,
                json=json,
            )
        )
    if file is not None or thread or tenant or serde:
        raise InputError(
            "DEST, --thread, --tenant and --serde are for threads of LangGraph.",
            hint="Write: holdfast export langgraph DEST. A run's file is named with --out.",
        )
    if attractor:
        return run_async(export_attractor(run, out, decrypt=decrypt, store=store, json=json))
    return run_async(export_run(run, out, decrypt=decrypt, store=store, json=json))


async def export_attractor(
    run: str, out: str | None, *, decrypt: bool, store: str | None, json: bool
) -> Exit:
    """Refuses an encrypted store without --decrypt, because the files are not encrypted."""
    from holdfast.attractor.export import export_directory

    if out == "-":
        raise InputError("a run directory cannot be written to stdout.", hint="Name a folder: -o DIR.")
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        row = await service.get(run)
        if service.runtime.blobs.of(row.tenant).encrypted is not None and not decrypt:
            raise InputError(
                "this store is encrypted, but a run directory would not be.",
                hint="Use --decrypt to write the content unencrypted.",
            )
        found = await export_directory(service, row.id, Path(out or row.id))
    if json:
        print_json({"run": found.run, "folder": str(found.folder), "files": list(found.files)})
    else:
        print_line(f"Run {found.run} is in {found.folder}: {len(found.files)} files.")
        print_note(f"Resume it elsewhere: holdfast run --resume {found.folder}")
    return Exit.ok


async def export_run(run: str, out: str | None, *, decrypt: bool, store: str | None, json: bool) -> Exit:
    if out == "-" and json:
        raise InputError("--out - and --json both write to stdout.", hint="Name a file, or leave --json out.")
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        row = await service.get(run)
        data = await service.export_run(row.id, decrypt=decrypt)
    if out == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return Exit.ok
    file = Path(out or f"{row.id}.hfrun")
    _write(file, data)
    if json:
        print_json({"run": row.id, "file": str(file), "bytes": len(data)})
    else:
        print_line(f"Run {row.id} is in {file}: {len(data):,} bytes.")
        print_note(f"Import it elsewhere: holdfast import {file.name}")
    return Exit.ok


def _write(file: Path, data: bytes) -> None:
    """Write the whole file or nothing."""
    # In the same folder: a rename is atomic only within one file system.
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        fresh.write_bytes(data)
        fresh.replace(file)
    except OSError as error:
        raise InputError(
            f"{file} cannot be written: {error.strerror}.", hint="Name another: --out FILE."
        ) from error
