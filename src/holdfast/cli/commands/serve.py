"""`serve`: REST, live streams and pages, with a worker beside them."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async


class ProjectionMode(Enum):
    """`holds`: questions, failures and ends; `every`: all; `none`: none."""

    holds = "holds"
    every = "every"
    none = "none"


@app.command(
    epilog="Examples:  holdfast serve flows/refund.py   ·   holdfast serve shop.flows --port 9000   ·   "
    "holdfast serve shop.flows --store postgresql://db/shop --no-worker",
    short_help="Serve runs and holds over HTTP, with pages for people.",
)
def serve(
    flows: Annotated[
        list[str] | None, typer.Argument(help="Files or modules whose flows it knows", metavar="FLOW...")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where it listens; for others than this machine it needs tokens")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: one that is free", min=0, max=65535)] = 8420,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Only serve; runs go on where `holdfast worker` is")
    ] = False,
    lane: Annotated[
        list[str] | None, typer.Option(help="Its worker takes only runs of this lane; may be repeated")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="At most so many runs at work", min=1)] = 10,
    name: Annotated[Text, typer.Option(help="How its worker is called in the fleet", metavar="NAME")] = None,
    lease: Annotated[
        Text, typer.Option(help="How long its worker may be silent: 30s, or HOLDFAST_LEASE", metavar="TIME")
    ] = None,
    metrics: Annotated[
        Text,
        typer.Option(help="Serve /metrics of its worker for Prometheus there", metavar="[HOST:]PORT"),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(help="Pages of this origin may call it (CORS); may be repeated", metavar="URL"),
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option(help="It answers to this name only, or to *.NAME; may be repeated", metavar="NAME"),
    ] = None,
    sign_in: Annotated[
        Text,
        typer.Option(help="How people sign in, a TOML file; else HOLDFAST_SIGN_IN", metavar="FILE"),
    ] = None,
    root: Annotated[
        list[str] | None,
        typer.Option(help="Flows may be named as files of this folder; may be repeated", metavar="FOLDER"),
    ] = None,
    allow_code: Annotated[
        bool,
        typer.Option(
            "--allow-code",
            help="Pipelines that are handed in may bring commands, and files of the first --root",
        ),
    ] = False,
    drain: Annotated[
        float, typer.Option(help="Seconds that requests have to end when it stops", min=0)
    ] = 10.0,
    projection: Annotated[
        ProjectionMode,
        typer.Option(help="Checkpoints that plain SQL shows whole (docs/reference/tables.md)"),
    ] = ProjectionMode.holds,
    store: Store = None,
    json: Json = False,
) -> int:
    """Serve runs and holds over HTTP: an API, live streams, and pages to decide what waits for you.

    Without more it is whole: SQLite in the working folder, and a worker in the same process. On PostgreSQL
    any number of servers share one store; with --no-worker they only serve. SIGTERM and Ctrl-C drain it.
    /healthz says that it lives, /readyz whether it is ready.
    """
    from holdfast.cli.commands.serve__serving import ServeOptions, WorkerOptions
    from holdfast.cli.commands.serve__serving import run_server as begin

    wanted = ServeOptions(
        flows=flows or [],
        host=host,
        port=port,
        worker=not no_worker,
        lanes=lane or None,
        concurrency=concurrency,
        terms=WorkerOptions(name=name, lease=lease, metrics=metrics),
        store=store,
        origins=tuple(origin or ()),
        hosts=tuple(hosts or ()),
        sign_in=sign_in,
        roots=tuple(root or ()),
        allow_code=allow_code,
        drain=drain,
        projection=projection.value,
        json=json,
    )
    return run_async(begin(wanted))
