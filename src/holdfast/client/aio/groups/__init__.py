"""All groups of methods."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from holdfast.client.aio.groups.admin import AsyncAdmin
from holdfast.client.aio.groups.audit import AsyncAudit
from holdfast.client.aio.groups.calendars import AsyncCalendars
from holdfast.client.aio.groups.checkpoints import AsyncCheckpoints
from holdfast.client.aio.groups.dead import AsyncDead
from holdfast.client.aio.groups.deployments import AsyncDeployments
from holdfast.client.aio.groups.directory import AsyncDirectory
from holdfast.client.aio.groups.flows import AsyncFlows
from holdfast.client.aio.groups.holds import AsyncHolds
from holdfast.client.aio.groups.inbound import AsyncInbound
from holdfast.client.aio.groups.limits import AsyncLimits
from holdfast.client.aio.groups.notices import AsyncNotices
from holdfast.client.aio.groups.pipelines import AsyncPipelines
from holdfast.client.aio.groups.policies import AsyncPolicies
from holdfast.client.aio.groups.runs import AsyncRuns
from holdfast.client.aio.groups.schedules import AsyncSchedules
from holdfast.client.aio.groups.session import AsyncSession
from holdfast.client.aio.groups.skills import AsyncSkills
from holdfast.client.aio.groups.threads import AsyncThreads
from holdfast.client.aio.groups.tokens import AsyncTokens
from holdfast.client.aio.groups.views import AsyncViews
from holdfast.client.aio.transport import AsyncTransport


class AsyncGroups:
    """One attribute for each theme of the API."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.admin = AsyncAdmin(transport)
        self.audit = AsyncAudit(transport)
        self.calendars = AsyncCalendars(transport)
        self.checkpoints = AsyncCheckpoints(transport)
        self.dead = AsyncDead(transport)
        self.deployments = AsyncDeployments(transport)
        self.directory = AsyncDirectory(transport)
        self.flows = AsyncFlows(transport)
        self.holds = AsyncHolds(transport)
        self.inbound = AsyncInbound(transport)
        self.limits = AsyncLimits(transport)
        self.notices = AsyncNotices(transport)
        self.pipelines = AsyncPipelines(transport)
        self.policies = AsyncPolicies(transport)
        self.runs = AsyncRuns(transport)
        self.schedules = AsyncSchedules(transport)
        self.session = AsyncSession(transport)
        self.skills = AsyncSkills(transport)
        self.threads = AsyncThreads(transport)
        self.tokens = AsyncTokens(transport)
        self.views = AsyncViews(transport)
