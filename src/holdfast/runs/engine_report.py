"""What an engine says of its runs, for commands and pages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

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


Series = tuple[tuple[str, str], ...]
"""The labels of a value, in order of their names."""
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)


class EngineHistogram(msgspec.Struct):
    """`counts`: of values up to each of `BUCKETS`, and of larger ones."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(BUCKETS, value)] += 1
        self.total += value


class EngineMetric(msgspec.Struct, kw_only=True):
    """A metric of the engine's own library, added up in this process."""

    name: str
    about: str
    counts: dict[Series, float] = {}
    gauges: dict[Series, float] = {}
    histograms: dict[Series, EngineHistogram] = {}


class EngineFigures(msgspec.Struct, kw_only=True):
    """Of the worker of an engine in this process, for metrics. `pending`: by activity, how many records it is
    about to append and when the oldest was decided, in microseconds. `own`: the metrics of its library, if
    they are collected."""

    pending: dict[int, tuple[int, int]] = {}
    undelivered: int = 0
    history_events: int = 0
    conflicts: int = 0
    lost: int = 0
    own: Callable[[], list[EngineMetric]] | None = None

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
