"""The policies for a hold: those that its run's deployment names, else all. A deployment that was written
through a server chooses only among policies in the store: those of the program and of files always apply."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.policies.policy import Policy
from holdfast.store.protocols import Store


class PolicySelector:
    """Looks each deployment up once, also for a simulation over many past decisions."""

    def __init__(self, store: Store, policies: Iterable[Policy]) -> None:
        self.deployments = Deployments(store)
        self.policies = tuple(policies)
        self._known: dict[tuple[str, str], tuple[Policy, ...]] = {}

    async def of(self, tenant: str, deployment: str | None) -> tuple[Policy, ...]:
        if deployment is None or not self.policies:
            return self.policies
        key = (tenant, deployment)
        if key not in self._known:
            self._known[key] = await self._named(tenant, deployment)
        return self._known[key]

    async def _named(self, tenant: str, deployment: str) -> tuple[Policy, ...]:
        found = await self.deployments.find(deployment, tenant=tenant)
        if found is None or not found.policies:
            return self.policies
        return tuple(
            policy
            for policy in self.policies
            if policy.name in found.policies or (found.made_by and not policy.stored)
        )
