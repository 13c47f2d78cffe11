"""The rule of the concurrency limits: which runs they admit now. A store fills an `Admission` with what it
read under its lock, asks it while it chooses runs, and writes the starts that it counted. No store decides
about limits by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from holdfast.store.rows import Claim
from holdfast.types.concurrency_limits import EACH_KEY, LimitRow, is_entity, path_of, root_of
from holdfast.types.record import RunBatch
from holdfast.types.status import ENDED

# Sorts after every key, so that one range of names covers all keys of a flow.
LAST_KEY = "\U0010ffff"
_EXPIRY_MARGIN = 100_000  # microseconds
_SOON = 0.01  # seconds


class Window(msgspec.Struct, frozen=True):
    """Starts of limits from `low` to `high` count if they are later than `since`."""

    low: str
    high: str
    since: int


class CountedStart(msgspec.Struct, frozen=True):
    """A start that counts against a rate, until it leaves the window."""

    limit: str
    at: int
    until: int


class ClaimResult(msgspec.Struct, frozen=True):
    """What a claim took, and whether a limit stopped other runs: then each place that becomes free wakes the
    workers."""

    claims: list[Claim]
    kept_out: bool = False
    opens_at: int | None = None  # when a rate lets the next one start


class Admission:
    def __init__(self, limits: Iterable[LimitRow], now: int) -> None:
        self.now = now
        # When a rate will admit a run that it has just stopped.
        self.opens_at: int | None = None
        self._limits: dict[str, LimitRow] = {}
        # What an operator fixed has priority over what the flow declares.
        for limit in limits:
            if limit.fixed or limit.name not in self._limits:
                self._limits[limit.name] = limit
        self._held: Counter[str] = Counter()
        self._started: Counter[str] = Counter()
        self._oldest: dict[str, int] = {}

    # ------------------------------------------------------------------ filling
    def holds(self, name: str, count: int = 1) -> None:
        """Count that many runs with this limit as having a lease."""
        for limit in path_of(name):
            self._held[limit] += count

    def windows(self) -> list[Window]:
        """The windows in which starts have to be counted."""
        found: list[Window] = []
        for limit in self._limits.values():
            if limit.rate is not None:
                each = limit.name.endswith(f"/{EACH_KEY}")
                low = limit.name.removesuffix(EACH_KEY) if each else limit.name
                found.append(Window(low, low + LAST_KEY if each else low, self.now - limit.per))
        return found

    def started(self, window: Window, name: str, count: int, oldest: int) -> None:
        """Add what was found in a window. A key with its own row is also inside the window of `*`, which has
        another length: only the window that applies to it counts."""
        limit = self.limit(name)
        if limit is not None and limit.rate is not None and self.now - limit.per == window.since:
            self._started[name] = count
            self._oldest[name] = oldest

    # ------------------------------------------------------------------ asking
    def limit(self, name: str) -> LimitRow | None:
        """The limit that applies to this name: its own row, or the row for each key."""
        if is_entity(name):
            return self._entity(name)
        own = self._limits.get(name)
        if own is None and "/" in name:
            return self._limits.get(f"{root_of(name)}/{EACH_KEY}")
        return own

    def _entity(self, name: str) -> LimitRow:
        """Of an entity one run at a time; whether another is live and parked, the store sees itself. None if
        an operator stopped all keys."""
        each = self._limits.get(f"{root_of(name)}/{EACH_KEY}")
        stopped = each is not None and each.concurrency == 0
        return LimitRow(name=name, concurrency=0 if stopped else 1)

    def names(self) -> list[str]:
        return list(self._limits)

    def seen(self, name: str) -> LimitRow:
        """For lists: also a key without a row."""
        own, limit = self._limits.get(name), self.limit(name)
        if own is not None or limit is None:
            return own or LimitRow(name=name)
        return msgspec.structs.replace(limit, name=name, updated_at=0)

    def passes(self, name: str, *, starts: bool) -> bool:
        """Whether a run with this limit may be claimed; `starts`: for the first time."""
        return all(self._open(limit, starts) for limit in path_of(name))

    def _open(self, name: str, starts: bool) -> bool:
        limit = self.limit(name)
        if limit is None:
            return True
        if limit.concurrency is not None and self._held[name] >= limit.concurrency:
            return False
        # A rate limits first starts: a run that resumes was counted when it started.
        if not starts or limit.rate is None or self._started[name] < limit.rate:
            return True
        opens = self._oldest.get(name, self.now) + limit.per
        self.opens_at = opens if self.opens_at is None else min(self.opens_at, opens)
        return False

    def open_queues(self, lines: Iterable[str]) -> list[str]:
        """Those of the queues (see `queue_of`) whose first limit admits runs."""
        return [line for line in lines if self._open(line[1:], line.startswith("+"))]

    def exempt(self, line: str) -> list[str] | None:
        """If an operator stopped all keys (a concurrency of 0): the keys with their own row, and the runs
        without a key. None otherwise: then `shut` is enough."""
        root = line[1:]
        each = self._limits.get(f"{root}/{EACH_KEY}")
        if each is None or each.concurrency != 0:
            return None
        return sorted({root, *(name for name in self._limits if root_of(name) == root)} - {each.name})

    def shut(self, *, starts: bool) -> list[str]:
        """Keys whose limit is reached now, whether or not that of their flow is."""
        busy = [name for name in {**self._held, **self._started, **self._limits} if "/" in name]
        return sorted(name for name in busy if not self._open(name, starts))

    def room(self, name: str, *, starts: bool) -> int | None:
        """The number of runs that it admits now; None: any number."""
        rooms: list[int] = []
        for place in path_of(name):
            limit = self.limit(place)
            if limit is not None and limit.concurrency is not None:
                rooms.append(limit.concurrency - self._held[place])
            if limit is not None and limit.rate is not None and starts:
                rooms.append(limit.rate - self._started[place])
        return max(0, min(rooms)) if rooms else None

    # ------------------------------------------------------------------ counting
    def admit(self, name: str, count: int, *, starts: bool) -> int:
        """How many of `count` runs are admitted, as if they were claimed. For statistics."""
        room = self.room(name, starts=starts)
        passing = count if room is None else min(count, room)
        self.holds(name, passing)
        if starts:
            for place in path_of(name):
                self._started[place] += passing
        return passing

    def enter(self, name: str, *, starts: bool) -> list[CountedStart]:
        """Count a run that was claimed. Returns the starts to be written."""
        self.holds(name)
        return self._count(name) if starts else []

    def _count(self, name: str) -> list[CountedStart]:
        found: list[CountedStart] = []
        for place in path_of(name):
            limit = self.limit(place)
            if limit is not None and limit.rate is not None:
                self._started[place] += 1
                self._oldest.setdefault(place, self.now)
                found.append(CountedStart(place, self.now, self.now + limit.per))
        return found

    def leave(self, name: str, starts: Sequence[CountedStart]) -> None:
        """Undo `enter`: the run was not claimed after all."""
        self.holds(name, -1)
        for start in starts:
            self._started[start.limit] -= 1


def queue_of(limit: str, *, starts: bool) -> str:
    """The queue of a run with this limit: runs that the same first limit admits or stops, as the indexes of
    the SQL stores group them. A sign for a first start or not, then the limit's name; '' for runs without a
    limit."""
    return f"{'+' if starts else '-'}{root_of(limit)}" if limit else ""


def releases_lease(batch: RunBatch) -> bool:
    """Whether the batch releases the run's lease, which frees a place."""
    if batch.park is not None:
        return True
    return any(record.side is not None and record.side.status in ENDED for record in batch.records)


def wait_until_open(timeout: float, opens_at: int | None, now: int) -> float:
    """How long to wait for a change if a rate admits the next run at `opens_at`. An instant in the past is
    ignored: a process that waits without looking for work would be woken again and again."""
    if opens_at is None or opens_at < now - _EXPIRY_MARGIN:
        return timeout
    return min(timeout, max((opens_at - now) / 1e6 + 0.001, _SOON))


def limit_overview(
    limits: Iterable[LimitRow],
    leased: Mapping[str, int],
    ready: Mapping[str, int],
    *,
    prefix: str,
    after: str,
    limit: int,
) -> list[tuple[LimitRow, int, int]]:
    """The result of `Store.limits`, from all rows and the number of runs of each."""
    admission = Admission(limits, 0)
    inside, waiting = _summed(leased), _summed(ready)
    names = {*admission.names(), *(name for name in (*leased, *ready) if "/" in name)}
    wanted = sorted(name for name in names if name.startswith(prefix) and name > after)
    return [(admission.seen(name), inside[name], waiting[name]) for name in wanted[:limit]]


def _summed(counts: Mapping[str, int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, count in counts.items():
        for limit in path_of(name):
            total[limit] += count
        if "/" in name:
            total[f"{root_of(name)}/{EACH_KEY}"] += count
    return total
