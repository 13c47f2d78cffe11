"""A form on the screen: what it shows, what it asks for, and how to answer it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.model.forms.json_schema import KEY as KEY

if TYPE_CHECKING:
    from holdfast.types.hold import HoldRow

_LINE = 500


def form_lines(hold: HoldRow) -> Iterator[str]:
    for section in _sections(hold):
        if section["type"] == "context":
            title, content = section.get("title"), _short(section.get("content"))
            yield f"{title}: {content}" if title else content
        elif section["type"] == "input":
            yield _field(section)


def decided_lines(hold: HoldRow) -> Iterator[str]:
    """What was decided with: `amount = 200 (changed; proposed was 250)`."""
    from holdfast.holds.queries.decided_values import decided_values

    for each in decided_values(hold):
        proposed = "" if each.proposed is None else f"; proposed was {_short(each.proposed)}"
        yield f"{each.label} = {_short(each.value)}" + (f" (changed{proposed})" if each.edited else "")


def _field(section: Mapping[str, Any]) -> str:
    words = [_kind(section), *([section["currency"]] if "currency" in section else [])]
    words += [word for word in ("required", "readonly") if section.get(word)]
    if "confidence" in section:
        words.append(f"{section['confidence']:.0%} sure")
    value = _short(section.get("default"))
    label = section.get("label")
    named = f"{section['field']}: {label}" if label else section["field"]
    return f"{named} ({', '.join(words)})" + (f" = {value}" if value else "")


def _kind(section: Mapping[str, Any]) -> str:
    ids = [each["id"] for each in section.get("options", ())]
    return f"{section['kind']} of {' | '.join(ids)}" if ids else section["kind"]


def _short(value: Any) -> str:
    from holdfast.model.template import as_text

    text = as_text(value)
    return text if len(text) <= _LINE else f"{text[:_LINE]}… (--json shows all)"


def sample_data(hold: HoldRow) -> str:
    """`--data` with the fields that must be given."""
    asked = [each for each in _sections(hold) if each["type"] == "input" and "default" not in each]
    needed = {each["field"]: "..." for each in asked if each.get("required") and "visible_if" not in each}
    return f" --data {quote(msgspec.json.encode(needed).decode())}" if needed else ""


def _sections(hold: HoldRow) -> list[dict[str, Any]]:
    schema: Any = None if hold.schema is None else msgspec.json.decode(hold.schema)
    known = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    return known[KEY]["sections"] if KEY in known else []
