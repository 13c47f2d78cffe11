"""Executes a stage: calls its handler and returns the outcome to the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from holdfast.attractor import branch_worktree, run_files
from holdfast.attractor.branch_worktree import without_reserved
from holdfast.attractor.context import PipelineContext, copied
from holdfast.attractor.continuation import CONTINUES, Continuation
from holdfast.attractor.directory_owner import require_owner
from holdfast.attractor.failures import CLASS_KEY, TERMINAL, failure_of, raise_if_ours, timed_out
from holdfast.attractor.git import GitCommandError
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.long_texts import handled
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.pipeline_limits import BUILT_IN, TOOL, check_budgets, count_failure, spends_alone
from holdfast.attractor.references import NamedStages
from holdfast.attractor.registry import AnyHandler, HandlerRegistry, wants_visit
from holdfast.attractor.reserved_keys import is_reserved, note_reserved
from holdfast.attractor.run_files import own_updates
from holdfast.attractor.stage_effects import mark_effect, outcome_of_earlier_effects
from holdfast.attractor.stage_history import counts_of, failure_updates, history_updates
from holdfast.attractor.stage_outputs import DIFF, bounded, text_updates, write_outputs
from holdfast.attractor.status_file import AUTO_NOTE, NAME, forget_status, read_status
from holdfast.attractor.verdict import SCORE, VerdictError
from holdfast.attractor.verdict_instruction import with_known_outcome
from holdfast.attractor.worktree_requirements import needs_git
from holdfast.errors import BudgetError
from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.frontends.dot.handler_kinds import DEFAULT as CODERGEN
from holdfast.frontends.dot.lower import edge_ids
from holdfast.frontends.dot.policies import allows_partial, effect_of
from holdfast.model.graph import GATE
from holdfast.model.pipeline_conditions import outcome_word
from holdfast.model.record_bodies import PARTIAL_ACCEPTED, RETRIES_EXCEEDED
from holdfast.model.user_code.boundary import call, call_alone
from holdfast.runs.context.context import Context
from holdfast.types.outcome import Outcome as Settled
from holdfast.types.status import REPEATABLE
from holdfast.types.text import clean_text

ROUTING, FAN_IN, MANAGER = "conditional", "parallel.fan_in", "stack.manager_loop"
REASON = "failure_reason"
_QUIET = frozenset({"start", "exit", "conditional", "parallel"})
"""Types that cost nothing: budgets are not checked for them."""
_ENDS = frozenset({"exit"})


class StageRunner:
    """Runs the stages of one pipeline. It keeps no state of a visit: any worker may run the next one."""

    def __init__(
        self,
        pipeline: Pipeline,
        registry: HandlerRegistry,
        shared: Collection[str] = (),
        write_directory: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`shared`: stages that several branches share. `write_directory`: as of a visit."""
        self.pipeline = pipeline
        self._write_directory = write_directory
        self._shared = frozenset(shared)
        self.registry = registry
        self._links: Mapping[str, Link] = edge_ids(pipeline)
        self._named = NamedStages(pipeline)
        self._worktrees = needs_git(pipeline)

    def at_once(self, stage: Stage) -> Callable[[Any], Awaitable[Settled]] | None:
        """For a stage that does nothing: without a context, and files are written from the journal."""
        at_once = getattr(self.registry.resolve(stage), "at_once", None)
        if at_once is None:
            return None
        outcome: StageOutcome = at_once(stage)
        # A conditional passes on the outcome before it, and with it the reason of a failure.
        keys = () if self.registry.kind_of(stage) == ROUTING else (REASON, CLASS_KEY)

        async def perform(state: Mapping[str, Any]) -> Settled:
            # As for every stage: the reason of an earlier failure must not remain.
            return Settled(str(outcome.status), {k: "" for k in keys if state.get(k)}, notes=outcome.notes)

        return perform

    def of(self, stage: Stage) -> Callable[[Any, Context], Awaitable[Settled]]:
        async def perform(state: Any, ctx: Context) -> Settled:
            return await self.perform(stage, state, ctx)

        return perform

    async def perform(self, stage: Stage, state: Mapping[str, Any], ctx: Context) -> Settled:
        visit = self._visit(stage, state, ctx)
        kind = self.registry.kind_of(stage)
        known = self._settled_before(visit)
        if known is not None:
            return await self._ended(visit, kind, replace(_normal(known, kind), terminal=True))
        if kind not in _QUIET:
            await require_owner(visit)
        try:
            if kind in _QUIET:
                outcome = await self._performed(visit, kind)
            else:
                async with spends_alone(visit) if self._has_no_bound(visit, kind) else nullcontext():
                    # Before the handler: a cost without a bound cannot be prevented once it runs.
                    await check_budgets(visit)
                    outcome = await self._worked(visit, kind)
                if visit.outputs.diff and not self._worktrees:
                    # Of a handler of one's own; a commit has its difference in its record.
                    changes = bounded(visit.outputs.diff)
                    visit.outputs.diff = await ctx.step(DIFF, lambda: changes, effect="read", key=DIFF)
        except BudgetError as error:
            return await self._ended(visit, kind, _stop(error.message), halt=True)
        # `_refused` first: an update that cannot be stored is then a
        # failure of the stage, and not of the write of its record.
        note_reserved(visit, outcome.context_updates, kind)
        outcome = _last_attempt_outcome(visit, kind, _normal(_refused(outcome) or outcome, kind))
        stopped = count_failure(visit, outcome, kind)
        if stopped:
            outcome = replace(outcome, failure_reason=stopped, terminal=True)
        return await self._ended(visit, kind, outcome, halt=bool(stopped))

    async def _worked(self, visit: StageVisit, kind: str) -> StageOutcome:
        """In the worktree of its branch, if it has one, with a commit of what it left there."""
        if not self._worktrees or kind == GATE:
            return await self._performed(visit, kind)
        try:
            workspace = await branch_worktree.enter(visit, joins=kind == FAN_IN)
            outcome = await self._performed(replace(visit, workspace=workspace), kind)
            merged = kind in (FAN_IN, MANAGER) and branch_worktree.COMMIT in outcome.context_updates
            updates = dict(outcome.context_updates) if merged else without_reserved(outcome.context_updates)
            if workspace is not None and not merged:
                known, diff = await branch_worktree.settle(visit, workspace, outcome)
                updates |= known
                visit.outputs.diff = bounded(diff)
        except (GitCommandError, OSError) as error:
            return failure_of(error)
        return replace(outcome, context_updates=updates)

    def _settled_before(self, visit: StageVisit) -> StageOutcome | None:
        """The outcome of a stage of a branch in the directory that this run continues. Its attempts are over
        there."""
        if not visit.branch or CONTINUES not in visit.given:
            return None
        known = Continuation.of(visit.given)
        return None if known is None else known.settled(visit)

    def _has_no_bound(self, visit: StageVisit, kind: str) -> bool:
        """Whether nothing limits what the stage may spend once it runs."""
        reserves = getattr(self.registry.resolve(visit.stage), "reserves", None)
        return kind not in BUILT_IN if reserves is None else not reserves(visit)

    def _visit(self, stage: Stage, state: Mapping[str, Any], ctx: Context) -> StageVisit:
        # Values are copied when read: the cost depends on what a stage uses, not on the context's size.
        logs, values = logs_of(ctx), {**state, "current_node": stage.id}
        return StageVisit(
            stage=stage,
            pipeline=self.pipeline,
            context=PipelineContext(values),
            logs=logs,
            folder=run_files.stage_dir(logs, stage.id, ctx.scope if stage.id in self._shared else ""),
            ctx=ctx,
            came_by=self._came_by(ctx),
            branch=ctx.scope,
            write_directory=self._write_directory,
        )

    def _came_by(self, ctx: Context) -> Link | None:
        return self._links.get(ctx.came_by)

    async def _performed(self, visit: StageVisit, kind: str) -> StageOutcome:
        """An exception is a failure of the stage, never of the engine (AT-111)."""
        known = None if kind in _QUIET else await outcome_of_earlier_effects(visit)
        if known is not None:
            return known
        handler = self.registry.resolve(visit.stage)
        limit = visit.stage.microseconds("timeout")
        # Waiting for a person has its own deadline, and a handler stops its command itself.
        seconds = None if limit is None or kind in (GATE, TOOL) else limit / 1e6
        timer, patience = asyncio.timeout(seconds), visit.ctx.patience
        if patience.limit is not None:
            # Timed here and not by the engine: a timeout is an ordinary failure, with status file and reason.
            patience.limit.reschedule(None)
        try:
            async with timer:
                patience.limit = timer if seconds is not None else None
                outcome = await _call(handler, visit, kind)
                return with_known_outcome(visit, outcome) if kind in (CODERGEN, TOOL) else outcome
        except TimeoutError as error:
            return timed_out(visit.stage) if timer.expired() else failure_of(error)
        except Exception as error:
            # A lost lease, an unavailable store or an effect in doubt is for the engine: as a failure of the
            # stage it would be routed along an edge.
            raise_if_ours(error)
            return failure_of(error)

    async def _ended(
        self, visit: StageVisit, kind: str, outcome: StageOutcome, *, halt: bool = False
    ) -> Settled:
        for entry in visit.context.new_logs():
            visit.ctx.emit(entry, "log")
        return await handled(visit.outputs.length, self._settled, visit, kind, outcome, halt=halt)

    def _settled(self, visit: StageVisit, kind: str, outcome: StageOutcome, *, halt: bool = False) -> Settled:
        update = {**visit.context.changes(), **copied(outcome.context_updates)}
        if outcome.score is not None:
            update[SCORE] = outcome.score
        if kind != ROUTING:
            update |= _failure_updates(visit, outcome)
        if kind not in _QUIET:
            update |= history_updates(visit, outcome)
            number = counts_of(visit.context).total + 1
            update |= self._named.output_updates(visit, outcome, number)
            update |= failure_updates(visit, outcome)
            update |= text_updates(visit, outcome, number)
        settled = Settled(
            status=str(outcome.status),
            update=update,
            label=clean_text(outcome.preferred_label),
            suggested=tuple(clean_text(name) for name in outcome.suggested_next_ids),
            reason=clean_text(outcome.failure_reason),
            notes=clean_text(outcome.notes),
            final=outcome.terminal,
            halts=halt,
        )
        if kind not in _ENDS:
            run_files.write_status(visit.folder, as_recorded(settled))
        if kind not in _QUIET:
            write_outputs(visit, as_recorded(settled))
        return settled


def as_recorded(settled: Settled) -> StageOutcome:
    """The same content as a restore from the journal would write."""
    failed = settled.status in (StageStatus.FAIL, StageStatus.RETRY)
    return StageOutcome(
        status=settled.status,
        preferred_label=settled.label,
        suggested_next_ids=settled.suggested,
        context_updates=own_updates(settled.update or {}),
        notes=settled.notes,
        failure_reason=settled.reason if failed else "",
    )


def _failure_updates(visit: StageVisit, outcome: StageOutcome) -> dict[str, str]:
    """`failure_reason` belongs to the last stage: one that did not fail clears it."""
    if outcome.status == StageStatus.FAIL:
        kind = outcome.context_updates.get(CLASS_KEY) or (TERMINAL if outcome.terminal else "")
        return {REASON: outcome.failure_reason, CLASS_KEY: str(kind)}
    left = {key: "" for key in (REASON, CLASS_KEY) if visit.context.get_string(key)}
    return {key: "" for key in left if key not in outcome.context_updates}


def logs_of(ctx: Context) -> Path:
    """The run's directory; a restarted walk has a separate one inside it."""
    root = run_files.logs_root_here(ctx.run_input or {}, ctx.run_id)
    return root / f"restart-{ctx.restarts}" if ctx.restarts else root


async def _call(handler: AnyHandler, visit: StageVisit, kind: str) -> StageOutcome:
    if effect_of(visit.stage, kind) not in REPEATABLE:
        await mark_effect(visit, kind)
    perform = getattr(handler, "perform", None)
    if perform is not None:
        return await call(perform, visit)
    # Before the call: a status file of an earlier visit must not become this visit's outcome.
    forget_status(visit.folder)
    execute = cast("Any", handler).execute
    more = {"visit": visit} if wants_visit(handler) else {}
    args = (visit.stage, visit.context, visit.pipeline, visit.logs)
    result = await call_alone(execute, *args, **more)
    return result if isinstance(result, StageOutcome) else _without_outcome(visit, result)


def _without_outcome(visit: StageVisit, result: Any) -> StageOutcome:
    """The outcome in its status file; without one `auto_status` makes it a success (AT-A14)."""
    if result is not None:
        return _fail(f"the handler returned a {type(result).__name__}, not an Outcome")
    try:
        written = read_status(visit.folder)
    except VerdictError as fault:
        return _fail(str(fault))
    if written is not None:
        return written
    if visit.stage.flag("auto_status"):
        return StageOutcome(notes=AUTO_NOTE)
    return _fail(f"the handler returned nothing, wrote no {NAME}, and auto_status is not set")


def _refused(outcome: StageOutcome) -> StageOutcome | None:
    """Updates that cannot be stored are a failure that names the key (AT-148)."""
    try:
        PipelineContext().apply_updates(outcome.context_updates)
    except Exception as error:
        return failure_of(error)
    return None


def _normal(outcome: StageOutcome, kind: str) -> StageOutcome:
    """In the engine's terms: handlers and files may use those of other dialects."""
    word = outcome_word(str(outcome.status))
    updates = {key: value for key, value in outcome.context_updates.items() if not is_reserved(key, kind)}
    # Many report why they failed in their notes only.
    reason = outcome.failure_reason or (outcome.notes if word == StageStatus.FAIL else "")
    return replace(outcome, status=word, context_updates=updates, failure_reason=reason)


def _last_attempt_outcome(visit: StageVisit, kind: str, outcome: StageOutcome) -> StageOutcome:
    """A RETRY in the last attempt is a failure, or a partial success if that is allowed."""
    if outcome.status != StageStatus.RETRY or not visit.ctx.last_try:
        return outcome
    if allows_partial(visit.stage, kind):
        return replace(outcome, status=StageStatus.PARTIAL_SUCCESS, notes=PARTIAL_ACCEPTED)
    notes = outcome.failure_reason or outcome.notes
    failed = StageStatus.FAIL
    return replace(outcome, status=failed, failure_reason=RETRIES_EXCEEDED, notes=notes, terminal=True)


def _fail(reason: str) -> StageOutcome:
    return StageOutcome(status=StageStatus.FAIL, failure_reason=reason, terminal=True)


def _stop(reason: str) -> StageOutcome:
    return StageOutcome(status=StageStatus.FAIL, failure_reason=reason, terminal=True)
