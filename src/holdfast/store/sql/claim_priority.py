"""Which of the ready runs are claimed: by priority; within a priority, fair between tenants; none whose limit
is reached."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.store.limit_admission import Admission, CountedStart

_LAST_IN_LINE = 1 << 60


class ReadyRun(msgspec.Struct, frozen=True):
    """A run that could be claimed."""

    ready_at: int
    key: int
    limit: str = ""
    starts: bool = False  # it starts for the first time


class CandidateTenant(msgspec.Struct):
    """A tenant with ready runs of one priority. The one with the lowest rank is served next."""

    name: str
    running: int
    turn: int
    ready: list[ReadyRun]  # the next one is the last element

    def rank(self) -> tuple[int, int, int, int]:
        following = self.ready[-1]
        return self.running, self.turn, following.ready_at, following.key


class ClaimSelection:
    """The chosen runs, in order. `admission` None: none of the runs has a limit."""

    def __init__(self, limit: int, admission: Admission | None = None) -> None:
        self.limit = limit
        self.admission = admission
        self.keys: list[int] = []
        self.refused = False  # a limit was reached: runs in other queues may still be admitted
        self.limits: dict[int, str] = {}
        self.starts: dict[int, list[CountedStart]] = {}
        self.since: dict[int, int] = {}  # when each became ready
        self._taken: dict[str, int] = {}

    @property
    def full(self) -> bool:
        return len(self.keys) >= self.limit

    def serve(self, tenants: Iterable[CandidateTenant]) -> None:
        """Chooses from one priority. Each chosen run counts as running and moves its tenant to the end of the
        queue."""
        standing = [tenant for tenant in tenants if tenant.ready]
        for tenant in standing:
            tenant.running += self._taken.get(tenant.name, 0)
        while standing and not self.full:
            served = min(standing, key=CandidateTenant.rank)
            if self._take(served.ready.pop()):
                served.running += 1
                served.turn = _LAST_IN_LINE + len(self.keys)
                self._taken[served.name] = self._taken.get(served.name, 0) + 1
            if not served.ready:
                standing.remove(served)

    def _take(self, run: ReadyRun) -> bool:
        if run.limit and self.admission is not None:
            if not self.admission.passes(run.limit, starts=run.starts):
                self.refused = True
                return False
            self.limits[run.key] = run.limit
            self.starts[run.key] = self.admission.enter(run.limit, starts=run.starts)
        self.keys.append(run.key)
        self.since[run.key] = run.ready_at
        return True

    def missed(self, taken: Iterable[int]) -> None:
        """Other workers claimed all but these: the places of the others are free again."""
        for key in set(self.keys).difference(taken):
            if self.admission is not None and key in self.limits:
                self.admission.leave(self.limits.pop(key), self.starts.pop(key))
