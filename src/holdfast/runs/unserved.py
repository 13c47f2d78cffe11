"""Work that no live worker takes: ready runs by lane and version, and schedules by flow; and the runs that
this process had begun and released, because it lacks what they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from holdfast.errors import HoldfastError, RunFileMissingError, StoreError
from holdfast.model.fingerprint import CODED, dialect_of, requirements_in
from holdfast.runs.driver.settings import ALLOW_CODE
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.store.unserved import missing_mark
from holdfast.telemetry import log
from holdfast.types.backoff import Backoff
from holdfast.types.clock import MICROS, Clock
from holdfast.types.fleet import FleetFigures, ScheduledFlow, VersionBacklog, WorkerRow
from holdfast.types.ids import RunId
from holdfast.types.status import CLAIMABLE

_HOW_TO_GET: Final = {
    "agent": "the agent's program on its PATH",
    "backend": "`--backend [NAME=]SPEC`",
    "backend:default": "`--backend SPEC` or a provider's key in its environment",
    "backend:model": "a provider's key in its environment",
    "commit": "the commit in its repository",
    "file": "the file",
    "handler": "`--handlers MODULE`",
    "kit": "`tools` in the file of its HOLDFAST_MODELS",
    "program": "the program on its PATH",
    "provider": "the provider's key in its environment",
    "repository": "the repository",
    "setting:tool-sandbox": "a HOLDFAST_TOOL_SANDBOX that can be used there",
    ALLOW_CODE: "`--allow-code`",
}
"""By a requirement or its kind: how a worker gets it."""


class UnservedWork(msgspec.Struct, frozen=True):
    """`lanes`: ready runs in a lane that no worker serves; `versions`: those whose lane is served, but by no
    worker that has their code."""

    lanes: list[VersionBacklog]
    versions: list[VersionBacklog]
    schedules: list[ScheduledFlow]

    @property
    def runs(self) -> list[VersionBacklog]:
        return [*self.lanes, *self.versions]


def find_unserved(figures: FleetFigures, workers: Iterable[WorkerRow]) -> UnservedWork:
    serving = [row for row in workers if row.is_alive(figures.at) and not row.draining]
    flows = {flow for row in serving for flow in row.versions.values()}
    lanes: list[VersionBacklog] = []
    versions: list[VersionBacklog] = []
    for work in figures.versions:
        here = [row for row in serving if row.lanes is None or work.lane in row.lanes]
        if not here:
            lanes.append(work)
        elif not any(serves(row, work.version) for row in here):
            versions.append(work)
    return UnservedWork(lanes, versions, [each for each in figures.scheduled if each.flow not in flows])


async def missing_requirements(store: Store, rows: Sequence[RunRow]) -> dict[RunId, tuple[str, ...]]:
    """By run that could be claimed: what it needs and no live worker has. Empty while no worker is alive at
    all: then every run waits for one."""
    ready = [row for row in rows if row.worker is None and row.status in CLAIMABLE]
    ready = [row for row in ready if dialect_of(row.version) != CODED]
    alive = await live_workers(store) if ready else []
    found: dict[RunId, tuple[str, ...]] = {}
    needs: dict[tuple[str, str], frozenset[str]] = {}
    for row in ready if alive else ():
        version = (row.flow, row.version)
        if version not in needs:
            needs[version] = await needs_of(store, row)
        names = (row.id, row.version)
        missing = missing_of(row.lane, needs[version], alive) or released_for(row.lane, names, alive)
        if missing:
            found[row.id] = missing
    return found


async def needs_of(store: Store, row: RunRow) -> frozenset[str]:
    """What the run needs of any worker."""
    stored = None if dialect_of(row.version) == CODED else await store.flow(row.flow, row.version)
    return frozenset() if stored is None else requirements_in(stored.graph)


async def live_workers(store: Store) -> list[WorkerRow]:
    now = store.now()
    return [row for row in await store.workers() if row.is_alive(now) and not row.draining]


async def is_unserved(store: Store, row: RunRow) -> bool:
    """A run that no worker has, and that none which is alive would claim."""
    if row.worker is not None or row.status not in CLAIMABLE:
        return False
    here = [each for each in await live_workers(store) if each.lanes is None or row.lane in each.lanes]
    return not any(serves(each, row.version) for each in here)


def missing_of(lane: str, wanted: frozenset[str], alive: Sequence[WorkerRow]) -> tuple[str, ...]:
    """What no live worker of the lane has of this."""
    here = [each for each in alive if each.lanes is None or lane in each.lanes]
    if not wanted or any(wanted <= frozenset(each.offers) for each in here):
        return ()
    somewhere = frozenset(word for each in here for word in each.offers)
    # Each word may be somewhere, but not all of them in one place.
    return tuple(sorted(wanted - somewhere or wanted))


def released_for(lane: str, names: Sequence[str], alive: Sequence[WorkerRow]) -> tuple[str, ...]:
    """What a run or its version needs that every live worker of its lane found it does not have: a program, a
    file, a commit."""
    here = [each for each in alive if each.lanes is None or lane in each.lanes]
    lacks = [next(filter(None, map(each.unserved.get, names)), ()) for each in here]
    return tuple(sorted({word for words in lacks for word in words})) if all(lacks) else ()


def serves(row: WorkerRow, version: str) -> bool:
    """The program of a stored document is built by any worker that has what the document names."""
    return version in row.versions if dialect_of(version) == CODED else version not in row.lacking


def how_to_get(missing: Iterable[str]) -> str:
    """How to give a worker what runs need: `agent:codex`, `provider:openai`."""
    return ", ".join(dict.fromkeys(_means(word) for word in missing))


def _means(word: str) -> str:
    kind, _, name = word.partition(":")
    if word not in _HOW_TO_GET and kind == "setting":
        return f"the setting `{name}`"
    return _HOW_TO_GET.get(word, _HOW_TO_GET.get(kind, word))


FILE_BACKOFF: Final = Backoff(first=10.0, longest=300.0)
"""Seconds until a run that misses a file is tried again: each try is in its history."""
_REMEMBERED: Final = 1_000


class ReleasedRuns:
    """Runs that this process had begun and released: what they need, and when they are tried again."""

    def __init__(self) -> None:
        self._words: dict[str, tuple[str, ...]] = {}
        self._tries: dict[RunId, int] = {}

    def note(self, run: RunId, version: str, error: HoldfastError) -> None:
        """A file, a program or a commit is noted for this run alone, anything else for its version."""
        missing: Any = error.facts.get("missing", ())
        of_run = isinstance(error, RunFileMissingError)
        self._words[run if of_run else version] = tuple(missing)
        for old in list(self._words)[:-_REMEMBERED]:
            del self._words[old]

    def rest(self, run: RunId) -> int:
        """Microseconds until this process tries the run again, longer each time."""
        if len(self._tries) > _REMEMBERED:
            self._tries.clear()
        times = self._tries[run] = self._tries.get(run, 0) + 1
        return int(FILE_BACKOFF.pause(times) * MICROS)

    def forget(self, run: RunId) -> None:
        """It was served here."""
        self._words.pop(run, None)
        self._tries.pop(run, None)

    def words(self, lacking: Iterable[str], most: int) -> dict[str, tuple[str, ...]]:
        """By run or version, the newest. `lacking`: the versions whose runs this process leaves to others."""
        left = set(lacking)
        found = {key: words for key, words in self._words.items() if key in self._tries or key in left}
        return dict(list(found.items())[-most:])


BATCH: Final = 200
_OVERLAP: Final = 60_000_000  # microseconds; rows may become visible later than the instant in them


class UnservedSweep:
    """Adds an event to runs that wait for what no live worker has, one for each change, in any worker for all
    runs. It asks for runs by version, and only for those of versions that require something."""

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
