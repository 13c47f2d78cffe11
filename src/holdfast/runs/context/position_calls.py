"""Calls of a context that read the position of the run alone: the same for every engine."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar

from holdfast.engine.decision import lists_checkpoint
from holdfast.model import idempotency_keys
from holdfast.model.graph import Node
from holdfast.model.position import Exec, Sub
from holdfast.runs.context.driver_protocols import HandlerSession, SubstepCall, Suspended

S = TypeVar("S", bound=HandlerSession)
T = TypeVar("T")


class PositionCalls(ABC, Generic[S]):
    """The part of `ContextCalls` that writes nothing. `S`: the session of the engine."""

    session: S

    @abstractmethod
    async def when_available(self, call: Callable[[], Awaitable[T]]) -> T: ...

    def idempotency_key(self, execution: Exec, node: Node) -> str:
        return idempotency_keys.idempotency_key(self.session.pos, execution, node)

    def substep_key(self, execution: Exec, node: Node, ordinal: str) -> str:
        return idempotency_keys.substep_key(self.session.pos, execution, node, ordinal)

    def key_of(self, execution: Exec, node: Node, step: SubstepCall) -> str:
        if not step.idempotent:
            return ""
        return step.key or self.substep_key(execution, node, step.ordinal)

    def render(self, execution: Exec, text: str) -> str:
        return idempotency_keys.render(self.session.pos, execution, text)

    def code_of(self, execution: Exec) -> str:
        program = self.session.program_of(execution)
        return program.code.get(program.graph.nodes[execution.node].id, "")

    def artifact_op(self, execution: Exec, name: str) -> str:
        return self.session.graph_of(execution).spec.reducers.get(f"artifacts.{name}", "set")

    def lists_turns(self, execution: Exec, node: Node) -> bool:
        """If the settings list no checkpoints of this node, they list none inside it (D-10)."""
        pos, graph = self.session.pos, self.session.graph_of(execution)
        return any(
            lists_checkpoint(pos, graph, node, moment, execution.scope) for moment in ("after", "before")
        )

    async def file(self, reference: Any) -> bytes:
        session = self.session
        read = session.services.attachments.read_for
        return await self.when_available(partial(read, session.run, session.row.tenant, reference))

    def consistency(self, execution: Exec, node: Node) -> str:
        return node.memory or self.session.graph_of(execution).spec.memory

    def wake_at(self, execution: Exec, key: str, seconds: float) -> int:
        """When a sleep ends. One that has lost its timer ends when it would have ended."""
        known = execution.subs.get(key)
        return self.session.clock.now() + int(seconds * 1e6) if known is None else int(known.value)

    def step_ended(self) -> None:
        """The handler may now be waiting only for an answer."""
        if self.session.answers:
            self.session.wake.set()

    async def wait_answer(self, execution: Exec, key: str, *, in_thread: bool) -> Sub:
        """The handler waits here, until an answer comes or who drives the run lets it go."""
        known = execution.subs.get(key)
        if known is not None and known.is_answered:
            return known
        if in_thread:
            # No thread is kept for the length of a wait: the handler is entered again with the answer.
            raise Suspended
        session = self.session
        where = (execution.scope, execution.node, key)
        answer: asyncio.Future[Sub] = session.loop.create_future()
        session.answers[where] = answer
        session.wake.set()
        try:
            return await answer
        finally:
            if session.answers.get(where) is answer:
                del session.answers[where]
