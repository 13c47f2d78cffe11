"""The filters of a list of holds, as query parameters."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from holdfast.api.pagination import Cursor, Limit
from holdfast.holds.permissions.assignees import parse_assignee, person_key
from holdfast.holds.queries.search import Query, read_query
from holdfast.types.clock import require_moment
from holdfast.types.deployment import deployment_id
from holdfast.types.hold import HoldFilter, HoldOrder
from holdfast.types.ids import is_id
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor

Instant = Annotated[datetime, msgspec.Meta(tz=True, description="RFC 3339, with its zone.")]
Text = Annotated[str, msgspec.Meta(max_length=500)]
Words = Annotated[list[Text], msgspec.Meta(max_length=100)]

OWN_CORE = "flow:"
"""Prefix of `core_id` in the documents for a flow that was started without a deployment."""


class HoldView(StrEnum):
    """`mine`: waits for me; `groups`: for a group or role of mine; `asked`: I was asked back;
    `unassigned`: for no one yet (admins; `unrouted` is the same); `watching`, `snoozed`; `done`: by me;
    `breakpoints`; `all`: whatever I may see."""

    mine = "mine"
    groups = "groups"
    asked = "asked"
    unassigned = "unassigned"
    unrouted = "unrouted"
    watching = "watching"
    snoozed = "snoozed"
    done = "done"
    breakpoints = "breakpoints"
    all = "all"


class Filters(msgspec.Struct, kw_only=True, omit_defaults=True):
    """AND across the fields, OR within each. `q`: words as in the inbox, `priority>=high due<2d refund`."""

    view: HoldView = HoldView.all
    q: Text | None = None
    status: list[HoldStatus] = []
    type: Words = []
    assignee: Words = []
    group: Words = []
    role: Words = []
    priority: Words = []
    deployment: Words = []
    flow: Words = []
    run: Words = []
    instance_key: Words = []
    tag: Words = []
    text: Text | None = None
    created_from: Instant | None = None
    created_to: Instant | None = None
    expires_from: Instant | None = None
    expires_to: Instant | None = None
    resolved_by: Words = []
    resolved_from: Instant | None = None
    resolved_to: Instant | None = None


class ListHolds(Filters, kw_only=True):
    order: HoldOrder | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class ListCheckpointHolds(ListHolds, kw_only=True):
    """The filters by the documents' names too. `core`: a deployment, or `flow:NAME`."""

    checkpoint_type: Words = []
    core: Words = []
    execution: Words = []

    def native(self) -> Filters:
        return _native(self, self.checkpoint_type, self.core, self.execution)


class OldFilters(Filters, kw_only=True, omit_defaults=True):
    """Filters under their former names, so that older saved views can be read."""

    checkpoint_type: Words = []
    core: Words = []
    execution: Words = []

    def native(self) -> Filters:
        own = Filters(**{name: getattr(self, name) for name in Filters.__struct_fields__})
        return _native(own, self.checkpoint_type, self.core, self.execution)


def _native(given: Filters, checkpoint_type: list[str], core: list[str], execution: list[str]) -> Filters:
    """Filters under the documents' names, added to those under ours."""
    own = [each for each in core if each.startswith(OWN_CORE)]
    return msgspec.structs.replace(
        given,
        type=[*given.type, *checkpoint_type],
        run=[*given.run, *execution],
        deployment=[*given.deployment, *(each for each in core if each not in own)],
        flow=[*given.flow, *(each.removeprefix(OWN_CORE) for each in own)],
    )


_MOMENTS: Final = (
    "created_from", "created_to", "expires_from", "expires_to", "resolved_from", "resolved_to",
)  # fmt: skip


def query_of(given: Filters, actor: Actor, now: int) -> Query:
    """The query for the service. Raises InputError for unknown terms."""
    typed = read_query(given.q or "", me=actor.id, now=now)
    where = typed.where
    lists: dict[str, tuple[Any, ...]] = {
        "status": tuple(given.status),
        "type": tuple(given.type),
        "priority": tuple(given.priority),
        "run": tuple(given.run),
        "instance_key": tuple(given.instance_key),
        "tags": tuple(given.tag),
        "resolved_by": tuple(given.resolved_by),
        "deployment": tuple(_deployment(each, actor) for each in given.deployment),
        "flow": tuple(given.flow),
    }
    fields: dict[str, Any] = {name: (*getattr(where, name), *more) for name, more in lists.items() if more}
    asked = _assignees(given, actor)
    if asked:
        fields["assignees"] = (*(where.assignees or ()), *asked)
    if given.text:
        fields["text"] = given.text if where.text is None else f"{where.text} {given.text}"
    for name in _MOMENTS:
        if (instant := getattr(given, name)) is not None:
            fields[name] = require_moment(instant, name)
    return msgspec.structs.replace(typed, where=msgspec.structs.replace(where, **fields))


def _assignees(given: Filters, actor: Actor) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for each in given.assignee:
        if each == "me":
            found.append(("user", person_key(actor.id)))
        else:
            whom = parse_assignee(each)
            found.append((whom.type, whom.value))
    return [*found, *(("group", each) for each in given.group), *(("role", each) for each in given.role)]


def _deployment(named: str, actor: Actor) -> str:
    """By its id or its name."""
    return named if is_id(named) else deployment_id(actor.tenant, named)


__all__ = [
    "Filters",
    "HoldFilter",
    "HoldView",
    "Instant",
    "ListCheckpointHolds",
    "ListHolds",
    "OldFilters",
    "query_of",
]
