"""Rules about parallel stages: where their branches meet, and how."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Stage
from holdfast.frontends.dot.parallel_regions import Regions, reach
from holdfast.frontends.dot.rule_context import Check, RuleContext

WARNING, INFO = DiagnosticSeverity.warning, DiagnosticSeverity.info
JOIN_POLICIES: Final = ("wait_all", "first_success", "k_of_n", "quorum")
ERROR_POLICIES: Final = ("fail_fast", "continue", "ignore")
_CHOICES: Final = {"join_policy": JOIN_POLICIES, "error_policy": ERROR_POLICIES}
_INSTEAD: Final = {
    "join_policy": "all branches are awaited, and it succeeds",
    "error_policy": "branches continue when others fail",
}
# Finding the branches of one stage looks at the whole pipeline, so only so many stages are checked.
_LOOKED_AT: Final = 20


def parallel_policies(view: RuleContext) -> Iterator[Diagnostic]:
    for stage in view.of_kind("parallel"):
        for key, words in _CHOICES.items():
            chosen = stage.text(key)
            if chosen and chosen not in words:
                message = f"{chosen} is not a valid {key} for {stage.id}: {_INSTEAD[key]}"
                fix = f"use one of {', '.join(words)}"
                yield view.at("parallel_policies", WARNING, stage, message, key=key, fix=fix)


def parallel_branches(view: RuleContext) -> Iterator[Diagnostic]:
    yield from _beginnings_and_ends(view)
    yield from _ways_out(view)


def _beginnings_and_ends(view: RuleContext) -> Iterator[Diagnostic]:
    """The work is bounded, because many nested fan-outs would take quadratic time."""
    left = 8 * (len(view.pipeline.stages) + len(view.pipeline.links)) + 64
    for stage in view.of_kind("parallel"):
        links = view.leaving(stage)
        if len(links) < 2:
            message = f"parallel stage {stage.id} has {len(links)} branch{'' if len(links) == 1 else 'es'}"
            yield view.at("parallel_branches", INFO, stage, message, fix="add an edge for each branch")
        for link in links:
            if link.condition:
                message = f"the branch {link.source} -> {link.target} has a condition, which is ignored"
                yield view.at(
                    "parallel_branches", WARNING, link, message, key="condition", fix="decide in the branch"
                )
        ends: dict[str, set[str]] = {}
        for link in links:
            ends[link.target], looked = _meets(view, stage, link.target, left)
            left -= looked
            if left <= 0:
                return
        yield from _leaving(view, stage, ends)


def _meets(view: RuleContext, stage: Stage, first: str, budget: int) -> tuple[set[str], int]:
    """The first joins and exits that a branch reaches, and how many stages were looked at."""
    exits = {each.id for each in view.exits}
    seen, todo, met = {first, stage.id}, [first], set[str]()
    while todo and len(seen) < budget:
        name = todo.pop()
        if name in exits or view.kinds.get(name) == "parallel.fan_in":
            met.add(name)
            continue
        ways = [link.target for link in view.pipeline.outgoing.get(name, ()) if link.target not in seen]
        seen.update(ways)
        todo += ways
    return met, len(seen)


def _leaving(view: RuleContext, stage: Stage, ends: dict[str, set[str]]) -> Iterator[Diagnostic]:
    """A branch that can reach the exit although the others meet before it."""
    exits = {each.id for each in view.exits}
    joined = any(met - exits for met in ends.values())
    for first, met in ends.items():
        if joined and met & exits:
            message = f"the branch of {stage.id} that starts with {first} can reach the exit without joining"
            yield view.at(
                "parallel_branches", WARNING, stage, message, fix="let all its paths end at the fan-in"
            )


def _ways_out(view: RuleContext) -> Iterator[Diagnostic]:
    """Edges and jumps that leave a branch other than at its join: the branch ends there, and the run does
    not continue there."""
    regions = Regions(view.pipeline, view.kinds)
    exits = {each.id for each in view.exits}
    for stage in islice(view.of_kind("parallel"), _LOOKED_AT):
        region = regions.of(stage.id, frozenset())
        out = region.stops - exits - {region.join}
        inside = reach(region.starts, regions.following, region.stops) - region.stops
        for name in sorted(inside & view.pipeline.stages.keys()):
            yield from _edges_out(view, stage, name, out)
            yield from _jumps_out(view, stage, view.pipeline.stages[name], inside)


def _edges_out(view: RuleContext, stage: Stage, name: str, out: Collection[str]) -> Iterator[Diagnostic]:
    for link in view.pipeline.outgoing.get(name, ()):
        if link.target in out:
            message = (
                f"the edge {name} -> {link.target} leaves its branch of {stage.id}: the branch ends there"
            )
            fix = "let it end at the join, and decide after it"
            yield view.at("parallel_branches", WARNING, link, message, fix=fix)


def _jumps_out(
    view: RuleContext, stage: Stage, inner: Stage, inside: Collection[str]
) -> Iterator[Diagnostic]:
    """A goal gate's targets count at the exit, outside of its branch."""
    for key in () if inner.flag("goal_gate") else ("retry_target", "fallback_retry_target"):
        target = inner.text(key)
        if target and target in view.pipeline.stages and target not in inside:
            message = (
                f"{key} of {inner.id} is not in its branch of {stage.id}: a failure does not jump to {target}"
            )
            fix = "name a stage of the branch"
            yield view.at("parallel_branches", WARNING, inner, message, key=key, fix=fix)


PARALLEL: Final[tuple[Check, ...]] = (parallel_policies, parallel_branches)
