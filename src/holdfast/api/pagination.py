"""Pages of lists: a limit, a cursor, and `items` with `next`."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

import msgspec

from holdfast.api.problems import HttpError
from holdfast.types.cursor import decode_cursor, encode_cursor

T = TypeVar("T")
Limit = Annotated[int, msgspec.Meta(ge=1, le=200, description="Maximum number of items.")]
Cursor = Annotated[str, msgspec.Meta(max_length=500, description="`next` of the previous page.")]


class Page(msgspec.Struct, Generic[T], kw_only=True):
    """`next` is the cursor of the next page; without it this was the last."""

    items: list[T]
    next: str | None = None


def cursor_of(cell: str, *place: Any) -> str:
    return encode_cursor(cell, place)


def _fits_a_column(part: Any) -> bool:
    return abs(part) < 2**63 if isinstance(part, int) else "\0" not in str(part)


def place_of(cell: str, cursor: str | None, shape: Any) -> Any:
    """The content of a cursor of this cell; None without one. Raises HttpError for an invalid one, and
    OtherCellError for one of another cell."""
    if cursor is None:
        return None
    try:
        place = decode_cursor(cell, cursor, shape)
        if not all(map(_fits_a_column, place)):
            raise ValueError("a number or a text that no row has")
        return place
    except ValueError as error:
        raise HttpError(
            422, "the cursor is not valid.", code="bad_cursor",
            hint="Start without one, then use `next` of each answer.",
        ) from error  # fmt: skip
