"""The outcomes of a run's effects, remembered until they are committed, and reported if the run is lost
(D-17).

Fencing stops writes to the journal, not effects in progress. What a worker that lost a run still knows about
its effects is stored beside their intents, unfenced, so that an effect in doubt is resolved without a person.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from holdfast.engine.messages import HandlerFinished, SubstepEvidence
from holdfast.errors import StoreError
from holdfast.runs.driver.evidence_outbox import Evidence, encode_evidence
from holdfast.runs.driver.session import RunSession
from holdfast.telemetry import log
from holdfast.types.acknowledged import AcknowledgedState

NEVER = 1 << 62  # the seq of a record that was not written: no commit reaches it


class LateEvidence:
    def __init__(self, session: RunSession) -> None:
        self.session = session
        # Effects that ended: (seq of the record that contains the outcome, seq of the intent, outcome).
        self._uncommitted: list[tuple[int, int, HandlerFinished | SubstepEvidence]] = []

    def add_finished(self, message: HandlerFinished, seq: int) -> None:
        """A handler has ended; record `seq` will contain the outcome."""
        execution = self.session.pos.execs.get((message.scope, message.node))
        # An unknown outcome is no evidence, and a probe can be asked again by the next worker.
        if execution is not None and execution.intent >= 0 and not message.unknown and message.probe is None:
            self.add(seq, execution.intent, message)

    def add(self, seq: int, intent: int, evidence: HandlerFinished | SubstepEvidence) -> None:
        committed = self.session.queue.committed
        # Dropped here and not at each commit: a commit should cost nothing for runs without effects.
        if self._uncommitted and self._uncommitted[0][0] <= committed:
            self._uncommitted = [known for known in self._uncommitted if known[0] > committed]
        self._uncommitted.append((seq, intent, evidence))

    async def report_lost_run(self) -> None:
        """The run is lost. The outcomes of its effects are reported unfenced, for the worker that has it now.
        If the store is unavailable, they are reported when it is back."""
        session, outbox = self.session, self.session.services.evidence_outbox
        # Kept before it is reported: if this attempt fails, the outbox continues to try.
        outbox.keep(session.run, await self.collect())
        with suppress(StoreError):
            await outbox.report(session.run)
        await verify_acknowledged(session)

    async def collect(self) -> Evidence:
        """The outcomes of effects of this run that no record contains; running effects may end now."""
        session = self.session
        waiting = [task for key, task in session.tasks.items() if session.is_effect(key)]
        if waiting:
            await asyncio.wait(waiting, timeout=session.services.settings.grace)
        for message in session.finished:
            if isinstance(message, HandlerFinished):
                self.add_finished(message, NEVER)
        committed, registry = session.queue.committed, session.codec.registry
        return [
            (intent, encode_evidence(found, registry))
            for seq, intent, found in self._uncommitted
            if seq > committed
        ]


async def verify_acknowledged(session: RunSession) -> None:
    """Compare what the store acknowledged to us with what it has now: it may have lost history, by a failover
    or a restored backup. While it is unavailable, the next worker that claims the run does this."""
    run = session.run
    try:
        known = await _acknowledged(session)
        row = None if known is None else await session.store.lost_history(known)
    except StoreError as error:
        log.warning(
            "run %s: could not check whether its history is complete: %s", run, error, extra={"run": run}
        )
        return
    if row is not None:
        log.error("run %s stops. %s", run, row.error, extra={"run": run, "seq": row.head})


async def _acknowledged(session: RunSession) -> AcknowledgedState | None:
    queue, lease = session.queue, session.lease
    last = queue.last
    if last is not None:
        return AcknowledgedState(
            run=lease.run, head=last.seq, term=last.term, at=last.at, worker=lease.worker
        )
    # Nothing was written here yet: only what was loaded is known.
    row = await session.store.get_run(lease.run)
    if row is None or row.head >= queue.committed:
        return None
    loaded_at = session.row.updated_at
    return AcknowledgedState(
        run=lease.run, head=queue.committed, term=lease.term, at=loaded_at, worker=lease.worker
    )
