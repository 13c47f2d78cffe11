"""Giving runs back that had to stop because a store was away, so that somebody goes on with them (R-41)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from holdfast.errors import StoreError, StoreMovedError
from holdfast.types.clock import MICROS
from holdfast.types.ids import RunId
from holdfast.types.status import PARKED, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.driver.runtime import Runtime
    from holdfast.store.protocols import Claim, RunRow, Store
    from holdfast.types.record import Lease

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
        async def before(row: RunRow) -> RunStatus:
            return row.status if row.status in PARKED else RunStatus.resumable

        await let_go(self.runtime.store, claim.lease, before, int(rest * MICROS))


async def let_go(
    store: Store, lease: Lease, status: Callable[[RunRow], Awaitable[RunStatus]], rest: int = 0
) -> None:
    """The run is anybody's again, after `rest` microseconds. Where mail comes at that moment it is tried
    again: nobody keeps the lease any more, and it would lapse as if its worker had died."""
    while True:
        row = await store.get_run(lease.run)
        if row is None or row.term != lease.term or row.worker is None:
            return
        ready_at = store.now() + rest
        if await store.park(lease, status=await status(row), inbox_seen=row.inbox_seq, ready_at=ready_at):
            return
