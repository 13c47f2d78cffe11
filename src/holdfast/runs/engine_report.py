"""What an engine says of its runs, for commands and pages."""

from __future__ import annotations

import msgspec


class EngineReport(msgspec.Struct, kw_only=True):
    """Of one run. The lag: records that were decided and are not in the store yet, and how long the oldest of
    them is known. `problem`: why the run does not advance."""

    engine: str
    queue: str = ""
    history_events: int = 0
    lag_records: int = 0
    lag_seconds: float = 0.0
    problem: str = ""


class EngineFinding(msgspec.Struct, frozen=True):
    """One check of an engine: `about` lists what is wrong; without, `fine` is said."""

    check: str
    fine: str
    wrong: str = ""
    todo: str = ""
    about: list[str] = []


class EngineFigures(msgspec.Struct, kw_only=True):
    """Of the worker of an engine in this process, for metrics. `pending`: by activity, how many records it is
    about to append and when the oldest was decided, in microseconds."""

    pending: dict[int, tuple[int, int]] = {}
    undelivered: int = 0
    history_events: int = 0
    conflicts: int = 0
    lost: int = 0

    def lag_records(self) -> int:
        return sum(count for count, _ in self.pending.values())

    def lag_seconds(self, now: int) -> float:
        oldest = min((at for _, at in self.pending.values()), default=now)
        return max(now - oldest, 0) / 1e6


class DeploymentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The worker versioning of a cluster: the workers of one deployment, and which build this one is."""

    name: str
    build_id: str


def is_of_engine(worker: str | None) -> bool:
    """Whether what has the lease of a run is an engine: its name is an address."""
    return worker is not None and "://" in worker
