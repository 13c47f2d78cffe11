"""What every action on a hold needs: the store with its clock, and the permission checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import DirectoryUnavailableError, NotAssignedError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.submission import require_comment
from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.directory.base import Directory
from holdfast.holds.permissions.actor import ActorMemberships, Capacity, capacity_named, memberships_for
from holdfast.holds.permissions.assignees import DELEGATED, parse_assignee, person_key, route
from holdfast.holds.permissions.check import DECISIONS, PermissionFacts, PermissionVerdict, can, require
from holdfast.holds.permissions.grantors import GrantorLookup
from holdfast.holds.permissions.permission_facts import permission_facts
from holdfast.holds.queries.audit import records_of
from holdfast.store.protocols import Store
from holdfast.types.hold import HoldRow
from holdfast.types.ids import DEFAULT_CELL, HoldId, is_id
from holdfast.types.terms import Actor, Assignee
from holdfast.types.text import require_text

if TYPE_CHECKING:
    from holdfast.holds.actions.rate_limit import Pace
    from holdfast.holds.forms.attachments import AttachmentStore, Scan
    from holdfast.holds.policies.guardrails import Guardrails

# Audit actions that change the assignee.
MOVES = ("reassigned", "escalated")
DECIDING = frozenset({"resolve", "claim", "ask_back", "review"})


class Permit(msgspec.Struct, frozen=True):
    """A permission that was granted: to whom, and by which authority."""

    standing: ActorMemberships
    verdict: PermissionVerdict
    past: PermissionFacts


class HoldContext:
    """`guardrails` check approvals (`holds/policies`); `scan` checks attached files (`holds/forms`); `pace`
    limits how often an actor may act."""

    def __init__(
        self,
        store: Store,
        *,
        directory: Directory | None = None,
        guardrails: Guardrails | None = None,
        scan: Scan | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.store = store
        self.directory = directory
        self.guardrails = guardrails
        self.scan = scan
        self.pace = pace
        self.cell = DEFAULT_CELL  # set by the instance
        # Set by the instance, which has the blob store; without it files are refused.
        self.attachments: AttachmentStore | None = None
        self.deployments = Deployments(store)
        self._grantors = GrantorLookup(store, directory, self.deployments)

    def now(self) -> int:
        return self.store.now()

    async def load(self, actor: Actor, hold: str) -> HoldRow:
        """Raises HoldNotFoundError: no such hold, another tenant's, or not an id at all."""
        row = await self.find(hold)
        # The same error as for an unknown id, so that ids of other tenants cannot be probed.
        if row.tenant != actor.tenant:
            raise conflicts.not_found(hold)
        return row

    async def find(self, hold: str) -> HoldRow:
        """In any tenant, for operators with access to the store. Raises HoldNotFoundError."""
        name = require_text(hold, "a hold's id")
        row = await self.store.hold(HoldId(name)) if is_id(name) else None
        if row is None:
            raise conflicts.not_found(hold)
        return row

    async def standing(self, actor: Actor, now: int, *, delegated: bool = True) -> ActorMemberships:
        """`delegated`: also what deployments have delegated to the actor."""
        return await memberships_for(
            actor, self.directory, now, delegations=self.deployments if delegated else None
        )

    async def permit(
        self,
        actor: Actor,
        action: str,
        row: HoldRow,
        now: int,
        *,
        reason: str | None = None,
        decision: str | None = None,
    ) -> Permit:
        """Raises ForbiddenError and its subclasses; HoldReassignedError if the hold was the actor's before
        it was reassigned; InputError if the reason is not text."""
        if reason is not None:
            require_comment(reason)
        # Delegations cost a query, and most holds name none.
        standing = await self.standing(actor, now, delegated=_may_be_delegated(row))
        past = await self._facts(standing, row, now, decides=action in DECISIONS)
        verdict = can(standing, action, row, now, past, reason=reason, decision=decision)
        try:
            return Permit(standing, require(verdict, row, action), past)
        except NotAssignedError as error:
            # A person whose link or page is a moment old learns
            # where the hold went, instead of a bare refusal.
            if action in DECIDING and await self._was_theirs(standing, action, row, now, past):
                raise conflicts.reassigned(row) from error
            raise

    async def route(self, raw: str | None, row: HoldRow) -> Assignee:
        """The assignee that this text stands for, for this hold and now."""
        delegation = None
        if row.deployment is not None and parse_assignee(raw).type == DELEGATED:
            known = await self.deployments.delegation(row.tenant, row.deployment)
            delegation = row.deployment if known is not None else None
        return await route(raw, row.tenant, self.directory, delegation=delegation)

    async def known(self, person: Assignee, tenant: str) -> Capacity | None:
        """A person's capacity in the directory; None: not known, or the directory is unavailable."""
        try:
            return await capacity_named(person.value, tenant, self.directory)
        except DirectoryUnavailableError:
            return None

    async def is_called(self, actor: Actor, name: str) -> bool:
        """Whether this is one of the actor's names."""
        standing = await self.standing(actor, self.now(), delegated=False)
        return person_key(name) in standing.own.people | {person_key(actor.id)}

    def ask(self, permit: Permit, action: str, row: HoldRow, now: int) -> PermissionVerdict:
        """Whether an actor who may do one action may also do another."""
        return can(permit.standing, action, row, now, permit.past)

    async def may(self, standing: ActorMemberships, action: str, row: HoldRow, now: int) -> bool:
        """Whether a person may do an action; for checks of many rows."""
        return can(standing, action, row, now, await self._facts(standing, row, now)).allowed

    async def _facts(
        self, standing: ActorMemberships, row: HoldRow, now: int, *, decides: bool = False
    ) -> PermissionFacts:
        past = await permission_facts(self.store, self.deployments, row, now)
        # A decision records everybody who took part, also where it does not matter for this hold: a later
        # hold of the run may exclude them.
        return await self._grantors.add(past, standing, row) if decides or row.terms.binds_everybody else past

    async def _was_theirs(
        self, standing: ActorMemberships, action: str, row: HoldRow, now: int, past: PermissionFacts
    ) -> bool:
        """Whether they could have done it before it was reassigned or escalated."""
        if row.epoch <= 1:
            return False
        for each in await records_of(self.store, row.tenant, hold=row.id):
            before = _moved_from(each.data) if each.action in MOVES else None
            if before is not None:
                earlier = msgspec.structs.replace(row, assignee_type=before.type, assignee_value=before.value)
                if can(standing, action, earlier, now, past).allowed:
                    return True
        return False


def _moved_from(data: bytes) -> Assignee | None:
    found = msgspec.json.decode(data).get("from")
    if not isinstance(found, str):
        return None
    kind, _, value = found.partition(":")
    return Assignee(kind, value)


def _may_be_delegated(row: HoldRow) -> bool:
    voters = (*row.terms.approval.of, *row.terms.approval.veto)
    return row.assignee_type == DELEGATED or any(each.startswith(DELEGATED) for each in voters)
