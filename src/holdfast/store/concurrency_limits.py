"""Who passes which gate now. A store fills a admission with what it found under its lock, asks it while it
chooses runs, and writes down the starts that it counted. No store decides about gates by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from holdfast.store.rows import Claim
from holdfast.types.concurrency_limits import EACH_KEY, LimitRow, path_of, root_of
from holdfast.types.record import RunBatch
from holdfast.types.status import ENDED

LAST_KEY = "\U0010ffff"
_EXPIRY_MARGIN = 100_000  # microseconds
_SOON = 0.01  # seconds


class Window(msgspec.Struct, frozen=True):
    """Starts at gates from `low` to `high` count from `since` on, exclusive."""

    low: str
    high: str
    since: int


class CountedStart(msgspec.Struct, frozen=True):
    """A start that a rate counts, until it is out of the window."""

    gate: str
    at: int
    until: int


class ClaimResult(msgspec.Struct, frozen=True):
    """What a claim took, and whether a limit kept runs out: then places that become free wake the workers."""

    claims: list[Claim]
    kept_out: bool = False
    opens_at: int | None = None  # when a rate lets the next one start


class Admission:
    def __init__(self, gates: Iterable[LimitRow], now: int) -> None:
        self.now = now
        # When a rate admits again a run that it kept out just now.
        self.opens_at: int | None = None
        self._gates: dict[str, LimitRow] = {}
        for gate in gates:
            if gate.fixed or gate.name not in self._gates:
                self._gates[gate.name] = gate
        self._held: Counter[str] = Counter()
        self._started: Counter[str] = Counter()
        self._oldest: dict[str, int] = {}

    # ------------------------------------------------------------------ filling
    def holds(self, name: str, count: int = 1) -> None:
        """So many runs at that gate have a lease."""
        for gate in path_of(name):
            self._held[gate] += count

    def windows(self) -> list[Window]:
        """Which starts have to be counted."""
        found: list[Window] = []
        for gate in self._gates.values():
            if gate.rate is not None:
                each = gate.name.endswith(f"/{EACH_KEY}")
                low = gate.name.removesuffix(EACH_KEY) if each else gate.name
                found.append(Window(low, low + LAST_KEY if each else low, self.now - gate.per))
        return found

    def started(self, window: Window, name: str, count: int, oldest: int) -> None:
        """What was found in a window. A key with a gate of its own is in that of each key too."""
        gate = self.gate(name)
        if gate is not None and gate.rate is not None and self.now - gate.per == window.since:
            self._started[name] = count
            self._oldest[name] = oldest

    # ------------------------------------------------------------------ asking
    def gate(self, name: str) -> LimitRow | None:
        """What holds there."""
        own = self._gates.get(name)
        if own is None and "/" in name:
            return self._gates.get(f"{root_of(name)}/{EACH_KEY}")
        return own

    def names(self) -> list[str]:
        return list(self._gates)

    def seen(self, name: str) -> LimitRow:
        """As it is shown, also a key without a gate of its own."""
        own, gate = self._gates.get(name), self.gate(name)
        if own is not None or gate is None:
            return own or LimitRow(name=name)
        return msgspec.structs.replace(gate, name=name, updated_at=0)

    def passes(self, name: str, *, starts: bool) -> bool:
        """Whether a run that stands there may go on; `starts`: for the first time."""
        return all(self._open(gate, starts) for gate in path_of(name))

    def _open(self, name: str, starts: bool) -> bool:
        gate = self.gate(name)
        if gate is None:
            return True
        if gate.concurrency is not None and self._held[name] >= gate.concurrency:
            return False
        if not starts or gate.rate is None or self._started[name] < gate.rate:
            return True
        opens = self._oldest.get(name, self.now) + gate.per
        self.opens_at = opens if self.opens_at is None else min(self.opens_at, opens)
        return False

    def open_queues(self, lines: Iterable[str]) -> list[str]:
        """Of lines (see `line_of`), those whose first gate is open."""
        return [line for line in lines if self._open(line[1:], line.startswith("+"))]

    def exempt(self, line: str) -> list[str] | None:
        """Where an operator stopped each key (a concurrency of 0): the keys with a gate of their own, and
        who has no key. None where nobody is stopped in that way: then `shut` says enough."""
        root = line[1:]
        each = self._gates.get(f"{root}/{EACH_KEY}")
        if each is None or each.concurrency != 0:
            return None
        return sorted({root, *(name for name in self._gates if root_of(name) == root)} - {each.name})

    def shut(self, *, starts: bool) -> list[str]:
        """Keys whose limit is reached now, though that of their flow may not be."""
        busy = [name for name in {**self._held, **self._started, **self._gates} if "/" in name]
        return sorted(name for name in busy if not self._open(name, starts))

    def room(self, name: str, *, starts: bool) -> int | None:
        """How many more pass there now; None: as many as come."""
        rooms: list[int] = []
        for place in path_of(name):
            gate = self.gate(place)
            if gate is not None and gate.concurrency is not None:
                rooms.append(gate.concurrency - self._held[place])
            if gate is not None and gate.rate is not None and starts:
                rooms.append(gate.rate - self._started[place])
        return max(0, min(rooms)) if rooms else None

    # ------------------------------------------------------------------ telling
    def admit(self, name: str, count: int, *, starts: bool) -> int:
        """Of so many runs those that pass, as if they were claimed. For statistics."""
        room = self.room(name, starts=starts)
        passing = count if room is None else min(count, room)
        self.holds(name, passing)
        if starts:
            for place in path_of(name):
                self._started[place] += passing
        return passing

    def enter(self, name: str, *, starts: bool) -> list[CountedStart]:
        """A run was taken. Answers what has to be written down of it."""
        self.holds(name)
        return self._count(name) if starts else []

    def _count(self, name: str) -> list[CountedStart]:
        found: list[CountedStart] = []
        for place in path_of(name):
            gate = self.gate(place)
            if gate is not None and gate.rate is not None:
                self._started[place] += 1
                self._oldest.setdefault(place, self.now)
                found.append(CountedStart(place, self.now, self.now + gate.per))
        return found

    def leave(self, name: str, starts: Sequence[CountedStart]) -> None:
        """It was not taken after all."""
        self.holds(name, -1)
        for start in starts:
            self._started[start.gate] -= 1


def queue_of(gate: str, *, starts: bool) -> str:
    """What runs have in common that the same first gate lets pass or not, as the SQL stores' indexes have it:
    the gate's name after a sign that tells first starts from others. '' for runs at no gate."""
    return f"{'+' if starts else '-'}{root_of(gate)}" if gate else ""


def releases_lease(batch: RunBatch) -> bool:
    """Whether the run gives its place back with it."""
    if batch.park is not None:
        return True
    return any(record.side is not None and record.side.status in ENDED for record in batch.records)


def wait_until_open(timeout: float, opens_at: int | None, now: int) -> float:
    """How long to wait for a change, where a rate lets the next run start by itself. Whoever waits without
    looking for work in between is not woken again and again for what is past."""
    if opens_at is None or opens_at < now - _EXPIRY_MARGIN:
        return timeout
    return min(timeout, max((opens_at - now) / 1e6 + 0.001, _SOON))


def limit_overview(
    gates: Iterable[LimitRow],
    leased: Mapping[str, int],
    ready: Mapping[str, int],
    *,
    prefix: str,
    after: str,
    limit: int,
) -> list[tuple[LimitRow, int, int]]:
    """`Gates.gates`, out of all gates and of how many runs stand at each."""
    admission = Admission(gates, 0)
    inside, waiting = _summed(leased), _summed(ready)
    names = {*admission.names(), *(name for name in (*leased, *ready) if "/" in name)}
    wanted = sorted(name for name in names if name.startswith(prefix) and name > after)
    return [(admission.seen(name), inside[name], waiting[name]) for name in wanted[:limit]]


def _summed(counts: Mapping[str, int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, count in counts.items():
        for gate in path_of(name):
            total[gate] += count
        if "/" in name:
            total[f"{root_of(name)}/{EACH_KEY}"] += count
    return total
