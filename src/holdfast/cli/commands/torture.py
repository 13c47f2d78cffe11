"""`holdfast torture`: kills a flow at every crash point and compares the results."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Flow, Json, Text, app
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.output.console import print_line, print_note, status_console
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError, SettingsError
from holdfast.types.duration import DurationError, parse_duration

if TYPE_CHECKING:
    from holdfast.torture.explorer import Progress
    from holdfast.torture.report import PointVerdict, Report

_SHOWN = 12

Decisions = Annotated[
    list[str] | None,
    typer.Option(help="Answer of a hold; may be repeated", metavar="NODE=DECISION"),
]
Answers = Annotated[Text, typer.Option(help="Answers with data, by node: JSON or @file", metavar="JSON")]
InDoubtAnswer = Annotated[
    str, typer.Option(help="Answer to 'did it happen?'", metavar="truth|happened|not_happened|fail")
]
EffectFiles = Annotated[
    list[str] | None,
    typer.Option(help="File to which the flow appends its effects; may be repeated", metavar="FILE"),
]
CopiedPaths = Annotated[
    list[str] | None,
    typer.Option(help="Copy this into each run's working folder; may be repeated", metavar="PATH"),
]
CrashPoints = Annotated[
    list[str] | None,
    typer.Option(help="Only these crash points, e.g. 'after_*'; may be repeated", metavar="NAME"),
]
MostPoints = Annotated[
    int, typer.Option("--max", help="Maximum number of crash points, spread evenly", min=1)
]
Kills = Annotated[
    int, typer.Option(help="2 = also kill the recovering process, at as many crash points", min=1, max=2)
]
MayFail = Annotated[
    bool, typer.Option("--may-fail", help="Accept that the run fails, if it always fails in the same way")
]


@app.command(
    epilog="Examples:  holdfast torture refund.py --input @order.json --decide approve=approve"
    "   ·   holdfast torture loyalty.py:careless --effects ledger.txt"
    "   ·   holdfast torture jobs.py --points 'after_settle:*' --keep",
)
def torture(
    flow: Flow,
    input: Annotated[Text, typer.Option(help="JSON, @file, or - for stdin", metavar="JSON")] = None,  # noqa: A002
    decide: Decisions = None,
    answers: Answers = None,
    in_doubt: InDoubtAnswer = "truth",
    effects: EffectFiles = None,
    copy: CopiedPaths = None,
    points: CrashPoints = None,
    most: MostPoints = 400,
    kills: Kills = 1,
    jobs: Annotated[int, typer.Option(help="Number of parallel runs", min=1)] = 2,
    limit: Annotated[str, typer.Option(help="Time limit of one process", metavar="DURATION")] = "30s",
    time: Annotated[str, typer.Option(help="Start no further run after this time")] = "10m",
    may_fail: MayFail = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folders of all runs")] = False,
    json: Json = False,
) -> int:
    """Kill a flow at every crash point and check that it is safe.

    It kills a run at every crash point, resumes it, and compares result and effects. The flow's code really
    runs, each time with its own store and working folder; your store is not touched. Exit code 0: safe; 1:
    not safe.
    """
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
            "copy": copy or [],
            "points": points or [],
            "max": most,
            "kills": kills,
            "jobs": jobs,
            "keep": keep,
        },
    )
    return run_torture(wanted)


class TortureOptions(msgspec.Struct, frozen=True, kw_only=True):
    flow: str
    input: str | None
    decide: list[str]
    answers: str | None
    time: str
    limit: str
    may_fail: bool
    json: bool
    wishes: dict[str, Any]


def run_torture(wanted: TortureOptions) -> Exit:
    from holdfast.app.loader import load_flow
    from holdfast.torture.explorer import torture

    flow = load_flow(wanted.flow)
    given = read_json(wanted.input, "--input")
    with _progress(json=wanted.json) as progress:
        report = torture(
            flow,
            given,
            answers=_answers(wanted),
            progress=progress,
            time=_seconds(wanted.time, "--time"),
            limit=_seconds(wanted.limit, "--limit"),
            **wanted.wishes,
        )
    if wanted.json:
        print_json(report.as_json())
    else:
        print_report(report)
    proven = report.safe and (wanted.may_fail or not report.failed)
    return Exit.ok if proven else Exit.run_failed


def _answers(wanted: TortureOptions) -> dict[str, Any]:
    found: Any = read_json(wanted.answers, "--answers") or {}
    if not isinstance(found, dict):
        raise InputError("--answers is not an object.", hint='Write {"node": "decision"}.')
    decided: dict[str, Any] = {}
    for text in wanted.decide:
        node, equals, decision = text.partition("=")
        if not (node and equals and decision):
            raise InputError(f"--decide {text!r} is not NODE=DECISION.", hint="Such as --decide approve=yes.")
        decided.setdefault(node, []).append(decision)
    return {**found, **decided}


def _seconds(text: str, option: str) -> float:
    try:
        return parse_duration(text).total_seconds()
    except DurationError as error:
        raise SettingsError(f"{option}: {error}.") from error


@contextmanager
def _progress(*, json: bool) -> Generator[Progress | None]:
    """A progress line that vanishes at the end; nothing in a pipe."""
    console = None if json else status_console()
    if console is None:
        yield None
        return
    from rich import progress

    line = "{task.completed} of {task.total} boundaries"
    with progress.Progress(
        progress.BarColumn(30),
        progress.TextColumn(line),
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total, refresh=True)


def print_report(report: Report) -> None:
    _print_table(report)
    for line in report.unsteady:
        print_note(f"Differs between two undisturbed runs, so it is not compared: {line}.")
    for line in report.suspects:
        print_note(f"Check this: {line}.")
    for line in report.waits:
        print_note(f"The run ends waiting; --decide NODE=DECISION answers its hold. {line}")
    if report.missed:
        print_note(
            f"{report.missed} boundaries were not reached again: those runs took another path, unkilled."
        )
    asked = sum(1 for verdict in report.verdicts if verdict.doubts)
    if asked:
        print_note(f"At {asked} boundaries a person is asked whether an effect happened (answered for you).")
    if report.folder:
        print_note(f"Stores, outputs and logs of all runs: {report.folder}")
    print_line(report.story(), style="bold red" if report.failed or not report.safe else "green")
    print_note(f"{len(report.verdicts)} boundaries in {report.seconds:.1f} s.")


def _print_table(report: Report) -> None:
    """The unsafe boundaries; if all are safe, one line for each kind of boundary."""
    if not report.safe:
        rows = [_row(verdict) for verdict in report.unsafe[:_SHOWN]]
        print_table(["boundary", "at", "differs"], rows)
        if len(report.unsafe) > _SHOWN:
            print_note(f"and {len(report.unsafe) - _SHOWN} more; --json shows all.")
        return
    kinds: dict[str, list[PointVerdict]] = {}
    for verdict in report.verdicts:
        kinds.setdefault(verdict.point.name, []).append(verdict)
    rows = [[name, str(len(found)), found[0].point.meaning] for name, found in kinds.items()]
    print_table(["boundary", "killed", "meaning"], rows)


def _row(verdict: PointVerdict) -> list[str]:
    points = [point for point in (verdict.point, verdict.again) if point is not None]
    return [
        ", then ".join(map(str, points)),
        ", then ".join(point.where or "the start" for point in points),
        "; ".join(difference.text for difference in verdict.differences),
    ]
