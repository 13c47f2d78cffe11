"""How values read inside text, and as JSON for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from datetime import date, time
from enum import Enum
from typing import TypeGuard, cast

import msgspec


def as_text(value: object) -> str:
    """How a value reads inside text: null as nothing, booleans and containers as JSON, the rest as itself."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (list, tuple, dict, set, frozenset, bytes, bytearray, msgspec.Struct)):
        return _json_text(cast("object", value))
    if isinstance(value, int):
        return _number(value)
    return value.name if _is_named(value) else _of_record(value)


def _is_named(value: object) -> TypeGuard[Enum]:
    """A member of an enum that is not text: the journal stores its name."""
    return isinstance(value, Enum) and not isinstance(value, str) and value.name is not None  # pyright: ignore[reportUnnecessaryComparison]


def _of_record(value: object) -> str:
    """A dataclass or a pydantic model reads like the map of its fields, as it does without its code."""
    fields = parts_of(value)
    return str(value) if fields is None else _json_text(fields)


def parts_of(value: object) -> dict[str, object] | None:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields_of(value)}
    if hasattr(value, "model_dump") and hasattr(type(value), "model_fields"):
        return dict(cast("Iterable[tuple[str, object]]", value))
    if isinstance(value, Mapping) and not isinstance(value, dict):
        # Where its code is not loaded. One without fields is the member of an enum.
        return dict(cast("Mapping[str, object]", value)) or None
    return None


def _encodable(value: object) -> object:
    fields = parts_of(value)
    return str(value) if fields is None else fields


_encode_json = msgspec.json.Encoder(enc_hook=_encodable, order="deterministic").encode


def json_bytes(value: object) -> bytes:
    """As JSON for people. The state may contain more than JSON: keys that are not text are shown as text, and
    very long numbers in hexadecimal."""
    try:
        return _encode_json(value)
    except (TypeError, ValueError, OverflowError):
        return _encode_json(_jsonable(value))


def shown_json(value: object) -> bytes:
    """As `json_bytes`, with the keys in the order in which the author wrote them: for what people read."""
    shown = _in_order(value)
    try:
        return msgspec.json.encode(shown)
    except (TypeError, ValueError, OverflowError):
        return msgspec.json.encode(_jsonable(shown))


def _in_order(value: object) -> object:
    if isinstance(value, dict):
        entries = cast("dict[object, object]", value).items()
        return {_key(key): _in_order(item) for key, item in entries}
    if isinstance(value, (list, tuple)):
        return [_in_order(item) for item in cast("list[object]", value)]
    if isinstance(value, (str, int, float, type(None))):
        return value
    fields = parts_of(value)
    # A set has no order of its own: the same bytes in every process.
    return _in_order(fields) if fields is not None else msgspec.json.decode(json_bytes(value))


def _key(key: object) -> str:
    return key if isinstance(key, str) else next(iter(msgspec.json.decode(json_bytes({key: None}))))


def _jsonable(value: object) -> object:
    if isinstance(value, dict):
        entries = cast("dict[object, object]", value).items()
        return {key if isinstance(key, str) else as_text(key): _jsonable(item) for key, item in entries}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_jsonable(item) for item in cast("list[object]", value)]
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return _number(value)
    return value


def _number(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to write thousands of digits in decimal
        return hex(value)


def _json_text(value: object) -> str:
    text = json_bytes(value).decode()
    return text[1:-1] if isinstance(value, (bytes, bytearray)) else text
