"""Who may decide a hold, and under which terms: declared by its author and stored with its row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.types.ids import DEFAULT_TENANT

# The rights of a credential over holds; `manage` implies `resolve`.
RESOLVE = "holds:resolve"
MANAGE = "holds:manage"
OVERRIDE = "holds:override"
VIEW = "holds:view"

RIGHT_ALIASES = {
    "scaicore:checkpoint_resolve": RESOLVE,
    "scaicore:manage": MANAGE,
    "scaicore:checkpoint_override": OVERRIDE,
    "admin": "admin:manage",
}
"""Older names of rights, which stored credentials, settings and callers may still use."""


def right_name(name: str) -> str:
    """The name that a right has now."""
    return RIGHT_ALIASES.get(name, name)


ASSIGNEE_TYPES = ("user", "group", "role", "delegated_user", "unrouted")
PRIORITIES = ("low", "normal", "high", "critical")


class Assignee(msgspec.Struct, frozen=True):
    """The person, group or role that a hold waits for. `reason`: why none could be found (unrouted)."""

    type: str
    value: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.type}:{self.value}" if self.value else self.type


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """A credential between people and an action: who made it (`by`), and for whom (`to`). `kind`: token,
    session, link, mail, slack, webhook or policy."""

    kind: str
    by: str
    to: str


PEOPLE = ("user:", "service:")
OPERATOR = "system:operator"
"""Who makes credentials on the machine that has the store."""


def people_in(chain: Iterable[ChainLink]) -> tuple[str, ...]:
    """Every person and service of the chain. A server, a sign-in provider or an operator with the store
    itself (`system:operator`) is none: they could write any decision without a credential."""
    names = (name for link in chain for name in (link.by, link.to))
    return tuple(dict.fromkeys(name for name in names if name.startswith(PEOPLE)))


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """The user of an action, as their credential says. Their entries in the directory are added when their
    rights are checked. `chain`: the credentials that led to this action; everyone in it counts as having
    taken part."""

    id: str  # user:dana@acme, service:billing-agent, system:expiry, policy:small-refunds
    tenant: str = DEFAULT_TENANT
    rights: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    channel: str = "api"  # inbox, api, cli, link, mail, slack, teams, queue, system
    auth_method: str = "local"
    on_behalf_of: str | None = None
    chain: tuple[ChainLink, ...] = ()
    also: tuple[str, ...] = ()  # their other names in the directory when the credential was checked
    credential: str = ""  # the public id of the token, if it is one
    session: str = ""  # the name of the session, if it is one
    signed_in_at: int | None = None  # when they proved who they are; None: not in person, as by a token

    def __post_init__(self) -> None:
        if not self.rights.isdisjoint(RIGHT_ALIASES):
            # Every check compares names, so an older name is replaced once, here.
            msgspec.structs.force_setattr(self, "rights", frozenset(map(right_name, self.rights)))

    @property
    def people(self) -> tuple[str, ...]:
        """The actor under all their names, and everyone in the chain of their credential."""
        return tuple(dict.fromkeys((self.id, *self.also, *people_in(self.chain))))

    @property
    def whole_chain(self) -> tuple[ChainLink, ...]:
        """The chain for what the actor makes with this credential. It keeps the names that they have now:
        they may change them later."""
        return (*self.chain, *(ChainLink(kind="person", by=name, to=self.id) for name in self.also))

    @property
    def is_service(self) -> bool:
        return self.id.startswith("service:")

    @property
    def is_system(self) -> bool:
        return self.id.startswith(("system:", "policy:"))


def operator(by: str = "user:local", *, tenant: str = DEFAULT_TENANT, channel: str = "api") -> Actor:
    """An operator with direct access to the store: has every right, under the given name."""
    rights = frozenset({RESOLVE, MANAGE, OVERRIDE})
    return Actor(
        id=by, tenant=tenant, rights=rights, channel=channel, auth_method="local", signed_in_at=AT_THE_STORE
    )


AT_THE_STORE = 2**63 - 1
"""`signed_in_at` of an operator with the store: always recent."""


class Rung(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of an escalation ladder: after `after` (a duration as written, `4h` or `4bh` of business time;
    empty: as long as the hold's own timeout) the hold goes to `to`."""

    to: str
    after: str = ""


class ApprovalTerms(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How many people it takes. `any`: one; `quorum`: `need` of those in `of`; `sequential`: one of each in
    `of`, in this order. `veto`: whose no ends it. `exclude`: initiator, earlier_approvers, last_editor, or an
    assignee; they cannot decide."""

    mode: str = "any"
    need: int = 1
    of: tuple[str, ...] = ()
    veto: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    distinct_people: bool = True


class HitlTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The queue in which a hold asks its question too. `hitl_spec`: the form as the document declares it; the
    hold has it compiled."""

    scope: str
    queue: str
    hitl_spec: dict[str, Any] = {}

    @property
    def address(self) -> str:
        return f"{self.scope}/{self.queue}"


class HoldTerms(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What governs a hold beyond its columns. Kept with the row as JSON; the flow's later edits do not change
    an open hold."""

    approval: ApprovalTerms = ApprovalTerms()
    ladder: tuple[Rung, ...] = ()
    final_action: str | None = None  # after the last rung: cancel, default_option; None: expired
    default_option: str | None = None
    late_resolution: str = "accept"  # or reject: a decision after the deadline is refused
    strict_assignee: bool = False  # the right to resolve any hold does not count here
    max_reminders: int | None = None
    calendar: str | None = None  # the name of a calendar; durations in business time use it
    timeout: str | None = None  # the duration as written, where it is business time
    on_cancel: str = "cancel"  # or raise: the run sees an error that it can catch
    bulk: bool = True
    strict_templates: bool = False  # a placeholder without a value is an error
    undo: int | None = None  # seconds for which a decision from the inbox can be taken back
    step_up: int | None = None  # seconds: the person who decides must have signed in within them
    links: str | None = None  # view_only, decide_low_risk, login_required; none: by priority
    allow_services: bool = False  # service principals may decide runs that they started
    interaction: str | None = None  # the built-in kind of question that it was asked as
    routed_by: str | None = None  # the rule that chose whom it goes to
    routed_from: dict[str, Any] | None = None  # what the flow had declared, where that rule overrides it
    auto: str | None = None  # the policy that may decide it without a person
    guardrails: tuple[str, ...] = ()  # the checks that an approval has to pass; empty: all of the instance
    queue: str | None = None  # `scope/queue`: its question is published there as a message, too
    guarded: bool = True  # whether an approval without a person has to pass them
    also_for: tuple[str, ...] = ()  # who else may vote or veto: it is in their lists too
    # Groups, roles and delegations of the run's starter when it was opened.
    starter_in: tuple[str, ...] | None = None
    # Who started the run besides `started_by`: the chain of their credential; for a fork, all of its source.
    starters: tuple[str, ...] = ()
    # Assignees that a placeholder named, so that the starter of the run chose them.
    filled: tuple[str, ...] = ()
    # Assignees that a deployment or a policy in the store names -> who wrote that through a server.
    named_by: dict[str, tuple[str, ...]] = {}
    # Who wrote its deadline, or what follows it, through a server: what the deadline decides, they decided.
    deadline_by: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()  # people who cannot decide it, beyond what `approval.exclude` names
    shadow: str | None = None  # the judge who is asked beside the people, and shown after their decision
    sealed: str | None = None  # the digest of that judge's answer
    shadow_usage: dict[str, float] | None = None  # what that judge used; the run counts it with the answer
    heartbeat: int | None = None  # microseconds: a callback is given up when no heartbeat came for so long
    warnings: tuple[
        str, ...
    ] = ()  # placeholders without a value, or expressions that failed, when it was asked

    @property
    def binds_everybody(self) -> bool:
        """Whether only the assignees may decide, whatever rights others have."""
        return self.strict_assignee or self.approval.mode != "any" or bool(self.approval.exclude)
