"""Results, holds and events in words, and in JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.cli.main import Exit
from holdfast.cli.options.store import shown_address
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.forms import form_lines, sample_data
from holdfast.cli.output.json_output import brief, iso_times, print_json
from holdfast.cli.output.tables import print_fields
from holdfast.types.clock import iso, to_datetime, to_micros
from holdfast.types.human_time import clock_time
from holdfast.types.status import RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.app.result import Result
    from holdfast.cli.options.output import OutputOptions
    from holdfast.model.graph import Graph
    from holdfast.runs.run_view import MachineWait, ShownRun
    from holdfast.store.protocols import Store
    from holdfast.store.rows import RunRow
    from holdfast.types.event import Event
    from holdfast.types.hold import HoldRow

_EXITS = {
    RunStatus.completed: Exit.ok,
    RunStatus.failed: Exit.run_failed,
    RunStatus.cancelled: Exit.run_failed,
    RunStatus.resumable: Exit.interrupted,
}
_QUIET = frozenset({"checkpoint.created", "edge.taken"})
HOLDS_SHOWN = 10


def exit_for(status: RunStatus) -> Exit:
    return _EXITS.get(status, Exit.run_waits)


def version_text(label: str, version: str) -> str:
    """`2 (g1-58e88b36)`: what people call it, and enough of what it is."""
    short = version[:11]
    return f"{label} ({short})" if label else short


def print_result(result: Result, store: str | None) -> None:
    state, artifacts = result.shown()
    print_fields(
        [
            ("run", result.run_id),
            ("status", run_label(result.status, _wakes(result))),
            ("error", _error_text(result)),
            ("state", brief(state)),
            ("artifacts", brief(artifacts) if artifacts else ""),
        ]
    )
    print_holds(result.holds, store)
    if result.failed or result.status is RunStatus.resumable:
        print_note(f"Resume it: {command('resume', result.run_id, store)}")


def _wakes(result: Result) -> str:
    return "" if result.wakes_at is None else clock_time(to_micros(result.wakes_at))


def _error_text(result: Result) -> str:
    if result.error is None:
        return ""
    where = f"node {result.failed_node}: " if result.failed_node else ""
    return f"{where}{result.error.type}: {result.error.message}"


def print_holds(holds: Sequence[HoldRow], store: str | None) -> None:
    """The oldest ones; a map may have opened hundreds."""
    for hold in holds[:HOLDS_SHOWN]:
        print_hold(hold, store, alone=len(holds) == 1)
    if len(holds) > HOLDS_SHOWN:
        print_note(f"{len(holds) - HOLDS_SHOWN} more holds are open; --json lists them.")


def print_hold(hold: HoldRow, store: str | None, *, alone: bool = True) -> None:
    """`alone`: the run has no other open question, so that its own id is enough to answer."""
    from holdfast.holds.queries.summary import title_of

    print_line()
    print_line(hold.prompt or title_of(hold), style="bold yellow")
    if hold.assignee:
        print_line(f"for {hold.assignee}", style="dim")
    for line in form_lines(hold):
        print_line(f"  {line}")
    from holdfast.runs.run_view import machine_wait
    from holdfast.types.hold import MACHINE_WAITS

    if hold.type in MACHINE_WAITS:
        _print_machine_wait(machine_wait(hold), hold.run, store)
        return
    choices = [(option.id, option.label) for option in hold.options or ()] or [("your answer", "")]
    which = hold.run[:8] if alone else hold.id
    for choice, label in choices:
        meaning = f"  # {label}" if label and not _is_label_of(choice, label) else ""
        print_line(f"  {_answer_command(which, choice, store, sample_data(hold))}{meaning}")


def _print_machine_wait(wait: MachineWait, run: str, store: str | None) -> None:
    if wait.event is not None:
        key = "" if wait.key is None else f" --key {quote(wait.key)}"
        print_line(f"  {command('events send', f'{quote(wait.event)} JSON{key}', store)}")
    elif wait.callback is not None:
        print_line(f"  {command('callbacks list', run[:8], store)}")
    elif wait.run is not None:
        print_line(f"  {command('show', wait.run, store)}")
    else:
        print_line(f"waits for a message: {command('queue publish', f'{wait.queue} JSON', store)}")
    if wait.until is not None:
        print_line(f"  until {wait.until}", style="dim")


def _is_label_of(choice: str, label: str) -> bool:
    """Whether the id of a choice already says what its label does: `approve`, and `Approve`."""
    return choice.replace("_", " ").lower() == label.lower()


def _answer_command(which: str, choice: str, store: str | None, data: str) -> str:
    if choice.startswith("-"):
        return f"{command('answer', which + data, store)} -- {quote(choice)}"
    return command("answer", f"{which} {quote(choice)}{data}", store)


def print_created(row: ShownRun, manner: OutputOptions, *, fresh: bool, spec: str = "") -> None:
    """A run that was only created (`--detach`). `spec`: what a worker that advances it has to serve."""
    if manner.json:
        print_json({**row_json(row), "created": fresh})
        return
    if not fresh:
        print_known_key(row)
    print_line(f"run {row.id} is {status_text(row)} in lane {row.lane}.")
    print_line(f"A worker advances it: {command('worker', spec, manner.store, manner.engine).strip()}")


def print_known_key(row: ShownRun | RunRow) -> None:
    print_note(f"A run with this idempotency key exists already: {row.id}.")


def command(verb: str, rest: str, store: str | None, engine: str | None = None) -> str:
    """What a person types next, for the same store and engine."""
    named = ""
    if store and store != os.environ.get("HOLDFAST_STORE"):
        named += f" --store {quote(shown_address(store))}"
    if engine and engine != os.environ.get("HOLDFAST_ENGINE"):
        named += f" --engine {quote(engine)}"
    return f"holdfast {verb} {rest}{named}"


def result_json(result: Result) -> dict[str, Any]:
    """As the result over HTTP; besides, the node that failed and the open questions in full."""
    error = result.error
    state, artifacts = result.shown()
    return {
        "id": result.run_id,
        "status": str(result.status),
        "state": state,
        "artifacts": artifacts,
        "error": None if error is None else f"{error.type}: {error.message}",
        "open_holds": [hold.id for hold in result.holds],
        "wakes_at": None if result.wakes_at is None else iso(to_micros(result.wakes_at)),
        "failed_node": result.failed_node or None,
        "holds": [hold_json(hold) for hold in result.holds],
    }


def hold_json(hold: HoldRow) -> dict[str, Any]:
    """As over HTTP."""
    from holdfast.holds.queries.hold_view import hold_view

    return hold_view(hold)


async def shown_run(store: Store, row: RunRow) -> ShownRun:
    (found,) = await shown_runs(store, [row])
    return found


async def shown_runs(store: Store, rows: Sequence[RunRow]) -> list[ShownRun]:
    from holdfast.runs import run_view

    return await run_view.shown_runs(store, rows)


def status_text(row: ShownRun) -> str:
    """`sleeping until 2026-11-29 23:39:00`, `waiting for the event payment.received (A17)`."""
    return row.label if row.wakes_at is None else run_label(row.status, clock_time(row.wakes_at))


def row_json(row: ShownRun) -> dict[str, Any]:
    """As over HTTP."""
    from holdfast.runs.run_view import run_wire

    return msgspec.structs.asdict(run_wire(row))


def stored_json(row: RunRow) -> dict[str, Any]:
    """What only the store knows of a run: who works on it, when it is due, what was pruned."""
    return iso_times(
        {
            "worker": row.worker,
            "lease_until": row.lease_until,
            "ready_at": row.ready_at,
            "recoveries": row.recoveries,
            "suspect": row.suspect,
            "limit": row.limit,
            "horizon": row.horizon,
            "migrated": row.migrated,
            "code": row.code,
            "term": row.term,
        }
    )


def event_json(event: Event) -> dict[str, Any]:
    """As in the stream of the HTTP API."""
    shown = msgspec.structs.asdict(event)
    del shown["seq"]  # streams do not deliver it either
    return iso_times(shown)


def event_line(event: Event, graph: Graph | None = None) -> str | None:
    """One line a person reads while the run goes on; None where there is nothing to see."""
    from holdfast.model.shown_names import shown_name

    if event.type in _QUIET:
        return None
    data = event.data
    where = shown_name(f"{event.scope}{event.node}", graph) if event.node else ""
    return (
        f"{to_datetime(event.at).astimezone():%H:%M:%S.%f}"[:-3]
        + f"  {event.type:18} {where:16} {_detail(data)}".rstrip()
    )


def _detail(data: dict[str, Any]) -> str:
    error: Any = data.get("error")
    if error:
        return f"{error['type']}: {error['message']}"
    if isinstance(data.get("wake_at"), int):
        return f"until {clock_time(data['wake_at'])}"
    if data.get("missing"):
        return f"waits for a worker with {' and '.join(data['missing'])}"
    if "horizon" in data:
        return f"events {data['first']} to {data['last']} were deleted with old records"
    for key in ("prompt", "decision", "data", "status"):
        if data.get(key):
            return str(data[key])
    duration = data.get("duration_us")
    return f"{duration / 1000:.1f} ms" if isinstance(duration, int) else ""
