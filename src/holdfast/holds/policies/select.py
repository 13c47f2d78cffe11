"""The policies for a hold: those that its run's deployment names, else all. A deployment that was written
through a server chooses only among policies in the store: those of the program and of files always apply.

A deployment may name a policy that does not exist (a misspelt name, a file that was not given): then the
rules of the others that say who must decide apply too.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.policies.policy import Policy
from holdfast.store.protocols import Store
from holdfast.telemetry import log


class PolicySelector:
    """Looks each deployment up once, also for a simulation over many past decisions."""

    def __init__(self, store: Store, policies: Iterable[Policy], *, complete: bool = True) -> None:
        """`complete`: these are all policies; for a simulation they are not."""
        self._complete = complete
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
        missing = sorted(set(found.policies) - {policy.name for policy in self.policies})
        if missing and self._complete:
            log.warning(
                "deployment %s names the policy %r, which does not exist: rules of the others that say who "
                "must decide apply too",
                found.name,
                missing[0],
            )
        others = _binding if missing and self._complete else _nothing
        return tuple(
            each
            for policy in self.policies
            for each in (
                (policy,)
                if policy.name in found.policies or (found.made_by and not policy.stored)
                else others(policy)
            )
        )


def _nothing(policy: Policy) -> tuple[Policy, ...]:
    return ()


def _binding(policy: Policy) -> tuple[Policy, ...]:
    kept = copy(policy)
    kept.rules = tuple(rule for rule in policy.rules if rule.binds)
    return (kept,) if kept.rules else ()
