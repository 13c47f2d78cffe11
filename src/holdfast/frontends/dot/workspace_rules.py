"""Rules about where the branches of a fan-out work: `workspace`, `merge` and `on_conflict`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from holdfast.frontends.dot.attributes import WORKSPACES
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Stage
from holdfast.frontends.dot.parallel_regions import FAN_IN, PARALLEL, Region, Regions, reach
from holdfast.frontends.dot.rule_context import Check, RuleContext, name_list

KEY: Final = "workspace"
WORKTREE: Final = "worktree"
NOTHING: Final = "none"
"""Of `merge`."""
_NO_COMMIT: Final = frozenset({"start", "conditional", PARALLEL, "wait.human"})
"""Kinds of stages after which a worktree has no commit; the exit is another."""
_OWN: Final = "a fan-in (shape=tripleoctagon) of their own"
ERROR, WARNING = DiagnosticSeverity.error, DiagnosticSeverity.warning
# Finding the branches of one stage looks at the whole pipeline, so only so many stages are checked for what
# is a warning.
_LOOKED_AT: Final = 20


def workspace_words(view: RuleContext) -> Iterator[Diagnostic]:
    """Errors: with another word than was meant, work of a branch could be lost or mixed."""
    for key, words in WORKSPACES.items():
        for stage in view.stages_with(key):
            value = stage.text(key)
            if value not in words:
                message, fix = f"{key} is {value[:60]}, which is not known", f"use one of {', '.join(words)}"
                yield view.at("workspace_words", ERROR, stage, message, key=key, fix=fix)
            elif view.kinds[stage.id] != PARALLEL:
                message = f"{key} has no effect on {stage.id}, which is not a fan-out"
                yield view.at(
                    "workspace_words", WARNING, stage, message, key=key, fix="write it on the fan-out"
                )
            elif key != KEY and stage.text(KEY) != WORKTREE:
                message = f"{key} has no effect on {stage.id}, whose branches share one folder"
                yield view.at(
                    "workspace_words", WARNING, stage, message, key=key, fix="add workspace=worktree"
                )


def workspace_joins(view: RuleContext) -> Iterator[Diagnostic]:
    """Work in a worktree counts once it is in a commit that is merged: every fan-out is looked at."""
    if not any(stage.text(KEY) == WORKTREE for stage in view.stages_with(KEY)):
        return
    fans = _FanOuts(view)
    for stage in view.of_kind(PARALLEL):
        if stage.text(KEY) != WORKTREE:
            fault = fans.uncommitted(stage)
        elif stage.text("merge") != NOTHING:
            fault = fans.unmerged(stage)
        else:
            continue
        if fault is not None:
            message, fix = fault
            yield view.at("workspace_joins", ERROR, stage, message, key=KEY, fix=fix)


class _FanOuts:
    """Where the branches of all fan-outs end, and which fan-outs are inside branches of others."""

    def __init__(self, view: RuleContext) -> None:
        self._view = view
        self._regions = Regions(view.pipeline, view.kinds)
        found = {stage.id: self._regions.of(stage.id, frozenset()) for stage in view.of_kind(PARALLEL)}
        inside = {name: _inside(self._regions, region) for name, region in found.items()}
        self._around = {
            name: sorted((n for n in found if n != name and name in inside[n]), key=lambda n: len(inside[n]))
            for name in found
        }
        self._stops = {
            name: frozenset[str]().union(*(found[n].stops for n in around))
            for name, around in self._around.items()
        }

    def unmerged(self, stage: Stage) -> tuple[str, str] | None:
        """Why the work of its branches would not reach the stages after it, and what to do."""
        join = self._join(stage.id)
        if self._view.kinds.get(join) != FAN_IN or join in self._stops[stage.id]:
            return (
                f"the branches of {stage.id} have worktrees, but no fan-in of their own merges them",
                f"let them end at {_OWN}, or set merge=none",
            )
        outer = next(iter(self._around[stage.id]), "")
        if outer and not self._has_worktrees(outer):
            message = (
                f"what {stage.id} merges stays in its branch of {outer}, whose branches share one folder: no "
                "stage after them would have it"
            )
            return message, f"set workspace=worktree on {outer}, or merge=none on {stage.id}"
        return None

    def uncommitted(self, stage: Stage) -> tuple[str, str] | None:
        """The same for branches that share a worktree, which have no commits of their own: the next stage
        after them has to make one."""
        if not self._is_in_worktree(stage.id):
            return None
        targets = (stage.text(key) for key in ("retry_target", "fallback_retry_target"))
        todo = [self._join(stage.id), *(name for name in targets if name in self._view.kinds)]
        seen: set[str] = set()
        while todo:
            name = todo.pop()
            kind = self._view.kinds.get(name, "")
            ends = kind in ("", "exit") or name in self._stops[stage.id]
            if ends or (kind == PARALLEL and self._has_worktrees(name)):
                message = (
                    f"the branches of {stage.id} share a worktree, and no stage after them makes a commit of "
                    "their work"
                )
                return message, f"let them end at {_OWN}, or set workspace=worktree"
            if name not in seen and kind in _NO_COMMIT:
                following = [self._join(name)] if kind == PARALLEL else self._regions.following(name)
                todo += following or [""]
            seen.add(name)
        return None

    def _is_in_worktree(self, name: str) -> bool:
        """In a branch that has one, or perhaps after a merge."""
        if any(map(self._has_worktrees, self._around[name])):
            return True
        merging = [n for n in self._around if self._has_worktrees(n) and self._merges(n)]
        return any(name in reach([self._join(n)], self._regions.following, self._stops[n]) for n in merging)

    def _join(self, name: str) -> str:
        return self._regions.of(name, self._stops[name]).join

    def _has_worktrees(self, name: str) -> bool:
        return self._view.pipeline.stages[name].text(KEY) == WORKTREE

    def _merges(self, name: str) -> bool:
        return self._view.pipeline.stages[name].text("merge") != NOTHING


def shared_workspaces(view: RuleContext) -> Iterator[Diagnostic]:
    """A warning, unless the author wrote that they share a folder."""
    regions = Regions(view.pipeline, view.kinds)
    for stage in islice(view.of_kind(PARALLEL), _LOOKED_AT):
        if stage.text(KEY):
            continue
        region = regions.of(stage.id, frozenset())
        writers = [
            first for first in dict.fromkeys(region.starts) if _may_write(view, regions, region, first)
        ]
        if len(writers) > 1:
            message = (
                f"the branches of {stage.id} that start with {name_list(writers)} may write files, and they "
                "work in the same folder"
            )
            fix = "give each a copy with workspace=worktree, or write workspace=shared"
            yield view.at("shared_workspaces", WARNING, stage, message, fix=fix)


def _inside(regions: Regions, region: Region) -> set[str]:
    return reach(region.starts, regions.following, region.stops) - region.stops


def _may_write(view: RuleContext, regions: Regions, region: Region, first: str) -> bool:
    inside = reach([first], regions.following, region.stops) - region.stops
    stages = view.pipeline.stages
    return any(_is_writer(view, stages[name]) for name in inside if name in stages)


def _is_writer(view: RuleContext, stage: Stage) -> bool:
    if stage.text("effect") in ("pure", "read"):
        return False
    kind = view.kinds[stage.id]
    tools = stage.text("tools") if "tools" in stage.attrs else view.pipeline.text("tools")
    asks = bool(stage.text("agent")) or (bool(tools) and tools != "none")
    return (kind == "tool" and bool(stage.text("tool_command"))) or (kind == "codergen" and asks)


WORKSPACE: Final[tuple[Check, ...]] = (workspace_words, workspace_joins, shared_workspaces)
