"""Pages of lists: a limit, a cursor, and `items` with `next`."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from holdfast.api.problems import HttpError

T = TypeVar("T")
Limit = Annotated[int, msgspec.Meta(ge=1, le=200, description="Maximum number of items.")]
Cursor = Annotated[str, msgspec.Meta(max_length=500, description="`next` of the previous page.")]


class Page(msgspec.Struct, Generic[T], kw_only=True):
    """`next` is the cursor of the next page; without it this was the last."""

    items: list[T]
    next: str | None = None


def cursor_of(*place: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def _fits_a_column(part: Any) -> bool:
    return abs(part) < 2**63 if isinstance(part, int) else "\0" not in str(part)


def decode_cursor(cursor: str | None, shape: Any) -> Any:
    """The content of a cursor; None without one. Raises HttpError for an invalid one."""
    if cursor is None:
        return None
    try:
        data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        place = msgspec.json.decode(data, type=shape)
        if not all(map(_fits_a_column, place)):
            raise ValueError("a number or a text that no row has")
        return place
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise HttpError(
            422, "The cursor is not valid.", code="bad_cursor",
            hint="Start without one, then use `next` of each answer.",
        ) from error  # fmt: skip
