"""The order of lists of holds, as the places in them: JSON values that a cursor can carry (LI-2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.errors import InputError
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow
from holdfast.types.status import HoldStatus

NO_DEADLINE = (1 << 63) - 1
Place = tuple[Any, ...]
Range = tuple[tuple[str, str] | None, HoldStatus]
SHARED_ASSIGNEE = ("", "")
"""In place of an assignee: what waits for others, and for one of those too (`HoldTerms.also_for`)."""


def place_of(row: HoldRow, number: int, order: HoldOrder) -> Place:
    """`number` is the store's own, in the order in which holds were opened: no two places are the same."""
    if order is not HoldOrder.inbox:
        return row.created_at, number
    due = NO_DEADLINE if row.expires_at is None else row.expires_at
    return 3 - row.rank, due, row.created_at, number


def require_place(after: Sequence[Any] | None, order: HoldOrder) -> None:
    """Raises InputError for what is no place in a list of this order."""
    size = 4 if order is HoldOrder.inbox else 2
    if after is not None and (len(after) != size or not all(_is_number(part) for part in after)):
        raise InputError(
            f"{list(after)!r} is not a place in a list by {order}.",
            hint="Go on with the cursor that came with the page before, in the same order.",
        )


def _is_number(part: Any) -> bool:
    """One that a column can have: a larger one is none of ours."""
    return type(part) is int and -NO_DEADLINE <= part <= NO_DEADLINE


def ranges(where: HoldFilter) -> list[Range]:
    """(assignee, status): each is one stretch of an index, and what is asked for is all of them, merged."""
    assignees = [None] if where.assignees is None else [*dict.fromkeys(where.assignees), SHARED_ASSIGNEE]
    statuses = where.status or tuple(HoldStatus)
    return [(assignee, status) for assignee in assignees for status in dict.fromkeys(statuses)]
