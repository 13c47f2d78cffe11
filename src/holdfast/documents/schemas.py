"""Values against the JSON Schemas of a document: its input, its output, its variables."""

from __future__ import annotations

from typing import Any

from holdfast.holds.forms.json_schema import problems_in


def schema_problems(schema: Any, value: Any) -> list[str]:
    """Every problem with its place; none: the value fits."""
    return [text.removeprefix("data.").removeprefix("data: ") for text in problems_in(_plain(value), schema)]


def _plain(value: Any) -> Any:
    """Values of a run are frozen; the validator knows the plain types."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return value
