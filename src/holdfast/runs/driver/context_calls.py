"""What the contexts of handlers ask of the driver: keys, intents, sub-steps, questions, memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from holdfast.engine import holds, retry, timers
from holdfast.engine.decision import Decision
from holdfast.engine.messages import HandlerFinished, Message, SubstepEvidence
from holdfast.model.graph import HoldSpec, Node
from holdfast.model.position import Exec, Sub
from holdfast.model.record_bodies import ChunkBody, ErrorInfo, IntentBody, SubstepBody, Usage
from holdfast.runs.context.driver_protocols import SubstepCall
from holdfast.runs.context.position_calls import PositionCalls
from holdfast.runs.context.skills import RunSkills
from holdfast.runs.driver.budget_ledger import RunLedger
from holdfast.runs.driver.late_evidence import LateEvidence
from holdfast.runs.driver.record_writer import RecordWriter
from holdfast.runs.driver.session import RunSession
from holdfast.runs.node_memory import StoredMemory
from holdfast.runs.recorder.queue import retry_while_unavailable
from holdfast.telemetry import crashpoint, log
from holdfast.types.memory import Memory
from holdfast.types.record import Body, Kind
from holdfast.types.skill import RESOLVED_SKILLS
from holdfast.types.value import FrozenDict

T = TypeVar("T")


class DriverCalls(PositionCalls[RunSession]):
    """Implements `ContextCalls`: serves all contexts of one run, on the driver's loop."""

    def __init__(self, session: RunSession, writer: RecordWriter, evidence: LateEvidence) -> None:
        self.session = session
        self.writer = writer
        self.evidence = evidence
        self.skills = RunSkills()
        self.ledger = RunLedger(self)
        # Writes to a memory outside the store, by (scope, node, visit).
        self.remember_later: dict[tuple[str, int, int], list[Memory]] = {}
        # Writes to the store's memory, with the record that they are committed with.
        self.journaled = False
        self._uncommitted: list[tuple[int, Memory]] = []

    async def load_skills(self) -> None:
        """Before the first handler is called, so that every handler sees the same skills."""
        from holdfast.runs.deployments import load_skills

        session = self.session
        self.skills = await load_skills(session.store, session.row, session.pos.skills)

    # What is durable.
    @property
    def is_lost(self) -> bool:
        return self.session.queue.poison is not None

    async def committed(self, seq: int | None = None) -> None:
        session = self.session
        await session.recorder.committed(session.queue, session.pos.head if seq is None else seq)

    async def reserved(self, seq: int) -> None:
        if not self.session.queue.lazy:
            await self.committed(seq)

    async def when_available(self, call: Callable[[], Awaitable[T]]) -> T:
        return await retry_while_unavailable(call, self.session.queue)

    # Sub-steps and live output.
    async def begin_effect(self, execution: Exec) -> None:
        """Durable before the call: a crash after this leaves a trace that the effect may have happened."""
        await self.writer.commit_intent(execution.intent)
        self.writer.uncalled.discard((execution.scope, execution.node))

    def note(
        self,
        kind: Kind,
        body: Body,
        execution: Exec,
        node: Node,
        *,
        effect: str = "",
        outcome: str = "",
        listed: bool = False,
    ) -> int:
        return self.writer.note(kind, body, execution, node, effect=effect, outcome=outcome, listed=listed)

    def note_cost(self) -> None:
        self.writer.hurry = True

    async def intend_step(self, execution: Exec, node: Node, step: SubstepCall) -> None:
        key = self.key_of(execution, node, step)
        body = IntentBody(0, step.ordinal, key, FrozenDict({"step": step.name}))
        seq = self.writer.note(Kind.intent, body, execution, node, effect=step.effect)
        await self.writer.commit_intent(seq)

    async def note_substep(
        self,
        execution: Exec,
        node: Node,
        body: SubstepBody,
        *,
        effect: str = "",
        outcome: str = "",
        listed: bool = False,
    ) -> None:
        """What was paid for, and what is listed as a checkpoint, is durable before the handler continues."""
        session, recorder = self.session, self.session.recorder
        intent = execution.step_intents.get(body.ordinal)
        if intent is not None and body.error is None:
            proven = SubstepEvidence(ordinal=body.ordinal, name=body.name, value=body.value, effect=effect)
            self.evidence.add(session.pos.head + 1, intent, proven)
        outcome = outcome or ("success" if body.error is None else "fail")
        self.writer.note(Kind.substep, body, execution, node, outcome=outcome, effect=effect, listed=listed)
        crashpoint("after_substep")
        # Usage means that a model was paid for: repeating that costs money, so it is not left to the next
        # commit.
        paid = body.usage is not None and bool(body.usage.tokens or body.usage.cost)
        kept = (listed or paid) and not session.queue.lazy
        if self.writer.strict or kept:
            await recorder.committed(session.queue, session.pos.head)
        elif session.queue.full:
            await recorder.room(session.queue)

    def back_off(
        self,
        execution: Exec,
        node: Node,
        step: SubstepCall,
        failures: int,
        error: ErrorInfo,
        usage: Usage | None,
    ) -> None:
        """The sub-step runs again later; how often it has failed and when it wakes are in the journal."""
        assert step.retry is not None
        decision = self.session.decision()
        substep = (step.ordinal, step.name)
        retry.back_off(decision, execution, node, substep, step.retry, failures, error, usage)
        self.writer.append_all(decision)
        self.session.recorder.hurry()

    def continue_back_off(self, execution: Exec, node: Node, key: str) -> None:
        decision = self.session.decision()
        retry.continue_back_off(decision, execution, node, key)
        self.writer.append_all(decision)
        self.session.recorder.hurry()

    def decide_branches(self, execution: Exec, node: Node, body: SubstepBody, winner: str) -> None:
        """Of `ctx.race` and the others: which branch has won or failed is the same on every re-entry."""
        body.code = self.code_of(execution)
        decision = self.session.decision()
        holds.decide_branches(decision, execution, node, body, winner)
        self.writer.append_all(decision)
        crashpoint("after_substep")

    def note_chunks(self, execution: Exec, node: Node, body: ChunkBody, *, now: bool) -> None:
        """`now`: it is shown at once; otherwise it is committed with what follows."""
        session = self.session
        here = session.pos.execs.get((execution.scope, execution.node)) is execution
        if here and not session.lost and session.queue.poison is None:
            self.writer.note(Kind.chunk, body, execution, node)
            if now:
                session.recorder.hurry()

    # Questions.
    def ask_inside(
        self, execution: Exec, key: str, ordinal: int, spec: HoldSpec, context: dict[str, Any]
    ) -> None:
        session = self.session
        if RESOLVED_SKILLS in context:
            message = "the context of a question has %r, which names the skills of the run and is replaced"
            log.warning(message, RESOLVED_SKILLS, extra={"run": session.run})
        decision = session.decision()
        frozen = FrozenDict(context)
        holds.ask_inside(decision, execution, key, ordinal, spec, frozen, self.code_of(execution))
        self.writer.append_all(decision)
        session.recorder.hurry()

    def sleep_inside(self, execution: Exec, node: Node, key: str, seconds: float) -> None:
        session = self.session
        decision = session.decision()
        timers.sleep_inside(decision, execution, node, key, self.wake_at(execution, key, seconds))
        self.writer.append_all(decision)
        session.recorder.hurry()

    async def wait_answer(self, execution: Exec, key: str, *, in_thread: bool) -> Sub:
        session, place = self.session, (execution.scope, execution.node)
        opened = session.contexts.get(place)
        # A question is visible to people as a row of the store: it exists only after this commit.
        await session.recorder.committed(session.queue, session.pos.head)
        if session.contexts.get(place) is not opened:
            raise asyncio.CancelledError  # a task that its attempt left behind
        return await super().wait_answer(execution, key, in_thread=in_thread)

    # Memory.
    def remember_at_settle(self, finished: HandlerFinished, memories: list[Memory]) -> None:
        if isinstance(self.session.services.memory, StoredMemory):
            finished.memories = memories
            self.journaled = True
        else:
            self.remember_later[(finished.scope, finished.node, finished.visit)] = memories

    def note_memories(self, decision: Decision) -> None:
        """Of the steps that were just settled: other nodes read them before they are committed."""
        self._uncommitted = [
            *((seq, memory) for seq, memory in self._uncommitted if seq > self.session.queue.committed),
            *((r.seq, memory) for r, _ in decision.records if r.side for memory in r.side.memories),
        ]
        self.journaled = False

    def uncommitted_memories(self) -> list[Memory]:
        committed = self.session.queue.committed
        return [memory for seq, memory in self._uncommitted if seq > committed]

    async def remember(self, messages: list[Message]) -> None:
        """Writes to a memory outside the store: applied after the settle has committed."""
        session = self.session
        settled = [(m.scope, m.node, m.visit) for m in messages if type(m) is HandlerFinished]
        for key in [key for key in settled if key in self.remember_later]:
            await session.recorder.committed(session.queue, session.pos.head)
            for memory in self.remember_later.pop(key):
                await session.services.memory.write(memory)
