"""How lists of holds are searched in MariaDB: lists are JSON; open holds have a row for each assignee that
shares them."""

from __future__ import annotations

from holdfast.store.sql.hold_lists import Condition, HoldListDialect
from holdfast.types.hold import HoldFilter
from holdfast.types.status import HoldStatus

_IN_LIST = """EXISTS (
    SELECT 1 FROM json_table(holds.{column}, '{path}' COLUMNS (
        value varchar(768) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$')) AS listed
    WHERE listed.value = ANY(?::text[]))"""
_OTHERS = "(holds.assignee_type || ':' || holds.assignee_value = ANY(?::text[])) IS NOT TRUE"
_SHARED_NOW = """holds.number IN (
    SELECT number FROM @hold_shares WHERE tenant = ? AND assignee = ANY(?::text[]))"""
_SHARED = f"holds.terms <> '{{}}' AND {_IN_LIST.format(column='terms', path='$.also_for[*]')}"


def _shared(where: HoldFilter, status: HoldStatus, own: list[str]) -> list[Condition]:
    if status is HoldStatus.pending and where.live and where.tenant is not None:
        return [(_SHARED_NOW, (where.tenant, own)), (_OTHERS, (own,))]
    return [(_SHARED, (own,)), (_OTHERS, (own,))]


LISTS = HoldListDialect(_IN_LIST.format(column="tags", path="$[*]"), _shared)
