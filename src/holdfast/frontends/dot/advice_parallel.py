"""Rules about parallel stages: where their branches meet, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.frontends.dot.checking import Check, View
from holdfast.frontends.dot.diagnostics import Diagnostic, Severity
from holdfast.frontends.dot.document import Stage

WARNING, INFO = Severity.warning, Severity.info
JOIN_POLICIES: Final = ("wait_all", "first_success", "k_of_n", "quorum")
ERROR_POLICIES: Final = ("fail_fast", "continue", "ignore")
_CHOICES: Final = {"join_policy": JOIN_POLICIES, "error_policy": ERROR_POLICIES}


def parallel_policies(view: View) -> Iterator[Diagnostic]:
    for stage in view.of_kind("parallel"):
        for key, words in _CHOICES.items():
            chosen = stage.text(key)
            if chosen and chosen not in words:
                message = f"{chosen} is no {key} of {stage.id}: branches are waited for, and it succeeds"
                fix = f"one of {', '.join(words)}"
                yield view.at("parallel_policies", WARNING, stage, message, key=key, fix=fix)


def parallel_branches(view: View) -> Iterator[Diagnostic]:
    """Work is bounded: many fan-outs over one another are not worth a quadratic look."""
    left = 8 * (len(view.pipeline.stages) + len(view.pipeline.links)) + 64
    for stage in view.of_kind("parallel"):
        links = view.leaving(stage)
        if len(links) < 2:
            message = f"parallel stage {stage.id} has {len(links)} branch{'' if len(links) == 1 else 'es'}"
            yield view.at("parallel_branches", INFO, stage, message, fix="add an edge for each branch")
        for link in links:
            if link.condition:
                message = f"the branch {link.source} -> {link.target} has a condition, which is not asked"
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


def _meets(view: View, stage: Stage, first: str, budget: int) -> tuple[set[str], int]:
    """The joins and exits that a branch comes to, not looking past them, and how much was looked at."""
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


def _leaving(view: View, stage: Stage, ends: dict[str, set[str]]) -> Iterator[Diagnostic]:
    """A branch that can get to the exit although the others meet before it."""
    exits = {each.id for each in view.exits}
    joined = any(met - exits for met in ends.values())
    for first, met in ends.items():
        if joined and met & exits:
            message = (
                f"the branch of {stage.id} that begins with {first} can leave for the exit without joining"
            )
            yield view.at(
                "parallel_branches", WARNING, stage, message, fix="lead every way of it to the fan-in"
            )


PARALLEL: Final[tuple[Check, ...]] = (parallel_policies, parallel_branches)
