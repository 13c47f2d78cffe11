"""The journal of a workflow: what it decides, and how that gets into the store."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final, cast

import msgspec
from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from holdfast.checkpoint import decode_body, unpack
    from holdfast.checkpoint.size_limit import SPILL_OVER
    from holdfast.drivers.temporal.exec_view import fit_view
    from holdfast.drivers.temporal.payloads import (
        Draft,
        FirstUnwritten,
        FitReply,
        FitRequest,
        Mail,
        MailRequest,
        ProjectRequest,
        RecordRegistry,
        RunStart,
        Unwritten,
        Wire,
        encode_request,
    )
    from holdfast.engine import messages as engine_messages
    from holdfast.engine.decision import Decision
    from holdfast.engine.messages import HandlerFinished, Message
    from holdfast.engine.step import step
    from holdfast.model.graph import Graph
    from holdfast.model.position import Exec, Position
    from holdfast.model.record_bodies import ErrorInfo
    from holdfast.types.record import Op

MAX_DRAFTS: Final = 200
MAX_BYTES: Final = 256 * 1024
"""Of records that an activity carries; more of them are appended first."""
FINAL: Final = ("ProjectionConflictError", "RunEndedError")
"""Failures of activities after which nothing more can be written."""
FOREVER: Final = timedelta(days=3650)
# Without an end, because the history is the owner: the store catches up when it is back.
_PATIENT: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10),
    non_retryable_error_types=list(FINAL),
)  # fmt: skip
# Until a limit admits the run.
_SOON: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=100), maximum_interval=timedelta(seconds=2),
    non_retryable_error_types=list(FINAL),
)  # fmt: skip

Place = tuple[str, int]


class _NeedsFit(Exception):
    def __init__(self, execution: Exec, ops: list[Op] | None) -> None:
        self.execution = execution
        self.ops = ops


class _Fits:
    """Implements `ValueChecker` with what activities have found out. Asked for something else it stops the
    step, which is made again when that is known."""

    def __init__(self, wire: Wire, foreseen: list[tuple[bytes, FitReply]]) -> None:
        self.known: list[FitReply] = []
        self._used = 0
        self._wire = wire
        self._foreseen = foreseen

    def begin(self) -> None:
        self._used = 0

    def ops(self, decision: Decision, execution: Exec, ops: list[Op]) -> list[Op] | ErrorInfo:
        reply = self._next(execution, ops)
        return reply.ops if reply.error is None else reply.error

    def inputs(self, decision: Decision, execution: Exec) -> ErrorInfo | None:
        return self._next(execution, None).error

    def stops(self, decision: Decision) -> bool:
        return True

    def _next(self, execution: Exec, ops: list[Op] | None) -> FitReply:
        if self._used == len(self.known):
            reply = self._as_foreseen(execution, ops)
            if reply is None:
                raise _NeedsFit(execution, ops)
            self.known.append(reply)
        self._used += 1
        return self.known[self._used - 1]

    def _as_foreseen(self, execution: Exec, ops: list[Op] | None) -> FitReply | None:
        """The reply that came with the messages, if this is what was asked there."""
        if not self._foreseen:
            return None
        question, reply = self._foreseen.pop(0)
        if question != self._wire.question(execution, ops):
            self._foreseen.clear()
            return None
        reply.ops = self._wire.unpack_ops(reply.ops)
        return reply


class WorkflowJournal:
    """The position of a run, the steps of the engine, and the store's activities."""

    def __init__(self) -> None:
        self._mail = 0
        # The workflow was cancelled; and whether the run knows it.
        self._cancelled = self._cancel_read = False
        # A step was stopped, until a value that it needs is fitted to its type.
        self._deciding = False
        self._wire = Wire(RecordRegistry())
        self._drafts: list[Draft] = []
        self._acked = -1
        self._live: dict[Place, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}
        # Executions that are entered again when their activity returns, and those that are to be now.
        self._again: set[Place] = set()
        self._enter: list[Place] = []
        # Executions that wait until fewer activities run.
        self._queue: list[tuple[Place, int, bool]] = []
        # Executions that wait for the budget of the run, until something else has happened in it.
        self._parked: list[Place] = []
        self._inbox: list[Message] = []
        self._taken: set[int] = set()
        # What was found out about the messages that were read last, at this head of the run.
        self._foreseen: tuple[int, list[tuple[bytes, FitReply]]] = (-1, [])
        self._lost: dict[str, int] = {}
        self._entries = 0
        # It gave its place under its limit back while it waited.
        self._queued = False
        self._shown = ""
        # Whether activities read the input of the run from the store; None: not known yet.
        self._apart: bool | None = None
        self._broken: BaseException | None = None
        self._start: RunStart
        self._pos: Position
        self._graph: Graph
        self._encoded: bytes

    def _now(self) -> int:
        return int(workflow.now().timestamp() * 1_000_000)

    async def _steady(self, work: Any) -> Any:
        """A cancel of the workflow interrupts nothing here: it is a message to the run, as `holdfast cancel`
        is one."""
        task = asyncio.ensure_future(work)
        while True:
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                if task.cancelled():
                    raise
                self._cancelled = True

    # ------------------------------------------------------------------ decisions
    async def _decide(self, messages: list[Message]) -> Decision:
        """One step of the engine; where values have to be fitted to types of the flow, in several tries."""
        (head, foreseen), self._foreseen = self._foreseen, (-1, [])
        fits = _Fits(self._wire, foreseen if head == self._pos.head else []) if self._start.typed else None
        backup = self._wire.position(self._pos) if fits is not None and self._may_fit(messages) else None
        while True:
            try:
                if fits is not None:
                    fits.begin()
                decision = step(self._graph, self._pos, messages, self._now(), fits)
                break
            except _NeedsFit as needed:
                assert fits is not None
                assert backup is not None
                request = FitRequest(
                    unwritten=self._unwritten([]),
                    position=self._dump_view(fit_view(self._pos, needed.execution)),
                    scope=needed.execution.scope,
                    node=needed.execution.node,
                    ops=None if needed.ops is None else self._wire.pack_ops(needed.ops),
                )
                self._deciding = True
                reply = decode_body(await self._steady(self._store_call("holdfast.fit", request)), FitReply)
                reply.ops = self._wire.unpack_ops(reply.ops)
                fits.known.append(reply)
                # A step that was stopped has changed the position in part.
                self._pos, self._deciding = self._wire.load(backup), False
        self._keep(decision)
        return decision

    async def _until_decided(self) -> None:
        """What activities return is not applied to the position of a stopped step, which is thrown away."""
        if self._deciding:
            await workflow.wait_condition(lambda: not self._deciding)

    def _may_fit(self, messages: list[Message]) -> bool:
        if not self._graph.subgraphs:
            return any(not isinstance(message, HandlerFinished) for message in messages)
        return any(not self._ends_item(message, len(messages)) for message in messages)

    def _ends_item(self, message: Message, count: int) -> bool:
        """Whether it ends an item of a map that has more items left than this step can end: then nothing is
        fitted. Copying the position of a wide map with each step would be most of the work."""
        if not isinstance(message, HandlerFinished) or message.error is not None:
            return False
        pos, scope = self._pos, self._pos.scopes.get(message.scope)
        owner = None if scope is None or scope.owner is None else pos.execs.get(scope.owner)
        if scope is None or owner is None or owner.items is None:
            return False
        return (
            not pos.scope_graph(self._graph, scope).subgraphs
            and len(owner.items) > len(owner.results) + count
        )

    def _keep(self, decision: Decision) -> None:
        self._drafts += [self._wire.draft(record, body) for record, body in decision.records]

    # ------------------------------------------------------------------ the store
    def _dump_view(self, view: Position) -> bytes:
        return self._wire.view(view) if self._start.is_brief else self._wire.position(view)

    def _unwritten(self, drafts: list[Draft]) -> Unwritten:
        start = self._start
        if start.is_brief:
            return Unwritten("", 0, "", "", "", start.engine, drafts, start.term)
        fields = (start.run, start.key, start.tenant, start.flow, start.version, start.engine, drafts)
        if start.protocol < 2:
            return cast("Unwritten", FirstUnwritten(*fields))
        return Unwritten(*fields, start.term)

    def _acknowledge(self, drafts: list[Draft]) -> None:
        if drafts and drafts[-1].seq > self._acked:
            self._acked = drafts[-1].seq
            self._drafts = [draft for draft in self._drafts if draft.seq > self._acked]

    def _carries_much(self) -> bool:
        return len(self._drafts) > MAX_DRAFTS or sum(len(each.body) for each in self._drafts) > MAX_BYTES

    async def _project(self, idle: str = "") -> bytes | None:
        """With `idle`, something if the run has left its limit."""
        while self._drafts or idle:
            drafts = self._drafts[:MAX_DRAFTS]
            last = len(drafts) == len(self._drafts)
            request = ProjectRequest(unwritten=self._unwritten(drafts), idle=idle if last else "")
            found = await self._store_call("holdfast.project", request)
            self._acknowledge(drafts)
            if last:
                return found
        return None

    async def _admit(self) -> None:
        drafts = list(self._drafts)
        request = ProjectRequest(unwritten=self._unwritten(drafts))
        await self._store_call("holdfast.admit", request, _SOON)
        self._acknowledge(drafts)

    async def _store_call(self, name: str, request: msgspec.Struct, retry: RetryPolicy = _PATIENT) -> bytes:
        return await workflow.execute_activity(
            name,
            encode_request(request, brief=self._start.is_brief),
            result_type=bytes,
            start_to_close_timeout=FOREVER,
            heartbeat_timeout=timedelta(seconds=self._start.heartbeat),
            retry_policy=retry,
        )

    async def _read_mail(self) -> list[Message]:
        self._mail = 0
        drafts = list(self._drafts)
        request = MailRequest(unwritten=self._unwritten(drafts), taken=sorted(self._taken))
        head = self._pos.head
        if self._start.is_brief and self._start.typed and self._pos.holds:
            position = self._wire.view(self._pos)
            request.position = position if len(position) <= SPILL_OVER else b""
        raw = await self._store_call("holdfast.mail", request)
        self._acknowledge(drafts)
        found: list[Message] = []
        mail = self._mail_of(raw)
        self._foreseen = (head, mail.fits)
        for name, packed in mail.messages:
            message: Any
            if name == "EvidenceArrived":
                message = self._wire.read_late(packed)
            else:
                message = getattr(engine_messages, name)(**dict(unpack(packed)))
            self._taken.add(message.inbox)
            found.append(message)
        return found

    def _mail_of(self, raw: bytes) -> Mail:
        if self._start.is_brief:
            return msgspec.msgpack.decode(raw, type=Mail)
        return Mail(msgspec.msgpack.decode(raw))
