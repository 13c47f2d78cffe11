"""The reaper: any worker frees the runs whose worker stopped heartbeating, for all."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import StoreError, StoreMovedError
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.telemetry import log
from holdfast.types.clock import MICROS, Clock
from holdfast.types.status import RunStatus

BATCH = 100


class Reaper:
    """Runs whose worker stopped heartbeating become resumable; after `max_recoveries` in a row without
    progress they are dead: failed, with the evidence. From the second on each waits: `backoff` seconds,
    doubled each time, so that a run that kills workers leaves them time for others. A death counts only if
    the worker had no other run (`runs.worker.isolation`)."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        every: float = 10.0,
        max_recoveries: int = 5,
        backoff: float = 0.0,
        found: Callable[[], None] | None = None,
    ) -> None:
        """`found` is called when runs were taken from a worker that died."""
        self.store = store
        self.clock = clock
        self.every = every
        self.max_recoveries = max_recoveries
        self.backoff = int(backoff * MICROS)
        self._found = found
        self._away = False
        self._lease = 3 * every
        # Since when each lease that ends too late is known, unchanged, in seconds of the monotonic clock.
        self._seen: dict[tuple[int, int, int | None], float] = {}
        self._newest = 0
        self._looked = 0.0  # at that time, in seconds of the monotonic clock

    async def sweep(self) -> list[RunRow]:
        await self._correct_times()
        found: list[RunRow] = []
        while True:
            rows = await self.store.reclaim(
                limit=BATCH, max_recoveries=self.max_recoveries, backoff=self.backoff
            )
            found += rows
            if len(rows) < BATCH:
                break
        for row in found:
            _log_reclaimed(row)
        if self._found is not None and any(row.suspect for row in found):
            self._found()
        return found

    async def _correct_times(self) -> None:
        """A clock that was set back makes leases, and delays after a recovery, end much later than they were
        meant to: no run of a dead worker waits for that."""
        # First of all, too: the clock may have been set while no reaper looked.
        if self.store.now() < self._newest or not self._newest:
            await self.store.correct_ready_times()
        self._newest, self._looked = self.store.now(), self.clock.monotonic()
        ahead = await self.store.leases_ahead(int(self._lease * MICROS), limit=BATCH)
        stale = await self._stale(ahead) if ahead else []
        self._seen = {each: since for each, since in self._seen.items() if each in set(map(_mark, ahead))}
        if stale and await self.store.expire_leases(stale):
            log.warning("%s leases end too late, the clock was set back: they are ended", len(stale))

    def _has_leapt(self) -> bool:
        """Whether the clock was set forward since the last sweep, by so much that leases of live workers may
        have expired."""
        if not self._newest:
            return False
        passed = self.clock.monotonic() - self._looked
        return (self.store.now() - self._newest) / MICROS > passed + self.every

    async def _stale(self, ahead: list[RunRow]) -> list[RunRow]:
        """Leases that were not extended for as long as their worker asked for. By the monotonic clock: a live
        worker extends its leases every third of that."""
        asked = {worker.name: worker.until - worker.seen_at for worker in await self.store.workers()}
        now, elapsed = self.store.now(), self.clock.monotonic()
        stale: list[RunRow] = []
        for row in ahead:
            left = (row.lease_until or 0) - now
            length = asked.get(row.worker or "")
            if length is not None and left <= length:
                continue  # its leases are longer than ours
            # How long the leases of a program that is no worker are is not known: at most what is left, and
            # it extends them every third.
            wait = max(self._lease, (left / 2 if length is None else length) / MICROS)
            if elapsed - self._seen.setdefault(_mark(row), elapsed) >= wait:
                stale.append(row)
        return stale

    async def serve(self) -> None:
        """Until cancelled. Raises StoreMovedError. After an outage every worker may extend its leases first:
        those that expired while the store was unavailable are not deaths (D-33). Nor are those that expired
        because the clock was set forward, or the machine slept."""
        while True:
            try:
                if self._away or self._has_leapt():
                    # Any cheap read: it shows whether the store answers again.
                    await self.store.next_timer()
                    self._away = False
                    # One and a half heartbeats: by then every live worker has extended its leases, which
                    # succeeds even after they expired.
                    await self.clock.sleep(self.every * 1.5)
                await self.sweep()
            except StoreMovedError:
                raise
            except StoreError as error:
                self._away = True
                log.warning("the reaper could not reach the store: %s", error)
            await self.clock.sleep(self.every)


def _mark(row: RunRow) -> tuple[int, int, int | None]:
    return row.key, row.term, row.lease_until


def _log_reclaimed(row: RunRow) -> None:
    about = {"run": row.id, "flow": row.flow, "seq": row.head}
    if row.status is RunStatus.failed:
        hint = f"See `holdfast dead show {row.id[:8]}`."
        log.error("run %s is given up: %s %s", row.id, row.error, hint, extra=about)
    else:
        message = "the worker of run %s stopped heartbeating; the run is %s again"
        log.warning(message, row.id, row.status, extra=about)
