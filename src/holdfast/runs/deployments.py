"""A run of a deployment: whether it fits, which skills it is pinned to, and whether these have changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.errors import InputError, VersionMismatchError
from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.deployments.skills import load_pinned
from holdfast.model.pinned_skills import kept_pins, pins_of
from holdfast.model.program import Program
from holdfast.runs.context.skills import RunSkills
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.types.deployment import Deployment, Mode


async def deployment_for_run(
    store: Store, program: Program, ref: str, *, tenant: str, instance_key: str | None
) -> tuple[Deployment, dict[str, Any]]:
    """(the deployment, what the run's first record keeps of it). Raises InputError if the run does not fit
    it, SkillNotFoundError if a bound skill has no version."""
    deployments = Deployments(store)
    found = await deployments.get(ref, tenant=tenant)
    _require_flow(found, program)
    _require_key(found, instance_key)
    pins = await deployments.skills.pin(found.skills, tenant=tenant)
    await deployments.skills.keep_content(pins, tenant=tenant)
    return found, {"skills": kept_pins(pins)} if pins else {}


def _require_flow(deployment: Deployment, program: Program) -> None:
    if deployment.flow != program.graph.name:
        raise InputError(
            f"deployment {deployment.name!r} is of flow {deployment.flow!r}, not {program.graph.name!r}.",
            hint="Start its own flow, or name another deployment.",
        )
    if deployment.version and deployment.version != program.version:
        raise VersionMismatchError(
            f"deployment {deployment.name!r} is of version {deployment.version} of flow "
            f"{deployment.flow!r}, and {program.version} is loaded here.",
            hint="Load the code of that version, or deploy this one.",
            flow=deployment.flow,
        )


def _require_key(deployment: Deployment, instance_key: str | None) -> None:
    """An instance key is set exactly in entity mode (CP-3)."""
    if deployment.mode is Mode.entity and instance_key is None:
        raise InputError(
            f"each run of deployment {deployment.name!r} belongs to an entity, and this one names none.",
            hint='Give it instance_key="...".',
        )
    if deployment.mode is Mode.plain and instance_key is not None:
        raise InputError(
            f"deployment {deployment.name!r} has plain runs, and this one names an entity.",
            hint="Leave instance_key out, or deploy the flow with mode='entity'.",
        )


async def load_skills(store: Store, row: RunRow, kept: Sequence[dict[str, str]]) -> RunSkills:
    """When a run is loaded. A skill that has changed is logged; the run continues with what it was pinned
    to."""
    pins = pins_of(kept)
    loaded = await load_pinned(store, row.tenant, pins, row.id)
    refused = loaded.changed if loaded.changed and await _is_strict(store, row) else frozenset[str]()
    return RunSkills(pins, loaded.found, refused=refused)


async def _is_strict(store: Store, row: RunRow) -> bool:
    """As the deployment says now: its owner may have changed it so that runs continue."""
    if row.deployment is None:
        return False
    found = await Deployments(store).find(row.deployment, tenant=row.tenant)
    return found is not None and found.on_changed_skill == "fail"
