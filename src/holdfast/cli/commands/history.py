"""`checkpoints`, `diff`, `fork`, `rewind`, `replay`, `postmortem`: any moment of a run, opened again."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Run, Store, Text, app, run_async

Moment = Annotated[
    str,
    typer.Argument(help="A checkpoint's id, RUN, RUN@12 (a record) or RUN@node (its latest)", metavar="REF"),
]
Patch = Annotated[
    Text,
    typer.Option(
        help="What changes: JSON, @file or -; of the state, or by state, input, artifacts, diagnostics",
        metavar="JSON",
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="One value: amount=250, customer.name=Ada; may be repeated", metavar="PATH=VALUE"
    ),
]
Input = Annotated[Text, typer.Option("--input", help="Another input: JSON, @file or -", metavar="JSON")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the new run here and now")]
Code = Annotated[Text, typer.Option("--flow", help="Where its code is, if not where it was started from")]


@app.command(
    epilog="Examples:  holdfast checkpoints 3fa9c1   ·   holdfast checkpoints 3fa9c1 --node pay --range 5:20"
)
def checkpoints(
    run: Run,
    node: Annotated[Text, typer.Option(help="Only those of this node")] = None,
    range_: Annotated[
        Text, typer.Option("--range", help="Only these records: 5:9, 5: or :9", metavar="FROM:TO")
    ] = None,
    limit: Annotated[int, typer.Option(help="At most so many; 0: all", min=0)] = 50,
    store: Store = None,
    json: Json = False,
) -> int:
    """List a run's checkpoints, newest first. No state is loaded."""
    from holdfast.cli.commands.history__travelling import list_checkpoints

    return run_async(list_checkpoints(run, node, range_, limit, store=store, json=json))


@app.command(
    epilog="Examples:  holdfast diff 3fa9c1@4 3fa9c1@9   ·   holdfast diff 3fa9c1 77ab02 --svg diff.svg",
    short_help="Compare two checkpoints, branches or runs.",
)
def diff(
    a: Annotated[
        str, typer.Argument(help="From this moment: RUN, RUN@12, RUN@node, a checkpoint's id", metavar="A")
    ],
    b: Annotated[str, typer.Argument(help="To this one", metavar="B")],
    only: Annotated[
        list[str] | None, typer.Option(help="Only state, nodes or cost; may be repeated", metavar="PART")
    ] = None,
    svg: Annotated[
        Text, typer.Option(help="Draw both graphs laid over each other; - for stdout", metavar="FILE")
    ] = None,
    graph: Annotated[bool, typer.Option("--graph", help="Draw them in the terminal too")] = False,
    whole: Annotated[bool, typer.Option("--all", help="Everything, however much it is")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Compare two checkpoints, branches or runs: by node, field, outcome, tool call and cost.

    Of a long list only the beginning is told, with how much was left out."""
    from holdfast.cli.commands.diff import diff_moments

    return run_async(diff_moments(a, b, only or (), svg, graph=graph, whole=whole, store=store, json=json))


@app.command(
    epilog="Examples:  holdfast fork 3fa9c1@assess --set amount=80   ·   holdfast fork 3fa9c1@4 --patch @p"
)
def fork(
    ref: Moment,
    patch: Patch = None,
    sets: Sets = None,
    input_: Input = None,
    resume: Resume = False,
    flow: Code = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Make a new run that begins where another one stood. The source stays as it is."""
    from holdfast.cli.commands.history__branching import BranchOptions, create_branch

    wanted = BranchOptions(ref, patch, tuple(sets or ()), input_, resume, flow, rewinds=False)
    return run_async(create_branch(wanted, store=store, json=json))


@app.command(
    epilog="Example:  holdfast rewind 3fa9c1@assess --set amount=80 --resume",
    short_help="A fork that takes its source's place.",
)
def rewind(
    ref: Moment,
    patch: Patch = None,
    sets: Sets = None,
    input_: Input = None,
    resume: Resume = False,
    flow: Code = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """A fork that takes its source's place: the old run ends as cancelled, its holds are closed."""
    from holdfast.cli.commands.history__branching import BranchOptions, create_branch

    wanted = BranchOptions(ref, patch, tuple(sets or ()), input_, resume, flow, rewinds=True)
    return run_async(create_branch(wanted, store=store, json=json))


@app.command(
    epilog="Examples:  holdfast replay 3fa9c1   ·   holdfast replay 3fa9c1 --against flows/refund_v2.py",
    short_help="Make a run's decisions again and compare them.",
)
def replay(
    run: Run,
    upto: Annotated[int | None, typer.Option(help="Only up to this record", metavar="N", min=0)] = None,
    against: Annotated[
        Text, typer.Option(help="Let this flow decide, or this stored version of the run's", metavar="FLOW")
    ] = None,
    flow: Code = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Make a run's decisions again from its journal: do they lead to the same place? No node runs."""
    from holdfast.cli.commands.history__travelling import replay_run

    return run_async(replay_run(run, upto, against, flow, store=store, json=json))


@app.command(
    epilog="Examples:  holdfast postmortem 3fa9c1   ·   holdfast postmortem 3fa9c1 --out report.html",
    short_help="Tell a run's whole story, as Markdown or HTML.",
)
def postmortem(
    run: Run,
    form: Annotated[
        Text, typer.Option("--format", help="md or html; else as --out is called, else md", metavar="FORM")
    ] = None,
    out: Annotated[Text, typer.Option(help="Into this file instead of stdout", metavar="FILE")] = None,
    visits: Annotated[int, typer.Option(help="Tell so many visits in full; 0: all", min=0)] = 300,
    store: Store = None,
    json: Json = False,
) -> int:
    """Tell a run's whole story: each node in order, what it changed, what failed and how that was handled."""
    from holdfast.cli.commands.postmortem import write_postmortem

    return run_async(write_postmortem(run, form, out, visits, store=store, json=json))
