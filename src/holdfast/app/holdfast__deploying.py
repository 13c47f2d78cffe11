"""What a house keeps beside its runs: skills, deployments that bind them to flows, schedules, limits."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from holdfast.types.deployment import Binding, Defaults, Deployment
from holdfast.types.ids import DEFAULT_TENANT

if TYPE_CHECKING:
    from holdfast.frontends.python import FlowBuilder
    from holdfast.holds.deployments.deployments import Deployments
    from holdfast.holds.deployments.skills import SkillRegistry
    from holdfast.runs.limits import LimitDesk
    from holdfast.runs.schedules.service import Schedules
    from holdfast.store.protocols import Store


class Deploying:
    if TYPE_CHECKING:

        async def open(self) -> Store: ...

    async def skills(self) -> SkillRegistry:
        """Skills of the store: publish, find, yank."""
        from holdfast.holds.deployments.skills import SkillRegistry

        return SkillRegistry(await self.open())

    async def deployments(self) -> Deployments:
        """Deployments of the store: find, delegate, revoke."""
        from holdfast.holds.deployments.deployments import Deployments

        return Deployments(await self.open())

    async def schedules(self) -> Schedules:
        """Schedules of the store: put, list, pause, resume, trigger, drop."""
        from holdfast.runs.schedules.service import Schedules

        return Schedules(await self.open())

    async def limits(self) -> LimitDesk:
        """Limits that hold in the store: list, set, clear."""
        from holdfast.runs.limits import LimitDesk

        return LimitDesk(await self.open())

    async def deploy(
        self,
        name: str,
        flow: FlowBuilder | str,
        *,
        version: str = "",
        mode: str = "plain",
        skills: Iterable[str | Binding] = (),
        on_changed_skill: str = "warn",
        on_behalf_of: str | None = None,
        since: datetime | timedelta | None = None,
        until: datetime | timedelta | None = None,
        assignee: str | None = None,
        priority: str | None = None,
        calendar: str | None = None,
        timeout: str | None = None,
        on_timeout: str | None = None,
        reminder: str | None = None,
        policies: Iterable[str] = (),
        by: str = "user:local",
        tenant: str = DEFAULT_TENANT,
    ) -> Deployment:
        """Put a flow to work under a name: `flow.run(..., deployment=name)` starts runs of it. Doing it again
        changes its settings for runs that start later.

        `skills`: what its runs are pinned to when they start (`"refunds@^1"`). `mode`: `entity`, where each
        run is one of an entity and names it by `instance_key`, or `plain`. `on_behalf_of`: whom holds for
        `delegated_user` go to, from `since` `until`. `assignee` to `reminder`: for holds that do not say.
        `policies`: only these, by name, are asked about its holds; else all. `version`: only this version of
        the flow is started under it."""
        deployments = await self.deployments()
        defaults = Defaults(
            assignee=assignee,
            priority=priority,
            calendar=calendar,
            timeout=timeout,
            on_timeout=on_timeout,
            reminder=reminder,
        )
        made = await deployments.put(
            name,
            flow if isinstance(flow, str) else flow.name,
            version=version,
            mode=mode,
            skills=skills,
            on_changed_skill=on_changed_skill,
            defaults=defaults,
            policies=policies,
            by=by,
            tenant=tenant,
        )
        if on_behalf_of is None:
            return made
        return await deployments.delegate(name, on_behalf_of, since=since, until=until, by=by, tenant=tenant)
