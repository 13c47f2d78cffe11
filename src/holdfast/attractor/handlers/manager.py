"""A supervisor: starts a child pipeline as a separate run, watches it, steers it, and reports how it ended.

The child is started once, by a key of this visit, and does not depend on the process that watches it. Each
observation is recorded, so that the manager continues after the last one when it is entered again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from holdfast.attractor import run_files
from holdfast.attractor.backends.select import KEY, Backends
from holdfast.attractor.child_budget import left_for_child
from holdfast.attractor.child_result import with_result
from holdfast.attractor.child_runs import DETACH, STARTING, Child, ChildState, Polls, read_cycle
from holdfast.attractor.command_run import workdir_text
from holdfast.attractor.continuation import Continuation
from holdfast.attractor.detached_commands import CHILD
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.codergen import prompt_of
from holdfast.attractor.handlers.fan_in import ask_backend
from holdfast.attractor.handlers.human import AUTO_KEY
from holdfast.attractor.machine_requirements import SUBMITTED, is_submitted, require_allowed
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.saved_checkpoint import SavedCheckpoint, read_directory
from holdfast.attractor.worktree_requirements import PARENT, WORKDIR, WORKTREES, working_folder
from holdfast.errors import InputError
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.include import CHILD as CHILD_FILE
from holdfast.frontends.dot.include import LATE, RESOLVE
from holdfast.frontends.dot.lower import context_of
from holdfast.frontends.dot.policies import wanted_approvals
from holdfast.frontends.dot.values import as_microseconds
from holdfast.model.pipeline_conditions import compile_clauses
from holdfast.model.program import Program

STATUS, OUTCOME = "context.stack.child.status", "context.stack.child.outcome"
SOURCE = "internal.source"
"""In the run's input: the file that its pipeline was read from, which is not in the stored graph."""
LINE = "internal.managed_by"
"""In the run's input: the files of the pipelines above it."""
STEER_FILE = "intervention.md"


class PrepareChild(Protocol):
    def __call__(
        self,
        found: Pipeline | Path,
        asked: str,
        approvals: frozenset[str],
        parent: Pipeline,
        left: Mapping[str, int],
    ) -> tuple[Pipeline, Program]:
        """`asked`: the backend that the manager's run names; `approvals`: what the manager asks about;
        `left`: of the budget of `parent`, by unit."""
        ...


class ManagerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The manager options from the stage's attributes."""

    dotfile: str
    workdir: str
    autostart: bool
    detach: bool
    poll: float
    max_cycles: int
    stop_condition: str
    actions: frozenset[str]
    cooldown: float

    @classmethod
    def of(cls, visit: StageVisit) -> ManagerOptions:
        stage, graph = visit.stage, visit.pipeline
        actions = stage.text("manager.actions", "observe,wait").split(",")
        return cls(
            dotfile=_child_name(visit),
            workdir=stage.text("stack.child_workdir") or graph.text("stack.child_workdir"),
            autostart=stage.flag("stack.child_autostart", default=True),
            detach=stage.flag(DETACH, default=graph.flag(DETACH)),
            poll=_seconds(stage.text("manager.poll_interval", "45s")),
            max_cycles=stage.integer("manager.max_cycles", 1000),
            stop_condition=stage.text("manager.stop_condition"),
            actions=frozenset(each.strip() for each in actions if each.strip()),
            cooldown=_seconds(stage.text("manager.steer_cooldown", "0s")),
        )


class ManagerHandler:
    def __init__(self, backends: Backends, prepare: PrepareChild) -> None:
        self._backends = backends
        self._prepare = prepare

    def reserves(self, visit: StageVisit) -> bool:
        """What its child spends is known only when that has ended."""
        return not ManagerOptions.of(visit).autostart

    async def perform(self, visit: StageVisit) -> StageOutcome:
        orders = ManagerOptions.of(visit)
        if orders.autostart and not orders.dotfile:
            return _failed("No stack.child_dotfile specified")
        # A child that is stored with the pipeline is no file of this machine.
        if orders.autostart and orders.dotfile not in visit.pipeline.children:
            require_allowed(visit)
            cycle = cycle_of(visit, orders)
            if cycle:
                return _failed(f"the pipelines start each other in a cycle: {cycle}", terminal=True)
        if orders.detach and visit.workspace is not None:
            reason = f"{DETACH}=true: the worktree in which the child would work is removed before its end"
            return _failed(reason, terminal=True)
        if orders.autostart and is_child_completed(visit):
            left = child_left_by(visit)
            return await with_result(
                visit, StageOutcome(notes="Child completed"), left.context if left else {}
            )
        child = Child(visit, await self._started(visit, orders))
        stops = orders.autostart and not orders.detach
        try:
            outcome = await self._watch(visit, orders, child)
            if stops:
                # A child that has ended does not change.
                await child.leave(cancelled=True)
                await child.count()
                if outcome.status == StageStatus.SUCCESS:
                    outcome = await with_result(visit, outcome, await child.context())
            return outcome
        except asyncio.CancelledError:
            limit = visit.ctx.patience.limit
            is_late = limit is not None and limit.expired()
            # A worker that shuts down leaves the child to the next one.
            await child.leave(cancelled=stops and (visit.ctx.dropped or is_late))
            raise
        finally:
            await child.leave()

    async def _started(self, visit: StageVisit, orders: ManagerOptions) -> str:
        if not orders.autostart:
            return await Child.named(visit, visit.context.get_string("context.stack.child.run_id"))

        def prepared() -> tuple[Pipeline, Program]:
            stored = visit.pipeline.children.get(orders.dotfile)
            found = child_path(visit, orders.dotfile) if stored is None else stored
            asked = wanted_approvals(visit.stage, visit.pipeline)
            named = str(visit.given.get(KEY) or "")
            return self._prepare(found, named, asked, visit.pipeline, left_for_child(visit))

        async def start() -> str:
            await visit.show_settled()
            pipeline, program = ready or prepared()
            given = child_input(visit, orders, pipeline)
            left = child_left_by(visit)
            if left is not None:
                return await Child.continued(visit, program, given, left)
            return await Child.start(visit, program, given)

        # Before the step: a file that this machine does not have is no outcome of the stage.
        # The first sub-step, or the second after one of older versions.
        is_recorded = STARTING in (visit.ctx.recorded(0), visit.ctx.recorded(1))
        ready = None if is_recorded else prepared()
        # Idempotent: after a crash the same key finds the run that was started.
        return await visit.ctx.step(STARTING, start, effect="external", idempotent=True)

    async def _watch(self, visit: StageVisit, orders: ManagerOptions, child: Child) -> StageOutcome:
        steered_at: float | None = None
        before: ChildState | None = None
        cycle = number = 0
        woken = False
        while cycle < orders.max_cycles or woken:
            number += 1
            is_due = partial(_is_steered, orders, steered_at)
            interval = orders.poll if "wait" in orders.actions else 0.0
            key = f"observe.{number}"
            if visit.ctx.recorded(key) is None:
                cycle = max(cycle, read_cycle(visit))
            polls = Polls(interval, cycle, orders.max_cycles, is_due, woken)
            # Recorded if something has changed: a manager that is entered again comes to the same verdicts.
            found = await visit.ctx.step("observe", child.observe, before, polls, effect="read", key=key)
            seen = before = msgspec.convert(found, ChildState)
            cycle = seen.cycle or number
            if "observe" in orders.actions:
                visit.context.apply_updates(seen.telemetry(cycle))
            if is_due(seen):
                steered_at = seen.at
                await self._steer(visit, seen, cycle)
            verdict = _verdict(visit, orders, seen)
            if verdict is not None:
                return verdict
            woken = False
            if not seen.cycle and visit.ctx.recorded(f"sleep.{number}") is not None:
                # A wait of an older version, which is over or still runs.
                await visit.ctx.sleep(orders.poll, key=f"sleep.{number}")
            elif seen.parked and "wait" in orders.actions:
                left = (orders.max_cycles - cycle) * orders.poll
                await child.wait(seen, number, None if seen.parked == "question" else left)
                woken = True
        return _failed("Max cycles exceeded")

    async def _steer(self, visit: StageVisit, seen: ChildState, cycle: int) -> None:
        """A text for the child's active stage: the model's answer to the stage's prompt about the child's
        state, else `manager.steer_text`."""
        text = visit.stage.text("manager.steer_text")
        if visit.stage.prompt and not text:
            result = msgspec.json.format(msgspec.json.encode(seen.telemetry(cycle)), indent=2).decode()
            prompt = f"{prompt_of(visit)}\n\nThe child pipeline:\n{result}"
            text = await ask_backend(self._backends.of(visit), visit, prompt, "steer")
        if text:
            run_files.write(run_files.stage_dir(Path(seen.logs), seen.active) / STEER_FILE, text)


def child_left_by(visit: StageVisit) -> SavedCheckpoint | None:
    """The child of this visit that the continued run had started in another store."""
    known = Continuation.of(visit.given)
    if known is None:
        return None
    folder = known.stage_folder(visit) / child_folder(visit)
    return read_directory(folder) if (folder / run_files.CHECKPOINT).exists() else None


def child_folder(visit: StageVisit) -> str:
    """Each attempt that starts a new child has a folder of its own."""
    again = f".{visit.ctx.failures}" if visit.ctx.failures else ""
    return f"{CHILD}{visit.ctx.visit}{again}"


def is_child_completed(visit: StageVisit) -> bool:
    left = child_left_by(visit)
    return left is not None and left.status in ("completed", "success")


def _child_name(visit: StageVisit) -> str:
    """With `stack.child_resolve=late` an earlier stage may choose it, by the context."""
    stage, graph = visit.stage, visit.pipeline
    named = stage.text(CHILD_FILE) or graph.text(CHILD_FILE)
    is_late = LATE in (stage.text(RESOLVE), graph.text(RESOLVE))
    return named or (visit.context.get_string(CHILD_FILE) if is_late else "")


def child_path(visit: StageVisit, dotfile: str) -> Path:
    """Relative to the file that names it, else to the worker's current folder."""
    path, source = Path(dotfile), str(visit.given.get(SOURCE) or visit.pipeline.path)
    beside = Path(source).parent / path
    return beside if source and beside.exists() else path


def ancestor_files(visit: StageVisit) -> list[str]:
    """The files of the pipelines above this one, and its own."""
    above: Any = visit.given.get(LINE) or ()
    own = visit.given.get(SOURCE)
    return [*map(str, above), *([str(own)] if own else [])]


def cycle_of(visit: StageVisit, orders: ManagerOptions) -> str:
    """A child that is also one of its ancestors would start children without end."""
    child, line = str(child_path(visit, orders.dotfile).resolve()), ancestor_files(visit)
    if child not in line:
        return ""
    return " -> ".join(Path(each).name for each in [*line[line.index(child) :], child])


def child_input(visit: StageVisit, orders: ManagerOptions, pipeline: Pipeline) -> dict[str, Any]:
    """The child runs as its parent: same backend, same working folder, below the same directory."""
    logs = visit.folder / child_folder(visit)
    kept = {key: visit.given[key] for key in (KEY, AUTO_KEY, WORKDIR, WORKTREES) if key in visit.given}
    workdir = orders.workdir
    if visit.workspace is not None:
        wanted = working_folder(visit.pipeline, visit.given, workdir)
        workdir = str(visit.workspace.inside(wanted)) if workdir else workdir_text(visit)
        kept[WORKTREES] = [*kept.get(WORKTREES, ()), visit.workspace.place]
    more: dict[str, Any] = {WORKDIR: workdir} if workdir else {}
    more |= {SUBMITTED: True} if is_submitted(visit) else {}
    return {
        **context_of(pipeline),
        **kept,
        **more,
        **({SOURCE: str(Path(pipeline.path).resolve())} if pipeline.path else {}),
        run_files.LOGS_KEY: str(logs.resolve()),
        LINE: ancestor_files(visit),
        PARENT: str(visit.ctx.run_id),
    }


def _is_steered(orders: ManagerOptions, steered_at: float | None, seen: ChildState) -> bool:
    return "steer" in orders.actions and bool(seen.active) and _is_cooldown_over(orders, seen, steered_at)


def _is_cooldown_over(orders: ManagerOptions, seen: ChildState, steered_at: float | None) -> bool:
    return steered_at is None or seen.at - steered_at >= orders.cooldown


def _verdict(visit: StageVisit, orders: ManagerOptions, seen: ChildState) -> StageOutcome | None:
    if seen.status in ("completed", "failed"):
        if seen.outcome == StageStatus.SUCCESS:
            return StageOutcome(notes="Child completed")
        # Without this a child that completed without success would be watched forever (AT-A32).
        return _failed("Child failed" + (f": {seen.reason}" if seen.reason else ""))
    if orders.stop_condition and _is_condition_met(visit, orders.stop_condition, seen):
        return StageOutcome(notes="Stop condition satisfied")
    return None


def _is_condition_met(visit: StageVisit, condition: str, seen: ChildState) -> bool:
    def resolve(path: tuple[str, ...]) -> object:
        if path == ("outcome",):
            return seen.outcome
        return visit.context.get(path[-1])

    return compile_clauses(condition).evaluate(resolve)


def _seconds(text: str) -> float:
    found = as_microseconds(text)
    if found is None or found < 0:
        raise InputError(f"{text!r} is not a duration.", hint="Write 45s, 5m or 1h.")
    return found / 1e6


def _failed(reason: str, *, terminal: bool = False) -> StageOutcome:
    return StageOutcome(status=StageStatus.FAIL, failure_reason=reason, terminal=terminal)
