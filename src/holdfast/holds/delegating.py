"""Steps of the desk: what a hold gets from its run's deployment, and whether there is a delegated user."""

from __future__ import annotations

import msgspec

from holdfast.holds.assigning import DELEGATED, parse_assignee, route
from holdfast.holds.defaults import with_defaults
from holdfast.holds.deployments import Deployments
from holdfast.types.hold import HoldFacts, NewHold


class DeploymentDefaults:
    """Comes first: rules and directory see the hold as its deployment has it."""

    def __init__(self, deployments: Deployments) -> None:
        self.deployments = deployments

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        return facts.deployment is not None

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        found = await self.deployments.find(facts.deployment or "", tenant=facts.tenant)
        return hold if found is None else with_defaults(hold, found.defaults)


class DelegatedUser:
    """A deployment that was never delegated has no delegated user. Who it is in another is asked whenever it
    matters, and is not written down (AS-9)."""

    def __init__(self, deployments: Deployments) -> None:
        self.deployments = deployments

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        return hold.assignee is not None and DELEGATED in hold.assignee.lower()

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        parsed = parse_assignee(hold.assignee)
        if parsed.type != DELEGATED:
            return hold
        named = parsed.value or facts.deployment
        found = await self.deployments.find(named, tenant=facts.tenant) if named else None
        delegated = found.id if found is not None and found.delegation is not None else None
        to = await route(DELEGATED, facts.tenant, None, delegation=delegated)
        return msgspec.structs.replace(
            hold, assignee_type=to.type, assignee_value=to.value, assignee_reason=to.reason
        )
