"""The rule on `output_schema`: the form of a stage's answer is a JSON Schema of an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Stage
from holdfast.frontends.dot.rule_context import RuleContext
from holdfast.model.checks.json_schemas import schema_faults

ATTRIBUTE: Final = "output_schema"


def schema_of_stage(stage: Stage) -> dict[str, Any] | None:
    """None if the stage has none. Raises ValueError."""
    text = stage.text(ATTRIBUTE)
    if not text.strip():
        return None
    try:
        found: Any = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(found, dict) or cast("dict[str, Any]", found).get("type") != "object":
        raise ValueError('it is not the schema of an object: {"type": "object", ...}')
    faults = schema_faults(found)
    if faults:
        raise ValueError("; ".join(faults))
    return cast("dict[str, Any]", found)


def output_schema(view: RuleContext) -> Iterator[Diagnostic]:
    """An error: an answer of another form must not pass."""
    for stage in view.stages_with(ATTRIBUTE):
        try:
            schema_of_stage(stage)
        except ValueError as error:
            message = f"output_schema of {stage.id}: {error}"
            fix = "write a JSON Schema, or @FILE with one"
            yield view.at(ATTRIBUTE, DiagnosticSeverity.error, stage, message, key=ATTRIBUTE, fix=fix)
