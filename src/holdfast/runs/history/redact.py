"""Hides secrets in comparisons and stories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from holdfast.checkpoint.value_diff import MISSING, Change
from holdfast.model.secrets import Paths, hide_at, masked, redact_known_secrets
from holdfast.runs.history.story import Story
from holdfast.types.redaction import redactor

_PARTS: Final = re.compile(r"[^.\[\]\"]+")
_PARTITIONS: Final = frozenset({"state", "scratch", "input", "artifacts"})


def hidden_changes(found: Iterable[Change], paths: Paths) -> Iterator[Change]:
    """Shows that a secret changed, without its values."""
    return iter(found) if not paths else (_hidden(change, paths) for change in found)


def _hidden(change: Any, paths: Paths) -> Any:
    path = tuple(_PARTS.findall(change.path))
    path = path[1:] if path[:1] and path[0] in _PARTITIONS and len(path) > 1 else path
    hidden: dict[str, Any] = {
        name: hide_at(value, path, paths)
        for name in ("before", "after")
        if (value := getattr(change, name)) is not MISSING
    }
    parts: tuple[Change, ...] = getattr(change, "parts", ())
    if parts:
        hidden["parts"] = tuple(_hidden(part, paths) for part in parts)
    return msgspec.structs.replace(change, **hidden)


def hide_story(story: Story, paths: Paths) -> None:
    if not paths:
        return
    for visit in story.visits:
        visit.output = masked(visit.output, paths)
        visit.notes = masked(visit.notes, paths)
        for part in (visit, *visit.trials, *visit.calls):
            part.error = redact_known_secrets(part.error)
            part.traceback = redactor.redact(part.traceback)
        visit.changes = [_hidden(change, paths) for change in visit.changes]
        for call in visit.calls:
            call.value = masked(call.value, paths)
            # The name of an agent's call has the arguments of its tool.
            call.name = redactor.redact(call.name)
        for chunk in visit.chunks:
            chunk.data = masked(chunk.data, paths)
        for question in visit.questions:
            question.data = masked(question.data, paths)
