"""Finds where a parallel stage's branches end: at the fan-in that all reach, else where all paths meet.

A branch goes from the first stage after its edge up to that join. An edge back to before the parallel stage,
to the exit, or to the join of a fan-out around it ends the branch too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property

import msgspec

from holdfast.frontends.dot.document import Pipeline
from holdfast.model.checks.cycles import strongly_connected

FAN_IN, PARALLEL = "parallel.fan_in", "parallel"
Follow = Callable[[str], Iterable[str]]


class Region(msgspec.Struct, frozen=True):
    """What lies between a parallel stage and its join."""

    starts: tuple[str, ...]
    """The first stage of each branch, in the order of the edges."""
    join: str
    """Empty if the branches never meet."""
    stops: frozenset[str]
    """Stages that no branch enters."""


class Regions:
    def __init__(self, pipeline: Pipeline, kinds: Mapping[str, str]) -> None:
        self._pipeline = pipeline
        self._kinds = kinds

    @cached_property
    def _ways(self) -> dict[str, list[str]]:
        outgoing = self._pipeline.outgoing
        return {name: [link.target for link in outgoing.get(name, ())] for name in self._pipeline.stages}

    def following(self, name: str) -> list[str]:
        return self._ways.get(name, [])

    def of(self, name: str, around: frozenset[str]) -> Region:
        """`around`: the stages at which the branch that contains this parallel stage ends."""
        cut = around | self._before(name) | {name} | self._exits
        firsts = [first for first in self.following(name) if first != name]
        join = self._join(dict.fromkeys(firsts), cut)
        starts = tuple(first for first in firsts if first != join and first not in around)
        return Region(starts, join, frozenset((cut | {join}) - {*starts, ""}))

    @cached_property
    def _exits(self) -> frozenset[str]:
        return frozenset(name for name, kind in self._kinds.items() if kind == "exit")

    @cached_property
    def _cycles(self) -> dict[str, list[str]]:
        """For each stage on a cycle: the stages that are on cycles with it."""
        found = [knot for knot in strongly_connected(self._ways) if len(knot) > 1]
        return {name: knot for knot in found for name in knot}

    def _before(self, name: str) -> set[str]:
        """Stages that lead here and can be reached by another path: an edge to one leaves the fan-out."""
        if name not in self._cycles:
            return set()
        start = self._pipeline.start()
        first = reach([start.id] if start is not None else [], self.following, {name})
        return first & set(self._cycles[name]) - {name}

    def _join(self, firsts: Collection[str], cut: Collection[str]) -> str:
        """The nearest fan-in that all branches reach; else the nearest stage that no branch can avoid."""
        walks = [_Spreading(first, self.following, cut) for first in firsts]
        while walks and any(walk.edge for walk in walks):
            fresh = {name for walk in walks for name in walk.edge}
            met = [n for n in fresh if self._kinds.get(n) == FAN_IN and all(n in w.seen for w in walks)]
            if met:
                return min(met)
            for walk in walks:
                walk.go_on()
        if not walks:
            return ""
        common = set[str].intersection(*(set(walk.seen) for walk in walks))
        near = sorted(common, key=lambda name: (max(walk.seen[name] for walk in walks), name))
        return next((name for name in near if self._all_pass(firsts, name, cut)), "")

    def _all_pass(self, firsts: Iterable[str], join: str, cut: Collection[str]) -> bool:
        """Whether no path ends elsewhere."""
        passed = reach([first for first in firsts if first != join], self.following, {join, *cut})
        return not any((name in cut or not self.following(name)) and name != join for name in passed)


def stages_in_branches(pipeline: Pipeline, kinds: Mapping[str, str]) -> set[str]:
    """The stages between any parallel stage and its join."""
    regions, found = Regions(pipeline, kinds), set[str]()
    for name, kind in kinds.items():
        if kind == PARALLEL:
            region = regions.of(name, frozenset())
            found |= reach(region.starts, regions.following, region.stops) - region.stops
    return found


class _Spreading:
    """The distance of each stage that a branch can reach, step by step; it does not continue past `cut`."""

    def __init__(self, first: str, following: Follow, cut: Collection[str]) -> None:
        self.seen, self.edge = {first: 0}, [first]
        self._first, self._following, self._cut = first, following, cut

    def go_on(self) -> None:
        fresh: list[str] = []
        for name in self.edge:
            if name in self._cut and name != self._first:
                continue
            for target in self._following(name):
                if target not in self.seen:
                    self.seen[target] = self.seen[name] + 1
                    fresh.append(target)
        self.edge = fresh


def reach(begin: Iterable[str], step: Follow, stop: Collection[str]) -> set[str]:
    """All stages that can be reached without continuing past one of `stop`."""
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
