"""`holdfast cancel`: cancels a run, or many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app import By, Json, OneRun, Store, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.many_runs import (
    ManyOptions,
    ManyTenant,
    Plan,
    RunChange,
    Where,
    Yes,
    change_many,
    planned,
    require_one_way,
)
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command, recall_source
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import row_json, shown_run
from holdfast.errors import FlowNotFoundError, InputError
from holdfast.types.status import ENDED, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow


@app.command(
    epilog="Examples:  holdfast cancel 3fa9c1 --reason 'ordered twice'   ·   "
    "holdfast cancel --where 'flow:refund created<1h' --plan"
)
def cancel(
    run: OneRun = None,
    reason: Annotated[str, typer.Option(help="Reason, stored with the run")] = "cancelled",
    by: By = "user:local",
    where: Where = None,
    plan: Plan = False,
    yes: Yes = False,
    tenant: ManyTenant = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Cancel a run, or all runs that a search finds.

    Their history stays recorded. Where the flow's code is not found here, the next worker that serves it
    cancels the run.
    """
    require_one_way(run, where, plan=plan, yes=yes, tenant=tenant)
    if run is not None:
        return run_async(cancel_run(run, reason=reason, by=by, manner=OutputOptions(store, False, json)))

    async def apply(service: RunService, row: RunRow) -> None:
        row = await service.cancel(row.id, reason=reason, by=by)
        if row.status not in ENDED and row.worker is None:
            await _cancel_here(service, row, store)

    options = ManyOptions(where or "", tenant, plan, yes, store, json)
    return run_async(change_many(RunChange("cancel", planned("cancel"), apply), options))


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
