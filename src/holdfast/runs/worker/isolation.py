"""Runs whose workers died twice in a row are claimed alone, so that the one that kills its workers is found
(ADR 140).

When a worker dies, any of the runs on it may be the cause. One that has lost two workers without progress in
between is a suspect: a worker on which no other run is under way claims it, and claims nothing else until the
run has made progress, has left the worker, or has run for long. So a run that dies again died by itself, and
no run is ever counted for the death of a worker that it shared. A suspect for which no worker becomes free is
claimed beside other runs in the end.
"""

from __future__ import annotations

from math import inf
from random import random
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from holdfast.errors import StoreError
from holdfast.store.recovery import PROGRESS
from holdfast.telemetry import log
from holdfast.types.clock import MICROS

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.runs.worker.worker import RunWorker
    from holdfast.store.rows import Claim, ClaimRequest

LEASES_ALONE: Final = 8
"""A suspect is alone for at most this many lease times, doubled with each further death: a handler of hours
must not have a worker for itself, and one that kills after an hour is found all the same."""
MAX_DOUBLINGS: Final = 8
MAX_LEASES_WAITED: Final = 4
"""So many lease times after it was ready, a suspect is claimed beside other runs: where handlers take
hours, no worker is ever without a run."""


class WorkerIsolation:
    """Of one worker. `claim` is asked before each claim."""

    def __init__(self, worker: RunWorker) -> None:
        self._worker = worker
        self._suspect: Claim | None = None
        self._stop_listening: Callable[[], None] | None = None
        self._until = 0.0
        self._next_look = 0.0
        # Claims are held back in this span, in seconds of the monotonic clock.
        self._room_from = self._room_until = -inf
        # Not all workers of a fleet make room at once for one suspect.
        self._patience = 1 + random()

    @property
    def holds_back(self) -> bool:
        """Nothing is claimed: a suspect is under way here, or is to be."""
        room = self._worker.runtime.clock.monotonic() < self._room_until
        return room or self._suspect is not None

    def look_soon(self) -> None:
        """There may be a suspect that this worker does not know of."""
        self._next_look = 0.0

    async def claim(self, want: ClaimRequest) -> list[Claim] | None:
        """A suspect, or nothing while other claims have to wait; None: claim other runs."""
        if self._suspect is not None and not await self._is_over(self._suspect):
            return []
        now = self._worker.runtime.clock.monotonic()
        if now < self._next_look:
            return [] if now < self._room_until else None
        self._next_look = now + self._lease / 3
        if not self._worker.claimed:
            return await self._claim_alone(want) or None
        if await self._waited(want, limited=True) > self._lease * MAX_LEASES_WAITED:
            return await self._claim_beside(want) or None
        return [] if self._makes_room(await self._waited(want), now) else None

    async def _waited(self, want: ClaimRequest, *, limited: bool = False) -> float:
        """Seconds since the first suspect that this worker serves was ready; 0.0: there is none."""
        since = await self._worker.store.next_suspect(want, limited=limited)
        return 0.0 if since is None else max((self._worker.store.now() - since) / MICROS, 1 / MICROS)

    async def _claim_beside(self, want: ClaimRequest) -> list[Claim]:
        """One at each look: those before it have had time to make progress, or to kill this worker."""
        claims = await self._worker.store.claim(replace(want, limit=1, suspects=True))
        for claim in claims:
            run = claim.run.id
            log.info("run %s runs beside others: no worker became free for it", run, extra={"run": run})
            try:
                await self._worker.store.end_isolation(claim.lease)
            except StoreError as error:
                # It runs all the same. A death now would be counted as its own.
                log.warning("the isolation of run %s could not be ended: %s", run, error)
        self._room_from = self._room_until = -inf
        return claims

    async def _claim_alone(self, want: ClaimRequest) -> list[Claim]:
        claims = await self._worker.store.claim(replace(want, limit=1, suspects=True))
        for claim in claims:
            run = claim.run.id
            deaths = len(await self._worker.store.deaths(run))
            doubled = 2 ** min(max(deaths - 2, 0), MAX_DOUBLINGS)
            self._until = self._worker.runtime.clock.monotonic() + self._lease * LEASES_ALONE * doubled
            self._suspect = claim
            self._stop_listening = self._worker.runtime.listen(run, self._worker.wake)
            log.info("run %s runs alone here: its last workers died", run, extra={"run": run})
        self._room_from = self._room_until = -inf
        return claims

    def _makes_room(self, waited: float, now: float) -> bool:
        """A suspect waits until a worker has nothing else to do. If none has for long, this one claims
        nothing for up to one lease time, and then claims as usual for as long."""
        if not waited:
            self._room_until = -inf
            return False
        self._worker.slots.park_idle()
        if self._worker.slots.busy and waited < self._lease * self._patience:
            return False
        if now >= self._room_from + 2 * self._lease:
            self._room_from, self._room_until = now, now + self._lease
        self._next_look = 0.0
        return now < self._room_until

    async def _is_over(self, claim: Claim) -> bool:
        """Whether other runs may be claimed again."""
        run = claim.run.id
        if run in self._worker.claimed:
            late = self._worker.runtime.clock.monotonic() >= self._until
            if not late and not await self._has_progressed(claim):
                return False
            try:
                # Before anything is claimed beside it: a death counts as long as it is a suspect.
                await self._worker.store.end_isolation(claim.lease)
            except StoreError as error:
                log.warning("the isolation of run %s could not be ended: %s", run, error)
                return False
        if self._stop_listening is not None:
            self._stop_listening()
        self._suspect = self._stop_listening = None
        self.look_soon()
        return True

    async def _has_progressed(self, claim: Claim) -> bool:
        first = claim.run.head + 1
        records = await self._worker.store.read(claim.run.id, first=first, payloads=False)
        return any(record.kind in PROGRESS for record in records)

    @property
    def _lease(self) -> float:
        return self._worker.runtime.settings.lease_ttl
