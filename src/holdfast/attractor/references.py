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
_RESULTS: Final = "parallel.results"


class NeededText(msgspec.Struct):
    """How much of a text references use: characters from its beginning and its end, or all."""

    head: int = 0
    tail: int = 0
    whole: bool = False

    def add(self, found: Reference) -> None:
        self.head = max(self.head, found.length if found.cut == "head" else 0)
        self.tail = max(self.tail, found.length if found.cut == "tail" else 0)
        self.whole = self.whole or not found.cut

    def part_of(self, text: str) -> str:
        """Each reference gets the same from it as from the text."""
        if self.whole or len(text) <= self.head + self.tail:
            return text
        return text[: self.head] + text[len(text) - self.tail :]


class NamedStages:
    """The stages whose output prompts of a pipeline name, and how much of it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._stages: dict[str, dict[str, NeededText]] = {}
        self._branches: dict[str, NeededText] = {}
        for stage in pipeline.stages.values():
            for each in references_in(stage.prompt or stage.label):
                if each.kind != CONTEXT:
                    needed = self._branches if each.kind == BRANCHES else self._of(each.name)
                    needed.setdefault(each.field, NeededText()).add(each)

    def _of(self, stage: str) -> dict[str, NeededText]:
        return self._stages.setdefault(stage, {})

    def output_updates(self, visit: StageVisit, outcome: StageOutcome, number: int) -> dict[str, Any]:
        """What the end of a stage adds to the context. `number`: of its end, in the order of all."""
        needed = [self._stages.get(visit.stage.id, {})]
        needed += [self._branches] if visit.branch else []
        if not any(needed):
            return {}
        texts = visit.outputs.texts
        kept: dict[str, str] = {}
        for name in texts:
            parts = [each[name].part_of(texts[name]) for each in needed if name in each]
            if parts:
                # Of a stage that both kinds of references name, the whole: parts of parts are no parts.
                kept[name] = parts[0] if len(parts) == 1 else texts[name]
        fields = {key: value for key, value in status_fields(outcome).items() if key != "context_updates"}
        own = {"verdict": fields, "branch": visit.branch, "number": number}
        return {PREFIX + visit.stage.id: {**kept, **own}}


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
    """Outcome, notes and verdict of the branch; texts of its last stage that left one."""
    for each in _results(visit):
        if each.get("id") != found.name:
            continue
        if found.field in ("outcome", "notes", "failure_reason"):
            return _plain(each.get(found.field))
        updates = _fields(each.get("context_updates"))
        outputs = [_fields(value) for key, value in updates.items() if key.startswith(PREFIX)]
        if found.field == "verdict" and "verdict" in each:
            return _plain(each["verdict"])
        ended = sorted(outputs, key=lambda output: output.get("number", 0), reverse=True)
        return next((text for output in ended if (text := _field(output, found.field))), "")
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
