"""Lengths of time as people write them: seconds, "1h30m", "PT15M"; and of business time: "4bh", "2bd"."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from itertools import pairwise

import msgspec

from holdfast.errors import ExpressionError

_MICROSECONDS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(rf"({_NUMBER})\s*(ms|[wdhms])(?![a-zA-Z])\s*")
_BARE_NUMBER = re.compile(_NUMBER)
_BUSINESS_PART = re.compile(rf"({_NUMBER})\s*b([dhm])(?![a-zA-Z])\s*")
_BUSINESS = re.compile(r"[0-9]\s*b")
_ISO_NUMBER = r"([0-9]+(?:[.,][0-9]+)?)"
_ISO = re.compile(
    rf"P(?=.)(?:{_ISO_NUMBER}W)?(?:{_ISO_NUMBER}D)?"
    rf"(?:T(?=.)(?:{_ISO_NUMBER}H)?(?:{_ISO_NUMBER}M)?(?:{_ISO_NUMBER}S)?)?"
)
_ISO_UNITS = ("w", "d", "h", "m", "s")
_ISO_CALENDAR = re.compile(r"P[0-9.,]+[YM]")
_MAX_LENGTH = 100
# Wide enough for the longest text: rounding happens once, and the decimal context of the process has no
# effect.
_EXACT = Context(prec=2 * _MAX_LENGTH, rounding=ROUND_HALF_EVEN)

# An instant so far ahead still is a date that every store keeps. Nobody waits so long: it is a slip.
LONGEST = timedelta(days=365_000)
_TOO_LONG = "it is longer than 1,000 years"

EXAMPLES = 'examples: 90 (seconds), "250ms", "30m", "1h30m", "7d", "2w", "PT15M", "P1DT2H"'
BUSINESS_EXAMPLES = 'examples of business time: "30bm", "4bh", "2bd", "1bd 4bh"'


class DurationError(ExpressionError, ValueError):
    """The value is not a duration. `column` is that of the first character that could not be parsed."""

    def __init__(self, problem: str, *, text: str, column: int = 1, hint: str = EXAMPLES) -> None:
        shown = text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + "…"
        super().__init__(f"{shown!r} is not a duration: {problem}", hint=hint, column=column)
        self.problem = problem
        self.text = text
        self.column = column

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class BusinessDuration(msgspec.Struct, frozen=True):
    """A length of a calendar's open time: whole open days, then microseconds of its hours."""

    days: int = 0
    micros: int = 0


def is_business(value: object) -> bool:
    """Whether it looks like business time, valid or not: `4bh`, `2 bd`."""
    return isinstance(value, str) and _BUSINESS.search(value) is not None


def parse_length(value: str | int | float | timedelta) -> timedelta | BusinessDuration:
    """Read a duration of either kind. Raises DurationError as `parse_duration` does."""
    if isinstance(value, str) and is_business(value):
        return parse_business(value)
    return parse_duration(value)


def parse_business(text: str) -> BusinessDuration:
    """Read business time: days (bd), hours (bh) and minutes (bm), largest first, each once.

    A day has no fixed length, so days are whole numbers. Raises DurationError when the text is unreadable,
    mixed with plain time, or zero.
    """
    if len(text) > _MAX_LENGTH:
        raise _not_business(f"it has more than {_MAX_LENGTH} characters", text)
    parts, position = _parts(_BUSINESS_PART, text.strip())
    if position < len(text.strip()) or not parts:
        raise _not_business("expected a number and one of bd, bh, bm, and no other unit", text)
    days = parts.pop(0)[0] if parts[0][1] == "d" else "0"
    if "." in days:
        raise _not_business("business days must be whole numbers", text)
    if any(unit == "d" for _, unit in parts):
        raise _not_business("units must go from large to small, each once", text)
    try:
        found = BusinessDuration(int(days), _total(text, parts) // timedelta(microseconds=1))
    except OverflowError:
        raise _not_business(_TOO_LONG, text) from None
    if found.days > LONGEST.days or found.micros > LONGEST // timedelta(microseconds=1):
        raise _not_business(_TOO_LONG, text)
    if found == BusinessDuration():
        raise _not_business("it is zero", text)
    return found


def _not_business(problem: str, text: str) -> DurationError:
    return DurationError(problem, text=text, hint=BUSINESS_EXAMPLES)


def parse_duration(value: str | int | float | timedelta, *, allow_zero: bool = False) -> timedelta:
    """Read a duration: seconds as a number (or its text), units from w to ms largest first, or ISO 8601.

    Fractions of a microsecond are rounded. Years and months are refused: their length depends on the date.

    Raises DurationError when the value is unreadable, negative, longer than 1,000 years, or zero while
    `allow_zero` is not set.
    """
    text = _shown(value)
    try:
        duration = _read(value)
    except OverflowError:
        raise DurationError(_TOO_LONG, text=text) from None
    if duration > LONGEST:
        raise DurationError(_TOO_LONG, text=text)
    if duration < timedelta(0):
        raise DurationError("it is negative", text=text)
    if not duration and not allow_zero:
        raise DurationError("it is zero", text=text)
    return duration


def format_duration(duration: timedelta) -> str:
    """The short form, such as `1h 30m` or `250ms`; parse_duration reads it back exactly unless negative."""
    left = duration // timedelta(microseconds=1)
    if left == 0:
        return "0s"
    sign, left = ("-", -left) if left < 0 else ("", left)
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, _MICROSECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    if left:
        parts.append(f"{Decimal(left) / 1000}ms")
    return sign + " ".join(parts)


def _read(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        return _read_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise DurationError("it is not a number of seconds", text=_shown(value))
    return timedelta(seconds=value)


def _shown(value: object) -> str:
    """Python refuses to print integers of thousands of digits; the error about one must still appear."""
    if isinstance(value, int) and value.bit_length() > 8 * _MAX_LENGTH:
        return hex(value)
    return str(value)


def _read_text(text: str) -> timedelta:
    if len(text) > _MAX_LENGTH:
        raise DurationError(f"it has more than {_MAX_LENGTH} characters", text=text)
    body = text.strip()
    if _BARE_NUMBER.fullmatch(body):
        return _total(text, [(body, "s")])
    if body.startswith("P"):
        return _read_iso(text, body)
    return _read_units(text, body)


def _read_units(text: str, body: str) -> timedelta:
    parts, position = _parts(_PART, body)
    if position < len(body) or not parts:
        if body.startswith("-"):
            raise DurationError("it is negative", text=text)
        if is_business(body):
            raise DurationError("business time is not accepted here", text=text)
        column = position + 1 + len(text) - len(text.lstrip())
        raise DurationError("expected a number and one of w, d, h, m, s, ms", text=text, column=column)
    return _total(text, parts)


def _parts(one: re.Pattern[str], body: str) -> tuple[list[tuple[str, str]], int]:
    """(number, unit) of each part, and the position of the first character that belongs to none."""
    parts: list[tuple[str, str]] = []
    position = 0
    while match := one.match(body, position):
        parts.append((match[1], match[2]))
        position = match.end()
    return parts, position


def _read_iso(text: str, body: str) -> timedelta:
    match = _ISO.fullmatch(body)
    if match is None:
        if _ISO_CALENDAR.match(body):
            raise DurationError("years and months have no fixed length", text=text)
        raise DurationError("expected ISO 8601, such as PT15M or P1DT2H", text=text)
    found = zip(match.groups(), _ISO_UNITS, strict=True)
    return _total(text, [(number.replace(",", "."), unit) for number, unit in found if number is not None])


def _total(text: str, parts: list[tuple[str, str]]) -> timedelta:
    sizes = [_MICROSECONDS[unit] for _, unit in parts]
    if any(size <= smaller for size, smaller in pairwise(sizes)):
        raise DurationError("units must go from large to small, each once", text=text)
    if any("." in number for number, _ in parts[:-1]):
        raise DurationError("only the last number may have a fraction", text=text)
    total = sum(
        (_EXACT.multiply(Decimal(number), size) for (number, _), size in zip(parts, sizes, strict=True))
    )
    return timedelta(microseconds=int(_EXACT.to_integral_value(total)))
