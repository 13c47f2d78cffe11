"""The default hold preparation of an instance: all its steps, over one store."""

from __future__ import annotations

from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.deployments.hold_preparation import DelegatedUser, DeploymentDefaults
from holdfast.holds.directory.base import Directory
from holdfast.holds.permissions.assignee_step import AssigneeStep
from holdfast.holds.permissions.starters import StarterStep
from holdfast.holds.preparation import HoldPreparation, PreparationStep
from holdfast.holds.timing.deadlines import Deadlines
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.store.protocols import Store


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
