"""How lists of holds are searched in PostgreSQL: arrays with an index."""

from __future__ import annotations

from holdfast.store.sql.hold_lists import Condition, HoldListDialect
from holdfast.types.hold import HoldFilter
from holdfast.types.status import HoldStatus

_SHARED = """holds.shared && ?::text[]
    AND holds.assignee_type || ':' || holds.assignee_value <> ALL (?::text[])"""


def _shared(_where: HoldFilter, _status: HoldStatus, own: list[str]) -> list[Condition]:
    return [(_SHARED, (own, own))]


LISTS = HoldListDialect("holds.tags && ?::text[]", _shared)
