"""How lists of holds are searched in PostgreSQL: arrays with an index."""

from __future__ import annotations

from typing import Any

from holdfast.store.sql.hold_lists import Condition, HoldListDialect
from holdfast.types.hold import HoldFilter
from holdfast.types.status import HoldStatus

_SHARED = "holds.shared && ?::text[]"
# As an array, which is made first: the server takes one hold in two hundred to be shared with any person, and
# would look for the first page of them among all holds of the tenant, in the order of the list.
_SHARED_PENDING = """holds.number = ANY (ARRAY(
    SELECT number FROM @holds
    WHERE shared && ?::text[] AND status = 'pending' AND NOT read_only{of_tenant}))"""
_NOT_OWN = "holds.assignee_type || ':' || holds.assignee_value <> ALL (?::text[])"


def _shared(where: HoldFilter, status: HoldStatus, own: list[str]) -> list[Condition]:
    # The index has the live pending ones only.
    if status is not HoldStatus.pending or not where.live:
        return [(_SHARED, (own,)), (_NOT_OWN, (own,))]
    of_tenant, tenant = ("", list[Any]()) if where.tenant is None else (" AND tenant = ?", [where.tenant])
    return [(_SHARED_PENDING.format(of_tenant=of_tenant), (own, *tenant)), (_NOT_OWN, (own,))]


LISTS = HoldListDialect("holds.tags && ?::text[]", _shared)
