"""`run`, `resume`, `answer`, `cancel`, `worker`: the commands that move runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.cli.app import Breaks, By, Json, Run, Store, Text, Watch, app, run_async

Backend = Annotated[
    Text,
    typer.Option(
        help="Of a pipeline: who answers prompts: model, cli:COMMAND or file.py:name", metavar="WHO"
    ),
]
Handlers = Annotated[
    Text, typer.Option(help="Of a pipeline: a HandlerRegistry, as file.py:name", metavar="WHERE")
]


@app.command(
    epilog="Examples:  holdfast run refund.py --input @order.json   ·   holdfast run jobs.py:nightly --watch"
    "   ·   holdfast run jobs.py --detach --lane night   ·   holdfast run build.dot --simulate"
    "   ·   holdfast run --resume logs/"
)
def run(
    flow: Annotated[
        Text, typer.Argument(help="path/to/file.py[:name], package.module[:name] or file.dot", metavar="FLOW")
    ] = None,
    input: Annotated[Text, typer.Option(help="JSON, @file, or - for stdin", metavar="JSON")] = None,  # noqa: A002
    store: Store = None,
    watch: Watch = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Only start it: a worker takes it from there")
    ] = False,
    json: Json = False,
    lane: Annotated[Text, typer.Option(help="The lane of the run")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher is sooner")] = None,
    tenant: Annotated[Text, typer.Option(help="Whose run it is")] = None,
    run_id: Annotated[Text, typer.Option(help="An id of your own: a version-4 UUID")] = None,
    idempotency_key: Annotated[Text, typer.Option(help="The same key never starts a second run")] = None,
    deployment: Annotated[Text, typer.Option(help="Under which deployment", metavar="NAME")] = None,
    instance_key: Annotated[
        Text, typer.Option(help="Which entity it is of, where the deployment has some", metavar="KEY")
    ] = None,
    by: Annotated[Text, typer.Option(help="Who starts it, as user:NAME", metavar="WHO")] = None,
    breaks: Breaks = None,
    checkpoints: Annotated[
        Text,
        typer.Option(
            help="What this run lists, whatever its flow says: every, explicit or none", metavar="WHICH"
        ),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Of a pipeline: ask no model, answer by a fixed sentence")
    ] = False,
    auto_approve: Annotated[
        bool, typer.Option("--auto-approve", help="Of a pipeline: take the first choice at every gate")
    ] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Of a pipeline: put its questions to you, here")] = False,
    logs: Annotated[
        Text,
        typer.Option(help="Of a pipeline: its run directory; else .holdfast/logs/RUN", metavar="DIR"),
    ] = None,
    backend: Backend = None,
    handlers: Handlers = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Of a pipeline: take the grammar at its word")
    ] = False,
    resume: Annotated[
        Text, typer.Option(help="Of a pipeline: go on from its run directory", metavar="DIR")
    ] = None,
    resume_fidelity: Annotated[
        Text,
        typer.Option(help="With --resume: what stands for full at the first stage", metavar="MODE|keep"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="With --resume: also where the pipeline has changed")
    ] = False,
) -> int:
    """Start a run and advance it until it ends or waits. FLOW may be a pipeline: path/to/file.dot."""
    from holdfast.cli.commands.run__running import (
        OutputOptions,
        refuse_pipeline_options,
        run_flow,
        start_detached,
    )
    from holdfast.cli.options.json_input import read_json

    wanted = {
        "lane": lane,
        "priority": priority,
        "tenant": tenant,
        "run_id": run_id,
        "idempotency_key": idempotency_key,
        "deployment": deployment,
        "instance_key": instance_key,
        "started_by": by,
        "breaks": breaks or None,
        "checkpoints": checkpoints,
    }
    options = {name: value for name, value in wanted.items() if value is not None}
    if resume is None and flow is None:
        raise typer.BadParameter("name a flow or a pipeline.", param_hint="FLOW")
    of_pipelines: dict[str, Any] = {
        "simulate": simulate, "auto_approve": auto_approve, "logs": logs, "backend": backend,
        "handlers": handlers, "strict": strict, "ask": ask,
    }  # fmt: skip
    if resume is not None:
        from holdfast.cli.commands.run_directory import ResumeDirectoryOptions, resume_from_directory
        from holdfast.cli.commands.run_pipeline import PipelineOptions

        onward = ResumeDirectoryOptions(
            resume, flow, force=force, fidelity=resume_fidelity or "", options=options
        )
        refused = {"--input": input, "--detach": detach or None}
        return run_async(
            resume_from_directory(
                onward, PipelineOptions(**of_pipelines), OutputOptions(store, watch, json), refused
            )
        )
    assert flow is not None
    if flow.lower().endswith((".dot", ".gv")):
        from holdfast.cli.commands.run_pipeline import PipelineOptions, run_file

        given, manner = read_json(input, "--input"), OutputOptions(store, watch, json)
        return run_async(
            run_file(flow, given, options, PipelineOptions(**of_pipelines), manner, detach=detach)
        )
    more = {"force": force, "resume_fidelity": resume_fidelity}
    refuse_pipeline_options(flow, of_pipelines | more)
    begin = start_detached if detach else run_flow
    return run_async(begin(flow, read_json(input, "--input"), options, OutputOptions(store, watch, json)))


@app.command(
    epilog="Examples:  holdfast resume 3fa9c1   ·   holdfast resume 3fa9c1 flows/refund.py --watch",
    short_help="Go on with a run after a crash, an answer or a mend.",
)
def resume(
    run: Run,
    flow: Annotated[Text, typer.Argument(help="Where its code is, if not where it was started from")] = None,
    store: Store = None,
    watch: Watch = False,
    json: Json = False,
    breaks: Breaks = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Also where a failover lost part of the run's history")
    ] = False,
    backend: Backend = None,
    handlers: Handlers = None,
) -> int:
    """Go on with a run: after a crash, an answer, or a failure that was mended."""
    from holdfast.cli.commands.run__running import OutputOptions, resume_run

    manner = OutputOptions(store, watch, json)
    more = {"backend": backend, "handlers": handlers}
    return run_async(resume_run(run, flow, manner, breaks or [], accept_loss=accept_loss, of_pipeline=more))


@app.command(
    epilog="Examples:  holdfast answer 3fa9c1 approve   ·   holdfast answer 3fa9c1 edit --data @new.json"
)
def answer(
    which: Annotated[
        str, typer.Argument(help="A hold's id, or a run with one open hold", metavar="RUN|HOLD")
    ],
    decision: Annotated[str, typer.Argument(help="One of the hold's options, or text where it has none")],
    data: Annotated[Text, typer.Option(help="More of the answer: JSON, @file or -", metavar="JSON")] = None,
    comment: Annotated[Text, typer.Option(help="Why")] = None,
    by: By = "user:local",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run here and now")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Decide a hold, once. The run goes on where a worker is alive, or with --resume."""
    from holdfast.cli.commands.run__running import OutputOptions, answer_hold
    from holdfast.cli.options.json_input import read_json

    found = read_json(data, "--data")
    manner = OutputOptions(store, False, json)
    return run_async(
        answer_hold(which, decision, data=found, comment=comment, by=by, go_on=resume, manner=manner)
    )


@app.command(epilog="Example:  holdfast cancel 3fa9c1 --reason 'ordered twice'")
def cancel(
    run: Run,
    reason: Annotated[str, typer.Option(help="Kept with the run")] = "cancelled",
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Ask a run to stop. What it has done stays recorded."""
    from holdfast.cli.commands.run__running import OutputOptions, cancel_run

    return run_async(cancel_run(run, reason=reason, by=by, manner=OutputOptions(store, False, json)))


@app.command(
    epilog="Examples:  holdfast worker flows/refund.py   ·   holdfast worker shop.flows --lane fast   ·   "
    "holdfast worker shop.flows --name shop-1 --lease 10s --metrics 9464"
)
def worker(
    flows: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files or modules whose flows it carries; pipelines it runs without", metavar="[FLOW...]"
        ),
    ] = None,
    lane: Annotated[list[str] | None, typer.Option(help="Only runs of this lane; may be repeated")] = None,
    concurrency: Annotated[int, typer.Option(help="At most so many runs at work", min=1)] = 10,
    name: Annotated[
        Text, typer.Option(help="How it is called in the fleet; without, a name of its own", metavar="NAME")
    ] = None,
    lease: Annotated[
        Text,
        typer.Option(
            help="How long it may be silent before others take its runs: 30s, or HOLDFAST_LEASE",
            metavar="TIME",
        ),
    ] = None,
    hot: Annotated[
        Text,
        typer.Option(help="How long a run that waits for a person stays in memory: 30s", metavar="TIME"),
    ] = None,
    metrics: Annotated[
        Text,
        typer.Option(
            help="Serve /metrics for Prometheus, /healthz and /readyz there; a port alone is on loopback",
            metavar="[HOST:]PORT",
        ),
    ] = None,
    health: Annotated[
        Text, typer.Option(help="Serve /healthz and /readyz only", metavar="[HOST:]PORT")
    ] = None,
    max_recoveries: Annotated[
        int | None,
        typer.Option(
            help="Give a run up when its workers died oftener in a row than this (5): `holdfast dead`",
            metavar="N",
            min=0,
        ),
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop when nothing is left to do now")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Advance runs that others start, resume or answer. SIGTERM and Ctrl-C drain it.

    Any number of workers share one store. When one dies, others take up its runs once its lease is over.
    """
    from holdfast.cli.commands.worker import WorkerOptions, run_worker

    terms = WorkerOptions(
        name=name, lease=lease, hot=hot, metrics=metrics, health=health, max_recoveries=max_recoveries
    )
    return run_async(
        run_worker(
            flows or [], lane or None, concurrency, until_idle=until_idle, store=store, json=json, terms=terms
        )
    )
