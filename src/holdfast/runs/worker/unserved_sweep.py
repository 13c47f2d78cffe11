"""Events for runs that wait for what no live worker has: one for each change, by any worker for all runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from holdfast.errors import StoreError
from holdfast.model.fingerprint import CODED, dialect_of, requirements_in
from holdfast.runs.unserved import live_workers, missing_of, released_for
from holdfast.store.protocols import Store
from holdfast.store.unserved import missing_mark
from holdfast.telemetry import log
from holdfast.types.clock import Clock
from holdfast.types.fleet import WorkerRow
from holdfast.types.ids import RunId

BATCH: Final = 200
_OVERLAP: Final = 60_000_000  # microseconds; rows may become visible later than the instant in them


class UnservedSweep:
    """It asks for runs by version, and only for those of versions that require something."""

    def __init__(self, store: Store, clock: Clock, *, every: float = 10.0) -> None:
        self.store = store
        self.clock = clock
        self.every = every
        self._required: dict[tuple[str, str], frozenset[str]] = {}
        self._since = 0

    async def sweep(self) -> int:
        """How many events were added."""
        await self._look()
        if not any(self._required.values()):
            return 0
        versions = sorted({version for (_, version), words in self._required.items() if words})
        alive = await live_workers(self.store)
        released = await self._released(alive)
        added = 0
        for runs in await self.store.waiting_runs(versions):
            # While no worker is alive at all, every run waits for one; so the views say nothing either.
            words = self._required.get((runs.flow, runs.version), frozenset())
            missing = missing_of(runs.lane, words, alive) if alive else ()
            missing = missing or released_for(runs.lane, (runs.version,), alive)
            if missing_mark(missing) != runs.mark:
                tell = partial(self.store.tell_missing, runs, missing, limit=BATCH, but=list(released))
                while (count := await tell()) == BATCH:
                    added += count
                added += count
        for run, missing in released.items():
            added += await self.store.tell_run(run, missing)
        while (count := await self.store.tell_taken(limit=BATCH)) == BATCH:
            added += count
        return added + count

    async def _released(self, alive: Sequence[WorkerRow]) -> dict[RunId, tuple[str, ...]]:
        """Runs that had begun, and that every live worker has given back: what each of them waits for."""
        found: dict[RunId, tuple[str, ...]] = {}
        for name in sorted({name for each in alive for name in each.unserved})[:BATCH]:
            row = await self.store.get_run(RunId(name))
            missing = () if row is None else released_for(row.lane, (row.id,), alive)
            if row is not None and missing:
                found[row.id] = missing
        return found

    async def _look(self) -> None:
        """At the versions that were stored since the last look."""
        rows = await self.store.flows(self._since - _OVERLAP if self._since else 0)
        for row in rows:
            if (row.name, row.version) not in self._required and dialect_of(row.version) != CODED:
                self._required[row.name, row.version] = requirements_in(row.graph)
        self._since = max((self._since, *(row.created_at for row in rows)))

    async def serve(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.sweep()
            except StoreError as error:
                log.warning("runs that no worker serves could not be reported: %s", error)
            await self.clock.sleep(self.every)
