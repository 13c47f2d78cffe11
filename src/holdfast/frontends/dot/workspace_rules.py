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
ERROR, WARNING = DiagnosticSeverity.error, DiagnosticSeverity.warning
# Finding the branches of one stage looks at the whole pipeline, so only so many stages are checked.
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
            elif key != KEY and stage.text(KEY) != "worktree":
                message = f"{key} has no effect on {stage.id}, whose branches share one folder"
                yield view.at(
                    "workspace_words", WARNING, stage, message, key=key, fix="add workspace=worktree"
                )


def workspace_joins(view: RuleContext) -> Iterator[Diagnostic]:
    """Branches with worktrees are merged by the fan-in where they end, so each such fan-out has one."""
    regions = Regions(view.pipeline, view.kinds)
    fans = list(islice(view.of_kind(PARALLEL), _LOOKED_AT))
    found = {stage.id: regions.of(stage.id, frozenset()) for stage in fans}
    for stage in fans:
        if stage.text(KEY) != "worktree" or stage.text("merge") == "none":
            continue
        around = frozenset[str]().union(
            *(
                region.stops
                for name, region in found.items()
                if name != stage.id and stage.id in _inside(regions, region)
            )
        )
        join = regions.of(stage.id, around).join
        if view.kinds.get(join) != FAN_IN or join in around:
            message = f"the branches of {stage.id} have worktrees, but no fan-in of their own merges them"
            fix = "let them end at a fan-in (shape=tripleoctagon) of their own, or set merge=none"
            yield view.at("workspace_joins", ERROR, stage, message, key=KEY, fix=fix)


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
