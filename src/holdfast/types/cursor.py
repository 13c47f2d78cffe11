"""Cursors of lists: where the next page begins, and in which cell. Opaque to clients."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.errors import OtherCellError


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    cell: str
    place: list[Any]


def encode_cursor(cell: str, place: Sequence[Any]) -> str:
    data = msgspec.json.encode(_Cursor(cell, list(place)))
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_cursor(cell: str, cursor: str, shape: Any = list[Any]) -> Any:
    """The place that a cursor of this cell names. Raises OtherCellError for one of another cell, ValueError
    for anything else than a cursor."""
    try:
        found = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=_Cursor)
    except (ValueError, msgspec.DecodeError) as error:
        raise ValueError("not a cursor") from error
    if found.cell != cell:
        raise OtherCellError(
            "the cursor is one of another cell.",
            hint="Start without a cursor, or ask the server that gave it.",
            cell=cell,
        )
    try:
        return msgspec.convert(found.place, type=shape)
    except msgspec.ValidationError as error:
        raise ValueError("a cursor of another list") from error
