"""The order of lists of holds, as the places in them: JSON values that a cursor can carry (LI-2)."""

from __future__ import annotations

from typing import Any

from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow
from holdfast.types.status import HoldStatus

NO_DEADLINE = (1 << 63) - 1
Place = tuple[Any, ...]
Range = tuple[tuple[str, str] | None, HoldStatus]
SHARED = ("", "")
"""In place of an assignee: what waits for others, and for one of those too (`HoldTerms.also_for`)."""


def place_of(row: HoldRow, number: int, order: HoldOrder) -> Place:
    """`number` is the store's own, in the order in which holds were opened: no two places are the same."""
    if order is not HoldOrder.inbox:
        return row.created_at, number
    due = NO_DEADLINE if row.expires_at is None else row.expires_at
    return 3 - row.rank, due, row.created_at, number


def ranges(where: HoldFilter) -> list[Range]:
    """(assignee, status): each is one stretch of an index, and what is asked for is all of them, merged."""
    assignees = [None] if where.assignees is None else [*dict.fromkeys(where.assignees), SHARED]
    statuses = where.status or tuple(HoldStatus)
    return [(assignee, status) for assignee in assignees for status in dict.fromkeys(statuses)]
