"""Drives one run: decide, write, act, wait. One driver has one lease.

The driver imports its helpers, and none of them imports it. Their order is in `runs.driver.session`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from math import inf
from time import monotonic

from holdfast.engine.decision import Decision
from holdfast.engine.messages import HandlerFinished, Message
from holdfast.engine.step import step
from holdfast.errors import LeaseLostError, RequirementsMissingError, RunFileMissingError, StoreError
from holdfast.model.position import Exec
from holdfast.model.program import Program
from holdfast.model.user_code.tasks import OwnedTask
from holdfast.runs.driver.context_calls import DriverCalls
from holdfast.runs.driver.drive_outcome import DriveOutcome
from holdfast.runs.driver.handler_call import Disowned, HandlerCall, running_task
from holdfast.runs.driver.handler_tasks import HandlerTasks
from holdfast.runs.driver.late_evidence import LateEvidence
from holdfast.runs.driver.load import LoadedRun
from holdfast.runs.driver.park import DriverPark
from holdfast.runs.driver.record_writer import CAREFUL_DECISIONS, RecordWriter
from holdfast.runs.driver.run_inbox import DriverInbox
from holdfast.runs.driver.services import RunServices
from holdfast.runs.driver.session import RunSession
from holdfast.runs.driver.wait import DriverWait
from holdfast.runs.recorder.recorder import MAX_DELAY
from holdfast.runs.value_checker import TypedValues
from holdfast.store.rows import Claim
from holdfast.telemetry import current_node
from holdfast.types.redaction import begin_hiding, enter_tenant
from holdfast.types.status import REPEATABLE, RunStatus

# Seconds after which a run whose handlers never wait yields to other tasks of the loop, if nothing is
# unwritten.
STARVING = 0.1


class Driver:
    """Advances one run in memory, from claim to park or end."""

    def __init__(self, services: RunServices, program: Program, claim: Claim, loaded: LoadedRun) -> None:
        self.session = session = RunSession(services, program, claim, loaded, self.lost)
        self.run = session.run
        self.lease = session.lease
        self.task: OwnedTask[RunStatus] | None = None
        self._outcome = DriveOutcome(self)
        self._left = asyncio.Event()
        # Whether the task has reached its own clean-up, and whether it is to stop as soon as it has.
        self._begun = self._stop_early = False
        # Called when the run has left memory, before its caller continues.
        self.on_left: Callable[[], None] | None = None
        # Counts the handlers that ran inline: one that is overdue is told from a later one by its number.
        self._inline_calls = 0
        self._interrupted = False
        self._yielded_at = monotonic()
        self._values = TypedValues(program)
        self.evidence = LateEvidence(session)
        self.writer = RecordWriter(session, loaded.since_snapshot)
        self.calls = DriverCalls(session, self.writer, self.evidence)
        self.handlers = HandlerTasks(session, HandlerCall(self.calls))
        self.inbox = DriverInbox(session, self.writer)
        self.parking = DriverPark(session, self.handlers, self.writer)
        self.waiting = DriverWait(session, self.writer, self.handlers, self.inbox, self.parking)
        self.writer.strict = loaded.pos.mode == "strict"
        self.writer.careful = CAREFUL_DECISIONS if claim.run.recoveries or claim.run.suspect else 0
        session.queue.lazy = loaded.pos.mode == "exit"
        if program.graph.spec.allow_uncheckpointed:
            session.queue.on_outage = self.writer.uncheckpointed

    async def drive(self) -> RunStatus:
        """Until the run ends or waits. Raises LeaseLostError if another worker has claimed it."""
        self._begin(self._first)
        return await self._outcome

    def _begin(self, first: Callable[[], Awaitable[list[Message]]]) -> None:
        """In a task of its own: a handler that cancels its task, or does not stop, runs in that task and not
        in the caller's."""
        self._begun = False
        self.task = task = OwnedTask(self._drive_to_end(first), loop=self.session.loop)
        task.on_cancel = self._note_cancel
        task.add_done_callback(self._outcome.settle)

    async def _drive_to_end(self, first: Callable[[], Awaitable[list[Message]]]) -> RunStatus:
        status = await self._drive_from(first)
        task = running_task()
        if not task.disowned:
            self._outcome.reach(status)
            # It has nothing left to do. As something that the loop has to run, it would make the next write
            # wait for a turn, to be grouped with it.
            task.remove_done_callback(self._outcome.settle)
        return status

    async def _drive_from(self, first: Callable[[], Awaitable[list[Message]]]) -> RunStatus:
        session = self.session
        current_node.set((session, None))
        enter_tenant(session.row.tenant)
        begin_hiding()
        try:
            self._begun = True
            if self._stop_early:
                self.stop()
            return await self._drive(await first())
        except Disowned:
            raise
        except asyncio.CancelledError:
            if session.lost:
                # Shielded: a second cancel, from a worker that stops, must not cut the report off. What is
                # not reported becomes a question to a person.
                await asyncio.shield(self.evidence.report_lost_run())
                # `lost` cancelled this task: the caller gets the reason, not a cancellation that it did not
                # request.
                raise session.queue.poison or session.lease_lost_error() from None
            await asyncio.shield(self.parking.release())
            raise
        # A write was refused: the heartbeat may not have noticed yet that the lease is gone.
        except LeaseLostError:
            session.lost = True
            await self.evidence.report_lost_run()
            raise
        except RequirementsMissingError as error:
            # What is settled is kept; a worker that has it continues from there. A file may appear here, so
            # this worker tries again, but not at once.
            unserved = session.services.unserved
            unserved.note(session.run, session.row.version, error)
            rest = unserved.rest(session.run) if isinstance(error, RunFileMissingError) else 0
            await asyncio.shield(self.parking.release(rest))
            raise
        except StoreError:
            # Unavailable for longer than we wait. What is known about effects is reported when it is back.
            self.handlers.cancel_all_but_effects()
            session.services.evidence_outbox.keep(session.run, await self.evidence.collect())
            raise
        finally:
            if self.task is asyncio.current_task():
                # Handlers end before the queue closes: until then their contexts may still append records.
                await self.handlers.stop(set())
                session.recorder.close(session.queue)
                self.task = None
                self._left.set()
                if self.on_left is not None:
                    self.on_left()

    async def _first(self) -> list[Message]:
        if self.session.pos.skills:
            await self.calls.load_skills()
        return await self.inbox.first(self.session.row.inbox_seq)

    async def _drive(self, messages: list[Message]) -> RunStatus:
        session, writer = self.session, self.writer
        graph, pos, clock = session.graph, session.pos, session.clock
        recorder, queue = session.recorder, session.queue
        while True:
            if session.lost or session.fatal is not None:
                session.check()
            self._check_messages(messages)
            decision = step(graph, pos, messages, clock.now(), self._values)
            must_commit = writer.write(decision)
            if self.calls.journaled:
                self.calls.note_memories(decision)
            if self.calls.ledger.waiting:
                self.calls.ledger.wake()
            for execution in decision.probes:
                self.handlers.spawn(execution, probe=True)
            if must_commit:
                await recorder.committed(queue, pos.head)
            # After the commit: a memory outside the store cannot be rolled back with the step that wrote it.
            if self.calls.remember_later:
                await self.calls.remember(messages)
            if decision.ended:
                session.leaving = True
                return await writer.end()
            # The failure is in a record, and the row of a cancel stays in the inbox until the end is written:
            # so a worker that loads the run after a crash here ends it too.
            if pos.failing is not None or pos.cancelling is not None:
                messages = await self.waiting.finish_running()
                continue
            alone = self._alone(decision)
            messages = await (self._act(decision) if alone is None else self._run_inline(alone))
            if not messages:
                found = await self.waiting.next()
                if isinstance(found, RunStatus):
                    return found
                messages = found
            # Only here, where the run continues at once: a run that waits for something writes meanwhile.
            elif (queue.over or queue.outage is not None) and queue.full:
                await recorder.room(queue)
            elif monotonic() - self._yielded_at > (MAX_DELAY if queue.pending else STARVING):
                # Handlers that never wait must not block the loop: other runs, timers, the limit on delays.
                recorder.catch_up(queue)
                await asyncio.sleep(0)
                self._yielded_at = monotonic()

    def _check_messages(self, messages: list[Message]) -> None:
        """A value that a record cannot hold is a failure of its node; the outcome of an effect is kept as
        evidence."""
        pos = self.session.pos
        for i, message in enumerate(messages):
            if type(message) is HandlerFinished:
                execution = pos.execs.get((message.scope, message.node))
                if execution is None:
                    continue
                if message.ops or message.output is not None:
                    messages[i] = message = self.handlers.call.storable(message, execution)
                # Remembered before the engine is asked: if the commit of this step is refused, the outcome is
                # known here only.
                if execution.intent >= 0:
                    self.evidence.add_finished(message, pos.head + 1)

    def _alone(self, decision: Decision) -> Exec | None:
        """Whether it is the only execution to start, with nothing else to wait for: then it needs no task."""
        starts, session = decision.starts, self.session
        pos = session.pos
        # With an open hold or timer the driver has to notice what arrives while the handler runs.
        if len(starts) != 1 or session.tasks or pos.holds or pos.timers:
            return None
        if decision.cancels or self.writer.unstarted or session.draining:
            return None
        execution = starts[0]
        program = session.program_of(execution)
        node = program.graph.nodes[execution.node]
        handler = program.handlers.get(node.id)
        if handler is not None and not handler.waits:
            return execution
        if node.script:
            return None
        # With a context it may ask and wait for the answer, which would block the driver.
        if handler is None or "ctx" not in handler.takes or node.effect not in REPEATABLE:
            return execution
        return None

    async def _act(self, decision: Decision) -> list[Message]:
        """Stop and start what was decided."""
        if decision.cancels:
            await self.handlers.stop({(e.scope, e.node) for e in decision.cancels})
        starts, unstarted = decision.starts, self.writer.unstarted
        if unstarted:
            starts = [e for e in starts if (e.scope, e.node) not in unstarted]
            unstarted.clear()
        if not self.session.draining:
            for execution in starts:
                self.handlers.spawn(execution)
        return []

    async def _run_inline(self, execution: Exec) -> list[Message]:
        session = self.session
        session.inline = execution
        self._inline_calls += 1
        number = self._inline_calls
        try:
            message = await self.handlers.call.run(execution, self.task)
        # The handler runs in the driver's own task, so a cancel for the handler arrives here as well.
        except asyncio.CancelledError:
            if number == self._inline_calls and not self._was_interrupted():
                raise
            message = None
        finally:
            if number == self._inline_calls:
                session.inline = None
        if number != self._inline_calls:
            raise Disowned
        stopped = self._interrupted
        if stopped:
            self._was_interrupted()
        messages: list[Message] = [] if message is None else [message]
        if not self.inbox.urgent:
            return messages
        received = await self.inbox.take()
        # A handler that finishes although it was to stop is reported after the cancel, not before it.
        after = stopped and isinstance(message, HandlerFinished) and message.error is None
        return [*received, *messages] if after else [*messages, *received]

    def _was_interrupted(self) -> bool:
        """Whether the cancellation was our own, to stop a handler; then it is cleared."""
        ours, self._interrupted = self._interrupted, False
        task = self.task
        # More than one cancel is left if the process stops at the same moment: then that one counts.
        return ours and task is not None and task.uncancel() == 0

    # ------------------------------------------------------------------ from outside
    def lease_gone(self) -> None:
        """From the heartbeat: the lease is not ours. If we are about to end or park, that is our own doing;
        otherwise the next write is refused."""
        if not self.session.leaving and self.task is not None:
            self.lost()

    def lost(self) -> None:
        """Another worker has the run: stop at once, publish nothing (D-7)."""
        session = self.session
        if session.lost:
            return
        session.lost = True
        session.wake.set()
        self.handlers.cancel_all_but_effects()
        # Not while an effect runs inline: it cannot be undone, and its outcome is worth reporting.
        if self.task is not None and self.task is not asyncio.current_task() and not self._effect_inline():
            self.stop()

    def stop(self) -> bool:
        """Stop the task that drives. One that has not begun does so first: a task that is cancelled before
        its first step would leave its queue open, and its caller would not learn why it ended."""
        self.session.stopped = True
        self._stop_early = not self._begun
        return self._stop_task()

    def _stop_task(self) -> bool:
        return self.task is not None and (self._stop_early or self.task.stop())

    def _effect_inline(self) -> bool:
        session = self.session
        return (
            session.inline is not None
            and any(session.is_effect(key) for key in session.pos.execs)
            # An intent without a call: nothing has begun outside, so it may be cancelled.
            and not self.writer.uncalled
        )

    def inbox_changed(self) -> None:
        """From the runtime's watch: the inbox of this run has new rows."""
        self.inbox.urgent = True
        self.session.wake.set()

    def interrupt(self) -> None:
        """A cancel request: stop waiting for the handler that runs inline."""
        self.inbox_changed()
        # Once only: a second cancel would look like one from outside, and end the whole driver.
        if self.session.inline is not None and self.task is not None and not self._interrupted:
            self._interrupted = True
            self._stop_task()

    def drain(self) -> None:
        """Handlers that run may finish, nothing new starts; then the run is released."""
        self.session.draining = True
        self.session.wake.set()

    @property
    def wakes_in(self) -> float:
        """Seconds until it goes on by itself; infinite if it waits for others."""
        left = self.waiting.left()
        return inf if left is None else left

    def evict(self) -> None:
        """Free the run's place in memory: it parks, as if it had waited long enough."""
        if not self.session.evicted:
            self.session.evicted = True
            self.session.wake.set()

    async def gone(self, grace: float) -> None:
        """Until the run has left memory; handlers that take longer than the grace are stopped."""
        task = self.task
        if task is None or task is asyncio.current_task():
            return
        try:
            async with asyncio.timeout(grace):
                await self._left.wait()
        except TimeoutError:
            if not self._left.is_set() and self.task is not None:
                self.stop()
            await self._left.wait()

    # ------------------------------------------------------------------ handlers that do not stop
    def _note_cancel(self) -> None:
        """From this driver's task, whenever it is cancelled: the handler that runs inline has a while to
        end."""
        if self.session.inline is not None:
            grace = self.session.services.settings.grace
            self.session.loop.call_later(grace, self._disown_if_overdue, self.task, self._inline_calls)

    def _disown_if_overdue(self, task: OwnedTask[RunStatus] | None, number: int) -> None:
        execution = self.session.inline
        if task is None or task is not self.task or execution is None or number != self._inline_calls:
            return
        if self.session.keeps_place:
            return
        late = self.handlers.timed_out(execution)
        if late is None and not task.stopped:
            return  # it cancelled itself, and goes on
        self._inline_calls += 1
        self.session.inline = None
        self.handlers.disown(task, execution)
        self._begin(partial(self._after_disowned, late))

    async def _after_disowned(self, late: HandlerFinished | None) -> list[Message]:
        """The run resumes in another task: with the timeout of the node, with the cancel that was not obeyed,
        or by leaving this process."""
        if late is not None:
            return [late]
        if not self._interrupted or self.session.lost:
            raise asyncio.CancelledError
        self._interrupted = False
        return await self.inbox.take()
