"""`holdfast show`: a run now or at an earlier record. The flow's code is not needed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import (
    busy,
    is_plain,
    is_terminal,
    print_drawing,
    print_error,
    print_line,
    print_note,
    print_raw,
    width,
)
from holdfast.cli.output.json_output import brief, iso_times, print_json
from holdfast.cli.output.results import command, print_holds, shown_run, status_text, version_text
from holdfast.cli.output.run_json import costs, holds_of, last_error, run_json, values_of
from holdfast.cli.output.tables import print_fields, print_table
from holdfast.errors import InputError, RunNotFoundError
from holdfast.runs.engine_report import is_of_engine
from holdfast.types.human_time import clock_time, human_duration
from holdfast.types.ids import is_id
from holdfast.types.status import HoldStatus, RunStatus, label_for, run_label

if TYPE_CHECKING:
    from holdfast.checkpoint.checkpoint import Checkpoint
    from holdfast.model.graph import Graph
    from holdfast.runs.history.log_lines import LoggedLine
    from holdfast.runs.history.timeline import Timeline
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow
    from holdfast.types.record import Record

RECORDS_SHOWN = 200
CHILDREN_SHOWN = 10
_SUSPECT = "it lost two workers in a row; it runs alone until it makes progress"
TALL = 80
"""Lines up to which a graph is drawn with boxes."""


@app.command(
    epilog="Examples:  holdfast show 3fa9c1   ·   holdfast show 3fa9c1 --timeline --all   ·   "
    "holdfast show 3fa9c1@4 --json=interface"
)
def show(
    run: Annotated[
        str,
        typer.Argument(
            help="Run id or a unique prefix of it, RUN@12 (after a record), RUN@node, or a checkpoint id",
            metavar="RUN",
        ),
    ],
    stage: Annotated[
        str | None,
        typer.Argument(help="A stage of a pipeline, with --prompt or --output", metavar="STAGE"),
    ] = None,
    checkpoint: Annotated[
        int | None, typer.Option(help="The run as it was after record N", metavar="N")
    ] = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="Only the graph with the state of each node")
    ] = False,
    timeline: Annotated[bool, typer.Option("--timeline", help="Only the timeline")] = False,
    records: Annotated[bool, typer.Option("--records", help="Only the journal records")] = False,
    logs: Annotated[
        bool,
        typer.Option("--logs", help="Only the lines that its nodes logged; --json prints them as a list"),
    ] = False,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Only what the model of STAGE was given, as it was recorded")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            help="Only what STAGE left, whole: response, stdout, stderr, verdict or diff", metavar="NAME"
        ),
    ] = None,
    visit: Annotated[
        int | None, typer.Option(help="Which visit of STAGE; default: the last", metavar="N", min=1)
    ] = None,
    expand: Annotated[
        bool, typer.Option("--expand", help="Also draw the insides of maps and sub-flows")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Print everything, without cutting long histories")
    ] = False,
    store: Store = None,
    json: Json = False,
    form: Annotated[Text, typer.Option(hidden=True)] = None,
) -> int:
    """Show a run, now or at an earlier record.

    --json=interface prints a checkpoint in the published format.
    """
    if stage is not None or prompt or output is not None or visit is not None:
        return run_async(_show_stage(run, stage, prompt=prompt, output=output, visit=visit or 0, store=store))
    view = ShowOptions(
        graph=graph, timeline=timeline, records=records, logs=logs, expand=expand, everything=everything
    )
    return run_async(show_moment(run, checkpoint, view, store=store, json=json, form=form))


async def _show_stage(
    run: str, stage: str | None, *, prompt: bool, output: str | None, visit: int, store: str | None
) -> Exit:
    """The bytes as they are, for other programs."""
    from holdfast.attractor.recorded_stage import read_stage
    from holdfast.attractor.stage_outputs import FILES

    if stage is None:
        raise InputError("no stage is named.", hint="Write `holdfast show RUN STAGE --prompt`.")
    if prompt == (output is not None):
        raise InputError("give --prompt or --output, and not both.", hint=f"Outputs are {', '.join(FILES)}.")
    if output is not None and output not in FILES:
        raise InputError(f"unknown output {output!r}.", hint=f"It is one of {', '.join(FILES)}.")
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        found = await read_stage(service, await service.get(run), stage, visit)
    text = found.require_prompt() if output is None else found.require_output(output)
    if is_terminal():
        print_raw(text)
    else:
        # The bytes themselves: what reads them may compare every one of them.
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    return Exit.ok


class ShowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which parts are shown; none named: all but the records."""

    graph: bool = False
    timeline: bool = False
    records: bool = False
    logs: bool = False
    expand: bool = False
    everything: bool = False

    @property
    def chosen(self) -> bool:
        return self.graph or self.timeline or self.records or self.logs


async def show_moment(
    ref: str, seq: int | None, view: ShowOptions, *, store: str | None, json: bool, form: str | None
) -> Exit:
    """A run now; with a record's number or a checkpoint's id, at that point."""
    if form not in (None, "", "interface"):
        raise InputError(f"unknown JSON format {form!r}.", hint="Write --json or --json=interface.")
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        if "@" in ref:
            if seq is not None:
                raise InputError(
                    f"{ref} and --checkpoint {seq} both name a record.", hint="Give one of them."
                )
            named, at = await service.find(ref)
            found = await service.checkpoint(named.id, at)
            return await _print_checkpoint(service, found, json=json, form=form)
        try:
            row = await service.get(ref)
        except RunNotFoundError:
            if not is_id(ref):
                raise
            return await _print_checkpoint(service, await service.checkpoint(ref), json=json, form=form)
        if seq is not None or form:
            found = await (service.latest(row.id) if seq is None else service.checkpoint(row.id, seq))
            return await _print_checkpoint(service, found, json=json, form=form)
        if json and view.logs:
            from holdfast.runs.history.log_lines import log_lines

            print_json([msgspec.structs.asdict(line) for line in await log_lines(service, row)])
            return Exit.ok
        if json:
            reply = await run_json(service, row)
            print_json(reply)
            return Exit.store_trouble if reply["damaged"] else Exit.ok
        return await _show_run(service, row, view, store=store)


async def _print_checkpoint(service: RunService, found: Checkpoint, *, json: bool, form: str | None) -> Exit:
    from holdfast.model.shown_names import shown_name, without_internals
    from holdfast.runs.history.versions import reader_at

    found = found.shown()
    if json:
        print_json(found.as_interface() if form == "interface" else iso_times(msgspec.structs.asdict(found)))
        return Exit.ok
    graph = (await reader_at(service, await service.get(found.run), found.seq)).graph
    print_fields(
        [
            ("checkpoint", found.id),
            ("run", found.run),
            ("record", str(found.seq)),
            ("node", shown_name(found.node, graph)),
            ("time", clock_time(found.at)),
            ("status", label_for(str(found.status))),
            ("flow", f"{found.flow} ({found.version})"),
            ("input", brief(without_internals(found.version, found.input))),
            ("state", brief(without_internals(found.version, found.state))),
            ("artifacts", brief(found.artifacts) if found.artifacts else ""),
            ("visited", ", ".join(shown_name(label, graph) for label in found.visited)),
            ("skipped", ", ".join(shown_name(label, graph) for label in found.skipped)),
            ("pending edges", ", ".join(shown_name(edge, graph) for edge in found.pending_edges)),
            *[("asks", pending.prompt) for pending in found.pending_input],
        ]
    )
    return Exit.ok


async def _show_run(service: RunService, row: RunRow, view: ShowOptions, *, store: str | None) -> Exit:
    from holdfast.cli.output.timeline import SHOWN, print_timeline
    from holdfast.runs.history.timeline import make_timeline

    with busy(f"Reading {row.head + 1 - row.horizon:,} records"):
        line = await make_timeline(service, row, keep=None if view.everything else SHOWN)
    now = service.store.now()
    damage = "" if view.chosen else await _head(service, row, line, now)
    if view.graph or not view.chosen:
        _print_separator(view, draws=True)
        show_graph(line, row, expand=view.expand)
    if view.timeline or not view.chosen:
        _print_separator(view, draws=view.graph or not view.chosen)
        print_timeline(line.visits, now, graph=line.graph, limit=0 if view.everything else SHOWN)
    if row.status is RunStatus.failed and not view.chosen:
        await _print_traceback(service, row)
    if view.records:
        _print_separator(view, draws=view.graph or view.timeline)
        found = await service.store.read(row.id, payloads=False)
        _print_records(found, line.graph, everything=view.everything)
    if view.logs:
        from holdfast.runs.history.log_lines import log_lines

        _print_separator(view, draws=view.graph or view.timeline or view.records)
        _print_lines(await log_lines(service, row), line.graph, everything=view.everything)
    print_holds(await holds_of(service, row, HoldStatus.pending), store)
    if row.dead:
        print_note(f"Its workers died: {command('dead show', row.id[:8], store)}")
    elif row.status in (RunStatus.failed, RunStatus.resumable) and not row.read_only:
        print_note(f"Resume it: {command('resume', row.id[:8], store)}")
    if damage:
        print_error(f"{damage} What can still be read is shown.")
    return Exit.store_trouble if damage else Exit.ok


async def _print_traceback(service: RunService, row: RunRow) -> None:
    """Of the error that ended the run, if one of its nodes raised it."""
    failed = [visit for visit in (await service.story(row.id)).visits if visit.halts and visit.traceback]
    if failed:
        print_line()
        print_line("traceback", style="bold")
        for line in failed[-1].traceback.splitlines():
            print_line(line)


def _print_separator(view: ShowOptions, *, draws: bool) -> None:
    if draws or not view.chosen:
        print_line()


async def _head(service: RunService, row: RunRow, line: Timeline, now: int) -> str:
    """Returns what is damaged, if anything."""
    from holdfast.model.shown_names import without_internals

    status = status_text(await shown_run(service.store, row))
    state, artifacts, damage = await values_of(service, row, line)
    print_fields(
        [
            ("run", row.id),
            ("flow", f"{f'{row.flow} {line.graph.label}'.strip()} ({row.version})"),
            ("migrated", await _migrated(service, row)),
            ("tenant", row.tenant if row.tenant != "default" else ""),
            ("deployment", await _deployment(service, row)),
            ("entity", row.instance_key or ""),
            ("started by", row.started_by or ""),
            ("status", status + (" (imported history)" if row.read_only else "")),
            ("error", last_error(row, line)),
            ("damaged", damage),
            ("created", clock_time(row.created_at)),
            ("took" if row.ended_at else "age", human_duration((row.ended_at or now) - row.created_at)),
            ("changed", clock_time(row.updated_at)),
            ("worker", _worker_text(row)),
            ("engine", await _engine_text(service, row)),
            ("limits", row.limit),
            ("resumed", str(sum(mark.kind == "resumed" for mark in line.visits.marks) or "")),
            ("recoveries", str(row.recoveries or "")),
            ("suspect", _SUSPECT if row.suspect else ""),
            ("parent", row.parent_run or ""),
            ("children", await _children(service, row)),
            ("forked from", row.forked_from or ""),
            ("superseded by", row.superseded_by or ""),
            ("history from", f"record {row.horizon}; older records are pruned" if row.horizon else ""),
            ("cost", _cost_text(line)),
            ("state", "" if damage else brief(without_internals(row.version, state))),
            ("artifacts", brief(artifacts) if artifacts else ""),
        ]
    )
    return damage


def _worker_text(row: RunRow) -> str:
    if not row.worker or is_of_engine(row.worker):
        return ""
    return f"{row.worker}, until {clock_time(row.lease_until)}"


async def _engine_text(service: RunService, row: RunRow) -> str:
    """Which engine drives it, how far the store is behind it, and what is wrong."""
    from holdfast.cli.output.run_json import engine_report

    if not is_of_engine(row.worker):
        return ""
    report = await engine_report(service, row)
    if report is None:
        return f"{row.worker}; with HOLDFAST_ENGINE set to it, its lag is shown"
    text = f"{row.worker}, {report.history_events:,} events"
    if report.lag_records:
        text += f", the store is {report.lag_records} records and {report.lag_seconds:,.1f} s behind"
    return f"{text}; {report.problem}" if report.problem else text


async def _children(service: RunService, row: RunRow) -> str:
    """The runs that its scripts have started, oldest first."""
    found = await service.children(row.id)
    newest = reversed(found[-CHILDREN_SHOWN:])
    shown = [f"{child.id} ({child.flow}, {run_label(child.status)})" for child in newest]
    more = len(found) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more else [])])


async def _deployment(service: RunService, row: RunRow) -> str:
    from holdfast.holds.deployments.deployments import Deployments

    if row.deployment is None:
        return ""
    found = await Deployments(service.store).find(row.deployment, tenant=row.tenant)
    return row.deployment if found is None else found.name


async def _migrated(service: RunService, row: RunRow) -> str:
    from holdfast.runs.history.versions import migration_note

    if not row.migrated:
        return ""
    if row.migrated <= row.horizon:
        return f"at record {row.migrated}"
    note = await migration_note(service, row, row.migrated)
    return f"from {version_text(note['from_label'], note['from'])} at record {row.migrated}"


def _cost_text(line: Timeline) -> str:
    from holdfast.cli.output.timeline import money

    cost = costs(line)
    parts = [f"{cost['tokens']} tokens" if cost["tokens"] else "", money(cost["cost"])]
    return ", ".join(part for part in parts if part)


def show_graph(line: Timeline, row: RunRow, *, expand: bool) -> None:
    from holdfast.attractor.picture import picture_of_visits
    from holdfast.drawing import to_text

    picture = picture_of_visits(line.graph, line.visits, expand=expand, interrupted=line.interrupted)
    print_drawing(to_text(picture, width=width(), height=TALL, ascii_only=is_plain()))


def _print_records(records: list[Record], graph: Graph, *, everything: bool) -> None:
    shown = records if everything else records[-RECORDS_SHOWN:]
    heads = ("seq", "time", "record", "node", "visit", "attempt", "effect", "outcome")
    print_table(heads, [_cells(record, graph) for record in shown])
    if len(shown) < len(records):
        print_note(
            f"{len(records) - len(shown)} earlier records are left out; --all shows them, --json has them."
        )


def _print_lines(lines: list[LoggedLine], graph: Graph, *, everything: bool) -> None:
    from holdfast.model.shown_names import shown_name

    shown = lines if everything else lines[-RECORDS_SHOWN:]
    if not lines:
        print_note("No lines are stored: its nodes logged nothing with ctx.log at a level that is stored.")
    for line in shown:
        attempt = f" (attempt {line.attempt})" if line.attempt > 1 else ""
        print_line(f"{line.at[11:23]} {line.level:<8} {shown_name(line.node, graph)}{attempt}  {line.text}")
    if len(shown) < len(lines):
        print_note(f"{len(lines) - len(shown)} earlier lines are left out; --all shows them.")


def _cells(record: Record, graph: Graph) -> tuple[str, ...]:
    from holdfast.model.shown_names import shown_name
    from holdfast.types.record import Kind

    return (
        str(record.seq),
        clock_time(record.at)[11:],
        Kind(record.kind).name,
        shown_name(record.scope + record.node, graph),
        str(record.visit or ""),
        str(record.attempt or ""),
        record.effect,
        record.outcome,
    )
