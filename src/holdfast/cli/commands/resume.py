"""`holdfast resume`: continues a run after a crash, an answer or a failure; many runs by a search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import (
    Backend,
    Breaks,
    Functions,
    Handlers,
    Json,
    OneRun,
    Store,
    Text,
    Watch,
    app,
    run_async,
)
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
from holdfast.cli.options.store import open_store_for_command, recall_source, remember_source
from holdfast.cli.output.console import print_note
from holdfast.cli.output.results import exit_for
from holdfast.errors import InputError
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow


@app.command(
    epilog="Examples:  holdfast resume 3fa9c1   ·   holdfast resume 3fa9c1 flows/refund.py --watch   ·   "
    "holdfast resume --where 'status:failed error:timeout' --plan",
)
def resume(
    run: OneRun = None,
    flow: Annotated[
        Text, typer.Argument(help="Location of the flow's code (default: where the run was started from)")
    ] = None,
    store: Store = None,
    watch: Watch = False,
    json: Json = False,
    breaks: Breaks = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Resume even if a failover lost part of the run's history")
    ] = False,
    backend: Backend = None,
    handlers: Handlers = None,
    functions: Functions = None,
    where: Where = None,
    plan: Plan = False,
    yes: Yes = False,
    tenant: ManyTenant = None,
) -> int:
    """Resume a run after a crash, an answer or a failure.

    With --where all failed and interrupted runs that a search finds, dead letters too, are queued for the
    workers that serve their flows.
    """
    require_one_way(run, where, plan=plan, yes=yes, tenant=tenant)
    if run is None:
        here = {"--watch": watch, "--break": breaks, "--backend": backend, "--handlers": handlers,
                "--functions": functions, "FLOW": flow}  # fmt: skip
        if given := [name for name, value in here.items() if value]:
            raise InputError(
                f"{', '.join(given)} cannot be combined with --where.", hint="Workers advance these runs."
            )

        async def apply(service: RunService, row: RunRow) -> None:
            await (
                service.retry_dead(row.id)
                if row.dead
                else service.request_resume(row.id, accept_loss=accept_loss)
            )

        options = ManyOptions(where or "", tenant, plan, yes, store, json)
        return run_async(change_many(RunChange("resume", planned("resume"), apply), options))
    manner = OutputOptions(store, watch, json)
    more = {"backend": backend, "handlers": handlers}
    return run_async(
        resume_run(
            run,
            flow,
            manner,
            breaks or [],
            accept_loss=accept_loss,
            of_pipeline=more,
            functions=functions or [],
        )
    )


async def resume_run(
    run: str,
    spec: str | None,
    manner: OutputOptions,
    breaks: Sequence[str] = (),
    *,
    accept_loss: bool = False,
    of_pipeline: dict[str, Any] | None = None,
    functions: Sequence[str] = (),
) -> Exit:
    from holdfast.app.loader import absolute, load_flow
    from holdfast.cli.drive_and_print import drive_and_print, refuse_pipeline_options
    from holdfast.model.fingerprint import dialect_of

    async with open_store_for_command(manner.store, must_exist=True) as hf:
        service = await hf.service()
        row = await service.get(run)
        if row.status in (RunStatus.completed, RunStatus.cancelled):
            return await print_ended(service, row, manner)
        if spec is None and dialect_of(row.version) == "canvas":
            from holdfast.cli.document_run import resume_document

            if row.status is RunStatus.failed or breaks:
                await service.request_resume(row.id, breaks=breaks, accept_loss=accept_loss)
            return await resume_document(service, row, list(functions), manner)
        if spec is None and dialect_of(row.version) in service.runtime.dialects:
            from holdfast.cli.pipeline_run import PipelineOptions, resume_pipeline

            request = partial(service.request_resume, row.id, breaks=breaks, accept_loss=accept_loss)
            asked = PipelineOptions(**(of_pipeline or {}))
            needed = row.status is RunStatus.failed or bool(breaks)
            return await resume_pipeline(service, row, asked, manner, request if needed else None)
        refuse_pipeline_options(row.flow, of_pipeline or {})
        flow = load_flow(spec or recall_source(manner.store, row.flow, row.version))
        service.runtime.register(flow.program())
        service.runtime.program_for(row.version, row.flow)
        if row.status is RunStatus.failed or breaks:
            await service.request_resume(row.id, breaks=breaks, accept_loss=accept_loss)
        if spec is not None:
            remember_source(manner.store, flow.program().version, absolute(spec))
        return await drive_and_print(service, flow.program(), row, manner)


async def print_ended(service: RunService, row: RunRow, manner: OutputOptions) -> Exit:
    """Nothing is executed; its result is shown, even if its code is not available."""
    from holdfast.app.result import Result
    from holdfast.cli.drive_and_print import print_run_result
    from holdfast.model.fingerprint import dialect_of

    if not manner.json:
        print_note(f"run {row.id} has ended ({row.status}); nothing was executed.")
    last = await service.latest(row.id)
    result = Result(row.id, row.status, last.state, last.artifacts, None, [])
    if dialect_of(row.version) == "attractor":
        from holdfast.attractor.export import catch_up
        from holdfast.cli.pipeline_run import print_pipeline

        await catch_up(service, row)
        return await print_pipeline(service, row, result, manner)
    print_run_result(result, manner)
    return exit_for(row.status)
