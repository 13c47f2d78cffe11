"""`holdfast run`: starts a run of a flow or a pipeline, here or for a worker."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import (
    Backend,
    Breaks,
    Engine,
    Functions,
    Handlers,
    Json,
    Store,
    Text,
    Watch,
    app,
    run_async,
)
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command, remember_source
from holdfast.cli.output.results import print_created, shown_run
from holdfast.errors import FlowNotFoundError, InputError, StateError

DOCUMENTS = (".yaml", ".yml", ".json")

if TYPE_CHECKING:
    from holdfast.app.flow import Flow
    from holdfast.cli.pipeline_directory import ResumeDirectoryOptions

FlowAddress = Annotated[
    Text,
    typer.Argument(
        help="path/to/file.py[:name], package.module[:name], file.yaml or file.dot", metavar="FLOW"
    ),
]
Detach = Annotated[bool, typer.Option("--detach", help="Only create the run; a worker advances it")]
IdempotencyKey = Annotated[Text, typer.Option(help="Idempotency key: the same key starts only one run")]
InstanceKey = Annotated[
    Text, typer.Option(help="Entity of the run, if the deployment has entities", metavar="KEY")
]
Checkpoints = Annotated[
    Text,
    typer.Option(help="Checkpoints to list, overriding the flow: every, explicit or none", metavar="WHICH"),
]
Simulate = Annotated[
    bool, typer.Option("--simulate", help="Pipelines: call no model, answer with a fixed text")
]
AutoApprove = Annotated[
    bool, typer.Option("--auto-approve", help="Pipelines: take the first choice at every gate")
]
Logs = Annotated[
    Text,
    typer.Option(help="Pipelines: run directory (default: .holdfast/logs/RUN)", metavar="DIR"),
]
Resume = Annotated[Text, typer.Option(help="Pipelines: resume from this run directory", metavar="DIR")]
ResumeFidelity = Annotated[
    Text,
    typer.Option(help="With --resume: fidelity of the first stage in place of full", metavar="MODE|keep"),
]
Assume = Annotated[
    Text,
    typer.Option(
        help="With --resume: how the last stage ended, if the directory does not say it",
        metavar="success|fail",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="With --resume: resume even if the pipeline has changed")
]


@app.command(
    epilog="Examples:  holdfast run refund.py --input @order.json   ·   holdfast run jobs.py:nightly --watch"
    "   ·   holdfast run jobs.py --detach --lane night   ·   holdfast run build.dot --simulate"
    "   ·   holdfast run --resume logs/"
)
def run(
    flow: FlowAddress = None,
    input: Annotated[Text, typer.Option(help="JSON, @file, or - for stdin", metavar="JSON")] = None,  # noqa: A002
    store: Store = None,
    engine: Engine = None,
    watch: Watch = False,
    detach: Detach = False,
    json: Json = False,
    lane: Annotated[Text, typer.Option(help="Lane of the run")] = None,
    priority: Annotated[int | None, typer.Option(help="Priority; higher runs first")] = None,
    tenant: Annotated[Text, typer.Option(help="Tenant of the run")] = None,
    run_id: Annotated[Text, typer.Option(help="Run id to use: a version-4 UUID")] = None,
    idempotency_key: IdempotencyKey = None,
    deployment: Annotated[Text, typer.Option(help="Deployment name", metavar="NAME")] = None,
    instance_key: InstanceKey = None,
    by: Annotated[Text, typer.Option(help="Person who starts the run, as user:NAME", metavar="WHO")] = None,
    breaks: Breaks = None,
    checkpoints: Checkpoints = None,
    simulate: Simulate = False,
    auto_approve: AutoApprove = False,
    ask: Annotated[bool, typer.Option("--ask", help="Pipelines: ask the questions in this terminal")] = False,
    logs: Logs = None,
    backend: Backend = None,
    handlers: Handlers = None,
    functions: Functions = None,
    strict: Annotated[bool, typer.Option("--strict", help="Pipelines: strict grammar")] = False,
    resume: Resume = None,
    resume_fidelity: ResumeFidelity = None,
    assume: Assume = None,
    force: Force = False,
) -> int:
    """Start a run and advance it until it ends or waits.

    FLOW may be a pipeline (path/to/file.dot), a document (path/to/file.yaml, path/to/file.json) or the name
    of a deployed document (refund, refund@VERSION). If a module and a deployed document have one name, the
    module is run; refund@current selects the document.
    """
    wanted = {
        "lane": lane, "priority": priority, "tenant": tenant, "run_id": run_id,
        "idempotency_key": idempotency_key, "deployment": deployment, "instance_key": instance_key,
        "started_by": by, "breaks": breaks or None, "checkpoints": checkpoints,
    }  # fmt: skip
    options = {name: value for name, value in wanted.items() if value is not None}
    of_pipelines = {
        "simulate": simulate, "auto_approve": auto_approve, "logs": logs, "backend": backend,
        "handlers": handlers, "strict": strict, "ask": ask,
    }  # fmt: skip
    manner = OutputOptions(store, watch, json, engine)
    if resume is not None:
        from holdfast.cli import pipeline_directory

        onward = pipeline_directory.ResumeDirectoryOptions(
            resume, flow, force=force, fidelity=resume_fidelity or "", assume=assume or "", options=options
        )
        return _resume_directory(onward, of_pipelines, manner, {"--input": input, "--detach": detach or None})
    if flow is None:
        raise typer.BadParameter("name a flow or a pipeline.", param_hint="FLOW")
    of_resume = {"force": force, "resume_fidelity": resume_fidelity, "assume": assume}
    return _start(flow, input, options, of_pipelines, of_resume, manner, functions or [], detach=detach)


def _start(
    flow: str,
    given: str | None,
    options: dict[str, Any],
    of_pipelines: dict[str, Any],
    of_resume: dict[str, Any],
    manner: OutputOptions,
    functions: list[str],
    *,
    detach: bool,
) -> int:
    """By what FLOW is: a pipeline, a document, or the name of code or of a deployed document."""
    if flow.lower().endswith((".dot", ".gv")):
        return _run_pipeline(flow, given, options, of_pipelines, manner, detach=detach)
    from holdfast.cli.drive_and_print import refuse_pipeline_options

    refuse_pipeline_options(flow, of_pipelines | of_resume)
    read = read_json(given, "--input")
    if flow.lower().endswith(DOCUMENTS):
        from holdfast.cli.document_run import run_document

        return run_async(run_document(flow, read, options, manner, functions=functions, detach=detach))
    return run_async(_run_named(flow, read, options, manner, functions, detach=detach))


async def _run_named(
    flow: str,
    given: Any,
    options: dict[str, Any],
    manner: OutputOptions,
    functions: list[str],
    *,
    detach: bool,
) -> Exit:
    """The code of a file or module, or else a deployed document."""
    from holdfast.cli.deployed_run import is_module, may_be_deployed, note_if_deployed, run_deployed

    if may_be_deployed(flow) and is_module(flow):
        await note_if_deployed(flow, options, manner)
    elif may_be_deployed(flow):
        done = await run_deployed(flow, given, options, manner, functions=functions, detach=detach)
        if done is not None:
            return done
    if functions:
        raise InputError(f"--functions: {flow} is not a document.", hint="Documents are *.yaml or *.json.")
    begin = start_detached if detach else run_flow
    try:
        return await begin(flow, given, options, manner)
    except FlowNotFoundError as error:
        pipeline = _pipeline_meant(flow)
        if pipeline:
            error.hint = pipeline
        elif may_be_deployed(flow) and not is_module(flow):
            error.hint = f"No document of that name is deployed either (`holdfast flows list`). {error.hint}"
        raise


def _pipeline_meant(flow: str) -> str:
    """What to do if the name is that of a pipeline without its extension, or with another one."""
    path = Path(flow)
    for beside in (Path(f"{flow}.dot"), Path(f"{flow}.gv")):
        if beside.is_file():
            return f"{beside} is a pipeline: holdfast run {beside}"
    with suppress(OSError, ValueError):
        if path.is_file() and b"digraph" in path.read_bytes()[:4096]:
            return f"{flow} looks like a pipeline: rename it to {path.stem}.dot."
    return ""


def _resume_directory(
    onward: ResumeDirectoryOptions,
    of_pipelines: dict[str, Any],
    manner: OutputOptions,
    refused: dict[str, Any],
) -> int:
    from holdfast.cli.pipeline_directory import resume_from_directory
    from holdfast.cli.pipeline_run import PipelineOptions

    return run_async(resume_from_directory(onward, PipelineOptions(**of_pipelines), manner, refused))


def _run_pipeline(
    path: str,
    given: str | None,
    options: dict[str, Any],
    of_pipelines: dict[str, Any],
    manner: OutputOptions,
    *,
    detach: bool,
) -> int:
    from holdfast.cli.pipeline_run import PipelineOptions, run_file

    chosen = PipelineOptions(**of_pipelines)
    return run_async(run_file(path, read_json(given, "--input"), options, chosen, manner, detach=detach))


async def run_flow(spec: str, given: Any, options: dict[str, Any], manner: OutputOptions) -> Exit:
    from holdfast.app.loader import absolute
    from holdfast.cli.drive import start_run
    from holdfast.cli.drive_and_print import drive_started
    from holdfast.cli.flow_check import load_checked_flow

    flow = load_checked_flow(spec)
    program = flow.program()
    async with open_store_for_command(manner.store, must_exist=False, engine=manner.engine) as hf:
        service = await hf.service()
        try:
            started = await start_run(service, program, {} if given is None else given, **options)
        except StateError as error:
            raise _input_error(flow, error) from error
        # Before it is advanced: after a crash `holdfast resume RUN` needs it.
        remember_source(manner.store, program.version, absolute(spec))
        return await drive_started(service, program, started, manner)


def _input_error(flow: Flow, error: StateError) -> StateError:
    return StateError(f"cannot start flow {flow.name!r}: {error.message}", hint=error.hint)


async def start_detached(spec: str, given: Any, options: dict[str, Any], manner: OutputOptions) -> Exit:
    """Only create the run; a worker advances it."""
    from holdfast.app.loader import absolute
    from holdfast.cli.flow_check import load_checked_flow

    if manner.watch:
        raise InputError("--detach and --watch cannot both be given.", hint="Use one of them.")
    flow = load_checked_flow(spec)
    program = flow.program()
    async with open_store_for_command(manner.store, must_exist=False, engine=manner.engine) as hf:
        service = await hf.service()
        try:
            row, fresh = await service.create(program, {} if given is None else given, **options)
        except StateError as error:
            raise _input_error(flow, error) from error
        remember_source(manner.store, program.version, absolute(spec))
        row = await shown_run(service.store, row)
    print_created(row, manner, fresh=fresh, spec=spec)
    return Exit.ok
