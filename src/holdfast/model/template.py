r"""Text with `{{path}}` placeholders, as in prompts, assignees and idempotency keys.

A placeholder holds a dotted path of names and indices, and up to four filters (`template_filters`):
`{{note | default('none') | truncate(80)}}`. It has no brackets and no names that begin with two underscores.
The rest is plain text, with one escape: `\{{` stands for `{{`, and
`\\{{` for a backslash before a placeholder. A backslash anywhere else, a single brace and a `}}` without
an opening are themselves. A `{{` that is never closed is an error, because it is far more often a typing
error than literal text.

Inserted values are never expanded again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from holdfast.errors import ExpressionError
from holdfast.model.expressions import MISSING, Path, Resolve
from holdfast.model.expressions.visit_limit import CHARACTERS, MAX_VISITS, spend
from holdfast.model.template_filters import FilterSyntaxError, TemplateFilter, parse_filters
from holdfast.model.template_text import as_text, json_bytes, parts_of, shown_json

__all__ = [
    "Placeholder",
    "Rendered",
    "Template",
    "TemplateRenderError",
    "TemplateSyntaxError",
    "TemplateTooLongError",
    "as_text",
    "compile_template",
    "json_bytes",
    "parts_of",
    "shown_json",
    "single_braces",
]

_OPENING = re.compile(r"(\\*)\{\{")
_PATH = re.compile(r"[^\W\d]\w*(?:\.(?:[^\W\d]\w*|[0-9]+))*")
_CLOSED = re.compile(r"""(?:[^'"}]|\}(?!\})|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*\}\}""", re.DOTALL)
_SINGLE = re.compile(r"(?<!\{)\{\s*(" + _PATH.pattern + r")\s*\}(?!\})")
_EXAMPLE = "write a dotted path such as {{customer.name}} or {{items.0}}"


class TemplateSyntaxError(ExpressionError, ValueError):
    """The text is not a template. `column` counts characters from 1 over the whole text."""

    def __init__(self, problem: str, *, text: str, column: int, hint: str = "") -> None:
        super().__init__(f"{problem} at column {column}", hint=hint, column=column)
        self.problem = problem
        self.text = text
        self.column = column

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class TemplateRenderError(ExpressionError, ValueError):
    """A placeholder could not be filled: `path` names it, `column` is its position."""

    def __init__(self, problem: str, *, path: Path, text: str, column: int, hint: str = "") -> None:
        super().__init__(f"{{{{{'.'.join(path)}}}}} at column {column}: {problem}", hint=hint, column=column)
        self.path = path
        self.text = text
        self.column = column

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class TemplateTooLongError(TemplateRenderError):
    """The text grows beyond its limit at this placeholder."""


class Placeholder(msgspec.Struct, frozen=True):
    path: Path
    column: int
    filters: tuple[TemplateFilter, ...] = ()

    @property
    def may_miss(self) -> bool:
        """Whether it says what to show if the path leads nowhere."""
        return any(each.name == "default" for each in self.filters)


class Rendered(msgspec.Struct, frozen=True):
    """The result, and the paths without a value, in order of appearance without repeats."""

    value: object
    missing: tuple[Path, ...] = ()


class Template:
    """A compiled template. Immutable; equal to every template of the same text."""

    __slots__ = ("names", "parts", "required", "text")

    text: Final[str]
    parts: Final[tuple[str | Placeholder, ...]]
    names: Final[frozenset[Path]]
    required: Final[frozenset[Path]]
    """The names without those that say that they may be missing."""

    def __init__(self, text: str, parts: tuple[str | Placeholder, ...]) -> None:
        self.text = text
        self.parts = parts
        found = [part for part in parts if isinstance(part, Placeholder)]
        self.names = frozenset(part.path for part in found)
        self.required = frozenset(part.path for part in found if not part.may_miss)

    def render(self, resolve: Resolve, *, strict: bool = False, limit: int | None = None) -> Rendered:
        """Fill the placeholders.

        A text that is exactly one placeholder gives the value itself, whatever its type; any other gives
        text, with null as nothing. A path that leads nowhere gives the empty text and is listed in
        `missing`; with `strict` it raises TemplateRenderError, as does a value that has no text form. Text of
        more than `limit` characters, put together or made by a filter, raises TemplateTooLongError.
        """
        missing: dict[Path, None] = {}
        found = [self._fill(part, resolve, missing, strict) for part in self.parts]
        if len(self.parts) == 1 and isinstance(self.parts[0], Placeholder):
            if self.parts[0].filters and isinstance(found[0], str):
                list(self._texts(found, limit, resolve))
            return Rendered(found[0], tuple(missing))
        return Rendered("".join(self._texts(found, limit, resolve)), tuple(missing))

    def _texts(self, found: list[object], limit: int | None, resolve: Resolve) -> Iterator[str]:
        size = 0
        for part, value in zip(self.parts, found, strict=True):
            text = self._text_of(part, value)
            size += len(text)
            if isinstance(part, Placeholder):
                self._spend(part, resolve, len(text) // CHARACTERS)
            if limit is not None and size > limit:
                path, column = ((), 1) if isinstance(part, str) else (part.path, part.column)
                raise TemplateTooLongError(
                    f"the text has more than {limit:,} characters", path=path, text=self.text, column=column
                )
            yield text

    def _fill(
        self, part: str | Placeholder, resolve: Resolve, missing: dict[Path, None], strict: bool
    ) -> object:
        if isinstance(part, str):
            return part
        value = self._filtered(part, resolve(part.path), resolve)
        if value is not MISSING:
            return value
        if strict:
            hint = "set it before this point, or give a default: {{name | default('none')}}"
            raise TemplateRenderError(
                "it has no value", path=part.path, text=self.text, column=part.column, hint=hint
            )
        missing[part.path] = None
        return ""

    def _spend(self, part: Placeholder, resolve: Resolve, count: int) -> None:
        if not spend(resolve, count):
            problem = f"the texts of the node read more than {MAX_VISITS:,} values"
            hint = "make them in a function, or of less data"
            raise TemplateRenderError(problem, path=part.path, text=self.text, column=part.column, hint=hint)

    def _filtered(self, part: Placeholder, value: object, resolve: Resolve) -> object:
        for each in part.filters:
            try:
                self._spend(part, resolve, each.visits(value))
                text = each.read(value)
                if text is not value:
                    self._spend(part, resolve, each.visits(text))
                value = each.apply(text)
                self._spend(part, resolve, each.made(value))
            except TemplateRenderError:
                raise
            except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
                problem = f"{each.name} cannot be applied: {error}"
                raise TemplateRenderError(
                    problem, path=part.path, text=self.text, column=part.column
                ) from error
        return value

    def _text_of(self, part: str | Placeholder, value: object) -> str:
        if isinstance(part, str):
            return part
        try:
            return as_text(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise TemplateRenderError(
                f"its value cannot be shown as text: {error}",
                path=part.path,
                text=self.text,
                column=part.column,
            ) from error

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"compile_template({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Template) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)


def single_braces(text: str) -> list[str]:
    """Paths that stand in single braces, as in Python's own templates. They are plain text here, and often a
    slip."""
    return _SINGLE.findall(text)


def compile_template(text: str) -> Template:
    """Compile a template. Raises TemplateSyntaxError with the place of the first fault."""
    parts: list[str | Placeholder] = []
    plain = ""
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        plain += text[position : opening.start()] + "\\" * (len(opening[1]) // 2)
        position = opening.end()
        if len(opening[1]) % 2:
            plain += "{{"
            continue
        if plain:
            parts.append(plain)
            plain = ""
        placeholder, position = _placeholder(text, position)
        parts.append(placeholder)
    if plain := plain + text[position:]:
        parts.append(plain)
    return Template(text, tuple(parts))


def _placeholder(text: str, start: int) -> tuple[Placeholder, int]:
    end = _end(text, start)
    if end < 0:
        hint = r"close it with }}, or write \{{ to show two braces"
        raise TemplateSyntaxError("'{{' is never closed", text=text, column=start - 1, hint=hint)
    inside = text[start:end]
    source = inside.strip()
    column = start + 1 + len(inside) - len(inside.lstrip())
    match = _PATH.match(source)
    after = source[match.end() :] if match else source
    if match is None or (after and not after.lstrip().startswith("|")):
        at = column + (match.end() if match else 0)
        found = repr(after[:20]) if source else "nothing"
        raise TemplateSyntaxError(f"expected a path, found {found}", text=text, column=at, hint=_EXAMPLE)
    path = tuple(match.group().split("."))
    _refuse_private(path, text, column)
    try:
        filters = parse_filters(after)
    except FilterSyntaxError as error:
        at = column + match.end() + error.at
        raise TemplateSyntaxError(error.problem, text=text, column=at, hint=error.hint) from None
    return Placeholder(path, column, filters), end + 2


def _end(text: str, start: int) -> int:
    """Where `}}` closes the placeholder: not inside a text that is given to a filter."""
    plain = text.find("}}", start)
    if text.find("|", start, plain) < 0:
        return plain
    closed = _CLOSED.match(text, start)
    return plain if closed is None else closed.end() - 2


def _refuse_private(path: Path, text: str, column: int) -> None:
    for part in path:
        if part.startswith("__"):
            raise TemplateSyntaxError(f"{part!r} cannot be shown", text=text, column=column, hint=_EXAMPLE)
        column += len(part) + 1
