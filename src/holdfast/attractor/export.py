"""A run directory made from the journal alone."""

from __future__ import annotations

from pathlib import Path

import msgspec

from holdfast.attractor.directory_sync import DirectorySync, JournalFollower, write_files
from holdfast.attractor.run_files import is_refused
from holdfast.errors import InputError
from holdfast.frontends.dot.lower import DIALECT
from holdfast.model.fingerprint import dialect_of
from holdfast.runs.events import reader_of
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.own_threads import in_thread


class ExportResult(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    folder: Path
    files: tuple[str, ...]


async def export_directory(service: RunService, run: str, folder: Path) -> ExportResult:
    """Write the directory of that run, as far as the journal has it: without files that commands wrote.
    Raises InputError if the run is not a pipeline's, or the folder cannot be written."""
    row = await service.get(run)
    if dialect_of(row.version) != DIALECT:
        raise InputError(
            f"run {row.id} is a run of flow {row.flow!r}, not of a pipeline.",
            hint="Leave --attractor out: every run can be exported as a file.",
        )
    if is_refused(service.runtime):
        raise InputError(
            "this store is encrypted, and a run directory is not.",
            hint="Export the run as a file, which stays encrypted; or set HOLDFAST_PLAIN_DIRECTORIES=1.",
        )
    pages = (await (await _journal_follower(service, row)).read_new()).take()
    try:
        await in_thread(write_files, folder, pages)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror}.", hint="Name another folder."
        ) from error
    return ExportResult(run=row.id, folder=folder, files=tuple(str(path) for path in pages))


async def catch_up(service: RunService, row: RunRow) -> None:
    """Complete the directory of a run without a worker, which may have died before it wrote the end."""
    writes = not is_refused(service.runtime)
    await DirectorySync(await _journal_follower(service, row), row.term, writes=writes).write()


async def _journal_follower(service: RunService, row: RunRow) -> JournalFollower:
    reader = await reader_of(service, row)
    return JournalFollower(service.store, service.runtime.blobs, reader.codec, reader.graph, row)
