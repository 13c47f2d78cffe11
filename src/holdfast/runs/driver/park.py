"""How a run leaves memory: it parks if it waits, or is released for any worker at once."""

from __future__ import annotations

import asyncio
from functools import partial

from holdfast.engine.decision import CannotContinueError, Decision
from holdfast.engine.end import fail_run
from holdfast.engine.messages import RunRecovered
from holdfast.errors import HoldfastError
from holdfast.model.branch_ordinals import has_branches
from holdfast.model.position import Exec, Position, waits_inside
from holdfast.runs.driver.handler_tasks import HandlerTasks
from holdfast.runs.driver.record_writer import RecordWriter
from holdfast.runs.driver.release import release_run
from holdfast.runs.driver.session import RunSession
from holdfast.runs.recorder.queue import retry_while_unavailable
from holdfast.store.rows import RunRow
from holdfast.telemetry import crashpoint, log
from holdfast.types.record import Park
from holdfast.types.status import PARKED, RunStatus


def _may_work(pos: Position, execution: Exec) -> bool:
    """Of a script with branches only its code knows whether all of them wait."""
    return not waits_inside(pos, execution) or has_branches(execution.subs)


class DriverPark:
    def __init__(self, session: RunSession, tasks: HandlerTasks, writer: RecordWriter) -> None:
        self.session = session
        self.tasks = tasks
        self.writer = writer

    async def park(self) -> RunStatus | None:
        """Release the run until something happens to it. None if its inbox grew meanwhile (D-29)."""
        session = self.session
        if session.tasks:
            # A handler whose answer was just set continues in the loop's next turn only.
            await asyncio.sleep(0)
        if session.wake.is_set() or self.tasks.is_working():
            # Something was about to happen: another question of the same handler, or an end.
            return None
        await self.tasks.suspend_all()
        if session.left_running and not session.draining:
            # A function that was asking ends now; one that does not keeps the run here.
            await asyncio.wait(session.left_running, timeout=session.services.settings.grace)
        if session.finished or session.left_running:
            return None
        # A parked run is woken by a hold or a timer. Without one it would never be claimed again.
        if not session.pos.holds and not session.pos.timers:
            if self.writer.write(self._stalled()):
                await session.recorder.committed(session.queue, session.pos.head)
            return None
        crashpoint("before_park")
        status = RunStatus.pending_input if session.pos.holds else RunStatus.waiting
        # The park ends our lease: a heartbeat that finds it gone now must not treat the run as lost.
        session.leaving = True
        parked = await self._commit_park(Park(status, session.inbox_seen))
        session.leaving = parked
        if not parked:
            return await self._not_parked()
        crashpoint("after_park")
        return status

    async def _commit_park(self, park: Park) -> bool:
        """In one commit with the last records, if there are any."""
        session, queue = self.session, self.session.queue
        queue.park, queue.parked = park, False
        try:
            await session.recorder.committed(queue, session.pos.head)
        finally:
            # Whatever happened: a later settle of a run that continues must not park it.
            queue.park = None
        if queue.parked:
            return True
        # Not parked by a settle: there were no unwritten records, or a message arrived. In the second case
        # this call is refused too.
        ask = partial(
            session.store.park,
            session.lease,
            status=park.status,
            inbox_seen=park.inbox_seen,
            ready_at=park.ready_at,
        )
        return await retry_while_unavailable(ask, queue)

    async def _not_parked(self) -> RunStatus | None:
        session = self.session
        row = await retry_while_unavailable(partial(session.store.get_run, session.run), session.queue)
        # The park was refused: either the term is not ours any more, or a message arrived.
        if row is None or row.term != session.lease.term:
            session.lost = True
            raise session.lease_lost_error()
        if row.worker is None and row.status in PARKED:
            # It was done the first time, and the answer was lost.
            session.leaving = True
            return row.status
        return None

    def _stalled(self) -> Decision:
        session = self.session
        decision = session.decision()
        names = ", ".join(sorted(session.node(e).id for e in session.pos.execs.values())) or "no node"
        fail_run(decision, CannotContinueError("stall", f"work remains but nothing can start ({names})", ""))
        session.finished.append(RunRecovered())
        return decision

    async def leave(self) -> RunStatus:
        """No handler runs any more: park if the run waits, else release it."""
        pos = self.session.pos
        starting = any(e.phase == "work" and _may_work(pos, e) for e in pos.execs.values())
        if not starting and (pos.holds or pos.timers):
            parked = await self.park()
            if parked is not None:
                return parked
        await self.release()
        return RunStatus.resumable

    async def _status(self, _row: RunRow) -> RunStatus:
        return self.writer.idle_status or RunStatus.resumable

    async def release(self, rest: int = 0) -> None:
        """Claimable again by any worker, after `rest` microseconds."""
        session = self.session
        # A process that shuts down does not wait for a store that is unavailable.
        session.queue.patience = 0.0
        try:
            # Handlers first: only when none runs it is certain which effects did not begin.
            await self.tasks.stop(set())
            self.writer.withdraw()
            await session.recorder.committed(session.queue, session.pos.head)
            if session.left_running:
                message = "run %s keeps its entity until its lease expires: its code still runs here"
                log.warning(message, session.run, extra={"run": session.run, "seq": session.pos.head})
                return
            await release_run(session.store, session.lease, self._status, rest)
        # Not an error of the caller: the journal is complete, and the lease expires by itself.
        except HoldfastError as error:
            message = "run %s could not be released, its lease will expire: %s"
            log.warning(message, session.run, error, extra={"run": session.run, "seq": session.pos.head})
