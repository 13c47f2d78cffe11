"""Amounts of money: read by locale, stored as decimal text. Never a float. And numbers as text."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final

# Locales that write 1.234,56; a few of them separate thousands by a space or an apostrophe.
_COMMA: Final = frozenset(
    {
        "de",
        "nl",
        "fr",
        "es",
        "it",
        "pt",
        "da",
        "nb",
        "no",
        "sv",
        "fi",
        "pl",
        "cs",
        "sk",
        "ru",
        "uk",
        "tr",
        "id",
        "el",
        "hu",
        "ro",
    }
)
_SPACES: Final = str.maketrans("", "", " \u00a0\u202f'\u2019_")
_PLAIN = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,12})?")


def amount_of(given: object, locale: str = "") -> str | None:
    """A decimal text such as "1234.56"; None if it is not an amount, or ambiguous.

    A number is read as written: 0.1 is exactly 0.1. Without a locale the point is the decimal mark."""
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        return None
    text = given.strip() if isinstance(given, str) else _written(given)
    plain = _grouped(text, locale) if isinstance(given, str) else text
    return None if plain is None or _PLAIN.fullmatch(plain) is None else format(Decimal(plain), "f")


def _written(number: float) -> str:
    try:
        return number_text(number) if abs(number) < 1e30 else ""
    except (InvalidOperation, ValueError, OverflowError):
        return ""


def number_text(value: object) -> str:
    """As people write it, and as a browser reads it: no exponent, and 1.0 is 1."""
    if not isinstance(value, float):
        return str(value)
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _grouped(text: str, locale: str) -> str | None:
    if len(text) > 60:
        return None
    comma = re.split("[-_]", locale)[0].lower() in _COMMA
    mark, group = (",", ".") if comma else (".", ",")
    whole, found, part = text.translate(_SPACES).partition(mark)
    if group in part or mark in part:
        return None
    groups = whole.lstrip("+-").split(group)
    if len(groups) > 1 and (not 1 <= len(groups[0]) <= 3 or any(len(each) != 3 for each in groups[1:])):
        return None
    return whole.replace(group, "") + (f".{part}" if found else "")
