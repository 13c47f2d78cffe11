"""The running handlers of one run, each in a task, and the results of those that have ended."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from functools import partial
from typing import Any, Final

from holdfast.engine.messages import HandlerFinished
from holdfast.errors import (
    LeaseLostError,
    NodeTimeoutError,
    RequirementsMissingError,
    StoreError,
    UserCodeExitError,
)
from holdfast.model.position import Exec, waits_inside
from holdfast.model.record_bodies import ErrorInfo
from holdfast.model.user_code.tasks import OwnedTask
from holdfast.runs.driver import retryable_errors
from holdfast.runs.driver.handler_call import OWN_CANCEL, HandlerCall
from holdfast.runs.driver.session import HandlerTask, Place, RunSession
from holdfast.telemetry import current_node, log
from holdfast.types.status import REPEATABLE

# Errors of the run, not of the node: no record is written about them.
RUN_ERRORS: Final = (LeaseLostError, StoreError, RequirementsMissingError)


class HandlerTasks:
    """They are in the session by (scope, node); a question inside a handler also has its ordinal."""

    def __init__(self, session: RunSession, call: HandlerCall) -> None:
        self.session = session
        self.call = call

    def spawn(self, execution: Exec, *, probe: bool = False) -> None:
        session = self.session
        key = (execution.scope, execution.node)
        if key in session.tasks:
            self._answer(key, execution)
            return
        work = self.call.probe(execution) if probe else self.call.run(execution)
        context = copy_context()
        # A copy for each task: log lines of parallel handlers name their own node.
        context.run(current_node.set, (session, execution))
        task = OwnedTask(work, loop=session.loop, context=context)
        session.tasks[key] = task
        task.on_cancel = partial(self._note_cancel, key, task)
        task.add_done_callback(lambda _finished: self._ended(key, task))

    def _answer(self, key: Place, execution: Exec) -> None:
        """The handler waits for answers: it continues with this one."""
        for where, answer in self.session.answers.items():
            if where[:2] == key:
                sub = execution.subs.get(where[2])
                if sub is not None and sub.is_answered and not answer.done():
                    answer.set_result(sub)

    def _ended(self, key: Place, task: HandlerTask) -> None:
        session = self.session
        if session.tasks.get(key) is task:
            del session.tasks[key]
        if task.disowned:
            if not task.cancelled():
                task.exception()  # retrieved: asyncio would log it as lost
            return
        if task.cancelled() and not task.stopped and key in session.pos.execs:
            session.finished.append(self._cancelled_itself(key))
        elif not task.cancelled() and task.exception() is None:
            message = task.result()
            if message is not None:
                session.finished.append(message)
            elif not task.stopped:
                self._enter_again(key)
        elif not task.cancelled():
            error = task.exception()
            if isinstance(error, RUN_ERRORS) or not isinstance(error, Exception):
                session.fatal = session.fatal or error
            elif key in session.pos.execs:
                session.finished.append(self._broken(key, error))
        # A handler that waits for the budget may continue, or has to ask the question itself.
        self.call.calls.ledger.wake()
        session.wake.set()

    def _enter_again(self, key: Place) -> None:
        """A handler in a thread was suspended; the answer may have come while its thread ended."""
        execution, pos = self.session.pos.execs.get(key), self.session.pos
        if execution is None or execution.phase != "work" or self.session.draining:
            return
        if pos.failing is None and pos.cancelling is None and not waits_inside(pos, execution):
            self.spawn(execution)

    def _cancelled_itself(self, key: Place) -> HandlerFinished:
        execution = self.session.pos.execs[key]
        program = self.session.program_of(execution)
        node = program.graph.nodes[execution.node]
        error = UserCodeExitError(OWN_CANCEL)
        return retryable_errors.failure(node, program.handlers.get(node.id), execution, error, 0)

    def _broken(self, key: Place, error: BaseException | None) -> HandlerFinished:
        """An error of ours inside a handler's task is a failure of the node: it must not stop without a
        trace."""
        execution = self.session.pos.execs[key]
        info = ErrorInfo("internal", type(error).__name__, str(error))
        return HandlerFinished(scope=key[0], node=key[1], visit=execution.visit, outcome="fail", error=info)

    def is_working(self) -> bool:
        """Whether a handler does more than wait for an answer."""
        if not self.session.tasks:
            return False
        # One whose answer has arrived continues in the loop's next turn.
        answered = {key[:2] for key, answer in self.session.answers.items() if answer.done()}
        blocked = {key[:2] for key in self.session.answers} - answered
        return any(key not in blocked or self._is_busy(key) for key in self.session.tasks)

    def _is_busy(self, key: Place) -> bool:
        """It waits for an answer and runs a sub-step at the same time."""
        ctx = self.session.contexts.get(key)
        return ctx is not None and ctx.busy

    def repeatable(self) -> set[Place]:
        """Those that may be stopped at any time: they can be run again, or are of a branch that was
        dropped."""
        node, execs = self.session.node, self.session.pos.execs
        return {
            key for key in self.session.tasks if key not in execs or node(execs[key]).effect in REPEATABLE
        }

    def cancel_all_but_effects(self) -> None:
        """Effects in progress cannot be undone: they may end, and their outcome is reported (D-17)."""
        for key, task in self.session.tasks.items():
            if not self.session.is_effect(key):
                task.stop()

    async def suspend_all(self) -> None:
        """Handlers that wait for a person are unwound; they are entered again when the answer has arrived."""
        await self.stop({key[:2] for key in self.session.answers})

    async def stop(self, keys: set[Place]) -> None:
        """Cancel these handlers (all, if the set is empty) and wait until they have ended."""
        if not self.session.tasks:
            return
        wanted = {task: key for key, task in self.session.tasks.items() if not keys or key in keys}
        for task in wanted:
            task.stop()
        if wanted:
            # With a limit: a handler may ignore its cancellation, and a thread cannot be cancelled at all.
            limit = None if self.session.keeps_place else self.session.services.settings.grace
            _, late = await asyncio.wait(wanted, timeout=limit)
            for task in late & wanted.keys():
                self._give_up(wanted[task], task)

    # ------------------------------------------------------------------ those that do not stop
    def timed_out(self, execution: Exec) -> HandlerFinished | None:
        """The failure of a handler whose timeout has passed, and that did not stop when it was cancelled."""
        session = self.session
        if session.keeps_place:
            return None
        ctx = session.contexts.get((execution.scope, execution.node))
        if ctx is None or not ctx.patience.is_over:
            return None
        program = session.program_of(execution)
        node = program.graph.nodes[execution.node]
        limit = node.timeout or 0
        error = NodeTimeoutError(
            f"node {node.id!r} took longer than {limit / 1e6:g} s, and did not stop when it was cancelled"
        )
        return retryable_errors.failure(node, program.handlers.get(node.id), execution, error, limit)

    def disown(self, task: OwnedTask[Any], execution: Exec) -> None:
        """Its run resumes without it: it may not use its context any more, and its result is ignored."""
        session = self.session
        task.disowned = True
        session.leave_running(task)
        ctx = session.contexts.pop((execution.scope, execution.node), None)
        if ctx is not None:
            ctx.close("it did not stop when it was cancelled")
        session.services.disowned[(session.row.flow, session.node(execution).id)] += 1
        log.error(
            "node %r did not stop within %g s of its cancellation; its run resumes without it, and its code "
            "may still run in this process",
            session.node(execution).id,
            session.services.settings.grace,
            extra={"run": session.run, "node": session.node(execution).id},
        )

    def _give_up(self, key: Place, task: OwnedTask[Any]) -> None:
        execution = self.session.pos.execs.get(key)
        if execution is None or task.done():
            return
        if self.session.tasks.get(key) is task:
            del self.session.tasks[key]
        self.disown(task, execution)

    def _note_cancel(self, key: Place, task: OwnedTask[Any]) -> None:
        ctx = self.session.contexts.get(key)
        if ctx is not None and ctx.patience.limit is not None:
            grace = self.session.services.settings.grace
            self.session.loop.call_later(grace, self._disown_if_overdue, key, task)

    def _disown_if_overdue(self, key: Place, task: OwnedTask[Any]) -> None:
        execution = self.session.pos.execs.get(key)
        if task.done() or task.disowned or execution is None or self.session.tasks.get(key) is not task:
            return
        late = self.timed_out(execution)
        if late is not None:
            self._give_up(key, task)
            self.session.finished.append(late)
            self.session.wake.set()
