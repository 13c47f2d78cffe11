"""Whether a hold is one of those that a filter asks for: AND across its fields, OR within each (LI-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from holdfast.types.hold import HoldFilter, HoldRow, Note


def matches(row: HoldRow, where: HoldFilter, notes: Mapping[tuple[str, str], Note]) -> bool:
    return (
        _is_whose(row, where)
        and _is_of_run(row, where)
        and _is_what(row, where)
        and _is_when(row, where)
        and _is_noted(where, notes)
    )


def _is_whose(row: HoldRow, where: HoldFilter) -> bool:
    return (
        (where.tenant is None or row.tenant == where.tenant)
        and (where.assignees is None or _is_for(row, where.assignees))
        and _in(row.resolved_by, where.resolved_by)
        and not (where.live and row.read_only)
    )


def _is_for(row: HoldRow, assignees: Collection[tuple[str, str]]) -> bool:
    if (row.assignee_type, row.assignee_value) in assignees:
        return True
    also = row.terms.also_for
    return bool(also) and any(f"{kind}:{value}" in also for kind, value in assignees)


def _is_of_run(row: HoldRow, where: HoldFilter) -> bool:
    return (
        _in(row.run, where.run)
        and _in(row.flow, where.flow)
        and _in(row.core_id, where.deployment)
        and _in(row.instance_key, where.instance_key)
        and _in(row.started_by, where.started_by)
    )


def _is_what(row: HoldRow, where: HoldFilter) -> bool:
    return (
        _in(row.id, where.ids)
        and _in(row.status, where.status)
        and _in(row.type, where.type)
        and row.type not in where.not_type
        and _in(row.priority, where.priority)
        and (not where.tags or not set(where.tags).isdisjoint(row.tags))
        and (not where.text or where.text.casefold() in row.prompt.casefold())
    )


def _is_when(row: HoldRow, where: HoldFilter) -> bool:
    return _is_between(row.created_at, where.created_from, where.created_to) and _is_between(
        row.expires_at, where.expires_from, where.expires_to
    )


def _is_between(at: int | None, first: int | None, end: int | None) -> bool:
    if at is None:
        return first is None and end is None
    return (first is None or at >= first) and (end is None or at < end)


def _is_noted(where: HoldFilter, notes: Mapping[tuple[str, str], Note]) -> bool:
    if where.noted is not None and where.noted not in notes:
        return False
    if where.not_noted is None:
        return True
    kind, slot, now = where.not_noted
    note = notes.get((kind, slot))
    return note is None or (note.until is not None and note.until <= now)


def _in(value: str | None, wanted: Collection[str]) -> bool:
    return not wanted or value in wanted
