"""Fills the placeholders of a question once, when it is asked, within size limits.

A path without a value renders as empty and adds a warning; in a strict hold it is an error (TP-3). A value
that is too large is always an error: a person must not decide on content that was cut off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from holdfast.model.expressions import (
    MISSING,
    ExprSyntaxError,
    Resolve,
    compile_expr,
    mapping_resolver,
    nested_values,
    required_names,
)
from holdfast.model.forms.visible_text import show_invisible
from holdfast.model.template import TemplateRenderError, TemplateTooLongError, compile_template, json_bytes

MAX_SHOWN: Final = 64 * 1024
"""Maximum bytes of one text or value after its placeholders are filled."""
MAX_RENDERED: Final = 2**20
"""Maximum bytes of everything that a question shows."""
MAX_WARNINGS: Final = 50


class UnshowableError(ValueError):
    """The value at `where` cannot be shown, so the question cannot be asked."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")


class PlaceholderRenderer:
    """Without `resolve` texts are literal. `telling`: a value without a text form is replaced by the reason,
    else by nothing. `warnings`: the placeholders without a value, each with its place."""

    def __init__(self, resolve: Resolve | None, *, strict: bool = False, telling: bool = False) -> None:
        self.warnings: list[str] = []
        self._resolve = resolve
        self._strict = strict
        self._telling = telling
        self._left = MAX_RENDERED
        self._room = 0
        self._read = True

    def value(self, value: Any, where: str, *, read: bool = True) -> Any:
        """The value with the placeholders of all its texts filled. `read`: people only read it, so invisible
        characters are spelled out; else it stays exact. Raises UnshowableError."""
        before = self._room = min(MAX_SHOWN, self._left)
        self._read = read
        found = self._filled(value, where)
        self._left -= before - self._room
        return found

    def _filled(self, value: Any, where: str) -> Any:
        if isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            return {name: self._filled(inner, f"{where}.{name}") for name, inner in named.items()}
        if isinstance(value, (list, tuple)):
            items = cast("list[Any]", value)
            return [self._filled(inner, f"{where}[{index}]") for index, inner in enumerate(items)]
        filled = isinstance(value, str) and "{{" in value and self._resolve is not None
        found = self._text(value, where, self._resolve) if filled else value
        found = show_invisible(found) if self._read else found
        self._spend(found, where)
        return found

    def _text(self, text: str, where: str, resolve: Any) -> Any:
        try:
            found = compile_template(text).render(resolve, strict=self._strict, limit=MAX_SHOWN)
        except TemplateTooLongError as error:
            raise UnshowableError(where, str(error)) from error
        except TemplateRenderError as error:
            if self._strict:
                raise UnshowableError(where, f"{text!r}: {error}") from error
            self._warn(f"{where}: {error}")
            return f"{text} ({error})" if self._telling else ""
        for path in found.missing:
            self._warn(f"{where}: {{{{{'.'.join(path)}}}}} has no value")
        return found.value

    def _spend(self, value: Any, where: str) -> None:
        # Text counts without JSON quoting, so that a limit means the same for prompts and fields.
        size = len(value.encode("utf-8", "replace")) if isinstance(value, str) else _size(value, where)
        if size > self._room:
            raise UnshowableError(
                where,
                f"{size:,} bytes is too large: {self._room:,} of {MAX_SHOWN:,} bytes are left. Show less "
                f"of it",
            )
        self._room -= size

    def _warn(self, text: str) -> None:
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(text)


def _size(value: object, where: str) -> int:
    try:
        return len(json_bytes(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UnshowableError(where, f"its value cannot be written as JSON: {error}") from error


def wait_condition(
    showing: PlaceholderRenderer, context: Mapping[str, Any], resolve: Resolve
) -> dict[str, Any]:
    """Of a wait for a message. A name without a value is left out of `values`: `exists` and `default` ask for
    it. Raises UnshowableError where `match` reads it otherwise: no message would ever be the right one."""
    if "match" not in context:
        return dict(context)
    values: Mapping[str, Any] = context.get("values") or {}
    known = {name: each for name, each in values.items() if not _lacks(each, resolve)}
    filled = {name: showing.value(each, f"match.{name}", read=False) for name, each in known.items()}
    find = mapping_resolver(nested_values(filled))
    try:
        needed = required_names(compile_expr(str(context["match"])).node)
    except ExprSyntaxError as error:
        raise UnshowableError("match", str(error)) from error
    received = ("message", "event") if "event" in context else ("message",)
    for path in sorted(needed):
        if path[0] not in received and find(path) is MISSING:
            raise UnshowableError("match", f"{'.'.join(path)} has no value (missing_name)")
    return {**context, "values": filled}


def _lacks(value: Any, resolve: Resolve) -> bool:
    text = isinstance(value, str) and "{{" in value
    return text and bool(compile_template(value).render(resolve).missing)
