"""Values of attributes, and how they are read as the type that a key requires."""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec


class Duration(msgspec.Struct, frozen=True, gc=False):
    """As it was written, such as `900s`, and in microseconds."""

    text: str
    microseconds: int

    def __str__(self) -> str:
        return self.text


Value: TypeAlias = str | int | float | bool | Duration

UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_DURATION = re.compile(r"(-?[0-9]{1,100})(ms|s|m|h|d)")
_SECONDS = re.compile(r"-?(?:[0-9]{1,100}(?:\.[0-9]*)?|\.[0-9]+)")
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,400}\s*")


def duration_of(text: str) -> Duration | None:
    """`900s`, `15m`, ...; None for anything else."""
    found = _DURATION.fullmatch(text)
    return None if found is None else Duration(text, int(found[1]) * UNITS[found[2]])


def as_text(value: Value) -> str:
    """As conditions, contexts and templates see it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def as_microseconds(value: Value) -> int | None:
    """A duration, quoted or bare; a bare number is seconds. None for anything else."""
    if isinstance(value, Duration):
        return value.microseconds
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return int(value * 1_000_000)
    text = value.strip()
    result = duration_of(text)
    if result is not None:
        return result.microseconds
    return int(float(text) * 1_000_000) if _SECONDS.fullmatch(text) else None


def as_integer(value: Value) -> int | None:
    """`3` and `"3"` are the same; None for a value that is not a whole number."""
    if isinstance(value, (bool, Duration)):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, int):
        return value
    return int(value) if _INTEGER.fullmatch(value) else None


def as_flag(value: Value) -> bool | None:
    """`true` and `"true"` are the same; None for a value that is not a boolean."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(str(value).strip().lower())
