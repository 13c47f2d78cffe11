"""Releasing a run: any worker may claim it again, at once or after a delay.

A run that stopped because the store was unavailable is released when the store is back (R-41).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from holdfast.errors import StoreError, StoreMovedError
from holdfast.runs.driver.services import RunServices
from holdfast.runs.encryption.detect import encrypted_store_within
from holdfast.store.protocols import Store
from holdfast.store.rows import Claim, RunRow
from holdfast.types.backoff import Backoff
from holdfast.types.clock import MICROS
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.status import PARKED, HoldStatus, RunStatus

STORE_BACKOFF: Final = Backoff(first=0.1, longest=5.0)
RUN_BACKOFF: Final = Backoff(first=0.5, longest=60.0)
_REMEMBERED: Final = 10_000


async def release_run(
    store: Store, lease: Lease, status: Callable[[RunRow], Awaitable[RunStatus]], rest: int = 0
) -> None:
    """Claimable again after `rest` microseconds. Retried if an inbox row arrives at that moment: no heartbeat
    extends the lease any more, and it would expire as if its worker had died."""
    while True:
        row = await store.get_run(lease.run)
        # A higher term: another worker has it. No worker: an earlier call parked it and its answer was lost.
        if row is None or row.term != lease.term or row.worker is None:
            return
        ready_at = store.now() + rest
        if await store.park(lease, status=await status(row), inbox_seen=row.inbox_seq, ready_at=ready_at):
            return


async def release_unserved(store: Store, lease: Lease, rest: int) -> None:
    """This process cannot serve the run: it is released for a worker that can, which may claim it first."""
    await release_run(store, lease, partial(_status_before, store), rest)


async def _status_before(store: Store, row: RunRow) -> RunStatus:
    """From columns that need neither the run's code nor its key: a claim overwrites the old status.

    Unread inbox rows show what a parked run waited for. A run that was interrupted while it also waited for a
    person is shown as waiting for that person; it can be claimed all the same. A run that had not started is
    resumable: no run is pending again once it was claimed.
    """
    encrypted = encrypted_store_within(store)
    plain = store if encrypted is None else encrypted.inner
    _, unread = await plain.pending(row.id)
    kinds = {message.kind for message in unread}
    if kinds & {"answer", "lapse"} or await plain.holds(run=row.id, status=HoldStatus.pending, limit=1):
        return RunStatus.pending_input
    return RunStatus.waiting if "timer" in kinds else RunStatus.resumable


class ReleaseAfterOutage:
    """A run that stopped once may resume at once: the store was unavailable, and answers again. One that
    stops repeatedly lacks something else (its blobs): its delay grows each time, and it never fails."""

    def __init__(self, services: RunServices) -> None:
        self.services = services
        self._stopped: dict[RunId, int] = {}

    def mark_healthy(self, run: RunId) -> None:
        self._stopped.pop(run, None)

    async def release(self, claim: Claim) -> None:
        """When the store is back, so that its outage does not count as a death of the run's worker. Evidence
        about effects is reported first: the worker that claims the run finds it."""
        rest = self._rest(claim.run.id)
        pauses = STORE_BACKOFF.pauses()
        while True:
            try:
                await self.services.evidence_outbox.report(claim.run.id)
                await self._release(claim, rest)
                return
            except StoreMovedError:
                return  # the run was moved with the store
            except StoreError:
                await self.services.clock.sleep(next(pauses))

    def _rest(self, run: RunId) -> float:
        if len(self._stopped) > _REMEMBERED:
            # Costs a few runs their longer delay once; otherwise the entries of a worker of months would only
            # grow.
            self._stopped.clear()
        times = self._stopped[run] = self._stopped.get(run, 0) + 1
        return 0.0 if times == 1 else RUN_BACKOFF.pause(times - 1)

    async def _release(self, claim: Claim, rest: float) -> None:
        async def before(row: RunRow) -> RunStatus:
            # A run that was shown as waiting while it was in memory still waits for the same.
            return row.status if row.status in PARKED else RunStatus.resumable

        await release_run(self.services.store, claim.lease, before, int(rest * MICROS))
