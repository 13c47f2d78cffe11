"""How many of the ready runs could be claimed now, for each lane, and how many wait for a limit. The latter
need no additional worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.store.limit_admission import Admission
from holdfast.types.fleet import LaneFigures

MAX_QUEUES: Final = 5000
"""Queues of a lane that are examined, the longest first. Runs of any further queue count as waiting for a
limit."""


class LaneBacklog(msgspec.Struct, frozen=True):
    """`free` runs have no limit, `lined` ones have one."""

    name: str
    free: int
    since: int | None  # the earliest ready time of the free ones
    lined: int
    running: int


class LimitBacklog(msgspec.Struct, frozen=True):
    """Ready runs of a lane with the same limit."""

    lane: str
    limit: str
    starts: bool  # they start for the first time
    count: int
    since: int


def lane_figures(
    lanes: Sequence[LaneBacklog], lined: Iterable[LimitBacklog], admission: Admission | None, now: int
) -> list[LaneFigures]:
    """`admission` None: no run has a limit."""
    passing: Counter[str] = Counter()
    oldest = {lane.name: lane.since for lane in lanes if lane.since is not None}
    for line in sorted(lined, key=_since):
        room = (
            line.count if admission is None else admission.admit(line.limit, line.count, starts=line.starts)
        )
        if room:
            passing[line.lane] += room
            oldest[line.lane] = min(oldest.get(line.lane, line.since), line.since)
    return [
        LaneFigures(
            lane=lane.name,
            ready=lane.free + passing[lane.name],
            oldest=max(0, now - oldest.get(lane.name, now)),
            running=lane.running,
            in_line=lane.lined - passing[lane.name],
        )
        for lane in lanes
    ]


def _since(line: LimitBacklog) -> tuple[int, str]:
    return line.since, line.limit
