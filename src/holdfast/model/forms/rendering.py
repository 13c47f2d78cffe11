"""A form's placeholders are filled once, when the hold opens. What they put in is never read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.model.expr import Resolve
from holdfast.model.forms.confidence import confidence_of
from holdfast.model.forms.kinds import MAX_RENDERED, MAX_SHOWN
from holdfast.model.forms.unmasking import unmasked
from holdfast.model.template import TemplateRenderError, compile_template, json_bytes

# Ids, conditions and kinds are never templates. What people only read is unmasked; values stay exact.
_READ: Final = ("title", "help", "label", "content")
_VALUES: Final = ("default", "original", "extras")


def render_form(form: Mapping[str, Any], resolve: Resolve | None = None) -> dict[str, Any]:
    """The snapshot that is stored with the hold. A literal form has no placeholders, only texts."""
    work = _Renderer(None if form.get("literal") else resolve)
    sections = [work.section(each, f"sections[{i}]") for i, each in enumerate(form["sections"])]
    found = {**form, "sections": sections}
    if work.warnings:
        found["warnings"] = work.warnings
    return found


class _Renderer:
    def __init__(self, resolve: Resolve | None) -> None:
        self.warnings: list[str] = []
        self._resolve = resolve
        self._left = MAX_RENDERED

    def section(self, given: Mapping[str, Any], where: str) -> dict[str, Any]:
        section = dict(given)
        for name in (each for each in _READ if each in section):
            section[name] = unmasked(self._value(section[name], f"{where}.{name}"))
        for name in (each for each in _VALUES if each in section):
            section[name] = self._value(section[name], f"{where}.{name}")
        if "options" in section:
            section["options"] = [self._option(each, where) for each in section["options"]]
        if isinstance(section.get("extras"), dict) and "confidence" in section["extras"]:
            sure = confidence_of(section["extras"]["confidence"])
            section |= {} if sure is None else {"confidence": sure}
        return section

    def _option(self, option: Mapping[str, str], where: str) -> dict[str, Any]:
        label = self._value(option["label"], f"{where}.options")
        text = label if isinstance(label, str) else json_bytes(label).decode()
        return {**option, "label": unmasked(text) or option["id"]}

    def _value(self, value: Any, where: str) -> Any:
        filled = self._filled(value, where)
        size = len(json_bytes(filled))
        if size > min(MAX_SHOWN, self._left):
            self.warnings.append(f"{where}: {size:,} bytes are more than can be shown; it was left out")
            return None
        self._left -= size
        return filled

    def _filled(self, value: Any, where: str) -> Any:
        if isinstance(value, str):
            return self._text(value, where) if "{{" in value and self._resolve else value
        if isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            return {name: self._filled(inner, f"{where}.{name}") for name, inner in named.items()}
        if isinstance(value, (list, tuple)):
            return [self._filled(inner, where) for inner in cast("list[Any]", value)]
        return value

    def _text(self, text: str, where: str) -> Any:
        assert self._resolve is not None
        try:
            found = compile_template(text).render(self._resolve)
        except TemplateRenderError as error:
            self.warnings.append(f"{where}: {error}")
            return ""
        self.warnings += [f"{where}: {{{{{'.'.join(path)}}}}} has no value" for path in found.missing]
        return msgspec.json.decode(json_bytes(found.value))
