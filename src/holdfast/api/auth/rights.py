"""The rights that a route can require, and the roles that give them."""

from __future__ import annotations

from enum import StrEnum

from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE, RIGHT_ALIASES, VIEW


class Right(StrEnum):
    """The rights of a credential. A route names the one that it needs; `holds.permissions.check` checks more.

    Older names (`scaicore:manage`) are read as the ones that replaced them, so that stored tokens keep
    their rights."""

    runs_read = "runs:read"
    runs_write = "runs:write"
    flows_read = "flows:read"
    flows_write = "flows:write"
    holds_read = "holds:read"  # see own holds
    view = VIEW  # see all assigned holds
    holds_write = "holds:write"  # decide own holds, comment, claim; the assignee is checked further
    resolve = RESOLVE
    manage = MANAGE
    override = OVERRIDE
    schedules_read = "schedules:read"
    schedules_write = "schedules:write"
    queues_read = "queues:read"
    queues_work = "queues:work"  # claim and complete messages
    queues_write = "queues:write"  # publish, withdraw, requeue
    audit_read = "audit:read"
    admin = "admin:manage"

    @classmethod
    def _missing_(cls, value: object) -> Right | None:
        replaced = RIGHT_ALIASES.get(value) if isinstance(value, str) else None
        return None if replaced is None else cls(replaced)


DOCUMENT_NAMES = {Right.resolve: "scaicore:checkpoint_resolve", Right.manage: "scaicore:manage"}
"""The documents' names of the rights that their paths require."""


class Access(StrEnum):
    """What a route requires instead of a right."""

    public = "public"  # every caller: health, the OpenAPI document, sign-in
    signed_in = "signed_in"  # every signed-in person; the content depends on their rights
    link = "link"  # the holder of a signed link; the link decides


IMPLIED: dict[Right, frozenset[Right]] = {
    Right.runs_write: frozenset({Right.runs_read, Right.flows_read}),
    Right.flows_write: frozenset({Right.flows_read}),
    Right.holds_write: frozenset({Right.holds_read}),
    Right.view: frozenset({Right.holds_read}),
    Right.resolve: frozenset({Right.holds_write}),
    Right.manage: frozenset({Right.resolve, Right.holds_read, Right.runs_read}),
    Right.schedules_write: frozenset({Right.schedules_read}),
    Right.queues_work: frozenset({Right.queues_read}),
    Right.queues_write: frozenset({Right.queues_read}),
    Right.admin: frozenset(Right) - {Right.override, Right.admin},
}


ROLES: dict[str, frozenset[Right]] = {
    "viewer": frozenset(
        {
            Right.runs_read,
            Right.flows_read,
            Right.holds_read,
            Right.view,
            Right.schedules_read,
            Right.queues_read,
        }
    ),
    "member": frozenset({Right.holds_write}),
    "approver": frozenset({Right.holds_read, Right.resolve}),
    "operator": frozenset(
        {
            Right.runs_write,
            Right.flows_read,
            Right.manage,
            Right.schedules_write,
            Right.queues_work,
            Right.queues_write,
        }
    ),
    "admin": frozenset({Right.admin}),
}
"""The rights of each role; a token may also name single rights. A member decides holds assigned to them, an
approver any hold that is not bound to its assignee."""


def with_implied(rights: frozenset[Right]) -> frozenset[Right]:
    found = set(rights)
    while more := {each for right in found for each in IMPLIED.get(right, ())} - found:
        found |= more
    return frozenset(found)
