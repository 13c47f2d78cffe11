"""Fills a form's placeholders once, when the hold opens. Inserted text is never expanded again.

Also reads the confidence that a machine gives for a value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from holdfast.model.expressions import Resolve
from holdfast.model.hold_text import PlaceholderRenderer
from holdfast.model.template import json_bytes, shown_json


def confidence_of(given: Any) -> float | None:
    """0..1 from 0.87, 87, "87%" or "0.87"; None for anything else, which is not shown."""
    percent = isinstance(given, str) and given.strip().endswith("%")
    text = given.strip().removesuffix("%") if isinstance(given, str) else given
    if isinstance(text, bool) or not isinstance(text, (str, int, float)) or len(str(text)) > 40:
        return None
    try:
        number = float(text)
    except (ValueError, OverflowError):
        return None
    if percent or number > 1:
        number /= 100
    return round(number, 6) if math.isfinite(number) and 0 <= number <= 1 else None


# Ids, conditions and kinds are never templates. In text that people only read, invisible characters are
# spelled out; values stay exact.
_READ: Final = ("title", "help", "label", "content")
_VALUES: Final = ("default", "original", "extras")


def render_form(
    form: Mapping[str, Any], resolve: Resolve | None = None, *, strict: bool = False
) -> dict[str, Any]:
    """The snapshot that is stored with the hold. A literal form has no placeholders, only texts.

    Raises UnshowableError for a value that is too large, and in a strict form for one that is missing."""
    work = _Renderer(PlaceholderRenderer(None if form.get("literal") else resolve, strict=strict))
    sections = [work.section(each, f"sections[{i}]") for i, each in enumerate(form["sections"])]
    found = {**form, "sections": sections}
    if work.showing.warnings:
        found["warnings"] = work.showing.warnings
    return found


class _Renderer:
    def __init__(self, showing: PlaceholderRenderer) -> None:
        self.showing = showing

    def section(self, given: Mapping[str, Any], where: str) -> dict[str, Any]:
        section = dict(given)
        for name in (each for each in _READ if each in section):
            section[name] = self._value(section[name], f"{where}.{name}")
        for name in (each for each in _VALUES if each in section):
            section[name] = self._value(section[name], f"{where}.{name}", read=False)
        if "options" in section:
            options = enumerate(section["options"])
            section["options"] = [self._option(each, f"{where}.options[{i}]") for i, each in options]
        if isinstance(section.get("extras"), dict) and "confidence" in section["extras"]:
            sure = confidence_of(section["extras"]["confidence"])
            section |= {} if sure is None else {"confidence": sure}
        return section

    def _option(self, option: Mapping[str, str], where: str) -> dict[str, Any]:
        label = self._value(option["label"], f"{where}.label")
        text = label if isinstance(label, str) else json_bytes(label).decode()
        return {**option, "label": text or option["id"]}

    def _value(self, value: Any, where: str, *, read: bool = True) -> Any:
        """As JSON: the state may contain other types."""
        return msgspec.json.decode(shown_json(self.showing.value(value, where, read=read)))
