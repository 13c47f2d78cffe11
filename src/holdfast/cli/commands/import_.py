"""`holdfast import`: reads an exported run, or threads of LangGraph, into a store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command, recall_source
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import iso_times, print_json
from holdfast.cli.output.results import command, row_json, shown_run, status_text
from holdfast.cli.output.tables import print_fields
from holdfast.errors import (
    CheckpointCorruptError,
    FlowNotFoundError,
    InputError,
    KeyMissingError,
    SchemaTooNewError,
)
from holdfast.types.human_time import clock_time

if TYPE_CHECKING:
    from holdfast.model.program import Program
    from holdfast.runs.run_view import ShownRun
    from holdfast.runs.transfer.archive import Archive


@app.command(
    "import",
    epilog="Examples:  holdfast import run.hfrun   ·   holdfast import run.hfrun --as-new-run --resume"
    "   ·   holdfast import langgraph checkpoints.db",
)
def import_(
    file: Annotated[
        str,
        typer.Argument(
            help="File written by `holdfast export`; - for stdin. `langgraph`: a database of LangGraph's",
            metavar="FILE",
        ),
    ],
    source: Annotated[
        Text,
        typer.Argument(
            help="After `langgraph`: the file of its SqliteSaver, or postgres://... of its PostgresSaver; "
            "only read",
            metavar="[SOURCE]",
        ),
    ] = None,
    as_new_run: Annotated[
        bool,
        typer.Option(
            "--as-new-run", help="Also fork it from its last checkpoint, as a run that can be resumed"
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Advance that fork in this process")] = False,
    flow: Annotated[
        Text, typer.Option(help="Location of the flow's code, for --as-new-run", metavar="FLOW")
    ] = None,
    tenant: Annotated[Text, typer.Option(help="Tenant (default: as in the file)")] = None,
    thread: Annotated[
        list[str] | None, typer.Option(help="LangGraph: only this thread; repeatable", metavar="ID")
    ] = None,
    serde: Annotated[
        Text, typer.Option(help="LangGraph: the serializer, as module:factory", metavar="NAME")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the file and print its contents; change nothing")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Import an exported run.

    It is imported as read-only history under its own id, or with --as-new-run as a new run that can be
    resumed. `holdfast import langgraph SOURCE` imports the threads of a saver of LangGraph; a second call
    imports what is new since.
    """
    if file == "langgraph" and source is not None:
        from holdfast.cli.langgraph_threads import import_langgraph

        return run_async(
            import_langgraph(
                source,
                threads=thread or [],
                tenant=tenant,
                serde=serde,
                dry_run=dry_run,
                store=store,
                json=json,
            )
        )
    if source is not None or thread or serde:
        raise InputError(
            "SOURCE, --thread and --serde are for threads of LangGraph.",
            hint="Write: holdfast import langgraph SOURCE.",
        )
    wanted = ImportOptions(file, as_new_run or resume, resume, flow, tenant, dry_run)
    return run_async(import_run(wanted, store=store, json=json))


class ImportOptions(msgspec.Struct, frozen=True):
    """The command line of `import`."""

    file: str
    as_new_run: bool
    resume: bool
    flow: str | None
    tenant: str | None
    dry_run: bool


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error


def _parse_archive(file: str, data: bytes) -> Archive:
    """A damaged file is the caller's error, not one of the store."""
    from holdfast.runs.transfer.import_run import read_archive

    try:
        return read_archive(data)
    except (CheckpointCorruptError, SchemaTooNewError) as error:
        raise InputError(f"{file}: {error.message}", hint=error.hint) from error
    except InputError as error:
        hint = "`holdfast export RUN` writes one. Nothing was imported."
        raise InputError(f"{file}: {error.message}", hint=hint) from error


async def import_run(wanted: ImportOptions, *, store: str | None, json: bool) -> Exit:
    from holdfast.cli.commands.resume import resume_run

    data = _read(wanted.file)
    archive = _parse_archive(wanted.file, data)
    if wanted.dry_run:
        return _describe(archive, json=json)
    # Before the store is opened: an invalid file must not create a store.
    _require_keys(archive)
    program = _code_of(archive, wanted, store) if wanted.as_new_run else None
    async with open_store_for_command(store, must_exist=False) as hf:
        service = await hf.service()
        if program is not None:
            service.runtime.register(program)
        known = await service.store.get_run(archive.history.run.id) is not None and not wanted.as_new_run
        made = await service.import_run(data, as_new_run=wanted.as_new_run, tenant=wanted.tenant)
        row = await shown_run(service.store, made)
    if wanted.resume:
        return await resume_run(row.id, wanted.flow, OutputOptions(store, False, json))
    _print_imported(row, store, known=known, json=json)
    return Exit.ok


def _require_keys(archive: Archive) -> None:
    from holdfast.checkpoint.keys import keys_from_environment

    tenant, ring = archive.history.run.tenant, keys_from_environment()
    for key in archive.key_ids():
        if ring is None or ring.find(tenant, key) is None:
            raise KeyMissingError(
                f"this run is encrypted under the key {key!r} of tenant {tenant!r}, which is not available.",
                hint="Name the key file: HOLDFAST_KEYS=path/to/keys.json. Nothing was imported.",
                key=key,
            )


def _code_of(archive: Archive, wanted: ImportOptions, store: str | None) -> Program:
    from holdfast.app.loader import load_flow

    run = archive.history.run
    try:
        spec = wanted.flow or recall_source(store, run.flow, run.version)
    except FlowNotFoundError as error:
        raise FlowNotFoundError(error.message, hint="Name it: --flow path/to/file.py.") from None
    return load_flow(spec).program()


def _describe(archive: Archive, *, json: bool) -> Exit:
    found = _contents(archive)
    if json:
        print_json(iso_times(found))
        return Exit.ok
    shown = {**found, "created_at": clock_time(found["created_at"])}
    print_fields([(name.replace("_", " "), str(value)) for name, value in shown.items()])
    print_note("The file is intact. Nothing was imported.")
    return Exit.ok


def _contents(archive: Archive) -> dict[str, Any]:
    history = archive.history
    run = history.run
    return {
        "id": run.id,
        "flow": run.flow,
        "version": run.version,
        "tenant": run.tenant,
        "status": str(run.status),
        "created_at": run.created_at,
        "records": len(history.records),
        "holds": len(history.holds),
        "blobs": len(history.blobs),
        "encrypted": ", ".join(archive.key_ids()) or "no",
        "written_by": f"holdfast {archive.writer}" if archive.writer else "",
    }


def _print_imported(row: ShownRun, store: str | None, *, known: bool, json: bool) -> None:
    if json:
        print_json({**row_json(row), "known": known})
    elif known:
        print_line(f"Run {row.id} ({status_text(row)}) is already in this store and was not changed.")
    elif row.read_only:
        print_line(f"Run {row.id} ({status_text(row)}) was imported as history: it can be read and forked.")
        print_note(f"Show it: {command('show', row.id[:8], store)}")
    else:
        print_line(f"Run {row.id} ({status_text(row)}) was imported as a new run.")
        print_note(f"Resume it: {command('resume', row.id[:8], store)}")
