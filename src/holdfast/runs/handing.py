"""Giving runs back that had to stop because a store was away, so that somebody goes on with them (R-41)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.errors import StoreError, StoreMovedError
from holdfast.types.clock import MICROS
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, PARKED, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.runtime import Runtime
    from holdfast.store.base import Claim

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
LONGEST_REST: Final = 60.0  # seconds between two tries of one run
_REMEMBERED: Final = 10_000


class Hands:
    """A run that stopped once may go on at once: the store was away, and answers again. One that stops again
    and again misses something else (its blobs), and rests longer each time; it never fails for that."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._stopped: dict[RunId, int] = {}

    def is_well(self, run: RunId) -> None:
        self._stopped.pop(run, None)

    async def back(self, claim: Claim) -> None:
        """When the store is well again, so that its trouble does not count as a death of the run's worker.
        What is known of effects is told first: who takes the run up finds it."""
        rest = self._rest(claim.run.id)
        pause = FIRST_PAUSE
        while True:
            try:
                await self.runtime.testimonies.tell(claim.run.id)
                await self._park(claim, rest)
                return
            except StoreMovedError:
                return  # it went along as it stood
            except StoreError:
                await self.runtime.clock.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _rest(self, run: RunId) -> float:
        if len(self._stopped) > _REMEMBERED:
            self._stopped.clear()
        times = self._stopped[run] = self._stopped.get(run, 0) + 1
        return 0.0 if times == 1 else min(0.5 * 2.0 ** (times - 2), LONGEST_REST)

    async def _park(self, claim: Claim, rest: float) -> None:
        store = self.runtime.store
        row = await store.get_run(claim.run.id)
        if row is None or row.term != claim.lease.term or row.status in ENDED:
            return
        status = row.status if row.status in PARKED else RunStatus.resumable
        ready_at = store.now() + int(rest * MICROS)
        await store.park(claim.lease, status=status, inbox_seen=row.inbox_seq, ready_at=ready_at)
