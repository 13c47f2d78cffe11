"""`holdfast cancel`: cancels a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app import By, Json, Run, Store, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command, recall_source
from holdfast.cli.output.console import print_json, print_line
from holdfast.cli.output.results import row_json, shown_run
from holdfast.errors import FlowNotFoundError, InputError
from holdfast.types.status import ENDED, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow


@app.command(epilog="Example:  holdfast cancel 3fa9c1 --reason 'ordered twice'")
def cancel(
    run: Run,
    reason: Annotated[str, typer.Option(help="Reason, stored with the run")] = "cancelled",
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Cancel a run.

    Its history stays recorded.
    """
    return run_async(cancel_run(run, reason=reason, by=by, manner=OutputOptions(store, False, json)))


async def cancel_run(run: str, *, reason: str, by: str, manner: OutputOptions) -> Exit:
    """Requests the cancellation; if no worker has the run and its code is found, also performs it."""
    async with open_store_for_command(manner.store, must_exist=True) as hf:
        service = await hf.service()
        row = await service.cancel(run, reason=reason, by=by)
        if row.status not in ENDED and row.worker is None:
            row = await _cancel_here(service, row, manner.store)
        if manner.json:
            print_json(row_json(await shown_run(service.store, row)))
        elif row.status is RunStatus.cancelled:
            print_line(f"Run {row.id} is cancelled.")
        else:
            print_line(
                f"Cancellation of run {row.id} is requested; the next worker that advances it cancels it."
            )
        return Exit.ok


async def _cancel_here(service: RunService, row: RunRow, store: str | None) -> RunRow:
    from holdfast.app.loader import load_flow
    from holdfast.cli.drive import drive

    try:
        program = load_flow(recall_source(store, row.flow, row.version)).program()
    except (FlowNotFoundError, InputError):
        return row  # a worker that serves the flow will do it
    service.runtime.register(program)
    if row.version in service.runtime.programs:
        await drive(service, program, row.id)
    return await service.get(row.id)
