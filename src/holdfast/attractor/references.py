"""What references in prompts stand for: kept in the context by the stages that prompts of the pipeline name,
and by no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.status_file import status_fields
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.references import (
    BRANCHES,
    CONTEXT,
    FIELDS,
    Reference,
    expanded,
    references_in,
)
from holdfast.model.pipeline_conditions import as_text

PREFIX: Final = "stage.output."
"""In the context, before the id of a stage. Not internal: a branch passes it on with its results."""
RESPONSE: Final = "internal.response"
"""In the context, until the stage has settled: its whole answer."""
DIFF: Final = "internal.diff"
"""In the context, until the stage has settled: what it changed in its worktree."""
_RESULTS: Final = "parallel.results"


class NamedStages:
    """The stages whose output prompts of a pipeline name."""

    def __init__(self, pipeline: Pipeline) -> None:
        found = [each for stage in pipeline.stages.values() for each in references_in(stage.prompt)]
        self._stages = frozenset(each.name for each in found if each.kind != CONTEXT)
        self._branches = any(each.kind == BRANCHES for each in found)

    def output_updates(self, visit: StageVisit, outcome: StageOutcome) -> dict[str, Any]:
        """What the end of a stage adds to the context."""
        named = visit.stage.id in self._stages or (self._branches and bool(visit.branch))
        if not named:
            return {}
        updates = outcome.context_updates
        texts = {
            "response": visit.context.get_string(RESPONSE),
            "stdout": as_text(updates.get("tool.output", "")),
            "stderr": as_text(updates.get("tool.stderr", "")),
            "diff": visit.context.get_string(DIFF),
        }
        fields = {key: value for key, value in status_fields(outcome).items() if key != "context_updates"}
        kept = {key: value for key, value in texts.items() if value}
        return {PREFIX + visit.stage.id: {**kept, "verdict": fields, "branch": visit.branch}}


def keep_response(visit: StageVisit, text: str) -> None:
    """For the end of the stage, which keeps it if a prompt names it."""
    visit.context.set(RESPONSE, text)


def keep_diff(visit: StageVisit, text: str) -> None:
    """The same for what the stage changed in its worktree."""
    visit.context.set(DIFF, text)


def with_references(visit: StageVisit, prompt: str) -> str:
    """A stage that has not run yet is the empty text."""
    return expanded(prompt, lambda found: _value(visit, found))


def _value(visit: StageVisit, found: Reference) -> str:
    if found.kind == CONTEXT:
        value = visit.context.get(f"context.{found.name}")
        return _plain(visit.context.get(found.name) if value is None else value)
    if found.kind == BRANCHES:
        return _of_branch(visit, found)
    own = visit.context.get(PREFIX + found.name)
    if own is None:
        # A stage of a branch that has ended.
        own = next((kept for each in _results(visit) if (kept := _output(each, found.name))), None)
    return _field(own, found.field)


def _of_branch(visit: StageVisit, found: Reference) -> str:
    """Of the last stage of the branch that answered or ran a command; outcome and notes of the branch."""
    for each in _results(visit):
        if each.get("id") != found.name:
            continue
        if found.field in ("outcome", "notes", "failure_reason"):
            return _plain(each.get(found.field))
        updates = _fields(each.get("context_updates"))
        last = str(updates.get("last_stage") or "")
        outputs = [_fields(value) for key, value in updates.items() if key.startswith(PREFIX)]
        return _field(_output(each, last) or (outputs[-1] if outputs else None), found.field)
    return ""


def _output(result: Mapping[str, Any], stage: str) -> Mapping[str, Any] | None:
    return _fields(_fields(result.get("context_updates")).get(PREFIX + stage)) or None


def _field(output: Any, field: str) -> str:
    kept = _fields(output)
    if field in ("notes", "failure_reason", "outcome"):
        return _plain(_fields(kept.get("verdict")).get(field))
    return _plain(kept.get(field)) if field in FIELDS else ""


def _results(visit: StageVisit) -> Iterator[Mapping[str, Any]]:
    found: Any = visit.context.get(_RESULTS)
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return (cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping))


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return msgspec.json.encode(value).decode() if isinstance(value, (dict, list)) else as_text(value)
