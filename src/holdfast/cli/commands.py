"""The commands and their options. Each imports what it needs when it is called: `--help` stays quick."""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    add_completion=False,
    # Boxes and colours for people only: loading them costs more than all the rest of the start.
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Flow = Annotated[str, typer.Argument(help="path/to/file.py[:name] or package.module[:name]", metavar="FLOW")]
Run = Annotated[str, typer.Argument(help="The run's id, or enough of its beginning", metavar="RUN")]
Store = Annotated[
    str | None,
    typer.Option(
        help="sqlite:PATH; else HOLDFAST_STORE, else sqlite:.holdfast/holdfast.db", metavar="ADDRESS"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="For machines: JSON on stdout")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Show events as they become durable")]
Text = str | None
By = Annotated[str, typer.Option(help="Who decides", metavar="WHO")]


def _say_version(wanted: bool) -> None:
    if wanted:
        from holdfast._version import __version__

        print(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def holdfast(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version")
    ] = False,
) -> None:
    """Durable workflows: runs that survive crashes, and wait for people without a process."""


def _go(work: Coroutine[Any, Any, int]) -> int:
    import asyncio

    try:
        code = int(asyncio.run(work))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough (`holdfast runs | head -1`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


@app.command(
    epilog="Examples:  holdfast run refund.py --input @order.json   ·   holdfast run jobs.py:nightly --watch"
)
def run(
    flow: Flow,
    input: Annotated[Text, typer.Option(help="JSON, @file, or - for stdin", metavar="JSON")] = None,  # noqa: A002
    store: Store = None,
    watch: Watch = False,
    json: Json = False,
    lane: Annotated[Text, typer.Option(help="The lane of the run")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher is sooner")] = None,
    tenant: Annotated[Text, typer.Option(help="Whose run it is")] = None,
    run_id: Annotated[Text, typer.Option(help="An id of your own: a version-4 UUID")] = None,
    idempotency_key: Annotated[Text, typer.Option(help="The same key never starts a second run")] = None,
) -> int:
    """Start a run and advance it until it ends or waits."""
    from holdfast.cli.given import read_json
    from holdfast.cli.running import Manner, run_flow

    wanted = {
        "lane": lane,
        "priority": priority,
        "tenant": tenant,
        "run_id": run_id,
        "idempotency_key": idempotency_key,
    }
    options = {name: value for name, value in wanted.items() if value is not None}
    return _go(run_flow(flow, read_json(input, "--input"), options, Manner(store, watch, json)))


@app.command(epilog="Examples:  holdfast resume 3fa9c1   ·   holdfast resume 3fa9c1 flows/refund.py --watch")
def resume(
    run: Run,
    flow: Annotated[Text, typer.Argument(help="Where its code is, if not where it was started from")] = None,
    store: Store = None,
    watch: Watch = False,
    json: Json = False,
) -> int:
    """Go on with a run: after a crash, an answer, or a failure that was mended."""
    from holdfast.cli.running import Manner, resume_run

    return _go(resume_run(run, flow, Manner(store, watch, json)))


@app.command(
    epilog="Examples:  holdfast runs --status pending_input   ·   holdfast runs --flow refund --json"
)
def runs(
    status: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated")] = None,
    flow: Annotated[Text, typer.Option(help="Only runs of this flow")] = None,
    limit: Annotated[int, typer.Option(help="At most so many", min=1)] = 20,
    store: Store = None,
    json: Json = False,
) -> int:
    """List runs, newest first."""
    from holdfast.cli.looking import list_runs

    return _go(list_runs(status or [], flow, limit, store=store, json=json))


@app.command(
    epilog="Examples:  holdfast show 3fa9c1   ·   holdfast show 3fa9c1 --checkpoint 4 --json=interface"
)
def show(
    run: Annotated[
        str, typer.Argument(help="The run's id or its beginning, or a checkpoint's id", metavar="RUN")
    ],
    checkpoint: Annotated[
        int | None, typer.Option(help="The run as it stood after record N", metavar="N")
    ] = None,
    store: Store = None,
    json: Json = False,
    form: Annotated[Text, typer.Option(hidden=True)] = None,
) -> int:
    """Show a run, or any moment of its life. --json=interface gives a checkpoint in the published form."""
    from holdfast.cli.looking import show as look

    return _go(look(run, checkpoint, store=store, json=json, form=form))


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
    from holdfast.cli.given import read_json
    from holdfast.cli.running import Manner, answer_hold

    found = read_json(data, "--data")
    manner = Manner(store, False, json)
    return _go(answer_hold(which, decision, data=found, comment=comment, by=by, go_on=resume, manner=manner))


@app.command(epilog="Example:  holdfast cancel 3fa9c1 --reason 'ordered twice'")
def cancel(
    run: Run,
    reason: Annotated[str, typer.Option(help="Kept with the run")] = "cancelled",
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Ask a run to stop. What it has done stays recorded."""
    from holdfast.cli.running import Manner, cancel_run

    return _go(cancel_run(run, reason=reason, by=by, manner=Manner(store, False, json)))


@app.command(epilog="Examples:  holdfast worker flows/refund.py   ·   holdfast worker shop.flows --lane fast")
def worker(
    flows: Annotated[
        list[str], typer.Argument(help="Files or modules whose flows it carries", metavar="FLOW...")
    ],
    lane: Annotated[list[str] | None, typer.Option(help="Only runs of this lane; may be repeated")] = None,
    concurrency: Annotated[int, typer.Option(help="At most so many runs at work", min=1)] = 10,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop when nothing is left to do now")
    ] = False,
    store: Store = None,
) -> int:
    """Advance runs that others start, resume or answer. SIGTERM and Ctrl-C drain it."""
    from holdfast.cli.working import work

    return _go(work(flows, lane or None, concurrency, until_idle=until_idle, store=store))
