"""Where a parallel stage's branches end: at the fan-in that all of them come to, else where all ways meet.

A branch goes from the first stage behind its edge up to that join. What leads back to before the parallel
stage, out to the exit, or to the join of a fan-out around it ends the branch too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property

import msgspec

from holdfast.frontends.dot.document import Pipeline

FAN_IN, PARALLEL = "parallel.fan_in", "parallel"
Follow = Callable[[str], Iterable[str]]


class Region(msgspec.Struct, frozen=True):
    """What lies between a parallel stage and its join."""

    starts: tuple[str, ...]
    """The first stage of each branch, in the order of the edges."""
    join: str
    """Empty where the branches never meet."""
    stops: frozenset[str]
    """Stages that no branch enters."""


class Regions:
    def __init__(self, pipeline: Pipeline, kinds: Mapping[str, str]) -> None:
        self._pipeline = pipeline
        self._kinds = kinds

    def following(self, name: str) -> list[str]:
        return [link.target for link in self._pipeline.outgoing.get(name, ())]

    @cached_property
    def _leading(self) -> dict[str, list[str]]:
        return {name: [link.source for link in links] for name, links in self._pipeline.incoming.items()}

    def of(self, name: str, around: frozenset[str]) -> Region:
        """`around`: where the branch that this parallel stage itself stands in would end."""
        cut = around | self._before(name) | {name} | self._exits
        ways = {first: self._distances(first, cut) for first in self.following(name)}
        join = self._join(ways, cut)
        starts = tuple(first for first in self.following(name) if first != join)
        stops = (cut | {join}) - set(starts) if join else cut - set(starts)
        return Region(starts, join, frozenset(stops))

    @cached_property
    def _exits(self) -> frozenset[str]:
        return frozenset(name for name, kind in self._kinds.items() if kind == "exit")

    def _before(self, name: str) -> set[str]:
        """Stages that lead here and can be come to on another way: going there leaves the fan-out."""
        start = self._pipeline.start()
        first = reach([start.id] if start is not None else [], self.following, {name})
        back = reach(self._leading.get(name, ()), lambda each: self._leading.get(each, []), {name})
        return first & back

    def _distances(self, first: str, cut: Collection[str]) -> dict[str, int]:
        """How far everything is that a branch can come to; it goes no further than what is cut."""
        found, todo = {first: 0}, deque([first])
        while todo:
            name = todo.popleft()
            if name in cut and name != first:
                continue
            for target in self.following(name):
                if target not in found:
                    found[target] = found[name] + 1
                    todo.append(target)
        return found

    def _join(self, ways: dict[str, dict[str, int]], cut: Collection[str]) -> str:
        if not ways:
            return ""
        common = set[str].intersection(*(set(found) for found in ways.values()))
        near = sorted(common, key=lambda name: (max(found[name] for found in ways.values()), name))
        fan_ins = [name for name in near if self._kinds.get(name) == FAN_IN]
        if fan_ins:
            return fan_ins[0]
        return next((name for name in near if self._all_pass(ways, name, cut)), "")

    def _all_pass(self, ways: Iterable[str], join: str, cut: Collection[str]) -> bool:
        """Whether no way ends elsewhere."""
        passed = reach([first for first in ways if first != join], self.following, {join, *cut})
        return not any((name in cut or not self.following(name)) and name != join for name in passed)


def reach(begin: Iterable[str], step: Follow, stop: Collection[str]) -> set[str]:
    """Everything that can be come to without going on from what stops."""
    seen = set(begin)
    todo = list(seen)
    while todo:
        name = todo.pop()
        if name in stop:
            continue
        for each in step(name):
            if each not in seen:
                seen.add(each)
                todo.append(each)
    return seen
