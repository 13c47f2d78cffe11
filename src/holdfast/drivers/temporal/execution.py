"""One execution as its activity sees it: a part of the run's position, and the calls of its context.

What the handler does is noted. Before an effect begins, its notes are in the store: a document of the
execution, which only the activity with the newest revision may change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from holdfast.checkpoint.json_view import jsonable
from holdfast.drivers.temporal.notes import apply_note
from holdfast.drivers.temporal.notes_document import NotesDocument
from holdfast.drivers.temporal.payloads import ExecNote, Wire, encode_spec
from holdfast.drivers.temporal.unavailable import while_unavailable
from holdfast.engine.decision import Decision
from holdfast.engine.messages import HandlerFinished
from holdfast.errors import LeaseLostError
from holdfast.model.graph import Graph, HoldSpec, Node
from holdfast.model.position import Exec, Position, Sub
from holdfast.model.program import Program
from holdfast.model.record_bodies import ChunkBody, ErrorInfo, IntentBody, SubstepBody, Usage
from holdfast.runs.context.driver_protocols import OpenContext, SubstepCall, Suspended
from holdfast.runs.context.emit import LOG
from holdfast.runs.context.position_calls import PositionCalls
from holdfast.runs.context.skills import RunSkills
from holdfast.runs.driver.budget_ledger import RunLedger
from holdfast.runs.driver.runtime import Runtime
from holdfast.runs.driver.services import RunServices
from holdfast.runs.events import EMITTED
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.telemetry import NodePlace, crashpoint
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.memory import Memory
from holdfast.types.record import Body, Kind
from holdfast.types.value import FrozenDict

T = TypeVar("T")
FULL: Final = 256 * 1024
"""Bytes of notes after which a script is entered again: each effect writes all of them."""


class ExecSession:
    """Implements `HandlerSession`."""

    def __init__(self, runtime: Runtime, program: Program, row: RunRow, pos: Position) -> None:
        self.services: RunServices = runtime
        self.store = runtime.store
        self.clock = runtime.clock
        self.program = program
        self.graph: Graph = program.graph
        self.row = row
        self.run = RunId(row.id)
        self.pos = pos
        self.codec = runtime.codec_for(program, row.tenant)
        self.loop = asyncio.get_running_loop()
        self.contexts: dict[tuple[str, int], OpenContext] = {}
        self.answers: dict[tuple[str, int, str], asyncio.Future[Sub]] = {}
        self.wake = asyncio.Event()
        self.item_starts: dict[tuple[str, int, int], Any] = {}
        self.is_shared = True
        self.left_running: set[asyncio.Future[Any]] = set()

    def graph_of(self, execution: Exec) -> Graph:
        return self.pos.scope_graph(self.graph, self.pos.scopes[execution.scope])

    def node(self, execution: Exec) -> Node:
        return self.graph_of(execution).nodes[execution.node]

    def program_of(self, execution: Exec) -> Program:
        return self.program.at(self.pos.scopes[execution.scope].graph)

    async def wait_for_code(self) -> None:
        while self.left_running:
            await asyncio.wait(self.left_running)

    def where(self, execution: Any) -> NodePlace | None:
        """For log lines and traces."""
        # A task that a handler started may log after the handler's branch has ended.
        if execution is None or execution.scope not in self.pos.scopes:
            return None
        return NodePlace(
            self.run,
            self.row.flow,
            execution.scope,
            self.node(execution).id,
            execution.visit,
            execution.attempt,
            execution.seq,
        )

    def drop(self) -> None:
        """The result of the handler is not wanted any more: the run is cancelled, or its branch is."""
        self.pos.cancelling = self.pos.cancelling or ""

    def leave_running(self, call: asyncio.Future[Any]) -> None:
        """Code that was stopped and goes on: the run resumes without it."""

    def timeout_of(self, execution: Any) -> float | None:
        """In seconds."""
        limit = None if execution is None else self.node(execution).timeout
        return None if limit is None else limit / 1e6


class ExecCalls(PositionCalls[ExecSession]):
    """Implements `ContextCalls`."""

    def __init__(self, session: ExecSession, execution: Exec, stored: NotesDocument, wire: Wire) -> None:
        self.session = session
        self._execution = execution
        self.stored = stored
        self.wire = wire
        self.notes: list[ExecNote] = []
        self.skills = RunSkills()
        self.ledger = RunLedger(self)
        self.is_lost = False
        # The handler is entered again at once: what it asks has to be in the store before it goes on.
        self.again = False
        self._written = 0
        self._asked = False
        self._writing = asyncio.Lock()
        # Of sub-steps that were intended here, by ordinal.
        self.effects: dict[str, str] = {}
        self._live = LiveOutput(session.store, session.run)

    # ------------------------------------------------------------------ what is durable
    async def committed(self, seq: int | None = None) -> None:
        """Raises Suspended if the handler has asked something: a question is a row of the store only when the
        workflow has it."""
        if self._asked:
            self.again = True
            raise Suspended
        await self._write()

    async def reserved(self, seq: int) -> None:
        await self._write()

    async def _write(self) -> None:
        async with self._writing:
            if self._written == len(self.notes):
                return
            notes = list(self.notes)
            try:
                await self.when_available(partial(self.stored.write, notes, self._execution))
            except LeaseLostError:
                self.is_lost = True
                raise
            self._written = len(notes)
            crashpoint("after_note")

    def unwritten_substeps(self) -> list[SubstepBody]:
        """Effects that ended well, and whose results are not in the store."""
        found = [note for note in self.notes[self._written :] if note.kind == Kind.substep]
        bodies = [self.wire.codec.load_body(note.kind, note.body) for note in found]
        return [body for body in bodies if body.error is None and body.ordinal in self.effects]

    async def when_available(self, call: Callable[[], Awaitable[T]]) -> T:
        return await while_unavailable(call)

    # ------------------------------------------------------------------ effects and sub-steps
    async def begin_effect(self, execution: Exec) -> None:
        """Its intent is in the store: the records before this execution were appended, and it was entered."""
        crashpoint("after_intent")

    async def intend_step(self, execution: Exec, node: Node, step: SubstepCall) -> None:
        if self.stored.size > FULL and not self.session.answers:
            self.again = True
            raise Suspended
        body = IntentBody(
            0, step.ordinal, self.key_of(execution, node, step), FrozenDict({"step": step.name})
        )
        self.note(Kind.intent, body, execution, node, effect=step.effect)
        self.effects[step.ordinal] = step.effect
        await self._write()
        crashpoint("after_intent")

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
        raw = self.wire.codec.dump_body(body)
        self._add(execution, ExecNote("record", kind, raw, effect, outcome, listed))
        return self.session.pos.head

    def _add(self, execution: Exec, note: ExecNote) -> None:
        session = self.session
        decision = Decision(session.graph, session.pos, session.clock.now())
        apply_note(decision, execution, note, self.wire)
        # Only after it could be applied: what the workflow cannot apply is an error of the handler.
        self.notes.append(note)

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
        """The result of an effect and what was paid for are durable before the handler continues."""
        outcome = outcome or ("success" if body.error is None else "fail")
        known = body.ordinal in execution.step_intents
        self.note(Kind.substep, body, execution, node, outcome=outcome, effect=effect, listed=listed)
        crashpoint("after_substep")
        paid = body.usage is not None and bool(body.usage.tokens or body.usage.cost)
        if known or paid or listed:
            await self._write()

    def back_off(
        self,
        execution: Exec,
        node: Node,
        step: SubstepCall,
        failures: int,
        error: ErrorInfo,
        usage: Usage | None,
    ) -> None:
        assert step.retry is not None
        note = ExecNote("back_off", key=step.ordinal, name=step.name, spec=encode_spec(step.retry))
        note.ordinal, note.error, note.usage = failures, error, usage
        self._add(execution, note)

    def continue_back_off(self, execution: Exec, node: Node, key: str) -> None:
        self._add(execution, ExecNote("continue", key=key))

    def decide_branches(self, execution: Exec, node: Node, body: SubstepBody, winner: str) -> None:
        body.code = self.code_of(execution)
        self._add(execution, ExecNote("branches", body=self.wire.codec.dump_body(body), key=winner))

    def note_cost(self) -> None:
        """Its result is in the history when the activity returns."""

    def note_chunks(self, execution: Exec, node: Node, body: ChunkBody, *, now: bool) -> None:
        if self.is_lost:
            return
        if self.session.program.beside is not None:
            # A pipeline: its directory is made of records, and has the lines of its stages.
            lines = [item for item in body.items if item[0] == LOG]
            if lines:
                self.note(Kind.chunk, ChunkBody(lines, body.inside, body.lines), execution, node)
            body = ChunkBody([item for item in body.items if item[0] != LOG], body.inside)
        if body.items:
            self._live.add(execution, node, body)

    async def close(self, *, waits: bool) -> None:
        """Before the activity returns. `waits`: the handler is entered again."""
        await self._live.close()
        if waits and (self._execution.chunks or self._execution.lines):
            await while_unavailable(partial(self.stored.write, self.notes, self._execution))

    # ------------------------------------------------------------------ questions and sleeps
    def ask_inside(
        self, execution: Exec, key: str, ordinal: int, spec: HoldSpec, context: dict[str, Any]
    ) -> None:
        note = ExecNote("ask", key=key, ordinal=ordinal, spec=encode_spec(spec), code=self.code_of(execution))
        note.context = self.wire.dump(FrozenDict(context))
        self._add(execution, note)
        self._asked = True

    def sleep_inside(self, execution: Exec, node: Node, key: str, seconds: float) -> None:
        self._add(execution, ExecNote("sleep", key=key, wake=self.wake_at(execution, key, seconds)))

    # ------------------------------------------------------------------ memory
    def remember_at_settle(self, finished: HandlerFinished, memories: list[Memory]) -> None:
        finished.memories = memories

    def uncommitted_memories(self) -> list[Memory]:
        return []


class LiveOutput:
    """Of one activity."""

    def __init__(self, store: Store, run: RunId) -> None:
        self._store = store
        self._run = run
        self._waiting: list[EventRow] = []
        self._writing: asyncio.Task[None] | None = None

    def add(self, execution: Exec, node: Node, body: ChunkBody) -> None:
        """It is written soon, in the order in which it came."""
        place = {"node": node.id, "scope": execution.scope}
        for kind, data in body.items:
            shown = {"kind": kind, "data": jsonable(data), "visit": execution.visit}
            payload = msgspec.json.encode({**place, **shown, "attempt": execution.attempt})
            self._waiting.append(EventRow(0, self._store.now(), EMITTED, payload))
        if not body.inside:
            # A handler that is entered again does not emit it a second time.
            execution.chunks += len(body.items) - body.lines
            execution.lines += body.lines
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        while self._waiting:
            rows, self._waiting = self._waiting, []
            await while_unavailable(lambda rows=rows: self._store.add_events(self._run, rows))

    async def close(self) -> None:
        """Everything is written when this returns."""
        if self._writing is not None:
            await self._writing
