"""Why a run stands or failed, where, and what to do: in at most ten lines."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from holdfast.checkpoint.visit import Visit
from holdfast.errors import EngineError
from holdfast.model.shown_names import shown_name
from holdfast.runs.engine_report import is_of_engine
from holdfast.runs.history.story_loader import load_story
from holdfast.runs.run_view import ShownRun, shown_run
from holdfast.runs.unserved import how_to_get, needs_of
from holdfast.types.hold import MACHINE_WAITS, HoldRow
from holdfast.types.human_time import clock_time, human_duration
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow

_LINE: Final = 160
_MOST: Final = 10
"""Lines in all."""
_TAIL: Final = 4
"""Lines of a command's output, if there is room: the first of them often says the most."""
_BEFORE: Final = 4
_MOVES: Final = (RunStatus.pending, RunStatus.running, RunStatus.pending_input)
_CANCELLED: Final = "its cancellation is requested, and no worker has cancelled it yet"


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """`where`: the nodes that are open, or the one that failed. `todo`: commands to choose from."""

    run: str
    flow: str
    status: str
    where: tuple[str, ...] = ()
    why: str = ""
    output: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """At most ten."""
        first = [f"Run {self.run} of {self.flow}: {self.status}."]
        first += [f"Where   {', '.join(self.where)}"] if self.where else []
        first += [f"Why     {self.why}"] if self.why else []
        last = [f"Before  {', '.join(self.before)}"] if self.before else []
        last += [f"Do      {line}" for line in self.todo]
        room = max(2, _MOST - len(first) - len(last))
        found = [*first, *(f"Output  {line}" for line in self.output[-room:]), *last]
        return [_cut(line) for line in found[:_MOST]]


async def diagnose(service: RunService, run: str, *, tenant: str | None = None) -> Diagnosis:
    """Raises RunNotFoundError."""
    row = await service.get(run, tenant=tenant)
    shown = await shown_run(service.store, row)
    story = await load_story(service, row)
    holds = await service.questions(row.id)
    now = service.store.now()
    ended = [visit for visit in story.visits if visit.ended_at is not None]
    failed = next((visit for visit in reversed(ended) if visit.halts and not visit.handed_to), None)
    open_ = [visit for visit in story.visits if visit.ended_at is None]
    at = [failed] if shown.status is RunStatus.failed and failed is not None else open_
    _, unread = await service.store.pending(row.id)
    engine = row.worker if is_of_engine(row.worker) else None
    if any(message.kind == "cancel" for message in unread):
        where = "" if engine is None else f" FILE --engine {engine}"
        why, todo = _CANCELLED, [f"holdfast worker{where}    # cancels it"]
    elif engine is not None and not holds and shown.status in _MOVES:
        why, todo = await _engine_reason(service, row, engine)
    else:
        why, todo = _reason(shown, failed, open_, holds, now, await needs_of(service.store, row))
        left = _left_failed(ended) if shown.status is RunStatus.completed else []
        if left:
            why = f"it completed, although {', '.join(left)} failed, and did not run again"
            todo = [f"holdfast postmortem {row.id[:8]}    # everything that happened"]
    return Diagnosis(
        run=row.id,
        flow=row.flow,
        status=shown.label + (f" until {clock_time(shown.wakes_at)}" if shown.wakes_at else ""),
        where=tuple(_place(visit, now) for visit in at[-3:]),
        why=why,
        output=_output(failed) if failed is not None and shown.status is RunStatus.failed else (),
        before=tuple(_outcome(visit) for visit in ended[-_BEFORE:] if visit is not failed),
        todo=tuple(todo),
    )


def _reason(
    row: ShownRun,
    failed: Visit | None,
    open_: list[Visit],
    holds: list[HoldRow],
    now: int,
    needs: frozenset[str],
) -> tuple[str, list[str]]:
    name = row.id[:8]
    if row.status is RunStatus.failed:
        what = "" if failed is None else (failed.error or {}).get("message", "")
        return what or "it failed", [
            f"holdfast resume {name}    # after the cause is fixed: the failed node runs again",
            f"holdfast postmortem {name}    # everything that happened",
        ]
    if row.status is RunStatus.completed:
        return "it completed: there is nothing to do", []
    if row.status is RunStatus.cancelled:
        why = (row.error or "").partition(": ")[2]
        stated = why not in ("", "cancelled")  # the default reason says nothing
        return f"it was cancelled: {why}" if stated else "it was cancelled", [
            f"holdfast fork {name}@N    # a new run from one of its checkpoints"
        ]
    asked = [hold for hold in holds if hold.type not in MACHINE_WAITS]
    if asked:
        return _question(asked, now), _answers(asked)
    if row.missing:
        return f"no live worker has {' and '.join(row.missing)}", [
            f"holdfast worker    # with what the run needs: {how_to_get(row.missing)}"
        ]
    if row.waits_for:
        return f"it waits for {row.waits_for[0].text}", []
    return _machine_reason(row, open_, now, needs)


def _machine_reason(
    row: ShownRun, open_: list[Visit], now: int, needs: frozenset[str]
) -> tuple[str, list[str]]:
    name = row.id[:8]
    if row.status is RunStatus.waiting:
        pauses = [wait for visit in open_ for wait in visit.waits if wait.until is None]
        retries = any(wait.kind == "retry" for wait in pauses)
        what = "an attempt failed, and the next one begins" if retries else "it sleeps, and wakes up"
        return f"{what} at {clock_time(row.wakes_at or now)}", []
    if row.status is RunStatus.running:
        return f"worker {row.worker} runs it", [f"holdfast show {name} --timeline    # where it is now"]
    if row.status is RunStatus.pending:
        what = "no worker has started it"
    elif row.status is RunStatus.pending_input:
        what = "its wait has ended, and no worker has resumed it"
    else:
        what = "its worker stopped or released it"
    if not needs:
        here = f"holdfast resume {name}    # advances it here"
        return what, ["holdfast worker    # advances every run that it can", here]
    return f"{what}; it needs {' and '.join(sorted(needs))}", [
        f"holdfast worker    # with {how_to_get(sorted(needs))}",
        f"holdfast resume {name}    # advances it here, with the same",
    ]


async def _engine_reason(service: RunService, row: RunRow, address: str) -> tuple[str, list[str]]:
    """Of a run that a cluster has to advance."""
    engine, name = service.runtime.engine, row.id[:8]
    if engine is None or engine.name != address:
        return f"{address} drives it", [f"HOLDFAST_ENGINE={address} holdfast diagnose {name}    # asks it"]
    try:
        problem = (await engine.report(row)).problem
    except EngineError as error:
        problem = error.message
    if problem:
        return problem, [f"holdfast doctor --engine {address}    # looks at all runs there"]
    return f"{address} drives it", [f"holdfast show {name} --timeline    # where it is now"]


def _question(holds: list[HoldRow], now: int) -> str:
    hold = holds[0]
    more = f" ({len(holds) - 1} more)" if len(holds) > 1 else ""
    who = f" by {hold.assignee}" if hold.assignee else ""
    return f"unanswered{who} for {human_duration(now - hold.created_at)}: {_one_line(hold.prompt)}{more}"


def _answers(holds: list[HoldRow]) -> list[str]:
    hold = holds[0]
    shown = [f"holdfast answer {hold.id[:8]} {shlex.quote(option.id)}" for option in (hold.options or ())[:3]]
    return shown or [f"holdfast answer {hold.id[:8]} TEXT"]


def _place(visit: Visit, now: int) -> str:
    tries = f", attempt {visit.attempts}" if visit.attempts > 1 else ""
    again = f", visit {visit.visit}" if visit.visit > 1 else ""
    since = human_duration((visit.ended_at or now) - visit.started_at)
    asks = visit.ended_at is None and any(each.status == "pending" for each in visit.questions)
    return f"{shown_name(visit.label)} ({'asking' if asks else visit.state}{again}{tries}, {since})"


def _outcome(visit: Visit) -> str:
    return f"{shown_name(visit.label)} {visit.outcome or visit.state}"


def _left_failed(ended: list[Visit]) -> list[str]:
    """The nodes whose last visit failed, such as those of branches that others made up for."""
    last = {visit.label: visit for visit in ended}
    return [shown_name(label) for label, visit in last.items() if visit.outcome == "fail"]


def _output(visit: Visit) -> tuple[str, ...]:
    """The end of what its last command wrote."""
    for call in reversed(visit.calls):
        value: Any = call.value
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            text = str(fields.get("stderr") or "").strip() or str(fields.get("stdout") or "").strip()
            lines = [line for line in text.splitlines() if line.strip()]
            if lines:
                return tuple(lines[-_TAIL:])
    return ()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cut(line: str) -> str:
    line = _one_line(line) if "\n" in line else line
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"
