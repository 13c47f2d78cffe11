"""Driving one run: decide, write, act, wait. One driver holds one lease."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.engine.decision import Decision
from holdfast.engine.messages import HandlerFinished, Message
from holdfast.engine.step import step
from holdfast.errors import LeaseLostError, StoreError
from holdfast.model.graph import Graph, Node
from holdfast.model.position import Exec, Position
from holdfast.model.program import Program
from holdfast.runs.driver.context_calls import ContextCalls
from holdfast.runs.driver.handler_call import HandlerCall
from holdfast.runs.driver.handler_tasks import HandlerTasks
from holdfast.runs.driver.inbox import DriverInbox
from holdfast.runs.driver.late_evidence import LateEvidence
from holdfast.runs.driver.load import LoadedRun
from holdfast.runs.driver.park import DriverPark
from holdfast.runs.driver.wait import DriverWait
from holdfast.runs.driver.writer import JournalWriter
from holdfast.runs.hold_preparation import facts_of
from holdfast.runs.recorder.queue import retry_while_unavailable
from holdfast.runs.recorder.recorder import MAX_DELAY
from holdfast.runs.typed_values import TypedValues
from holdfast.store.protocols import Claim
from holdfast.telemetry import NodePlace, current_node
from holdfast.types.ids import RunId
from holdfast.types.status import REPEATABLE, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.driver.runtime import Runtime

T = TypeVar("T")

# Seconds after which a run whose handlers never wait lets others have the loop, if nothing is unwritten.
STARVING = 0.1


class Driver:
    """Owns the position of one run in memory, from claim to park or end."""

    def __init__(self, runtime: Runtime, program: Program, claim: Claim, loaded: LoadedRun) -> None:
        self.runtime = runtime
        self.program = program
        self.graph: Graph = program.graph
        self.row = claim.run
        self.lease = claim.lease
        self.run: RunId = claim.run.id
        self.pos: Position = loaded.pos
        self.loop = asyncio.get_running_loop()
        self.sealer = runtime.codec_for(program)
        self.recorder = runtime.recorder
        self.queue = runtime.recorder.open(self.lease, loaded.pos.head, self.lost)
        self.facts = facts_of(claim.run)
        self.queue.route = partial(runtime.preparer.prepare, facts=self.facts)
        self.task: asyncio.Task[Any] | None = None
        self.awake = asyncio.Event()
        self.left = asyncio.Event()
        self.is_lost = False
        self.draining = False
        self.cooled = False
        # The execution whose handler runs in our own task, if one does.
        self.inline: Exec | None = None
        self.interrupted = False
        self.breath = monotonic()
        self.box = DriverInbox(self)
        self.writer = JournalWriter(self, loaded.since_snapshot)
        self.handler_tasks = HandlerTasks(self)
        self.handler_call = HandlerCall(self)
        self.context_calls = ContextCalls(self)
        self.late_evidence = LateEvidence(self)
        self.fits = TypedValues(program)
        self.driver_wait = DriverWait(self)
        self.driver_park = DriverPark(self)

    async def drive(self) -> RunStatus:
        """Until the run ends or waits. Raises LeaseLostError where another worker took it over."""
        self.task = asyncio.current_task()
        token = current_node.set((self, None))
        try:
            return await self._drive()
        except asyncio.CancelledError:
            if self.is_lost:
                await asyncio.shield(self.late_evidence.report_lost_run())
                raise self.queue.poison or LeaseLostError(f"run {self.run} is not ours any more") from None
            await asyncio.shield(self.driver_park.release())
            raise
        except LeaseLostError:
            self.is_lost = True
            await self.late_evidence.report_lost_run()
            raise
        except StoreError:
            # Away for longer than we wait. What we know of effects is told when it is back.
            self.handler_tasks.cancel_all_but_effects()
            self.runtime.evidence_outbox.keep(self.run, await self.late_evidence.known())
            raise
        finally:
            await self.handler_tasks.stop(set())
            self.recorder.close(self.queue)
            current_node.reset(token)
            # From here on the task is our caller's own: nobody cancels it for what was ours.
            self.task = None
            self.left.set()

    async def _drive(self) -> RunStatus:
        if self.pos.skills:
            await self.context_calls.take_skills()
        messages = await self.box.first(self.row.inbox_seq)
        clock, writer = self.runtime.clock, self.writer
        while True:
            if self.is_lost or self.handler_tasks.fatal is not None:
                self.check_lease()
            self._check_messages(messages)
            decision = step(self.graph, self.pos, messages, clock.now(), self.fits)
            if writer.write(decision):
                await self.recorder.committed(self.queue, self.pos.head)
            if self.context_calls.remember_later:
                await self.context_calls.remember(messages)
            if decision.ended:
                self.driver_park.leaving = True
                return await writer.end()
            if self.pos.failing is not None or self.pos.cancelling is not None:
                messages = await self.driver_wait.finish_running()
                continue
            alone = self._alone(decision)
            messages = await (self._act(decision) if alone is None else self._run_inline(alone))
            if not messages:
                found = await self.driver_wait.next()
                if isinstance(found, RunStatus):
                    return found
                messages = found
            elif (self.queue.over or self.queue.outage is not None) and self.queue.full:
                await self.recorder.room(self.queue)
            elif monotonic() - self.breath > (MAX_DELAY if self.queue.pending else STARVING):
                # Handlers that never wait must not hold up the loop: others, timers, the bound on delay.
                self.recorder.catch_up(self.queue)
                await asyncio.sleep(0)
                self.breath = monotonic()

    def _check_messages(self, messages: list[Message]) -> None:
        """What a record cannot hold is a failure of its node; how an effect ended is kept as evidence."""
        pos = self.pos
        for i, message in enumerate(messages):
            if type(message) is HandlerFinished:
                execution = pos.execs.get((message.scope, message.node))
                if execution is None:
                    continue
                if message.ops or message.output is not None:
                    messages[i] = message = self.handler_call.storable(message, execution)
                if execution.intent >= 0:
                    self.late_evidence.see(message, pos.head + 1)

    def _alone(self, decision: Decision) -> Exec | None:
        """The only one to start, with nothing to wait for besides: no task of its own is needed."""
        starts, pos = decision.starts, self.pos
        if len(starts) != 1 or self.handler_tasks.tasks or pos.holds or pos.timers:
            return None
        if decision.cancels or self.writer.unstarted or self.draining:
            return None
        execution = starts[0]
        scope = pos.scopes[execution.scope]
        program = self.program if scope.graph == "" else self.program.at(scope.graph)
        node = program.graph.nodes[execution.node]
        handler = program.handlers.get(node.id)
        if handler is not None and not handler.waits:
            return execution
        if node.script:
            return None
        # With a context it may ask and wait for the answer: that must not stop the driver.
        if handler is None or "ctx" not in handler.takes or node.effect not in REPEATABLE:
            return execution
        return None

    async def _act(self, decision: Decision) -> list[Message]:
        """Stop and start what was decided."""
        if decision.cancels:
            await self.handler_tasks.stop({(e.scope, e.node) for e in decision.cancels})
        starts, unstarted = decision.starts, self.writer.unstarted
        if unstarted:
            starts = [e for e in starts if (e.scope, e.node) not in unstarted]
            unstarted.clear()
        if not self.draining:
            for execution in starts:
                self.handler_tasks.spawn(execution)
        return []

    async def _run_inline(self, execution: Exec) -> list[Message]:
        self.inline = execution
        try:
            message = await self.handler_call.run(execution)
        except asyncio.CancelledError:
            if not self._was_interrupted():
                raise
            message = None
        finally:
            self.inline = None
        stopped = self.interrupted
        if stopped:
            self._was_interrupted()
        messages: list[Message] = [] if message is None else [message]
        if not self.box.urgent:
            return messages
        mail = await self.box.take()
        # A handler that finishes although it was told to stop does so after the cancel, not before it.
        after = stopped and isinstance(message, HandlerFinished) and message.error is None
        return [*mail, *messages] if after else [*messages, *mail]

    def _was_interrupted(self) -> bool:
        """Whether the cancel that came was our own, to stop a handler; then it is over with that."""
        ours, self.interrupted = self.interrupted, False
        task = asyncio.current_task()
        return ours and task is not None and task.uncancel() == 0

    # ------------------------------------------------------------------ for those who help
    def graph_of(self, execution: Exec) -> Graph:
        scope = self.pos.scopes[execution.scope]
        return self.graph if scope.graph == "" else self.pos.scope_graph(self.graph, scope)

    def node(self, execution: Exec) -> Node:
        return self.graph_of(execution).nodes[execution.node]

    def where(self, execution: Exec | None) -> NodePlace | None:
        execution = execution or self.inline
        return execution and NodePlace(
            self.run,
            self.row.flow,
            execution.scope,
            self.node(execution).id,
            execution.visit,
            execution.attempt,
            execution.seq,
        )

    def decision(self) -> Decision:
        """A new one, for what is decided outside the engine's step."""
        return Decision(self.graph, self.pos, self.runtime.clock.now())

    def check_lease(self) -> None:
        if self.is_lost:
            raise LeaseLostError(f"run {self.run} is not ours any more")
        if self.handler_tasks.fatal is not None:
            raise self.handler_tasks.fatal

    async def retry_while_unavailable(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What may simply be asked again while the store is away: reads, and writes that say the same twice.
        An effect under way elsewhere in this run is not cut short for it."""
        return await retry_while_unavailable(ask, self.queue)

    async def lease_margin(self) -> None:
        """An effect is not started on a lease that may lapse under it (D-17)."""
        if not await self.retry_while_unavailable(partial(self.runtime.safe_margin, self.lease)):
            self.lost()
            raise LeaseLostError(f"run {self.run} is not ours any more")

    # ------------------------------------------------------------------ from outside
    def lease_gone(self) -> None:
        """From the heartbeat: the lease is not ours. Where we are about to end or park that is our own doing,
        and where it is not, the write that follows is refused."""
        if not self.driver_park.leaving and self.task is not None:
            self.lost()

    def lost(self) -> None:
        """Another worker has the run: stop at once, publish nothing (D-7)."""
        if self.is_lost:
            return
        self.is_lost = True
        self.awake.set()
        self.handler_tasks.cancel_all_but_effects()
        if self.task is not None and self.task is not asyncio.current_task() and not self._effect_inline():
            self.task.cancel()

    def _effect_inline(self) -> bool:
        return (
            self.inline is not None
            and any(self.handler_tasks.is_effect(key) for key in self.pos.execs)
            and not self.writer.uncalled
        )

    def inbox_changed(self) -> None:
        """From the attendant: somebody told this run something."""
        self.box.urgent = True
        self.awake.set()

    def interrupt(self) -> None:
        """A cancel request: do not wait for the handler that runs inline."""
        self.box.urgent = True
        self.awake.set()
        if self.inline is not None and self.task is not None and not self.interrupted:
            self.interrupted = True
            self.task.cancel()

    def drain(self) -> None:
        """Handlers that run may finish, nothing new starts; then the run is given back."""
        self.draining = True
        self.awake.set()

    def evict(self) -> None:
        """The run is not worth its place in memory: it parks, as if nobody had answered for long."""
        if not self.cooled:
            self.cooled = True
            self.awake.set()

    async def gone(self, grace: float) -> None:
        """Until the run is let go; handlers that take longer than the grace are stopped."""
        task = self.task
        if task is None or task is asyncio.current_task():
            return
        try:
            async with asyncio.timeout(grace):
                await self.left.wait()
        except TimeoutError:
            if not self.left.is_set():
                task.cancel()
            await self.left.wait()
