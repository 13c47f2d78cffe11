"""How a model without a file system says what came of its stage: a JSON block at the end of its answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.attractor.handler import StageVisit
from holdfast.attractor.status_file import StatusFileError, outcome_of

_BLOCK: Final = re.compile(r"```(?:json)?[ \t]*\n(\{.*?\})\s*```\s*\Z", re.DOTALL)


def status_in(text: str) -> tuple[Mapping[str, Any] | None, str]:
    """(the status that the answer ends with, "") or (None, why that block cannot be used); (None, "") where
    there is none."""
    found = _BLOCK.search(text)
    if found is None:
        return None, ""
    try:
        fields: Any = msgspec.json.decode(found.group(1))
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None, ""
    if not isinstance(fields, dict) or not isinstance(cast("dict[str, Any]", fields).get("outcome"), str):
        return None, ""
    try:
        outcome_of(cast("dict[str, Any]", fields))
    except StatusFileError as fault:
        return None, f"the status at the end of the answer: {fault}"
    return cast("dict[str, Any]", fields), ""


def asks_for_status(visit: StageVisit) -> bool:
    """Where more than one way leads on, or a goal hangs on it."""
    return len(visit.pipeline.outgoing.get(visit.stage.id, ())) > 1 or visit.stage.flag("goal_gate")


def instructions(visit: StageVisit) -> str:
    """What the model is told of its place in the pipeline."""
    told = [f"You do one stage of a pipeline, {visit.stage.label}. Do what the prompt asks; report on it."]
    if asks_for_status(visit):
        told.append(
            "End your answer with what came of it, as a block of this form:\n"
            '```json\n{"outcome": "success", "preferred_label": "", "notes": ""}\n```\n'
            "outcome: success, partial_success, retry or fail."
        )
        labels = [link.label for link in visit.pipeline.outgoing.get(visit.stage.id, ()) if link.label]
        if labels:
            told.append(f"preferred_label: empty, or the way to go on by: {', '.join(labels)}.")
    return "\n\n".join(told)
