"""`runs`, `show`, `graph` and `validate`: the commands that only look."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async


@app.command(
    epilog="Examples:  holdfast runs --status pending_input   ·   holdfast runs --flow refund --newer 2d"
)
def runs(
    status: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated")] = None,
    flow: Annotated[Text, typer.Option(help="Only runs of this flow")] = None,
    tenant: Annotated[Text, typer.Option(help="Only runs of this tenant")] = None,
    newer: Annotated[Text, typer.Option(help="Only runs made within this time: 2d", metavar="AGE")] = None,
    older: Annotated[Text, typer.Option(help="Only runs made longer ago: 12h", metavar="AGE")] = None,
    after: Annotated[
        Text, typer.Option(help="The next page: runs listed after this one", metavar="RUN")
    ] = None,
    dead: Annotated[
        bool, typer.Option("--dead", help="Only runs that were given up because they killed their workers")
    ] = False,
    limit: Annotated[int, typer.Option(help="At most so many", min=1)] = 20,
    store: Store = None,
    json: Json = False,
) -> int:
    """List runs, newest first."""
    from holdfast.cli.commands.runs import RunListOptions, list_runs

    wanted = RunListOptions(
        status=status or [], flow=flow, tenant=tenant, newer=newer, older=older, after=after, limit=limit,
        dead=dead,
    )  # fmt: skip
    return run_async(list_runs(wanted, store=store, json=json))


@app.command(
    epilog="Examples:  holdfast show 3fa9c1   ·   holdfast show 3fa9c1 --timeline --all   ·   "
    "holdfast show 3fa9c1 --checkpoint 4 --json=interface"
)
def show(
    run: Annotated[
        str, typer.Argument(help="The run's id or its beginning, or a checkpoint's id", metavar="RUN")
    ],
    checkpoint: Annotated[
        int | None, typer.Option(help="The run as it stood after record N", metavar="N")
    ] = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="Only the graph with the state of each node")
    ] = False,
    timeline: Annotated[bool, typer.Option("--timeline", help="Only what happened when")] = False,
    records: Annotated[bool, typer.Option("--records", help="Only the journal, record by record")] = False,
    expand: Annotated[bool, typer.Option("--expand", help="Draw what is inside maps and sub-flows")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Leave nothing out of a long history")] = False,
    store: Store = None,
    json: Json = False,
    form: Annotated[Text, typer.Option(hidden=True)] = None,
) -> int:
    """Show a run, or any moment of its life. --json=interface gives a checkpoint in the published form."""
    from holdfast.cli.commands.show__looking import ShowOptions
    from holdfast.cli.commands.show__looking import show_moment as look

    view = ShowOptions(graph=graph, timeline=timeline, records=records, expand=expand, everything=everything)
    return run_async(look(run, checkpoint, view, store=store, json=json, form=form))


@app.command(
    epilog="Examples:  holdfast graph refund.py   ·   holdfast graph refund.py -o refund.svg   ·   "
    "holdfast graph 3fa9c1 --expand   ·   holdfast graph build.dot"
)
def graph(
    what: Annotated[
        str,
        typer.Argument(
            help="path/to/file.py[:name], package.module[:name], a pipeline in file.dot, "
            "a flow of the store, or a run",
            metavar="FLOW|RUN",
        ),
    ],
    svg: Annotated[
        Text, typer.Option("--svg", "--output", "-o", help="Draw to this file; - is stdout", metavar="FILE")
    ] = None,
    expand: Annotated[
        bool, typer.Option("--expand", help="Draw what is inside maps, sub-flows and included pipelines")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Draw a flow, a pipeline, or a run with its states."""
    from holdfast.cli.commands.graph import draw_graph

    return run_async(draw_graph(what, svg=svg, expand=expand, store=store, json=json))


@app.command(
    epilog="Examples:  holdfast validate build.dot   ·   holdfast validate build.dot ship.dot --strict   ·   "
    "holdfast validate build.dot --format sarif > out.sarif   ·   holdfast validate - < build.dot"
)
def validate(
    files: Annotated[list[str], typer.Argument(help="Pipelines in DOT; - is stdin", metavar="FILE")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Take the grammar at its word: leniencies are errors")
    ] = False,
    form: Annotated[Text, typer.Option("--format", help="text, json or sarif", metavar="FORM")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="A type that a handler of your own has; may be repeated", metavar="NAME"),
    ] = None,
    json: Json = False,
) -> int:
    """Check pipelines: every problem, with its place."""
    from holdfast.cli.commands.validate import validate_files

    return run_async(
        validate_files(files, strict=strict, form=form or ("json" if json else "text"), types=types or [])
    )
