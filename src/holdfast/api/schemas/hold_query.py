"""What a list of holds is narrowed down by, as parameters of an address."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from holdfast.api.schemas.common import Cursor, Limit
from holdfast.holds.permissions.assignees import parse_assignee, person_key
from holdfast.holds.queries.search import Query, read_query
from holdfast.types.clock import to_micros
from holdfast.types.deployment import deployment_id
from holdfast.types.hold import HoldFilter, HoldOrder
from holdfast.types.ids import is_id
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor

Instant = Annotated[datetime, msgspec.Meta(tz=True, description="RFC 3339, with its zone.")]
Text = Annotated[str, msgspec.Meta(max_length=500)]
Words = Annotated[list[Text], msgspec.Meta(max_length=100)]

OWN_CORE = "flow:"
"""A flow that was started without a deployment is its own core."""


class HoldView(StrEnum):
    """`mine`: waits for me; `groups`: for a group or role of mine; `asked`: I was asked back; `unrouted`: for
    nobody (admins); `watching`, `snoozed`; `done`: by me; `breakpoints`; `all`: whatever I may see."""

    mine = "mine"
    groups = "groups"
    asked = "asked"
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
    checkpoint_type: Words = []
    assignee: Words = []
    group: Words = []
    role: Words = []
    priority: Words = []
    core: Words = []
    flow: Words = []
    execution: Words = []
    instance_key: Words = []
    tag: Words = []
    text: Text | None = None
    created_from: Instant | None = None
    created_to: Instant | None = None
    expires_from: Instant | None = None
    expires_to: Instant | None = None
    resolved_by: Words = []


class ListHolds(Filters, kw_only=True):
    order: HoldOrder | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


def query_of(given: Filters, actor: Actor, now: int) -> Query:
    """As the service takes it. Raises InputError for words that mean nothing."""
    typed = read_query(given.q or "", me=actor.id, now=now)
    where = typed.where
    lists: dict[str, tuple[Any, ...]] = {
        "status": tuple(given.status),
        "type": (*given.type, *given.checkpoint_type),
        "priority": tuple(given.priority),
        "run": tuple(given.execution),
        "instance_key": tuple(given.instance_key),
        "tags": tuple(given.tag),
        "resolved_by": tuple(given.resolved_by),
        "deployment": tuple(_deployment(each, actor) for each in given.core if not _is_flow(each)),
        "flow": (*given.flow, *(each.removeprefix(OWN_CORE) for each in given.core if _is_flow(each))),
    }
    fields: dict[str, Any] = {name: (*getattr(where, name), *more) for name, more in lists.items() if more}
    asked = _assignees(given, actor)
    if asked:
        fields["assignees"] = (*(where.assignees or ()), *asked)
    if given.text:
        fields["text"] = given.text if where.text is None else f"{where.text} {given.text}"
    for name in ("created_from", "created_to", "expires_from", "expires_to"):
        if (instant := getattr(given, name)) is not None:
            fields[name] = to_micros(instant)
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


def _is_flow(core: str) -> bool:
    return core.startswith(OWN_CORE)


def _deployment(core: str, actor: Actor) -> str:
    """By its id or its name."""
    return core if is_id(core) else deployment_id(actor.tenant, core)


__all__ = ["Filters", "HoldFilter", "HoldView", "Instant", "ListHolds", "query_of"]
