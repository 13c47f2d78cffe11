"""Fields of a form without a value, in a preview: which of them decide what happens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.errors import AnswerInvalidError
from holdfast.holds.actions.submission import fit_resolution
from holdfast.model.fingerprint import encode_graph
from holdfast.model.graph import Graph
from holdfast.runs.preview.outcome import PreviewEntry
from holdfast.types.hold import HoldRow


def fit_partly(hold: HoldRow, resolution: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The resolution as far as it is filled in, and the fields that are missing. Raises AnswerInvalidError if
    something else is wrong."""
    from holdfast.holds.forms.validate_answer import form_of, validate_answer

    try:
        return fit_resolution(hold, resolution), []
    except AnswerInvalidError as error:
        form = form_of(hold)
        if form is None:
            raise
        found = validate_answer(
            form, msgspec.json.decode(hold.context), resolution["decision"], resolution["response_data"]
        )
        if any(each.code != "required" for each in found.errors):
            raise error
        return {**resolution, "response_data": found.values}, [each.field for each in found.errors]


def names_read(graph: Graph, hold: HoldRow) -> set[str]:
    """Every word of the conditions and texts of the graph, except those of the hold itself: more than is
    read, never less."""
    spec = msgspec.json.decode(encode_graph(graph.spec))
    parts = [spec.get(part) for part in ("nodes", "edges", "subgraphs")]
    return {word for text in _texts(parts, hold.node) for word in re.findall(r"\w+", text)}


def _texts(value: Any, hold: str) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(each, hold)
    elif isinstance(value, dict):
        if value.get("id") == hold:  # pyright: ignore[reportUnknownMemberType]
            return
        for each in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(each, hold)


def up_to_code(entries: list[PreviewEntry], missing: list[str]) -> list[PreviewEntry]:
    """What happens whatever is filled in. Code may read any field, so from the first node that ran on, what
    was found depends on them; a failure may be that of a missing value."""
    for place, entry in enumerate(entries):
        if entry.kind in ("step", "failure", "unknown"):
            kept = entries[: place + (entry.kind == "step")]
            return [*kept, PreviewEntry.depends_on(", ".join(missing))]
    return entries
