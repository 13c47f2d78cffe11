"""The workflow `holdfast.run`: decisions of the engine, in the history of a Temporal cluster.

It runs no code of the flow: it depends on the stored graph and on this release alone. What it decides is
appended to the store by its activities.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

with workflow.unsafe.imports_passed_through():
    from holdfast.checkpoint import decode_body, encode_body, unpack
    from holdfast.checkpoint.size_limit import SPILL_OVER
    from holdfast.drivers.temporal.exec_view import add_budget_view, exec_view, fit_view, wakes_of
    from holdfast.drivers.temporal.notes import apply_note
    from holdfast.drivers.temporal.payloads import (
        Draft,
        ExecNote,
        ExecPlace,
        FitReply,
        FitRequest,
        MailRequest,
        NodeCall,
        NodeReply,
        ProjectRequest,
        RecordRegistry,
        RunStart,
        Unwritten,
        Wire,
    )
    from holdfast.drivers.temporal.search_attributes import STATUS
    from holdfast.engine import end
    from holdfast.engine import messages as engine_messages
    from holdfast.engine.dataflow_mode import CannotContinueError
    from holdfast.engine.decision import Decision
    from holdfast.engine.messages import (
        CancelRequested,
        HandlerFinished,
        HandlerLost,
        HandlersStopped,
        Message,
        RunRecovered,
        TimerFired,
    )
    from holdfast.engine.step import step
    from holdfast.errors import ExpressionError
    from holdfast.model.apply import apply_record
    from holdfast.model.fingerprint import decode_graph
    from holdfast.model.graph import Graph
    from holdfast.model.idempotency_keys import idempotency_key
    from holdfast.model.position import SETTLED, Exec, Position, waits_inside
    from holdfast.model.record_bodies import ErrorInfo, IntentBody
    from holdfast.telemetry import crashpoint
    from holdfast.types.record import Kind, Op
    from holdfast.types.status import REPEATABLE, RunStatus

MAX_DRAFTS: Final = 200
MAX_BYTES: Final = 256 * 1024
"""Of records that an activity carries; more of them are appended first."""
MAX_MESSAGE: Final = 1_500_000
"""Bytes of activities that are scheduled at once: a message of the server has 4 MB at most."""
_FEW: Final = 20
_AT_ONCE: Final = 50
_HEAD: Final = 1000  # bytes of an activity beside its position
MAX_LOST: Final = 5
"""How often an execution may lose its worker: then its run is given up."""
MAX_EVENTS: Final = 20_000
MAX_ACTIVITIES: Final = 500
"""Of one run at a time; further nodes wait in order."""
_FOREVER: Final = timedelta(days=3650)
# Failures of activities after which nothing more can be written.
_FINAL: Final = ("ProjectionConflictError", "RunEndedError")
# Without an end, because the history is the owner: the store catches up when it is back.
_PATIENT: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10),
    non_retryable_error_types=list(_FINAL),
)  # fmt: skip
_ONCE: Final = RetryPolicy(maximum_attempts=1)

Place = tuple[str, int]


@lru_cache(maxsize=64)
def _graph(encoded: bytes) -> Graph:
    return Graph(decode_graph(encoded))


class _NeedsFit(Exception):
    def __init__(self, execution: Exec, ops: list[Op] | None) -> None:
        self.execution = execution
        self.ops = ops


class _Fits:
    """Implements `ValueChecker` with what activities have found out. Asked for something else it stops the
    step, which is made again when that is known."""

    def __init__(self) -> None:
        self.known: list[FitReply] = []
        self._used = 0

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
            raise _NeedsFit(execution, ops)
        self._used += 1
        return self.known[self._used - 1]


@workflow.defn(name="holdfast.run")
class RunWorkflow:
    def __init__(self) -> None:
        self._mail = 0
        # The workflow was cancelled; and whether the run knows it.
        self._cancelled = self._cancel_read = False
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
        self._lost: dict[str, int] = {}
        self._entries = 0
        self._shown = ""
        self._broken: BaseException | None = None
        self._start: RunStart
        self._pos: Position
        self._graph: Graph
        self._encoded: bytes

    # ------------------------------------------------------------------ from outside
    @workflow.signal(name="holdfast.mail")
    def on_mail(self, row: int) -> None:
        """Something was decided in the store. What, is read there."""
        self._mail += 1

    @workflow.query(name="holdfast.position")
    def position(self) -> bytes:
        return self._wire.position(self._pos)

    @workflow.query(name="holdfast.progress")
    def progress(self) -> bytes:
        """How far it is, and when the oldest record was decided that is not known to be in the store."""
        oldest = self._drafts[0].at if self._drafts else 0
        return msgspec.msgpack.encode({"head": self._pos.head, "oldest": oldest})

    # ------------------------------------------------------------------ the loop
    @workflow.run
    async def run(self, raw: bytes, graph: bytes) -> str:
        self._start = start = decode_body(raw, RunStart)
        self._graph, self._encoded = _graph(graph), graph
        self._pos = self._wire.load(start.position)
        self._acked = self._pos.head
        self._lost, self._entries = dict(start.lost), start.entries
        messages: list[Message] = [RunRecovered()]
        while True:
            decision = await self._decide(messages)
            self._enter, self._parked = [*self._enter, *self._parked], []
            if decision.ended:
                await self._steady(self._project())
                return self._end()
            if self._pos.failing is not None or self._pos.cancelling is not None:
                messages = await self._finish_running()
                continue
            await self._act(decision)
            messages = await self._next()

    def _show(self, status: str) -> None:
        """For lists of the cluster, where the run waits or has ended."""
        if status != self._shown:
            self._shown = status
            update = STATUS.value_set(str(status))
            workflow.upsert_search_attributes([update])  # pyright: ignore[reportUnknownMemberType]

    def _end(self) -> str:
        status = self._pos.status
        self._show(status)
        if status == RunStatus.cancelled and self._cancelled:
            raise asyncio.CancelledError
        if status == RunStatus.failed:
            # The text of the error is in the store.
            raise ApplicationError(f"the run has {status}", type="RunFailed", non_retryable=True)
        return status

    def _now(self) -> int:
        return int(workflow.now().timestamp() * 1_000_000)

    async def _decide(self, messages: list[Message]) -> Decision:
        """One step of the engine; where values have to be fitted to types of the flow, in several tries."""
        fits = _Fits() if self._start.typed else None
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
                    position=self._wire.position(fit_view(self._pos, needed.execution)),
                    scope=needed.execution.scope,
                    node=needed.execution.node,
                    ops=None if needed.ops is None else self._wire.pack_ops(needed.ops),
                )
                reply = decode_body(
                    await self._steady(self._store_call("holdfast.fit", encode_body(request))), FitReply
                )
                reply.ops = self._wire.unpack_ops(reply.ops)
                fits.known.append(reply)
                # A step that was stopped has changed the position in part.
                self._pos = self._wire.load(backup)
        self._keep(decision)
        return decision

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

    # ------------------------------------------------------------------ acting
    async def _act(self, decision: Decision) -> None:
        for execution in decision.cancels:
            self._stop((execution.scope, execution.node))
        starts = list(decision.starts)
        if (starts or decision.probes) and self._must_continue():
            await self._continue_if_idle()
        await self._begin_all(starts, decision.probes)
        self._set_timers()

    async def _begin_all(self, starts: list[Exec], probes: list[Exec]) -> None:
        # Those that are queued have no intent yet: their effects have not begun.
        free = 0 if self._is_full() else self._most - len(self._live)
        most = self._most_at_once(starts)
        starts, probes, later = self._first(starts, probes, min(free, most))
        self._queue += later
        self._intend(starts)
        if len(starts) + len(probes) > 1 or self._carries_much():
            # Once for all of them: otherwise each would carry the same records.
            await self._steady(self._project())
        for execution in starts:
            self._begin(execution)
        for execution in probes:
            self._begin(execution, probe=True)
        if len(starts) + len(probes) >= most:
            # The others go with the next task of the workflow.
            await self._steady(asyncio.sleep(0.001))

    def _first(
        self, starts: list[Exec], probes: list[Exec], free: int
    ) -> tuple[list[Exec], list[Exec], list[tuple[Place, int, bool]]]:
        """Those that may begin now, and the others. One that runs already takes no place."""
        now: tuple[list[Exec], list[Exec]] = ([], [])
        later: list[tuple[Place, int, bool]] = []
        for execution, probe in [*((each, False) for each in starts), *((each, True) for each in probes)]:
            place = (execution.scope, execution.node)
            if place not in self._live:
                if free <= 0:
                    later.append((place, execution.visit, probe))
                    continue
                free -= 1
            now[probe].append(execution)
        return *now, later

    def _most_at_once(self, starts: list[Exec]) -> int:
        """What one task of the workflow schedules must fit into one message to the server, and be encoded in
        two seconds."""
        if len(starts) < _FEW:
            return _AT_ONCE
        size = min(len(self._wire.position(self._view(starts[0]))), SPILL_OVER) + _HEAD
        return max(1, min(MAX_MESSAGE // size, _AT_ONCE))

    def _is_full(self) -> bool:
        """A history that is long gets no new activities: the run continues in a new one when those that run
        have returned."""
        return bool(self._live) and self._must_continue()

    def _carries_much(self) -> bool:
        return len(self._drafts) > MAX_DRAFTS or sum(len(each.body) for each in self._drafts) > MAX_BYTES

    def _intend(self, starts: list[Exec]) -> None:
        """Before an effect begins, the journal says so (D-14)."""
        pos = self._pos
        for execution in list(starts):
            graph = pos.scope_graph(self._graph, pos.scopes[execution.scope])
            node = graph.nodes[execution.node]
            if node.effect in REPEATABLE or execution.intent >= 0 or SETTLED in execution.subs:
                continue
            if (execution.scope, execution.node) in self._live:
                continue
            try:
                key = idempotency_key(pos, execution, node) if node.idempotency_key else ""
            except ExpressionError as error:
                text = f"the idempotency key of node {node.id!r}: {error}"
                failed = HandlerFinished(
                    scope=execution.scope, node=execution.node, visit=execution.visit, outcome="fail",
                    error=ErrorInfo(error.code, "ExpressionError", text),
                )  # fmt: skip
                self._inbox.append(failed)
                starts.remove(execution)
                continue
            decision = Decision(self._graph, pos, self._now())
            body = IntentBody(-1, node.id, key)
            record = decision.draft(Kind.intent, body, node=node.id, execution=execution, effect=node.effect)
            apply_record(self._graph, pos, record, body)
            self._keep(decision)

    def _begin(self, execution: Exec, *, probe: bool = False) -> None:
        place = (execution.scope, execution.node)
        if place in self._live:
            # It runs, and may be waiting for what has just arrived.
            self._again.add(place)
            return
        self._again.discard(place)
        self._live[place] = task = asyncio.create_task(self._perform(execution, probe))
        task.add_done_callback(lambda done: self._has_ended(place, done))

    @property
    def _most(self) -> int:
        """Calls of nodes that draw on one budget see each other only one after the other."""
        return 1 if self._start.serial else MAX_ACTIVITIES

    def _has_ended(self, place: Place, task: asyncio.Task[None]) -> None:
        """An error in it fails the workflow task: it does not pass in silence."""
        if self._live.get(place) is task:
            del self._live[place]
        if not task.cancelled():
            self._broken = self._broken or task.exception()

    async def _perform(self, execution: Exec, probe: bool) -> None:
        """One activity, and what follows from its end."""
        place, visit = (execution.scope, execution.node), execution.visit
        self._entries = entry = self._entries + 1
        try:
            node = self._pos.scope_graph(self._graph, self._pos.scopes[place[0]]).nodes[place[1]]
            drafts = list(self._drafts)
            call = NodeCall(
                unwritten=self._unwritten(drafts),
                position=self._wire.position(self._view(execution)),
                scope=place[0],
                node=place[1],
                entry=entry,
                probe=probe,
            )
            limit = timedelta(microseconds=node.timeout + 60_000_000) if node.timeout else _FOREVER
            raw: bytes = await workflow.execute_activity(
                "holdfast.node",
                encode_body(call),
                result_type=bytes,
                start_to_close_timeout=limit,
                heartbeat_timeout=timedelta(seconds=self._start.heartbeat),
                retry_policy=_ONCE,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
            self._acknowledge(drafts)
            self._returned(place, visit, self._wire.read_reply(raw))
        except ActivityError as error:
            if is_cancelled_exception(error):
                return
            if isinstance(error.cause, ApplicationError) and error.cause.type in _FINAL:
                self._broken = error.cause
                return
            await self._was_lost(place, visit, entry, error)

    def _view(self, execution: Exec) -> Position:
        view = exec_view(self._pos, execution)
        if self._start.serial:
            add_budget_view(self._pos, view)
        return view

    def _returned(self, place: Place, visit: int, reply: NodeReply) -> None:
        execution = self._pos.execs.get(place)
        if execution is None or execution.visit != visit:
            return
        self._apply(execution, reply.notes)
        if reply.finished is not None:
            self._inbox.append(reply.finished)
        elif reply.doubted is not None:
            self._inbox.append(reply.doubted)
        elif reply.waits and not reply.again and place not in self._again:
            self._parked.append(place)
        elif reply.again or place in self._again or not waits_inside(self._pos, execution):
            self._enter.append(place)
        self._again.discard(place)

    def _apply(self, execution: Exec, notes: list[ExecNote]) -> None:
        decision = Decision(self._graph, self._pos, self._now())
        for note in notes:
            apply_note(decision, execution, note, self._wire)
        self._keep(decision)
        self._set_timers()

    async def _was_lost(self, place: Place, visit: int, entry: int, error: ActivityError) -> None:
        """The worker is gone, or could not do it: what it noted counts, and it can note nothing more."""
        where = ExecPlace(
            unwritten=self._unwritten([]), scope=place[0], node=place[1], visit=visit, entry=entry
        )
        raw = await self._store_call("holdfast.inspect", encode_body(where))
        execution = self._pos.execs.get(place)
        if execution is None or execution.visit != visit:
            return
        self._apply(execution, msgspec.msgpack.decode(raw, type=list[ExecNote]))
        name = f"{place[0]}/{place[1]}/{visit}"
        self._lost[name] = self._lost.get(name, 0) + 1
        if self._lost[name] >= MAX_LOST:
            node = self._pos.scope_graph(self._graph, self._pos.scopes[place[0]]).nodes[place[1]]
            kind = "stopped" if isinstance(error.cause, ActivityTimeoutError) else "failed"
            text = f"the workers of node {node.id!r} {kind} {MAX_LOST} times"
            # No retry of the node follows: each of them had a worker of its own.
            failed = HandlerFinished(
                scope=place[0], node=place[1], visit=visit, outcome="fail",
                error=ErrorInfo("given_up", "RunError", text),
            )  # fmt: skip
            self._inbox.append(failed)
            return
        self._inbox.append(HandlerLost(scope=place[0], node=place[1], visit=visit))

    def _stop(self, place: Place) -> None:
        task = self._live.get(place)
        if task is not None:
            task.cancel()

    # ------------------------------------------------------------------ the store
    def _unwritten(self, drafts: list[Draft]) -> Unwritten:
        start = self._start
        return Unwritten(start.run, start.key, start.tenant, start.flow, start.version, start.engine, drafts)

    def _acknowledge(self, drafts: list[Draft]) -> None:
        if drafts and drafts[-1].seq > self._acked:
            self._acked = drafts[-1].seq
            self._drafts = [draft for draft in self._drafts if draft.seq > self._acked]

    async def _project(self, idle: str = "") -> None:
        while self._drafts or idle:
            drafts = self._drafts[:MAX_DRAFTS]
            last = len(drafts) == len(self._drafts)
            request = ProjectRequest(unwritten=self._unwritten(drafts), idle=idle if last else "")
            await self._store_call("holdfast.project", encode_body(request))
            self._acknowledge(drafts)
            if last:
                return

    async def _store_call(self, name: str, raw: bytes) -> bytes:
        return await workflow.execute_activity(
            name,
            raw,
            result_type=bytes,
            start_to_close_timeout=_FOREVER,
            heartbeat_timeout=timedelta(seconds=self._start.heartbeat),
            retry_policy=_PATIENT,
        )

    async def _read_mail(self) -> list[Message]:
        self._mail = 0
        drafts = list(self._drafts)
        request = MailRequest(unwritten=self._unwritten(drafts), taken=sorted(self._taken))
        raw = await self._store_call("holdfast.mail", encode_body(request))
        self._acknowledge(drafts)
        found: list[Message] = []
        for name, packed in msgspec.msgpack.decode(raw):
            message: Any
            if name == "EvidenceArrived":
                message = self._wire.read_late(packed)
            else:
                message = getattr(engine_messages, name)(**dict(unpack(packed)))
            self._taken.add(message.inbox)
            found.append(message)
        return found

    # ------------------------------------------------------------------ waiting
    async def _next(self) -> list[Message]:
        """What happens next. A run that waits is written as waiting."""
        rests = False
        while True:
            if self._broken is not None:
                raise self._broken
            if self._inbox:
                found, self._inbox = self._inbox, []
                return found
            if self._enter or self._can_begin():
                await self._enter_again()
            if self._mail or (self._cancelled and not self._cancel_read):
                found = await self._steady(self._read_mail())
                if self._cancelled and not self._cancel_read:
                    self._cancel_read = True
                    if not any(isinstance(message, CancelRequested) for message in found):
                        found.append(CancelRequested(reason="cancelled in Temporal", by="temporal"))
                if found:
                    return found
                continue
            if not self._live and not rests and not self._has_news():
                await self._rest()
                rests = True
            # Also until the last activity has returned: then only a person or a time is waited for.
            over = self._has_news if rests else self._has_news_or_rests
            await self._steady(workflow.wait_condition(over))

    def _has_news(self) -> bool:
        cancels = self._cancelled and not self._cancel_read
        return bool(self._inbox or self._enter or self._can_begin() or self._mail or cancels or self._broken)

    def _can_begin(self) -> bool:
        return bool(self._queue) and len(self._live) < self._most and not self._is_full()

    def _has_news_or_rests(self) -> bool:
        return not self._live or self._has_news()

    async def _enter_again(self) -> None:
        """Scripts whose questions are in the store now, or that got an answer while they worked; and nodes
        that waited until fewer run."""
        places, self._enter = self._enter, []
        queue, self._queue = self._queue, []
        if self._must_continue():
            await self._continue_if_idle()
        found = [execution for place in places if (execution := self._pos.execs.get(place)) is not None]
        starts, probes = [each for each in found if each.phase == "work"], list[Exec]()
        for place, visit, probe in queue:
            execution = self._pos.execs.get(place)
            if execution is not None and execution.visit == visit:
                (probes if probe else starts).append(execution)
        await self._begin_all(starts, probes)

    async def _rest(self) -> None:
        pos = self._pos
        if not pos.holds and not pos.timers:
            decision = Decision(self._graph, pos, self._now())
            end.fail_run(decision, CannotContinueError("stall", "work remains but nothing can start", ""))
            self._keep(decision)
            self._inbox.append(RunRecovered())
            return
        if self._must_continue():
            await self._continue_if_idle()
        idle = RunStatus.pending_input if pos.holds else RunStatus.waiting
        self._show(idle)
        await self._steady(self._project(idle))

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

    async def _finish_running(self) -> list[Message]:
        """Nothing new starts. On a cancel everything stops; on a failure running effects may finish."""
        cancelling = self._pos.cancelling is not None
        for place in list(self._live):
            execution = self._pos.execs.get(place)
            if cancelling or execution is None or self._is_repeatable(execution):
                self._stop(place)
        self._queue.clear()
        while self._live:
            await self._steady(workflow.wait_condition(lambda: not self._live or self._broken is not None))
            if self._broken is not None:
                raise self._broken
        self._set_timers()
        found, self._inbox = self._inbox, []
        ended = [m for m in found if isinstance(m, HandlerFinished)]
        if ended and not cancelling:
            return list(ended)
        return [*[m for m in ended if m.error is None], HandlersStopped()]

    def _is_repeatable(self, execution: Exec) -> bool:
        graph = self._pos.scope_graph(self._graph, self._pos.scopes[execution.scope])
        return graph.nodes[execution.node].effect in REPEATABLE and not execution.step_intents

    # ------------------------------------------------------------------ timers
    def _set_timers(self) -> None:
        pos = self._pos
        if not pos.timers and not self._timers:
            return
        wanted = wakes_of(pos) if pos.failing is None and pos.cancelling is None else {}
        for token in [token for token in self._timers if token not in wanted]:
            self._timers.pop(token).cancel()
        for token, at in wanted.items():
            if token not in self._timers:
                self._timers[token] = asyncio.create_task(self._time(token, at))

    async def _time(self, token: str, at: int) -> None:
        left = (at - self._now()) / 1e6
        if left > 0:
            await asyncio.sleep(left)
        self._timers.pop(token, None)
        if token in self._pos.timers:
            self._inbox.append(TimerFired(token=token))

    # ------------------------------------------------------------------ size
    def _must_continue(self) -> bool:
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() >= MAX_EVENTS

    async def _continue_if_idle(self) -> None:
        """The rest of the run gets a history of its own, once nothing runs and nothing is unread."""
        if self._live or self._has_news():
            return
        await self._steady(self._project())
        if self._live or self._has_news():
            return
        crashpoint("before_continue")
        rest = msgspec.structs.replace(self._start, position=self._wire.position(self._pos), lost=self._lost)
        rest.entries = self._entries
        workflow.continue_as_new(args=[encode_body(rest), self._encoded])
