"""The activities of a run: its nodes, and what the workflow needs of the store.

Exceptions of handlers come back as results. What fails here is an activity whose worker is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

import msgspec
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from holdfast.checkpoint import decode_body, encode_body, pack
from holdfast.checkpoint.envelope import content_size
from holdfast.drivers.temporal.execution import ExecCalls, ExecSession
from holdfast.drivers.temporal.fitted_values import FittedValues
from holdfast.drivers.temporal.late_reports import LateReports
from holdfast.drivers.temporal.notes_document import NotesDocument
from holdfast.drivers.temporal.payloads import (
    NODE,
    NODE_APART,
    ExecPlace,
    FitRequest,
    Mail,
    MailRequest,
    NodeCall,
    NodeReply,
    ProjectRequest,
    Unwritten,
    Wire,
)
from holdfast.drivers.temporal.projection import JournalProjector
from holdfast.drivers.temporal.run_inputs import RunInputs
from holdfast.drivers.temporal.unavailable import while_unavailable
from holdfast.engine.decision import Decision
from holdfast.engine.messages import EvidenceArrived, HandlerFinished, Message, SubstepDoubted
from holdfast.engine.step import step
from holdfast.errors import (
    FlowNotFoundError,
    LeaseLostError,
    LimitReachedError,
    ProjectionConflictError,
    RequirementsMissingError,
    RunEndedError,
    ValueTooLargeError,
    VersionMismatchError,
)
from holdfast.model.position import Exec
from holdfast.model.program import Program
from holdfast.model.user_code.tasks import OwnedTask
from holdfast.runs.driver.evidence_outbox import decode_evidence
from holdfast.runs.driver.handler_call import HandlerCall
from holdfast.runs.driver.retryable_errors import failure
from holdfast.runs.driver.run_inbox import message_of
from holdfast.runs.driver.runtime import Runtime
from holdfast.store.rows import RunRow
from holdfast.telemetry import current_node, log
from holdfast.types.ids import RunId
from holdfast.types.redaction import begin_hiding, enter_tenant
from holdfast.types.status import ENDED

CONFLICT = "ProjectionConflictError"
"""The type of the failure that ends a run whose journal is another one."""
OVER = "RunEndedError"
"""The same for a run that was superseded."""
UNSERVED = "UnservedError"
"""Of a node that this worker cannot run now: it lacks what the stored graph needs."""
LARGEST = 16 * 2**20
"""Bytes of state and result of a node: the workflow reads them with each step, within two seconds."""
_BEATS = 3  # heartbeats in the time after which a silent worker is lost


class Activities:
    """Of one worker."""

    def __init__(self, runtime: Runtime, heartbeat: float) -> None:
        self.runtime = runtime
        self.projector = JournalProjector(runtime)
        self.heartbeat = heartbeat
        self._inputs = RunInputs(runtime)

    def all(self) -> Sequence[Any]:
        return (self.node, self.node_apart, self.project, self.mail, self.admit, self.inspect, self.fit)

    async def _open(self, unwritten: Unwritten) -> tuple[Program, RunRow]:
        """What the workflow leaves out is in the row of the run, whose id is that of the workflow."""
        row = await self.projector.row(unwritten.run or activity.info().workflow_id or "")
        if not unwritten.run:
            unwritten.run, unwritten.key, unwritten.tenant = row.id, row.key, row.tenant
            unwritten.flow, unwritten.version = row.flow, row.version
        enter_tenant(unwritten.tenant)
        return await self.runtime.find_program(unwritten.version, unwritten.flow), row

    # ------------------------------------------------------------------ nodes
    @activity.defn(name=NODE)
    async def node(self, raw: bytes) -> bytes:
        """Append what was decided, call the handler, and return what it did."""
        call = decode_body(raw, NodeCall)
        async with self._beating(), self._typed_errors():
            try:
                program, before = await self._open(call.unwritten)
            except (VersionMismatchError, FlowNotFoundError) as error:
                raise ApplicationError(error.message, type=UNSERVED) from error
            begin_hiding()
            async with self._appended(program, before, call.unwritten) as row:
                return await self._perform(program, row, call)

    @activity.defn(name=NODE_APART)
    async def node_apart(self, raw: bytes) -> bytes:
        """The same, under a name that earlier releases do not have: they would not see that the call lacks
        the input of the run."""
        return await self.node(raw)

    @contextlib.asynccontextmanager
    async def _appended(
        self, program: Program, before: RunRow, unwritten: Unwritten, idle: str = ""
    ) -> AsyncGenerator[RunRow]:
        """What was decided is in the store, and what the program does beside its runs is done: the directory
        of a pipeline is up to date here before each stage and after the end."""
        row = await self.projector.append(program, before, unwritten, idle)
        if program.beside is None:
            yield row
            return
        # As it was before: a run that was parked goes on now.
        async with program.beside(self.runtime, self.projector.claim_of(before)):
            yield row

    async def _perform(self, program: Program, row: RunRow, call: NodeCall) -> bytes:
        wire = Wire(self.runtime.codec_for(program, row.tenant).registry)
        pos = wire.load(call.position, row.id)
        if call.apart:
            given = await self._inputs.of(program, row)
            for path in ("", call.scope):
                pos.scopes[path].tree.frames[0].over.setdefault("input", given)
        session = ExecSession(self.runtime, program, row, pos)
        execution = session.pos.execs[call.scope, call.node]
        notes = NotesDocument(self.runtime.store, call.unwritten, call.scope, call.node, execution.visit)
        await while_unavailable(partial(notes.enter, call.entry, execution, later=call.fresh))
        calls = ExecCalls(session, execution, notes, wire)
        if session.pos.skills:
            from holdfast.runs.deployments import load_skills

            calls.skills = await load_skills(session.store, row, session.pos.skills)
        performance = _Performance(session, calls)
        try:
            reply = await performance.run(execution, probe=call.probe)
            if reply.finished is not None and execution.intent >= 0:
                # The cluster would drop its result.
                await while_unavailable(notes.require_current)
        except LeaseLostError:
            late = LateReports(session, execution)
            if performance.finished is not None:
                await late.of_node(performance.finished)
            await late.of_substeps(calls)
            raise
        except RequirementsMissingError as error:
            log.warning("run %s waits for another worker: %s", row.id, error, extra={"run": row.id})
            reply = NodeReply(unserved=True)
        await calls.close(waits=reply.finished is None)
        reply.notes = calls.notes
        return self._encode(wire, session, execution, reply, content_size(call.position))

    def _encode(
        self, wire: Wire, session: ExecSession, execution: Exec, reply: NodeReply, state: int
    ) -> bytes:
        """`state`: encoded bytes of the state. A result that is too large fails the node here: the workflow
        would stop at it without an end."""
        try:
            raw = wire.reply(reply)
            if reply.finished is None or content_size(raw) + state <= LARGEST:
                return raw
        except ValueTooLargeError:
            pass
        node = session.node(execution)
        error = ValueTooLargeError(
            f"with what node {node.id!r} returns, the state of the run is larger than {LARGEST:,} bytes, "
            "more than a run on a cluster can carry.",
            hint="Keep large values in files or blobs, and pass their names on.",
        )
        handler = session.program_of(execution).handlers.get(node.id)
        duration = reply.finished.duration if reply.finished is not None else 0
        failed = failure(node, handler, execution, error, duration)
        return wire.reply(NodeReply(notes=reply.notes, finished=failed))

    # ------------------------------------------------------------------ the store
    @activity.defn(name="holdfast.project")
    async def project(self, raw: bytes) -> bytes | None:
        """Append what was decided. Returns something if the run, which now waits, has left its limit."""
        asked = decode_body(raw, ProjectRequest)
        async with self._beating(), self._typed_errors():
            program, before = await self._open(asked.unwritten)
            async with self._appended(program, before, asked.unwritten, asked.idle) as row:
                if not asked.idle or row.status in ENDED:
                    return None
                again = activity.info().attempt > 1
                left = await self.projector.leave_limit(row, asked.unwritten, again=again)
                return b"left" if left else None

    @activity.defn(name="holdfast.admit")
    async def admit(self, raw: bytes) -> None:
        """A run that waited continues when its limit admits it. Tried again by the cluster."""
        asked = decode_body(raw, ProjectRequest)
        async with self._beating(), self._typed_errors():
            program, row = await self._open(asked.unwritten)
            row = await self.projector.append(program, row, asked.unwritten)
            if not await self.projector.enter_limit(row, asked.unwritten):
                # Expected, so the worker does not log it.
                raise ApplicationError(
                    "a limit of its flow is reached",
                    type=LimitReachedError.__name__,
                    category=ApplicationErrorCategory.BENIGN,
                )

    @activity.defn(name="holdfast.mail")
    async def mail(self, raw: bytes) -> bytes:
        """The messages of the run that the workflow has not taken in yet. Read from the store alone: what was
        sent to the workflow by other ways says nothing."""
        asked = decode_body(raw, MailRequest)
        brief = not asked.unwritten.run
        async with self._beating(), self._typed_errors():
            program, row = await self._open(asked.unwritten)
            # First, so that rows which were used up are not read again.
            await self.projector.append(program, row, asked.unwritten)
            wire = Wire(self.runtime.codec_for(program, row.tenant).registry)
            found = await self._messages(row.id, wire, set(asked.taken))
            mail = Mail([_packed(message, wire) for message in found])
            if found and asked.position:
                fits = FittedValues(program, wire)
                step(program.graph, wire.load(asked.position, row.id), found, self.runtime.store.now(), fits)
                mail.fits = fits.found
            return msgspec.msgpack.encode(mail if brief else mail.messages)

    async def _messages(self, run: RunId, wire: Wire, taken: set[int]) -> list[Message]:
        store, found = self.runtime.store, list[Message]()
        _, rows = await while_unavailable(lambda: store.pending(run))
        for row in rows:
            if row.id in taken:
                continue
            if row.kind == "late":
                intent = int(row.payload)
                reports = dict(await while_unavailable(lambda: store.late_reports(run)))
                evidence = decode_evidence(reports[intent], wire.registry) if intent in reports else None
                found.append(EvidenceArrived(intent=intent, evidence=evidence, inbox=row.id))
            elif (message := await message_of(store, row)) is not None:
                found.append(message)
        return found

    @activity.defn(name="holdfast.inspect")
    async def inspect(self, raw: bytes) -> bytes:
        """What a lost activity has noted. From now on it can note nothing more."""
        place = decode_body(raw, ExecPlace)
        async with self._beating(), self._typed_errors():
            await self._open(place.unwritten)
            if self.runtime.engine is not None:
                self.runtime.engine.figures.lost += 1
            notes = NotesDocument(self.runtime.store, place.unwritten, place.scope, place.node, place.visit)
            found = await while_unavailable(partial(notes.give_up, place.entry))
            return msgspec.msgpack.encode(found)

    @activity.defn(name="holdfast.fit")
    async def fit(self, raw: bytes) -> bytes:
        """Values from outside, as the state's types take them: code of the flow."""
        asked = decode_body(raw, FitRequest)
        async with self._beating(), self._typed_errors():
            program, row = await self._open(asked.unwritten)
            wire = Wire(self.runtime.codec_for(program, row.tenant).registry)
            pos = wire.load(asked.position, row.id)
            decision = Decision(program.graph, pos, self.runtime.store.now())
            execution, fits = pos.execs[asked.scope, asked.node], FittedValues(program, wire)
            if asked.ops is None:
                fits.inputs(decision, execution)
            else:
                fits.ops(decision, execution, wire.unpack_ops(asked.ops))
            return encode_body(fits.found[0][1])

    @contextlib.asynccontextmanager
    async def _beating(self) -> AsyncGenerator[None]:
        """Heartbeats, also while the code of a handler blocks its own thread."""
        # The time after which it is lost is that of the process which started the run.
        limit = activity.info().heartbeat_timeout
        pause = min(self.heartbeat, limit.total_seconds() if limit else self.heartbeat) / _BEATS

        async def beat() -> None:
            while True:
                await asyncio.sleep(pause)
                activity.heartbeat()

        beating = asyncio.ensure_future(beat())
        try:
            yield
        finally:
            beating.cancel()

    @contextlib.asynccontextmanager
    async def _typed_errors(self) -> AsyncGenerator[None]:
        """What the workflow tells apart by its type. The text stays here: histories are read by many."""
        try:
            yield
        except ProjectionConflictError as error:
            log.error("%s", error)
            if self.runtime.engine is not None:
                self.runtime.engine.figures.conflicts += 1
            raise ApplicationError(error.message, type=CONFLICT, non_retryable=True) from None
        except RunEndedError as error:
            # A run that was moved or rewound: expected, so the SDK logs no traceback.
            log.info("%s", error)
            benign = ApplicationErrorCategory.BENIGN
            raise ApplicationError(error.message, type=OVER, non_retryable=True, category=benign) from None
        except LeaseLostError as error:
            raise ApplicationError("another worker has this execution", type="LeaseLostError") from error


class _Performance:
    """The call of one handler, until it ends or only waits."""

    def __init__(self, session: ExecSession, calls: ExecCalls) -> None:
        self.session = session
        self.calls = calls
        self.call = HandlerCall(calls)
        self._waits = False
        self.finished: HandlerFinished | None = None

    async def run(self, execution: Exec, *, probe: bool) -> NodeReply:
        session = self.session
        current_node.set((session, execution))
        work = self.call.probe(execution) if probe else self.call.run(execution)
        task: OwnedTask[HandlerFinished | SubstepDoubted | None] = OwnedTask(work, loop=session.loop)
        task.add_done_callback(lambda _done: session.wake.set())
        try:
            await self._until_idle(task, execution)
        except asyncio.CancelledError:
            # The run is cancelled, or this worker stops. What ends in time counts.
            if _is_cancelled():
                session.drop()
            if _is_given_up():
                await asyncio.wait([task], timeout=session.services.settings.grace)
            await self._stop(task)
            if task.cancelled() or not task.done() or task.exception() is not None:
                raise
        return self._reply(execution, task)

    async def _until_idle(self, task: OwnedTask[Any], execution: Exec) -> None:
        session = self.session
        while not task.done():
            session.wake.clear()
            if session.answers and not self._is_busy(execution):
                # Code that was about to continue does so in the next turn of the loop.
                await asyncio.sleep(0)
                if task.done() or self._is_busy(execution):
                    continue
                # Of the ledger: it waits for other calls of the run.
                self._waits = any(key.startswith("~") for _, _, key in session.answers)
                await self._stop(task)
                return
            await session.wake.wait()

    def _is_busy(self, execution: Exec) -> bool:
        ctx = self.session.contexts.get((execution.scope, execution.node))
        return ctx is None or ctx.busy or not self.session.answers

    async def _stop(self, task: OwnedTask[Any]) -> None:
        task.stop()
        await asyncio.wait([task], timeout=self.session.services.settings.grace)
        if not task.done():
            task.disowned = True

    def _reply(self, execution: Exec, task: OwnedTask[Any]) -> NodeReply:
        if not task.done() or task.cancelled():
            return NodeReply(again=self.calls.again, waits=self._waits)
        result = task.result()
        if self.calls.is_lost:
            raise LeaseLostError(f"{self.calls.stored.where}: another worker has this execution")
        if isinstance(result, HandlerFinished):
            self.finished = self.call.storable(result, execution)
            return NodeReply(finished=self.finished)
        if isinstance(result, SubstepDoubted):
            return NodeReply(doubted=result)
        return NodeReply(again=self.calls.again, waits=self._waits)


def _is_cancelled() -> bool:
    """Whether the run does not want its result any more."""
    found = activity.cancellation_details()
    return found is not None and found.cancel_requested


def _is_given_up() -> bool:
    """Whether the cluster has given this activity up, or an operator has paused or reset it: an effect that
    runs now is not cut."""
    found = activity.cancellation_details()
    return found is not None and (found.not_found or found.timed_out or found.paused or found.reset)


def _packed(message: Message, wire: Wire) -> tuple[str, Any]:
    if isinstance(message, EvidenceArrived):
        return "EvidenceArrived", wire.late(message)
    plain = {name: getattr(message, name) for name in message.__struct_fields__}
    return type(message).__name__, pack(plain)
