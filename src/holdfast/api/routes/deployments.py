"""Deployments (flows under a name), and the skills that they bind."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.masked_values import require_unmasked
from holdfast.api.pagination import Page
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.common import moment
from holdfast.errors import DeploymentNotFoundError, InputError, SkillNotFoundError, SkillPublishedError
from holdfast.types.deployment import Defaults, Deployment
from holdfast.types.skill import Skill, SkillTool

routes = Routes("deployments")

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class DelegationWire(msgspec.Struct, kw_only=True):
    to: str
    since: str | None
    until: str | None
    revoked: bool


class DeploymentWire(msgspec.Struct, kw_only=True):
    id: str
    name: str
    flow: str
    version: str
    mode: str
    skills: list[str]
    policies: list[str]
    defaults: Defaults
    delegation: DelegationWire | None
    created_at: str | None
    created_by: str


class PutDeployment(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    flow: Name
    version: str = ""
    mode: str = "plain"
    skills: list[Name] = []
    policies: list[Name] = []
    on_changed_skill: str = "warn"
    defaults: Defaults = Defaults()


class DelegateDeployment(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`to`: `user:NAME`; `seconds`: its duration."""

    to: Name
    seconds: Annotated[int, msgspec.Meta(ge=1, le=10 * 366 * 86_400)] | None = None


def _deployment(found: Deployment) -> DeploymentWire:
    held = found.delegation
    delegation = None
    if held is not None:
        since, until = moment(held.since), moment(held.until)
        delegation = DelegationWire(to=held.to, since=since, until=until, revoked=held.revoked)
    return DeploymentWire(
        id=found.id,
        name=found.name,
        flow=found.flow,
        version=found.version,
        mode=str(found.mode),
        skills=[str(each) for each in found.skills],
        policies=list(found.policies),
        defaults=found.defaults,
        delegation=delegation,
        created_at=moment(found.created_at),
        created_by=found.created_by,
    )


@routes.get("/deployments", needs=Right.flows_read)
async def list_deployments(call: ApiCall) -> Page[DeploymentWire]:
    """List deployments; a hold's `deployment` is the id of one."""
    found = await (await call.hf.deployments()).list(tenant=call.tenant)
    return Page(items=[_deployment(each) for each in found])


@routes.get("/deployments/{name}", needs=Right.flows_read, raises=(DeploymentNotFoundError,))
async def get_deployment(call: ApiCall, name: str) -> DeploymentWire:
    """By name or id."""
    return _deployment(await (await call.hf.deployments()).get(name, tenant=call.tenant))


@routes.put("/deployments/{name}", needs=Right.manage, raises=(InputError, SkillNotFoundError))
async def put_deployment(call: ApiCall, name: str, body: PutDeployment) -> DeploymentWire:
    """Create it, or change its settings for later runs."""
    given = msgspec.structs.asdict(body)
    deployments = await call.hf.deployments()
    known = [each for each in await deployments.list(tenant=call.tenant) if each.name == name]
    require_unmasked(body, _deployment(known[0]) if known else None)
    made = await deployments.put(
        name, **given, by=call.actor.id, made_by=call.actor.people, tenant=call.tenant
    )
    return _deployment(made)


@routes.put(
    "/deployments/{name}/delegation", needs=Right.manage, raises=(InputError, DeploymentNotFoundError)
)
async def delegate_deployment(call: ApiCall, name: str, body: DelegateDeployment) -> DeploymentWire:
    """Delegate it to a person: holds for `delegated_user` are assigned to them."""
    until = None if body.seconds is None else timedelta(seconds=body.seconds)
    deployments = await call.hf.deployments()
    return _deployment(
        await deployments.delegate(
            name, body.to, until=until, by=call.actor.id, made_by=call.actor.people, tenant=call.tenant
        )
    )


@routes.delete(
    "/deployments/{name}/delegation", needs=Right.manage, raises=(InputError, DeploymentNotFoundError)
)
async def revoke_delegation(call: ApiCall, name: str) -> ApiReply[DeploymentWire]:
    """End its delegation."""
    deployments = await call.hf.deployments()
    return ApiReply(body=_deployment(await deployments.revoke(name, by=call.actor.id, tenant=call.tenant)))


# ---------------------------------------------------------------------- skills


class SkillWire(msgspec.Struct, kw_only=True):
    name: str
    version: str
    description: str
    instructions: str
    tools: list[SkillTool]
    data: dict[str, Any]
    digest: str
    published_at: str | None
    published_by: str
    yanked_at: str | None
    yanked_reason: str


class PublishSkill(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    instructions: str = ""
    tools: list[SkillTool] = []
    description: str = ""
    data: dict[str, Any] = {}


class YankReason(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    reason: str = ""


class ListSkills(msgspec.Struct, kw_only=True):
    name: Name | None = None


def _skill(found: Skill) -> SkillWire:
    return SkillWire(
        name=found.name,
        version=found.version,
        description=found.description,
        instructions=found.instructions,
        tools=list(found.tools),
        data=found.data,
        digest=found.digest,
        published_at=moment(found.published_at),
        published_by=found.published_by,
        yanked_at=moment(found.yanked_at),
        yanked_reason=found.yanked_reason,
    )


@routes.get("/skills", needs=Right.flows_read)
async def list_skills(call: ApiCall, query: ListSkills) -> Page[SkillWire]:
    """Every version of every skill, or of one."""
    found = await (await call.hf.skills()).list(query.name, tenant=call.tenant)
    return Page(items=[_skill(each) for each in found])


@routes.put("/skills/{name}/{version}", needs=Right.manage, raises=(InputError, SkillPublishedError))
async def publish_skill(call: ApiCall, name: str, version: str, body: PublishSkill) -> SkillWire:
    """Publish a version. It is immutable: the same content again has no effect, other content is refused."""
    skills = await call.hf.skills()
    given = msgspec.structs.asdict(body)
    return _skill(await skills.publish(name, version, **given, by=call.actor.id, tenant=call.tenant))


@routes.post("/skills/{name}/{version}/yank", needs=Right.manage, raises=(SkillNotFoundError,))
async def yank_skill(call: ApiCall, name: str, version: str, body: YankReason) -> SkillWire:
    """No new run gets it; runs that are pinned to it keep it."""
    skills = await call.hf.skills()
    done = await skills.yank(name, version, reason=body.reason, by=call.actor.id, tenant=call.tenant)
    return _skill(done)


@routes.post("/skills/{name}/{version}/restore", needs=Right.manage, raises=(SkillNotFoundError,))
async def restore_skill(call: ApiCall, name: str, version: str) -> SkillWire:
    """Undo a yank."""
    return _skill(await (await call.hf.skills()).restore(name, version, tenant=call.tenant))
