"""The handlers of one run that are under way, each in a task, and what came of those that have ended."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING

from holdfast.engine.messages import HandlerFinished, Message, SubstepDoubted
from holdfast.errors import LeaseLostError, StoreError
from holdfast.model.position import Exec, Sub
from holdfast.model.record_bodies import ErrorInfo
from holdfast.telemetry import current_node
from holdfast.types.status import REPEATABLE

if TYPE_CHECKING:
    from holdfast.runs.context.context import Context
    from holdfast.runs.driver.driver import Driver


class HandlerTasks:
    """Keys are (scope, node); a question inside a handler has its ordinal besides."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.tasks: dict[tuple[str, int], asyncio.Task[HandlerFinished | SubstepDoubted | None]] = {}
        self.contexts: dict[tuple[str, int], Context] = {}
        self.answers: dict[tuple[str, int, str], asyncio.Future[Sub]] = {}
        self.done: list[Message] = []
        self.fatal: BaseException | None = None

    def take_done(self) -> list[Message]:
        messages, self.done = self.done, []
        return messages

    def spawn(self, execution: Exec, *, probe: bool = False) -> None:
        key = (execution.scope, execution.node)
        if key in self.tasks:
            self._answer(key, execution)
            return
        performer = self.driver.handler_call
        work = performer.probe(execution) if probe else performer.run(execution)
        context = copy_context()
        context.run(current_node.set, (self.driver, execution))
        task = self.driver.loop.create_task(work, context=context)
        self.tasks[key] = task
        task.add_done_callback(lambda finished: self._ended(key, finished))

    def _answer(self, key: tuple[str, int], execution: Exec) -> None:
        """The handler stands at its questions: it goes on with what was answered."""
        for where, answer in self.answers.items():
            if where[:2] == key:
                sub = execution.subs[where[2]]
                if sub.done and not answer.done():
                    answer.set_result(sub)

    def _ended(
        self, key: tuple[str, int], task: asyncio.Task[HandlerFinished | SubstepDoubted | None]
    ) -> None:
        if self.tasks.get(key) is task:
            del self.tasks[key]
        if not task.cancelled() and task.exception() is None:
            message = task.result()
            if message is not None:
                self.done.append(message)
        elif not task.cancelled():
            error = task.exception()
            if isinstance(error, (LeaseLostError, StoreError)) or not isinstance(error, Exception):
                self.fatal = self.fatal or error
            else:
                self.done.append(self._broken(key, error))
        self.driver.awake.set()

    def _broken(self, key: tuple[str, int], error: BaseException | None) -> HandlerFinished:
        """An error of ours inside a handler's task: a failure of the node, never a silent stop."""
        execution = self.driver.pos.execs[key]
        info = ErrorInfo("internal", type(error).__name__, str(error))
        return HandlerFinished(scope=key[0], node=key[1], visit=execution.visit, outcome="fail", error=info)

    def is_working(self) -> bool:
        """Whether some handler does more than wait for an answer."""
        # One whose answer is given goes on in its next turn.
        answered = {key[:2] for key, answer in self.answers.items() if answer.done()}
        blocked = {key[:2] for key in self.answers} - answered
        return any(key not in blocked or self._is_busy(key) for key in self.tasks)

    def _is_busy(self, key: tuple[str, int]) -> bool:
        """It waits for an answer, and does a sub-step beside."""
        ctx = self.contexts.get(key)
        return ctx is not None and ctx.busy

    def is_effect(self, key: tuple[str, int]) -> bool:
        execution = self.driver.pos.execs.get(key)
        return execution is not None and (execution.intent >= 0 or bool(execution.step_intents))

    def repeatable(self) -> set[tuple[str, int]]:
        """Those that may be stopped at any time: they are simply run again."""
        node, execs = self.driver.node, self.driver.pos.execs
        return {key for key in self.tasks if node(execs[key]).effect in REPEATABLE}

    def cancel_all_but_effects(self) -> None:
        """Effects in flight cannot be called back: they may end, and what became of them is told (D-17)."""
        for key, task in self.tasks.items():
            if not self.is_effect(key):
                task.cancel()

    async def suspend_all(self) -> None:
        """Handlers that wait for a person are unwound; they are entered again when the answer is there."""
        await self.stop({key[:2] for key in self.answers})

    async def stop(self, keys: set[tuple[str, int]]) -> None:
        """Cancel these handlers (all, if the set is empty) and wait until they are gone."""
        wanted = [task for key, task in self.tasks.items() if not keys or key in keys]
        for task in wanted:
            task.cancel()
        if wanted:
            await asyncio.wait(wanted, timeout=self.driver.runtime.grace)
