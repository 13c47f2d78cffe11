"""`torture`: the command that proves a flow safe, or shows where it is not."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Flow, Json, Text, app


@app.command(
    epilog="Examples:  holdfast torture refund.py --input @order.json --decide approve=approve"
    "   ·   holdfast torture loyalty.py:careless --effects ledger.txt"
    "   ·   holdfast torture jobs.py --points 'after_settle:*' --keep",
    short_help="Kill a flow's run at every boundary; is it safe?",
)
def torture(
    flow: Flow,
    input: Annotated[Text, typer.Option(help="JSON, @file, or - for stdin", metavar="JSON")] = None,  # noqa: A002
    decide: Annotated[
        list[str] | None,
        typer.Option(help="What a hold is answered; may be repeated", metavar="NODE=DECISION"),
    ] = None,
    answers: Annotated[
        Text, typer.Option(help="Answers with data, by node: JSON or @file", metavar="JSON")
    ] = None,
    in_doubt: Annotated[
        str, typer.Option(help="What 'did it happen?' is answered: truth, happened, not_happened, fail")
    ] = "truth",
    effects: Annotated[
        list[str] | None,
        typer.Option(help="A file that the flow appends its effects to; may be repeated", metavar="FILE"),
    ] = None,
    copy: Annotated[
        list[str] | None,
        typer.Option(help="Put this into each run's working folder; may be repeated", metavar="PATH"),
    ] = None,
    points: Annotated[
        list[str] | None,
        typer.Option(help="Only these boundaries, such as 'after_*'; may be repeated", metavar="NAME"),
    ] = None,
    most: Annotated[
        int, typer.Option("--max", help="At most so many boundaries, spread evenly", min=1)
    ] = 400,
    kills: Annotated[
        int, typer.Option(help="2: kill the process that recovers too, at as many boundaries", min=1, max=2)
    ] = 1,
    jobs: Annotated[int, typer.Option(help="So many at a time", min=1)] = 2,
    limit: Annotated[str, typer.Option(help="How long one process may take")] = "30s",
    time: Annotated[str, typer.Option(help="Begin no further run after this time")] = "10m",
    may_fail: Annotated[
        bool, typer.Option("--may-fail", help="That the run fails, always alike, is as it should be")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folders of all runs, to look into")] = False,
    json: Json = False,
) -> int:
    """Kill a run of a flow at every boundary, resume it, and compare: same result, same effects?

    The flow's code runs for real, each time on a store and in a working folder of its own; your store is not
    touched. Exit code 0: safe; 1: not safe."""
    from holdfast.cli.commands.torture__proving import TortureOptions, run_torture

    wanted = TortureOptions(
        flow=flow,
        input=input,
        decide=decide or [],
        answers=answers,
        time=time,
        limit=limit,
        may_fail=may_fail,
        json=json,
        wishes={
            "in_doubt": in_doubt,
            "effects": effects or [],
            "copies": copy or [],
            "points": points or [],
            "most": most,
            "kills": kills,
            "jobs": jobs,
            "keep": keep,
        },
    )
    return run_torture(wanted)
