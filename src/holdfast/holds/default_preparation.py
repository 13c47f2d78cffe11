"""The default hold preparation of an instance: all its steps, over one store. Those that depend on the run's
deployment are here: its defaults, and the delegated user."""

from __future__ import annotations

import msgspec

from holdfast.holds.deployments.defaults import with_defaults
from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.directory.base import Directory
from holdfast.holds.permissions.actor import capacity_named
from holdfast.holds.permissions.assignee_step import AssigneeStep
from holdfast.holds.permissions.assignees import (
    DELEGATED,
    parse_assignee,
    person_key,
    route,
    with_named_by,
)
from holdfast.holds.permissions.starters import StarterStep
from holdfast.holds.preparation import HoldPreparation, PreparationStep
from holdfast.holds.timing.deadlines import Deadlines
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.store.protocols import Store
from holdfast.types.deployment import Deployment
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.schedule import person_behind
from holdfast.types.terms import Assignee


def default_preparation(
    store: Store,
    *,
    directory: Directory | None = None,
    policies: PreparationStep | None = None,
    shadow: PreparationStep | None = None,
) -> HoldPreparation:
    """Without a directory, names are used as written; without policies, no rule applies."""
    deployments = Deployments(store)
    return HoldPreparation(
        defaults=DeploymentDefaults(deployments),
        policies=policies,
        delegated=DelegatedUser(deployments, directory),
        directory=AssigneeStep(directory),
        starters=StarterStep(store),
        deadlines=Deadlines(Calendars(store)),
        shadow=shadow,
    )


class DeploymentDefaults:
    """Runs first, so that policies and the directory see the hold with the deployment's defaults."""

    def __init__(self, deployments: Deployments) -> None:
        self.deployments = deployments

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        return facts.deployment is not None

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        found = await self.deployments.find(facts.deployment or "", tenant=facts.tenant)
        if found is None:
            return hold
        filled = with_defaults(hold, found.defaults)
        if (filled.expires_at, filled.terms.timeout) != (hold.expires_at, hold.terms.timeout):
            terms = msgspec.structs.replace(filled.terms, deadline_by=found.made_by)
            filled = msgspec.structs.replace(filled, terms=terms)
        names = [] if filled.assignee == hold.assignee else [filled.assignee]
        if filled.escalation_target != hold.escalation_target:
            names.append(filled.escalation_target)
        return with_named_by(filled, names, found.made_by)


class DelegatedUser:
    """A deployment that was never delegated has no delegated user. Otherwise the person is looked up when
    needed and never stored (AS-9); only whether it is the starter of the run is stored."""

    def __init__(self, deployments: Deployments, directory: Directory | None = None) -> None:
        self.deployments = deployments
        self.directory = directory

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        approval = hold.terms.approval
        return any(DELEGATED in text.lower() for text in (hold.assignee or "", *approval.of, *approval.veto))

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        hold = await self._with_voters(hold, facts)
        parsed = parse_assignee(hold.assignee)
        if parsed.type != DELEGATED:
            return hold
        found = await self._deployment(parsed.value or facts.deployment, facts)
        to = await route(DELEGATED, facts.tenant, None, delegation=None if found is None else found.id)
        return msgspec.structs.replace(
            hold, assignee_type=to.type, assignee_value=to.value, assignee_reason=to.reason
        )

    async def _with_voters(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        """Among voters and vetoers, `delegated_user` is replaced by the id of the run's deployment."""
        own = await self._deployment(facts.deployment, facts)
        if own is None:
            return hold
        approval = msgspec.structs.replace(
            hold.terms.approval,
            of=tuple(_by_id(text, own) for text in hold.terms.approval.of),
            veto=tuple(_by_id(text, own) for text in hold.terms.approval.veto),
        )
        starter_in = (f"{DELEGATED}:{own.id}",) if await self._is_starter(own, facts) else None
        terms = msgspec.structs.replace(hold.terms, approval=approval, starter_in=starter_in)
        return msgspec.structs.replace(hold, terms=terms)

    async def _deployment(self, ref: str | None, facts: HoldFacts) -> Deployment | None:
        """The deployment if it was ever delegated, even if that is revoked now."""
        found = await self.deployments.find(ref, tenant=facts.tenant) if ref else None
        return found if found is not None and found.delegation is not None else None

    async def _is_starter(self, own: Deployment, facts: HoldFacts) -> bool:
        held, person = own.delegation, person_behind(facts.started_by)
        if held is None or person is None or not held.is_active(self.deployments.store.now()):
            return False
        starter = person_key(person)
        known = await capacity_named(starter, facts.tenant, self.directory)
        return person_key(held.to) in (known.people if known is not None else {starter})


def _by_id(text: str, own: Deployment) -> str:
    return f"{DELEGATED}:{own.id}" if parse_assignee(text) == Assignee(DELEGATED) else text
