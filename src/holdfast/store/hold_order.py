"""The order of lists of holds, as cursors: JSON values that identify a place in a list (LI-2)."""

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
"""In place of an assignee: holds that are assigned to others and shared with this one (`HoldTerms.also_for`).
"""


def place_of(row: HoldRow, number: int, order: HoldOrder) -> Place:
    """`number` is the store's own, in the order in which holds were opened, so no two places are the same."""
    if order is not HoldOrder.inbox:
        return row.created_at, number
    due = NO_DEADLINE if row.expires_at is None else row.expires_at
    return 3 - row.rank, due, row.created_at, number


def require_place(after: Sequence[Any] | None, order: HoldOrder) -> None:
    """Raises InputError for values that are not a place in a list of this order."""
    size = 4 if order is HoldOrder.inbox else 2
    if after is not None and (len(after) != size or not all(_is_number(part) for part in after)):
        raise InputError(
            f"{list(after)!r} is not a place in a list by {order}.",
            hint="Use the cursor that came with the previous page, in the same order.",
        )


def _is_number(part: Any) -> bool:
    """Whether it fits the column. A larger number cannot come from a cursor of ours."""
    return type(part) is int and -NO_DEADLINE <= part <= NO_DEADLINE


def ranges(where: HoldFilter) -> list[Range]:
    """(assignee, status): each pair is one range of an index; the result is all of them, merged."""
    assignees = [None] if where.assignees is None else [*dict.fromkeys(where.assignees), SHARED_ASSIGNEE]
    statuses = where.status or tuple(HoldStatus)
    return [(assignee, status) for assignee in assignees for status in dict.fromkeys(statuses)]
