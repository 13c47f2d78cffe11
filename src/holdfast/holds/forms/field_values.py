"""Reads a field's value as its kind, or reports what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, cast
from urllib.parse import urlsplit

from holdfast.errors import ExpressionError
from holdfast.holds.forms.field_error import FieldValueError
from holdfast.holds.forms.file_references import read_file
from holdfast.holds.forms.json_schema import problems_in
from holdfast.holds.forms.money import amount_of, number_text
from holdfast.model.checks.regex_safety import matches
from holdfast.model.forms import field_kinds
from holdfast.types.duration import parse_duration

MAX_TEXT: Final = 64 * 1024
MAX_MATCHED: Final = 1_000
MAX_ROWS: Final = 1_000
_EMAIL = re.compile(r"[^\s@<>,;:\"()\[\]\\]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_PHONE = re.compile(r"\+?[0-9][0-9 ()./-]{2,30}")
_SECRET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:-]{0,199}")
_USER = re.compile(r"[^\s]{1,200}")

Field = Mapping[str, Any]


def read_value(field: Field, value: Any) -> Any:
    """The value as it is stored: JSON, exact, in one canonical form. Raises FieldValueError."""
    kind = field.get("kind", "text")
    found = _READERS.get(kind, _text)(field, value)
    if kind in _ORDERED:
        _limits(field, _ORDERED[kind], found)
    return found


def _text(field: Field, value: Any) -> str:
    text = _string(value)
    low, high = field.get("min_length", 0), min(field.get("max_length", MAX_TEXT), MAX_TEXT)
    if not low <= len(text) <= high:
        raise FieldValueError("length", f"has {len(text)} characters; allowed are {low} to {high}")
    pattern = field.get("pattern")
    if pattern is not None:
        if len(text) > MAX_MATCHED:
            raise FieldValueError("length", f"a text with a pattern has at most {MAX_MATCHED} characters")
        try:
            fits = matches(pattern, text)
        except TimeoutError:
            raise FieldValueError("pattern", f"cannot be checked: {pattern} takes too long on it") from None
        if not fits:
            raise FieldValueError("pattern", f"does not match {pattern}")
    return text


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise FieldValueError("type", "is not text")
    return value


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[Field, Any], Any]:
    def read(field: Field, value: Any) -> str:
        text = _text(field, value).strip()
        if pattern.fullmatch(text) is None:
            raise FieldValueError("format", f"is not {what}")
        return text

    return read


def _url(field: Field, value: Any) -> str:
    text = _text(field, value).strip()
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", text)
    except ValueError:
        fine = False
    if not fine:
        raise FieldValueError("format", "is not a web address (https://...)")
    return text


def _number(_field: Field, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FieldValueError("type", f"is not a number{_comma_hint(value)}")
    if isinstance(value, float) and not abs(value) < float("inf"):
        raise FieldValueError("type", "is not a finite number")
    return value


def _comma_hint(value: Any) -> str:
    """Many people write 646,5, which is no number here; 1,840 could be two."""
    return "; write it with a decimal point, such as 646.5" if isinstance(value, str) and "," in value else ""


def _integer(field: Field, value: Any) -> int:
    number = _number(field, value)
    if number != int(number):
        raise FieldValueError("type", "is not a whole number")
    return int(number)


def _percent(field: Field, value: Any) -> int | float:
    if isinstance(value, str):
        text = amount_of(value.strip().removesuffix("%").strip(), str(field.get("locale", "")))
        if text is None:
            raise FieldValueError("type", f"is not a percentage{_comma_hint(value)}")
        number = Decimal(text)
        return int(number) if number == number.to_integral_value() else float(number)
    return _number(field, value)


def _currency(field: Field, value: Any) -> Any:
    """The amount; with its currency code if the field does not fix the currency."""
    code, given = field.get("currency"), value
    stated: Any = None
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        if parts.keys() - {"amount", "currency"}:
            raise FieldValueError("type", "must have only amount and currency")
        given, stated = parts.get("amount"), parts.get("currency")
        if not isinstance(stated, str) or re.fullmatch("[A-Z]{3}", stated) is None:
            raise FieldValueError("format", "its currency is not an ISO code such as EUR")
    amount = amount_of(given, str(field.get("locale", "")))
    if amount is None:
        raise FieldValueError("format", f"is not an amount of money{_comma_hint(given)}")
    if code is not None and stated is not None and stated != code:
        raise FieldValueError("currency", f"is in {stated}, but {code} was asked for")
    return amount if stated is None or code is not None else {"amount": amount, "currency": stated}


def _boolean(_field: Field, value: Any) -> bool:
    if not isinstance(value, bool):
        raise FieldValueError("type", "is neither true nor false")
    return value


def _choice(field: Field, value: Any) -> str:
    ids = [each["id"] for each in field["options"]]
    if not isinstance(value, str) or value not in ids:
        raise FieldValueError("option", f"is not one of {', '.join(ids)}")
    return value


def _choices(field: Field, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise FieldValueError("type", "is not a list")
    found = [_choice(field, each) for each in cast("list[Any]", value)]
    if len(set(found)) != len(found):
        raise FieldValueError("option", "names an option twice")
    return found


def _date(_field: Field, value: Any) -> str:
    try:
        return date.fromisoformat(_string(value)).isoformat()
    except ValueError:
        raise FieldValueError("format", "is not a date such as 2026-05-01") from None


def _time(_field: Field, value: Any) -> str:
    try:
        return time.fromisoformat(_string(value)).isoformat()
    except ValueError:
        raise FieldValueError("format", "is not a time such as 14:30") from None


def _datetime(_field: Field, value: Any) -> str:
    try:
        found = datetime.fromisoformat(_string(value))
    except ValueError:
        raise FieldValueError("format", "is not a date and time such as 2026-05-01T14:30:00Z") from None
    if found.tzinfo is None:
        raise FieldValueError("format", "has no time zone; add Z or +02:00")
    return found.isoformat()


def _duration(_field: Field, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise FieldValueError("type", "is not a duration")
    try:
        # 5.0 seconds are called 5 in an error too.
        whole = isinstance(value, float) and value.is_integer()
        parse_duration(int(value) if whole else value, allow_zero=True)
    except (ExpressionError, OverflowError, ValueError) as error:
        raise FieldValueError("format", str(error)[:300]) from None
    return value


def _json(field: Field, value: Any) -> Any:
    if "schema" in field:
        problems = problems_in(value, field["schema"])
        if problems:
            raise FieldValueError(
                "schema",
                "; ".join(each.removeprefix("data").removeprefix(": ") for each in problems[:5])[:500],
            )
    return value


def _table(field: Field, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise FieldValueError("type", "is not a list of rows")
    rows = cast("list[Any]", value)
    if len(rows) > MAX_ROWS:
        raise FieldValueError("length", f"has more than {MAX_ROWS} rows")
    return [_row(field["columns"], row, index) for index, row in enumerate(rows)]


def _row(columns: list[Field], row: Any, index: int) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise FieldValueError("type", f"[{index}] is not an object")
    cells = cast("Mapping[str, Any]", row)
    for name in cells.keys() - {each["field"] for each in columns}:
        raise FieldValueError("unknown", f"[{index}].{str(name)[:60]} is not a column")
    found: dict[str, Any] = {}
    for column in columns:
        name = column["field"]
        value = cells.get(name)
        if is_empty(value):
            if column.get("required"):
                raise FieldValueError("required", f"[{index}].{name} is missing")
            continue
        try:
            found[name] = read_value(column, value)
        except FieldValueError as error:
            raise FieldValueError(error.code, f"[{index}].{name} {error.message}") from None
    return found


def is_empty(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, str) and not value.strip())


def _limits(field: Field, order: Callable[[Any], Any], value: Any) -> None:
    """If a limit itself cannot be read, every value is refused."""
    try:
        own = order(value)
        low = None if field.get("min") is None else order(field["min"])
        high = None if field.get("max") is None else order(field["max"])
        below, above = low is not None and own < low, high is not None and own > high
    except (ValueError, TypeError, ArithmeticError, ExpressionError):
        raise FieldValueError("limit", "cannot be compared with the limits of this field") from None
    if below:
        raise FieldValueError("min", f"is below {number_text(field['min'])}")
    if above:
        raise FieldValueError("max", f"is above {number_text(field['max'])}")
    step = field.get("step")
    if step is not None and isinstance(own, Fraction) and own % Fraction(str(step)) != 0:
        raise FieldValueError("step", f"is not a multiple of {number_text(step)}")


def _exact(value: Any) -> Fraction:
    amount: Any = cast("Mapping[str, Any]", value)["amount"] if isinstance(value, Mapping) else value
    return Fraction(str(amount))


_ORDERED: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(field_kinds.NUMBERS, _exact),
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "time": time.fromisoformat,
    "duration": lambda value: parse_duration(value, allow_zero=True),
}
_READERS: Final[dict[str, Callable[[Field, Any], Any]]] = {
    "number": _number,
    "integer": _integer,
    "percent": _percent,
    "currency": _currency,
    "boolean": _boolean,
    "select": _choice,
    "radio": _choice,
    "multiselect": _choices,
    "date": _date,
    "time": _time,
    "datetime": _datetime,
    "duration": _duration,
    "email": _matching(_EMAIL, "an e-mail address"),
    "phone": _matching(_PHONE, "a phone number"),
    "user": _matching(_USER, "a user"),
    "secret-reference": _matching(_SECRET, "the name of a secret (never the secret itself)"),
    "url": _url,
    "file": read_file,
    "json": _json,
    "table": _table,
}
