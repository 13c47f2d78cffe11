"""References in prompts to what earlier stages left: `{{stages.test.stdout | tail(4000)}}`.

`stages.ID.FIELD`, `branches.ID.FIELD` and `context.KEY`, with `head(N)` or `tail(N)` characters. What a
reference is replaced by is not read again, and every other `{{` stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

FIELDS: Final = ("response", "stdout", "stderr", "notes", "failure_reason", "verdict", "diff", "outcome")
STAGES, BRANCHES, CONTEXT = "stages", "branches", "context"
_REFERENCE: Final = re.compile(
    r"\{\{[ \t]*(stages|branches|context)\.([^\s{}|]+)[ \t]*"
    r"(?:\|[ \t]*(head|tail)\([ \t]*(\d{1,9})[ \t]*\)[ \t]*)?\}\}"
)


class Reference(NamedTuple):
    """`name`: the id of a stage or branch, or the key. `field`: empty for a key of the context."""

    kind: str
    name: str
    field: str
    text: str
    cut: str = ""
    length: int = 0

    def shortened(self, value: str) -> str:
        if not self.cut or len(value) <= self.length:
            return value
        if self.cut == "head":
            return value[: self.length]
        return value[len(value) - self.length :]


def references_in(text: str) -> Iterator[Reference]:
    return (_reference(found) for found in _REFERENCE.finditer(text))


def expanded(text: str, value_of: Callable[[Reference], str]) -> str:
    """Each reference replaced by its value, in one pass."""

    def value(found: re.Match[str]) -> str:
        reference = _reference(found)
        return reference.shortened(value_of(reference))

    return _REFERENCE.sub(value, text) if "{{" in text else text


def with_names(text: str, names: Mapping[str, str]) -> str:
    """The same references, to stages with other ids."""

    def renamed(found: re.Match[str]) -> str:
        reference = _reference(found)
        if reference.kind == CONTEXT or reference.name not in names:
            return reference.text
        start, end = (place - found.start() for place in found.span(2))
        path = f"{names[reference.name]}.{reference.field}"
        return f"{reference.text[:start]}{path}{reference.text[end:]}"

    return _REFERENCE.sub(renamed, text) if "{{" in text else text


def _reference(found: re.Match[str]) -> Reference:
    kind, path, cut, length = found.groups()
    # Keys of the context have dots; ids of stages have none.
    name, _, field = (path, "", "") if kind == CONTEXT else path.rpartition(".")
    return Reference(kind, name, field, found.group(0), cut or "", int(length or 0))
