"""All groups of methods."""

# Written by tools/client.py from src/holdfast/client/aio/groups/__init__.py. Do not change it here.

from __future__ import annotations

from holdfast.client.sync.groups.admin import Admin
from holdfast.client.sync.groups.audit import Audit
from holdfast.client.sync.groups.calendars import Calendars
from holdfast.client.sync.groups.checkpoints import Checkpoints
from holdfast.client.sync.groups.dead import Dead
from holdfast.client.sync.groups.deployments import Deployments
from holdfast.client.sync.groups.directory import Directory
from holdfast.client.sync.groups.flows import Flows
from holdfast.client.sync.groups.holds import Holds
from holdfast.client.sync.groups.inbound import Inbound
from holdfast.client.sync.groups.limits import Limits
from holdfast.client.sync.groups.notices import Notices
from holdfast.client.sync.groups.pipelines import Pipelines
from holdfast.client.sync.groups.policies import Policies
from holdfast.client.sync.groups.runs import Runs
from holdfast.client.sync.groups.schedules import Schedules
from holdfast.client.sync.groups.session import Session
from holdfast.client.sync.groups.skills import Skills
from holdfast.client.sync.groups.threads import Threads
from holdfast.client.sync.groups.tokens import Tokens
from holdfast.client.sync.groups.views import Views
from holdfast.client.sync.transport import Transport


class Groups:
    """One attribute for each theme of the API."""

    def __init__(self, transport: Transport) -> None:
        self.admin = Admin(transport)
        self.audit = Audit(transport)
        self.calendars = Calendars(transport)
        self.checkpoints = Checkpoints(transport)
        self.dead = Dead(transport)
        self.deployments = Deployments(transport)
        self.directory = Directory(transport)
        self.flows = Flows(transport)
        self.holds = Holds(transport)
        self.inbound = Inbound(transport)
        self.limits = Limits(transport)
        self.notices = Notices(transport)
        self.pipelines = Pipelines(transport)
        self.policies = Policies(transport)
        self.runs = Runs(transport)
        self.schedules = Schedules(transport)
        self.session = Session(transport)
        self.skills = Skills(transport)
        self.threads = Threads(transport)
        self.tokens = Tokens(transport)
        self.views = Views(transport)
