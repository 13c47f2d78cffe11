"""The desk of a house: all its steps, over one store."""

from __future__ import annotations

from holdfast.holds.authority.addressing import Addressee
from holdfast.holds.deploying.delegating import DelegatedUser, DeploymentDefaults
from holdfast.holds.deploying.deployments import Deployments
from holdfast.holds.desk import Desk, Preparing
from holdfast.holds.directory.base import Directory
from holdfast.holds.timing.calendar_book import Calendars
from holdfast.holds.timing.deadlines import Deadlines
from holdfast.store.base import Store


def usual_desk(
    store: Store, *, directory: Directory | None = None, policies: Preparing | None = None
) -> Desk:
    """Without a directory names stand as they are written; without policies no rule changes anything."""
    deployments = Deployments(store)
    return Desk(
        defaults=DeploymentDefaults(deployments),
        policies=policies,
        delegated=DelegatedUser(deployments, directory),
        directory=Addressee(directory),
        deadlines=Deadlines(Calendars(store)),
    )
