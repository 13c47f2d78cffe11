"""Built-in guardrail checks: card numbers and destructive commands that a person should have looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from holdfast.model.guardrails import Violation

_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
_SSN = re.compile(r"(?<!\d)(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?!\d)")
_RECURSIVE = re.compile(r"\brm\s+(?:-\w+\s+)*-\w*[rR]\w*(?:\s|$)")
_FORMATS = re.compile(r"\bmkfs(?:\.\w+)?\s")
_DROPS = re.compile(r"\b(?:DROP\s+(?:TABLE|DATABASE|SCHEMA)|TRUNCATE\s+TABLE)\b", re.I)
_BOMB = re.compile(r":\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}")
_PATTERNS: Final = {
    "deletes files recursively": _RECURSIVE,
    "formats a disk": _FORMATS,
    "drops a table or database": _DROPS,
    "is a fork bomb": _BOMB,
}
# Pairs that must follow each other within a line or a statement. They are searched one after the other,
# because one pattern over both would be quadratic for a hostile text with many first parts.
_IN_A_LINE: Final = {
    "runs what it downloads": (
        re.compile(r"\b(?:curl|wget)\b"),
        re.compile(r"\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"),
    ),
    "overwrites a disk": (re.compile(r"\bdd\s"), re.compile(r"\bof=/dev/")),
}
_EVERY_ROW = re.compile(r"\bDELETE\s+FROM\s+[\w.\"`]+\s*(?=$|\n)|\bUPDATE\s+[\w.\"`]+\s+SET\b", re.I)
_WHERE = re.compile(r"\bWHERE\b", re.I)
_MAX_TEXT: Final = 256 * 1024


def pii_redaction(facts: Mapping[str, Any]) -> Violation | None:
    """Card numbers (by their check digit) and US social security numbers in what is shown or answered."""
    text = text_of(facts)
    if _SSN.search(text):
        return Violation("it shows a social security number")
    if any(_is_card(found[0]) for found in _CARD.finditer(text)):
        return Violation("it shows a card number")
    return None


def code_safety(facts: Mapping[str, Any]) -> Violation | None:
    """Destructive shell commands and SQL."""
    found = _destruction(text_of(facts))
    return None if found is None else Violation(f"it {found}")


def _destruction(text: str) -> str | None:
    for what, pattern in _PATTERNS.items():
        if pattern.search(text):
            return what
    for what, (first, then) in _IN_A_LINE.items():
        if any(_follows(line, first, then) for line in text.splitlines()):
            return what
    if any(_changes_every_row(statement) for statement in text.split(";")):
        return "deletes or changes every row"
    return None


def _follows(line: str, first: re.Pattern[str], then: re.Pattern[str]) -> bool:
    found = first.search(line)
    return found is not None and then.search(line, found.end()) is not None


def _changes_every_row(statement: str) -> bool:
    found = _EVERY_ROW.search(statement)
    return found is not None and _WHERE.search(statement, found.end()) is None


def text_of(facts: Mapping[str, Any]) -> str:
    """All texts of the hold and the answer, one per line."""
    lines: list[str] = []
    _gather({name: facts.get(name) for name in ("prompt", "context", "response_data")}, lines, 0)
    return "\n".join(lines)[:_MAX_TEXT]


def _gather(value: Any, lines: list[str], depth: int) -> None:
    if depth > 50:
        return
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[Any, Any]", value).items():
            lines.append(str(key))
            _gather(inner, lines, depth + 1)
    elif isinstance(value, (list, tuple)):
        for inner in cast("list[Any]", value):
            _gather(inner, lines, depth + 1)
    elif value is not None:
        lines.append(str(value))


def _is_card(text: str) -> bool:
    """By Luhn's check digit."""
    digits = [int(letter) for letter in reversed(text) if letter.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return len(digits) >= 13 and (sum(digits[::2]) + sum(doubled)) % 10 == 0


STANDARD: Final = {"pii-redaction": pii_redaction, "code-safety": code_safety}
