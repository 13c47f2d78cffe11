"""The nodes of a workflow: an activity for each execution, one at a time, and timers."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import msgspec
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

with workflow.unsafe.imports_passed_through():
    from holdfast.checkpoint import encode_body
    from holdfast.checkpoint.size_limit import SPILL_OVER
    from holdfast.drivers.temporal.exec_view import add_budget_view, exec_view
    from holdfast.drivers.temporal.notes import apply_note
    from holdfast.drivers.temporal.payloads import (
        NODE,
        NODE_APART,
        PROTOCOL,
        ExecNote,
        ExecPlace,
        NodeCall,
        NodeReply,
        encode_request,
    )
    from holdfast.drivers.temporal.workflow_journal import FINAL, FOREVER, Place, WorkflowJournal
    from holdfast.engine.decision import Decision
    from holdfast.engine.messages import HandlerFinished, HandlerLost, TimerFired
    from holdfast.errors import ExpressionError
    from holdfast.model.apply import apply_record
    from holdfast.model.graph import Node
    from holdfast.model.idempotency_keys import idempotency_key
    from holdfast.model.position import SETTLED, Exec, Position, waits_inside, wakes_of
    from holdfast.model.record_bodies import ErrorInfo, IntentBody
    from holdfast.telemetry import crashpoint
    from holdfast.types.record import Kind
    from holdfast.types.status import REPEATABLE

MAX_MESSAGE: Final = 1_500_000
"""Bytes of activities that are scheduled at once: a message of the server has 4 MB at most."""
_FEW: Final = 20
_AT_ONCE: Final = 50
_HEAD: Final = 1000  # bytes of an activity beside its position
MAX_LOST: Final = 5
"""How often an execution may lose its worker: then its run is given up."""
MAX_EVENTS: Final = 20_000
APART: Final = 2 * 1024
"""Encoded bytes of a run's input from which its items are not each given it."""
APART_SINCE: Final = 4
NAMED_SINCE: Final = 5
"""Protocols: of calls without the input of the run; and of their activity's own name, also for items whose
own input is that of the run."""
MAX_ACTIVITIES: Final = 500
"""Of one run at a time; further nodes wait in order."""
UNSERVED: Final = "UnservedError"
UNKNOWN: Final = "NotFoundError"
"""What the SDK says of an activity that the release of its worker does not have."""
UNSERVED_PAUSE: Final = 3.0
"""Seconds after which a node is given to a worker again, when one has not had what it needs."""
_ONCE: Final = RetryPolicy(maximum_attempts=1)


class WorkflowNodes(WorkflowJournal):
    """Starts and stops activities of nodes, and takes in what they return."""

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
        # Behind those that wait already.
        free = 0 if self._is_full() or self._queue else self._most - len(self._live)
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
        size = min(len(self._dump_view(self._view(starts[0]))), SPILL_OVER) + _HEAD
        return max(1, min(MAX_MESSAGE // size, _AT_ONCE))

    def _is_full(self) -> bool:
        """A history that is long gets no new activities: the run continues in a new one when those that run
        have returned."""
        return bool(self._live) and self._must_continue()

    def _can_begin(self) -> bool:
        return bool(self._queue) and len(self._live) < self._most and not self._is_full()

    def _has_news(self) -> bool:
        return self._can_begin() or self._is_called()

    def _is_called(self) -> bool:
        cancels = self._cancelled and not self._cancel_read
        return bool(self._inbox or self._enter or self._mail or cancels or self._broken)

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

    # ------------------------------------------------------------------ activities
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
        apart = bool(place[0]) and self._is_input_apart()
        try:
            node = self._pos.scope_graph(self._graph, self._pos.scopes[place[0]]).nodes[place[1]]
            drafts = list(self._drafts)
            call = NodeCall(
                unwritten=self._unwritten(drafts),
                position=self._dump_view(self._view(execution)),
                scope=place[0],
                node=place[1],
                entry=entry,
                probe=probe,
                fresh=not probe and self._is_fresh(execution, node),
                apart=apart,
            )
            limit = timedelta(microseconds=node.timeout + 60_000_000) if node.timeout else FOREVER
            raw: bytes = await workflow.execute_activity(
                NODE_APART if apart and self._start.protocol >= NAMED_SINCE else NODE,
                encode_request(call, brief=self._start.is_brief),
                result_type=bytes,
                start_to_close_timeout=limit,
                heartbeat_timeout=timedelta(seconds=self._start.heartbeat),
                retry_policy=_ONCE,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
            self._acknowledge(drafts)
            reply = self._wire.read_reply(raw)
            await self._until_decided()
            self._returned(place, visit, reply)
            if reply.unserved:
                await self._leave_to_others(place)
        except ActivityError as error:
            if is_cancelled_exception(error):
                return
            if self._is_for_others(error, apart=apart):
                await self._leave_to_others(place)
                return
            if isinstance(error.cause, ApplicationError) and error.cause.type in FINAL:
                self._broken = error.cause
                return
            await self._was_lost(place, visit, entry, error)

    def _is_fresh(self, execution: Exec, node: Node) -> bool:
        """Nothing of it was noted by an earlier activity: it notes itself with its first effect."""
        return (
            node.effect in REPEATABLE
            and execution.attempt == 1
            and not (execution.subs or execution.step_intents or self._start.serial)
            and f"{execution.scope}/{execution.node}/{execution.visit}" not in self._lost
        )

    def _is_for_others(self, error: ActivityError, *, apart: bool) -> bool:
        cause = error.cause
        return isinstance(cause, ApplicationError) and (
            cause.type == UNSERVED or (apart and cause.type == UNKNOWN)
        )

    async def _leave_to_others(self, place: Place) -> None:
        """A worker that has what the node needs takes it then, or this one, if it has got it."""
        await asyncio.sleep(UNSERVED_PAUSE)
        self._enter.append(place)

    def _view(self, execution: Exec) -> Position:
        apart = self._is_input_apart()
        bare = apart and self._start.protocol >= NAMED_SINCE
        view = exec_view(self._pos, execution, apart=apart, bare=bare)
        if self._start.serial:
            add_budget_view(self._pos, view)
        return view

    def _is_input_apart(self) -> bool:
        if self._apart is None:
            given = self._pos.scopes[""].tree.see(0, "input")
            self._apart = self._start.protocol >= APART_SINCE and len(self._wire.dump(given)) > APART
        return self._apart

    def _returned(self, place: Place, visit: int, reply: NodeReply) -> None:
        execution = self._pos.execs.get(place)
        if execution is None or execution.visit != visit:
            return
        self._apply(execution, reply.notes)
        if reply.finished is not None:
            self._inbox.append(reply.finished)
        elif reply.doubted is not None:
            self._inbox.append(reply.doubted)
        elif reply.unserved:
            pass
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
        raw = await self._store_call("holdfast.inspect", where)
        await self._until_decided()
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
        """The rest of the run gets a history of its own, once nothing runs and nothing is unread. What waits
        in the queue begins there."""
        if self._live or self._is_called():
            return
        await self._steady(self._project())
        if self._live or self._is_called():
            return
        crashpoint("before_continue")
        rest = msgspec.structs.replace(self._start, position=self._wire.position(self._pos), lost=self._lost)
        # The rest of it decides by the newest rules.
        rest.entries, rest.queued, rest.mail, rest.protocol = self._entries, self._queued, False, PROTOCOL
        workflow.continue_as_new(args=[encode_body(rest), self._encoded])
