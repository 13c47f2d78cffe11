"""The scale of a timeline's bars: work is to scale, and times when everything only waits are cut short."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.runs.history.visits import Visit

IDLE_SHARE = 0.15
"""A wait is drawn at most as long as this part of all the work."""

Stretch = tuple[int, int]


class Axis:
    """From instants to columns 0 .. room - 1. `cut`: some of the waiting is drawn shorter than it was."""

    def __init__(self, visits: Sequence[Visit], room: int, now: int) -> None:
        self._room = room
        begin = min(visit.started_at for visit in visits)
        end = max(visit.ended_at or now for visit in visits)
        self._marks = [(begin, 0.0)]
        worked = _worked(visits, now)
        most = max(sum(high - low for low, high in worked) * IDLE_SHARE, 1.0)
        at, drawn, self.cut = begin, 0.0, False
        for low, high in [*worked, (end, end)]:
            idle = max(low - at, 0)
            self.cut = self.cut or idle > most
            drawn += min(idle, most)
            self._marks.append((low, drawn))
            drawn += high - low
            self._marks.append((high, drawn))
            at = high
        self._length = max(drawn, 1.0)

    def column(self, instant: int) -> int:
        (low, before), (high, after) = self._around(instant)
        share = (instant - low) / (high - low) if high > low else 0.0
        return max(
            min(int((before + (after - before) * share) / self._length * self._room), self._room - 1), 0
        )

    def _around(self, instant: int) -> tuple[tuple[int, float], tuple[int, float]]:
        for left, right in zip(self._marks, self._marks[1:], strict=False):
            if instant < right[0]:
                return left, right
        return self._marks[-1], self._marks[-1]


def _worked(visits: Sequence[Visit], now: int) -> list[Stretch]:
    """When at least one node was at work: neither waiting itself nor only around others."""
    around = {visit.scope for visit in visits}
    found: list[Stretch] = []
    for visit in visits:
        if not any(scope.startswith(f"{visit.label}.{visit.visit}[") for scope in around):
            found += _at_work(visit, now)
    return _merged(sorted(found))


def _at_work(visit: Visit, now: int) -> list[Stretch]:
    at, found = visit.started_at, list[Stretch]()
    for wait in sorted(visit.waits, key=lambda wait: wait.since):
        if wait.since > at:
            found.append((at, wait.since))
        at = max(at, wait.until or now)
    end = visit.ended_at or now
    return [*found, (at, end)] if end > at else found


def _merged(stretches: list[Stretch]) -> list[Stretch]:
    merged: list[Stretch] = []
    for low, high in stretches:
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
