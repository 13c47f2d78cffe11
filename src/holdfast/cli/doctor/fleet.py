"""`doctor`: the fleet. Who works, do clocks and releases agree, does anybody carry what is to be done?"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from holdfast.cli.doctor.finding import OK, WARN, Finding, few
from holdfast.model.fingerprint import CODED, dialect_of
from holdfast.runs.service import RunService
from holdfast.store.protocols import RunRow
from holdfast.types.clock import MICROS
from holdfast.types.fleet import WorkerRow
from holdfast.types.human_time import ago

APART: Final = MICROS
"""Microseconds from which two clocks do not agree."""


async def of_fleet(service: RunService) -> AsyncIterator[Finding]:
    rows, now = await service.store.workers(), service.store.now()
    alive = [row for row in rows if row.until > now]
    yield _workers(rows, alive, now)
    if alive:
        yield _releases(alive)
        yield _clocks(alive)


async def carried(service: RunService) -> set[str] | None:
    """The versions that live workers carry; None where no worker is alive."""
    now = service.store.now()
    alive = [row for row in await service.store.workers() if row.until > now]
    return {version for row in alive for version in row.versions} if alive else None


def uncarried(live: list[RunRow], versions: set[str] | None) -> Finding:
    """A run is pinned to the version it was started on (D-34): somebody has to have that code."""
    if versions is None:
        return Finding("carried", OK, "no worker is alive; runs go on with `holdfast run` and `resume`")
    coded = [row for row in live if dialect_of(row.version) == CODED]  # pipelines run on any worker
    counts = Counter((row.flow, row.version) for row in coded if row.version not in versions)
    if not counts:
        return Finding("carried", OK, f"live workers carry the versions of all {len(live)} live runs")
    return Finding(
        "carried",
        WARN,
        f"{counts.total()} live runs are on a version that no live worker carries",
        "start a worker with that code, or see `holdfast flows check NEW` and move them",
        few([f"{count} of {flow} {version}" for (flow, version), count in counts.most_common()]),
    )


def _workers(rows: list[WorkerRow], alive: list[WorkerRow], now: int) -> Finding:
    count = "1 worker is" if len(alive) == 1 else f"{len(alive) or 'no'} workers are"
    silent = [row for row in rows if row.until <= now]
    if not silent:
        return Finding("workers", OK, f"{count} alive")
    about = [f"{row.name}: pid {row.pid} on {row.host}, {ago(row.seen_at, now)}" for row in silent]
    some = "1 fell" if len(silent) == 1 else f"{len(silent)} fell"
    return Finding(
        "workers",
        WARN,
        f"{count} alive, {some} silent within a day without taking leave",
        "see why it ended; others have its runs, and it is forgotten after a day",
        few(about),
    )


def _releases(alive: list[WorkerRow]) -> Finding:
    releases = Counter(row.release for row in alive)
    if len(releases) == 1:
        return Finding("releases", OK, f"all workers are of release {alive[0].release}")
    told = ", ".join(f"{count} of {release}" for release, count in sorted(releases.items()))
    return Finding("releases", OK, f"workers are of different releases: {told}")


def _clocks(alive: list[WorkerRow]) -> Finding:
    wrong = [row for row in alive if abs(row.skew) > APART]
    if not wrong:
        return Finding("clocks", OK, "the clocks of all workers agree with the store's within a second")
    about = [
        f"{row.name} on {row.host}: {abs(row.skew) / MICROS:,.1f} s {'ahead' if row.skew > 0 else 'behind'}"
        for row in wrong
    ]
    return Finding(
        "clocks",
        WARN,
        "the clock of 1 worker is wrong"
        if len(wrong) == 1
        else f"the clocks of {len(wrong)} workers are wrong",
        "set it by NTP: runs go by the store's time, but handlers see the clock of their machine",
        few(about),
    )
