"""`holdfast run --resume DIR`: resumes a pipeline from its run directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.attractor import resume
from holdfast.attractor.prepare import PipelineSource, PreparedPipeline, input_of, prepare_pipeline
from holdfast.attractor.resume import ResumeResult, resume_directory
from holdfast.attractor.run_files import DOCUMENT
from holdfast.cli.commands.resume import print_ended
from holdfast.cli.main import Exit
from holdfast.cli.options.backend import require_model
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.cli.pipeline_run import PipelineOptions, pipeline_setup, resume_pipeline
from holdfast.errors import InputError
from holdfast.runs.service import RunService
from holdfast.types.status import RunStatus


class ResumeDirectoryOptions(msgspec.Struct, frozen=True):
    """The options for resuming from a directory."""

    folder: str
    file: str | None = None
    force: bool = False
    fidelity: str = ""
    assume: str = ""
    options: dict[str, Any] = {}


async def resume_from_directory(
    onward: ResumeDirectoryOptions, asked: PipelineOptions, manner: OutputOptions, refused: Mapping[str, Any]
) -> Exit:
    used = [name for name, value in refused.items() if value is not None]
    if used:
        raise InputError(
            f"{', '.join(used)}: a resumed run keeps its input and options.", hint="Leave it out."
        )
    setup = pipeline_setup(asked)

    def prepare(source: PipelineSource) -> PreparedPipeline:
        return prepare_pipeline(source, setup, strict=asked.strict)

    def given(ready: PreparedPipeline, logs: Path) -> dict[str, Any]:
        # A directory of ours says what its run needs, and that was checked.
        is_stored = onward.file is None and not onward.force and (Path(onward.folder) / DOCUMENT).is_file()
        if not (asked.simulate or is_stored):
            require_model(ready.pipeline, setup)
        backend = setup.asks_for
        return input_of(ready.pipeline, logs=logs, backend=backend, auto_approve=asked.auto_approve)

    async with open_store_for_command(manner.store, must_exist=False, engine=manner.engine) as hf:
        service = await hf.service()
        if service.runtime.engine is not None:
            await service.runtime.engine.check()
        how = resume.ResumeOptions(
            source=None if onward.file is None else Path(onward.file),
            force=onward.force,
            fidelity=onward.fidelity,
            assume=onward.assume,
            logs=Path(asked.logs) if asked.logs else None,
            options=onward.options,
        )
        found = await resume_directory(service, Path(onward.folder), prepare, given, how, setup)
        return await _advance(service, found, asked, manner)


async def _advance(
    service: RunService, found: ResumeResult, asked: PipelineOptions, manner: OutputOptions
) -> Exit:
    row = found.row
    if row is None:
        return _print_already_ended(found, manner)
    if row.status in (RunStatus.completed, RunStatus.cancelled):
        return await print_ended(service, row, manner)
    if found.ready is not None:
        service.runtime.register(found.ready.program)
    if row.status is RunStatus.failed:
        await service.request_resume(row.id)
    if found.fresh and not manner.json:
        print_note(f"This store does not have the run of {found.saved.folder}: a new run continues it.")
    return await resume_pipeline(service, row, asked, manner)


def _print_already_ended(found: ResumeResult, manner: OutputOptions) -> Exit:
    saved = found.saved
    if manner.json:
        print_json({"run": saved.run, "status": "completed", "completed_nodes": list(saved.completed)})
    else:
        print_line(f"The run of {saved.folder} has ended: there is nothing to do.")
    return Exit.ok
