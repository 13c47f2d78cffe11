"""The terms of a hold: who may decide it and how, until when, and what happens if nobody does.

Written by the flow's author (or a policy), stored with the hold as JSON, and never changed afterwards: what
changes (assignee, deadline, claims) are columns of the row.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Assignee(msgspec.Struct, frozen=True):
    """Who is asked, as read from `raw`. `type`: user, group, role, delegated_user, unrouted."""

    type: str
    value: str = ""
    raw: str | None = None
    reason: str = ""
    """Why it is unrouted, where that needs a word."""


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever does something to a hold, as the credential says; memberships are asked of the directory."""

    id: str
    """`user:dana@acme`, `service:refunds`, `system:expiry`."""
    tenant: str
    permissions: frozenset[str] = frozenset()
    auth_method: str = "local"
    channel: str = "api"
    on_behalf_of: str | None = None


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One step of an escalation ladder: after this time (`4h`, `4bh` for business hours), to whom."""

    after: str
    to: str


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """How many must agree. `mode`: one, quorum, sequential."""

    mode: str = "one"
    need: int = 1
    of: tuple[str, ...] = ()
    """Assignees among whom; empty: the hold's own assignee."""
    distinct_people: bool = True
    exclude: tuple[str, ...] = ()
    """initiator, earlier_approvers, last_editor, or assignees by name."""
    veto: tuple[str, ...] = ()
    approving: tuple[str, ...] = ()
    """Options that count as agreement; empty: the first option."""


class HoldTerms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    approval: Approval | None = None
    strict_assignee: bool = False
    ladder: tuple[Rung, ...] = ()
    escalation_target: str | None = None
    final_action: str | None = None
    default_option: str | None = None
    late_resolution: str = "accept"
    """accept, reject."""
    on_cancel: str = "cancel"
    """cancel: the run ends; raise: the node fails."""
    reminder_interval_m: int | None = None
    max_reminders: int | None = None
    calendar: str | None = None
    timeout: str | None = None
    """As written; the instant is computed once."""
    bulk: bool = True
    undo_s: int | None = None
    allow_extra: bool = False
    link_strength: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    sections: list[dict[str, Any]] = []
    guardrail_override: bool = True
    initiator: str | None = None
    editors: tuple[str, ...] = ()
