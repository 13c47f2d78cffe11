"""One clause of a pipeline's condition: what it compares, and how values are text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from holdfast.model.expr import MISSING, Path, Resolve

OUTCOME_ALIASES: Final = {
    "succeeded": "success",
    "ok": "success",
    "partially_succeeded": "partial_success",
    "partial": "partial_success",
    "failed": "fail",
    "failure": "fail",
    "error": "fail",
}
"""Words of other dialects. Any other word is an outcome of its own (AT-A16)."""
OUTCOMES: Final = frozenset({"success", "partial_success", "retry", "fail", "skipped"})

_BARE: Final = re.compile(r"[\w.:-]+", re.ASCII)
WRONG_IN_BARE: Final = re.compile(
    r"""["<>&|()]|(?:(?<=\s)|^)(?:and|or|not|contains|matches)(?=\s|$)""", re.IGNORECASE
)
NUMBERS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}
TRUTH: Final = ""


class Clause(NamedTuple):
    """`operator` is empty for a bare key."""

    key: str
    operator: str = TRUTH
    literal: str = ""

    def holds(self, resolve: Resolve) -> bool:
        found = _look_up(self.key, resolve)
        text = as_text(found)
        if self.operator == TRUTH:
            return text not in ("", "false", "0")
        wanted = self.literal
        if self.key in ("outcome", "context.outcome"):
            text, wanted = outcome_word(text), outcome_word(wanted)
        if self.operator in ("=", "!="):
            return (text == wanted) == (self.operator == "=")
        return _contains(found, wanted) if self.operator == "contains" else self._compares(text)

    def _compares(self, text: str) -> bool:
        try:
            return NUMBERS[self.operator](float(text), float(self.literal))
        except ValueError:
            return False

    def __str__(self) -> str:
        if self.operator == TRUTH:
            return self.key
        space = " " if self.operator == "contains" else ""
        plain = _BARE.fullmatch(self.literal) and not WRONG_IN_BARE.search(self.literal)
        return f"{self.key}{space}{self.operator}{space}{self.literal if plain else _quoted(self.literal)}"


def outcome_word(word: str) -> str:
    """What an outcome's word means; a word that no dialect knows is itself."""
    low = word.lower()
    return low if low in OUTCOMES else OUTCOME_ALIASES.get(low, word)


def as_text(value: object) -> str:
    """As the specification compares it: `true`, `3`, the empty text for nothing."""
    if isinstance(value, str):
        return value
    if value is None or value is MISSING:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError):
        return str(value)


def _plain(value: object) -> object:
    """Frozen lists and mappings of a state as what JSON knows."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    return list(cast("Sequence[object]", value)) if isinstance(value, Sequence) else str(value)


def _contains(found: object, wanted: str) -> bool:
    if isinstance(found, Sequence) and not isinstance(found, (str, bytes)):
        return any(as_text(item) == wanted for item in cast("Sequence[object]", found))
    return wanted in as_text(found)


def _look_up(key: str, resolve: Resolve) -> object:
    for path in paths_of(key):
        found = resolve(path)
        if found is not None and found is not MISSING:
            return found
    return MISSING


def paths_of(key: str) -> tuple[Path, ...]:
    if key in ("outcome", "preferred_label"):
        return ((key,),)
    if key.startswith("context."):
        return (("scratch", key), ("scratch", key.removeprefix("context.")))
    return (("scratch", key),)


def _quoted(text: str) -> str:
    for char, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(char, written)
    return f'"{text}"'
