"""Which of the ready runs are taken: by priority; within one, fair between tenants; and past no shut gate."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.store.concurrency_limits import Admission, CountedStart

_LAST_IN_LINE = 1 << 60


class ReadyRun(msgspec.Struct, frozen=True):
    """A run that could be taken."""

    ready_at: int
    key: int
    gate: str = ""
    starts: bool = False  # for the first time


class CandidateTenant(msgspec.Struct):
    """A tenant with ready runs of one priority. The least one is served next."""

    name: str
    running: int
    turn: int
    ready: list[ReadyRun]  # the next one last

    def rank(self) -> tuple[int, int, int, int]:
        following = self.ready[-1]
        return self.running, self.turn, following.ready_at, following.key


class ClaimSelection:
    """What is chosen, in its order. `admission` None: none of the runs has a limit."""

    def __init__(self, limit: int, admission: Admission | None = None) -> None:
        self.limit = limit
        self.admission = admission
        self.keys: list[int] = []
        self.refused = False  # a limit was reached: runs behind it may still be admitted
        self.gates: dict[int, str] = {}
        self.starts: dict[int, list[CountedStart]] = {}
        self.since: dict[int, int] = {}  # when each became ready
        self._taken: dict[str, int] = {}

    @property
    def full(self) -> bool:
        return len(self.keys) >= self.limit

    def serve(self, tenants: Iterable[CandidateTenant]) -> None:
        """Those of one priority. Each run taken counts as running, and sends its tenant to the end of the
        line."""
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
        if run.gate and self.admission is not None:
            if not self.admission.passes(run.gate, starts=run.starts):
                self.refused = True
                return False
            self.gates[run.key] = run.gate
            self.starts[run.key] = self.admission.enter(run.gate, starts=run.starts)
        self.keys.append(run.key)
        self.since[run.key] = run.ready_at
        return True

    def missed(self, taken: Iterable[int]) -> None:
        """Others were faster with all but these: their places are free again."""
        for key in set(self.keys).difference(taken):
            if self.admission is not None and key in self.gates:
                self.admission.leave(self.gates.pop(key), self.starts.pop(key))
