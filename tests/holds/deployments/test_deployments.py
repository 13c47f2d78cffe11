"""Deployments: a flow under a name, with entities, skills, defaults, and whoever it works on behalf of."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, Holdfast, Limits
from holdfast.errors import (
    DeploymentNotFoundError,
    HoldNotFoundError,
    InputError,
    LimitReachedError,
    NotAssignedError,
    SkillNotFoundError,
    VersionMismatchError,
)
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.rules import Rule
from holdfast.holds.policies.simulate import simulate
from holdfast.holds.service import HoldService
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.types.deployment import Mode
from holdfast.types.hold import HoldFilter
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, operator
from tests.flows.places import Place
from tests.holds.deployments.flows import publish

pytestmark = pytest.mark.anyio


def asking(assignee: str | None = None, **manner: Any) -> Flow:
    flow = Flow("case")
    flow.start(flow.hold("ask", prompt="Well?", options=["yes", "no"], assignee=assignee, **manner))
    return flow


def user(name: str) -> Actor:
    return Actor(id=f"user:{name}")


@pytest.mark.covers("CP-3", "HOLD-SKILL-02")
async def test_a_run_of_an_entity_names_it_and_its_holds_are_found_by_it(hf: Holdfast) -> None:
    flow = asking("user:dana@acme")
    made = await hf.deploy("cases", flow, mode="entity")

    first = await flow.run({}, on=hf, deployment="cases", instance_key="c-1")
    await flow.run({}, on=hf, deployment="cases", instance_key="c-2")
    await (await hf.service()).answer(first.holds[0].id, "yes")
    assert (await flow.resume(first.run_id, on=hf)).completed
    await flow.run({}, on=hf, deployment="cases", instance_key="c-1")

    store = await hf.open()
    where = HoldFilter(tenant="default", instance_key=("c-1",))
    found = [row for row, _ in await store.list_holds(where)]
    assert [row.instance_key for row in found] == ["c-1", "c-1"]
    assert {row.core_id for row in found} == {made.id}
    assert await store.count_holds(HoldFilter(tenant="default", deployment=(made.id,))) == 3


@pytest.mark.covers("CP-3")
async def test_an_instance_key_is_given_exactly_in_entity_mode(hf: Holdfast) -> None:
    flow = asking()
    await hf.deploy("cases", flow, mode="entity")
    await hf.deploy("plain", flow)

    with pytest.raises(InputError, match="belongs to an entity, and this one names none"):
        await flow.run({}, on=hf, deployment="cases")
    with pytest.raises(InputError, match="has plain runs, and this one names an entity"):
        await flow.run({}, on=hf, deployment="plain", instance_key="c-1")

    (hold,) = (await flow.run({}, on=hf, deployment="plain")).holds
    assert hold.instance_key is None
    assert len(await (await hf.service()).holds()) == 1


@pytest.mark.covers("PLATFORM-ENTITY-01")
async def test_a_run_that_starts_another_of_its_entity_is_told_that_it_would_wait_for_itself(
    hf: Holdfast,
) -> None:
    flow = Flow("case", effect="pure")

    @flow.node
    async def start_again(ctx: Context) -> None:
        await flow.run({}, on=hf, deployment="cases", instance_key="c-1")

    flow.start(start_again)
    await hf.deploy("cases", flow, mode="entity")

    result = await flow.run({}, on=hf, deployment="cases", instance_key="c-1")

    assert result.error is not None
    assert result.error.code == LimitReachedError.code
    assert "which the run that starts it has used up" in result.error.message


@pytest.mark.covers("PLATFORM-ENTITY-01")
async def test_a_flow_whose_limits_have_a_key_has_no_entities(hf: Holdfast) -> None:
    flow = Flow("case", limits=Limits(key="{{customer}}", per_key=1))
    flow.start(flow.hold("ask", prompt="Well?"))
    await hf.deploy("cases", flow, mode="entity")

    with pytest.raises(InputError, match="a run has one key"):
        await flow.run({"customer": "x"}, on=hf, deployment="cases", instance_key="c-1")


@pytest.mark.covers("HOLD-SKILL-02")
async def test_a_deployment_changes_its_settings_and_keeps_its_identity_and_delegation(
    hf: Holdfast,
) -> None:
    await publish(hf, "1.0.0", "Be kind.")
    first = await hf.deploy("desk", "refund", skills=["refunds@^1"], on_behalf_of="user:dana@acme")

    second = await hf.deploy("desk", "refund", mode="entity", policies=["small"])

    deployments = await hf.deployments()
    assert second == await deployments.get("desk") == await deployments.get(first.id)
    assert (second.id, second.created_at, second.delegation) == (first.id, first.created_at, first.delegation)
    assert (second.mode, second.skills, second.policies) == (Mode.entity, (), ("small",))
    assert [each.name for each in await deployments.list()] == ["desk"]
    assert await deployments.list(tenant="globex") == []
    with pytest.raises(DeploymentNotFoundError, match="there is no deployment 'desk'"):
        await deployments.get("desk", tenant="globex")


@pytest.mark.covers("HOLD-SKILL-02")
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"mode": "both"}, "mode 'both' is not one of plain, entity"),
        ({"skills": ["refunds", "refunds@1"]}, "binds refunds twice"),
        ({"skills": ["refunds@one"]}, "is not a range of versions"),
        ({"skills": ["Re funds"]}, "is not a valid name"),
        ({"on_changed_skill": "shrug"}, "is not one of warn, fail"),
        ({"priority": "urgent"}, "priority 'urgent' is not one of"),
        ({"timeout": "soon"}, "is not a duration"),
        ({"timeout": "2d", "on_timeout": "escalate:"}, "has no target"),
        ({"timeout": "2d", "on_timeout": "approve"}, "cannot be a default for holds"),
        ({"on_timeout": "cancel"}, "on_timeout is set without timeout"),
        ({"on_behalf_of": "group:leads"}, "is not a person"),
        ({"on_behalf_of": "user:d@a", "until": timedelta(-1)}, "would end before it starts"),
        ({"on_behalf_of": "user:d@a", "until": datetime(2030, 1, 1)}, "has no time zone"),  # noqa: DTZ001
    ],
)
async def test_a_deployment_that_makes_no_sense_is_refused(settings: dict[str, Any], why: str) -> None:
    async with Holdfast("memory:") as hf:
        await publish(hf, "1.0.0", "Be kind.")
        with pytest.raises(InputError, match=why):
            await hf.deploy("desk", "refund", **settings)


async def test_a_deployment_starts_its_own_flow_and_version_only(hf: Holdfast) -> None:
    flow, other = asking(), asking(priority="high")
    await hf.deploy("desk", flow, version=flow.program().version)
    await hf.deploy("elsewhere", "refund")

    with pytest.raises(VersionMismatchError, match="is of version"):
        await other.run({}, on=hf, deployment="desk")
    with pytest.raises(InputError, match="is of flow 'refund', not 'case'"):
        await flow.run({}, on=hf, deployment="elsewhere")
    with pytest.raises(DeploymentNotFoundError):
        await flow.run({}, on=hf, deployment="nowhere")
    with pytest.raises(SkillNotFoundError, match="skill refunds@latest does not exist"):
        await hf.deploy("desk", flow, skills=["refunds"])
    assert (await flow.run({}, on=hf, deployment="desk")).holds


@pytest.mark.covers("HOLD-SKILL-02")
async def test_holds_that_say_nothing_get_what_their_deployment_says(place: Place) -> None:
    flow = asking()
    hf = await place.hf()
    settings: Any = {"assignee": "group:desk", "priority": "high", "timeout": "2d", "reminder": "4h"}
    await hf.deploy("desk", flow, on_timeout="escalate:group:leads", **settings)

    (hold,) = (await flow.run({}, on=hf, deployment="desk")).holds
    (bare,) = (await flow.run({}, on=hf)).holds

    assert (hold.assignee_type, hold.assignee_value, hold.priority) == ("group", "desk", "high")
    assert hold.expires_at == hold.created_at + 2 * 86_400_000_000
    assert (hold.expiry_action, hold.escalation_target) == ("escalate", "group:leads")
    assert (hold.reminder_interval, hold.remind_at) == (240, hold.created_at + 4 * 3_600_000_000)
    assert (bare.assignee_type, bare.priority, bare.expires_at) == ("unrouted", "normal", None)
    place.clock.advance(hours=49)
    await (await hf.service()).runtime.sweeper.sweep()
    row = await (await hf.open()).hold(hold.id)
    assert row is not None
    assert (row.status, row.assignee_value, row.escalation_count) == (HoldStatus.pending, "leads", 1)


async def test_holds_that_say_something_keep_it(hf: Holdfast) -> None:
    flow = asking("user:dana@acme", priority="low", timeout="1h", on_timeout="cancel")
    settings: Any = {"assignee": "group:desk", "priority": "high", "timeout": "2d", "on_timeout": "fail"}
    await hf.deploy("desk", flow, **settings)

    (hold,) = (await flow.run({}, on=hf, deployment="desk")).holds

    assert (hold.assignee_value, hold.priority, hold.expiry_action) == ("dana@acme", "low", "cancel")
    assert hold.expires_at == hold.created_at + 3_600_000_000


async def test_a_default_in_business_time_is_counted_by_the_default_calendar(place: Place) -> None:
    flow = asking()
    hf = await place.hf()
    await Calendars(await hf.open()).put(
        "default", "desk", {"zone": "UTC", "hours": {"mon-sun": "09:00-17:00"}}
    )
    await hf.deploy("desk", flow, timeout="4bh", calendar="desk")

    (hold,) = (await flow.run({}, on=hf, deployment="desk")).holds

    assert (hold.terms.calendar, hold.terms.timeout) == ("desk", "4bh")
    calendar = await Calendars(await hf.open()).named("default", "desk")
    assert hold.expires_at is not None
    assert calendar.between(hold.created_at, hold.expires_at) == 4 * 3_600_000_000


async def test_settings_and_delegation_are_changed_at_once_and_none_is_lost(hf: Holdfast) -> None:
    await hf.deploy("desk", "refund")
    deployments = await hf.deployments()

    await asyncio.gather(
        *(hf.deploy("desk", "refund", mode="entity", policies=[f"p{n}"]) for n in range(4)),
        deployments.delegate("desk", "user:dana@acme"),
        *(hf.deploy("desk", "refund", mode="entity", policies=[f"p{n}"]) for n in range(4)),
    )

    found = await deployments.get("desk")
    assert found.mode is Mode.entity
    assert found.delegation is not None
    assert found.delegation.to == "user:dana@acme"


@pytest.mark.covers("HOLD-SKILL-02")
async def test_only_the_policies_that_a_deployment_names_are_asked_about_its_holds() -> None:
    desk, board = (Policy(name, Rule(name="all", assign=f"group:{name}")) for name in ("desk", "board"))
    flow = asking()
    async with Holdfast("memory:", policies=[desk, board]) as hf:
        await hf.deploy("plain", flow, assignee="group:nobody")
        await hf.deploy("high", flow, policies=["board"])

        went = {
            name: (await flow.run({}, on=hf, deployment=name)).holds[0].assignee_value
            for name in ("plain", "high")
        }
        for hold in await (await hf.service()).holds():
            await (await hf.service()).answer(hold.id, "yes")
        done = await simulate(await hf.open(), [Policy("desk", Rule(name="all", assign="group:vip"))])

    assert went == {"plain": "desk", "high": "board"}
    assert done.rules == {"desk/all": 1}


async def test_a_tenant_starts_runs_under_its_own_deployments_only(hf: Holdfast) -> None:
    flow = asking()
    ours = await hf.deploy("desk", flow, assignee="group:ours", tenant="acme")
    theirs = await hf.deploy("desk", flow, assignee="group:theirs", tenant="globex")

    (hold,) = (await flow.run({}, on=hf, tenant="acme", deployment="desk")).holds
    with pytest.raises(DeploymentNotFoundError):
        await flow.run({}, on=hf, tenant="acme", deployment=theirs.id)

    assert ours.id != theirs.id
    assert (hold.deployment, hold.assignee_value) == (ours.id, "ours")


@pytest.mark.covers("AS-9", "HOLD-SKILL-02")
@pytest.mark.parametrize("assignee", ["delegated_user", "delegated_user:desk"])
async def test_a_delegated_user_is_found_whenever_it_matters(place: Place, assignee: str) -> None:
    flow = asking(assignee)
    hf = await place.hf()
    made = await hf.deploy("desk", flow, on_behalf_of="user:Dana@acme", until=timedelta(days=30))
    (hold,) = (await flow.run({}, on=hf, deployment="desk")).holds
    service, deployments = HoldService(await hf.open()), await hf.deployments()
    dana, sam = user("dana@acme"), user("sam@acme")

    assert (hold.assignee, hold.assignee_type, hold.assignee_value) == (assignee, "delegated_user", made.id)
    assert await mine(service, dana) == [hold.id]
    assert await mine(service, sam) == []
    # Somebody else from now on.
    await deployments.delegate("desk", "user:sam@acme")
    with pytest.raises(NotAssignedError):
        await service.resolve(dana, hold.id, "yes")
    assert await mine(service, sam) == [hold.id]
    # Revoked: as unrouted, until it is restored.
    boss = operator("user:boss@acme")
    assert (await service.list(boss, view="unrouted")).rows == ()
    await deployments.revoke("desk")
    assert await mine(service, sam) == []
    assert [row.id for row in (await service.list(boss, view="unrouted")).rows] == [hold.id]
    assert await service.count(boss, view="unrouted") == 1
    with pytest.raises((NotAssignedError, HoldNotFoundError)):
        await service.resolve(sam, hold.id, "yes")
    await deployments.delegate("desk", "user:dana@acme", until=timedelta(days=1))
    place.clock.advance(days=2)
    with pytest.raises(NotAssignedError):
        await service.resolve(dana, hold.id, "yes")
    await deployments.delegate("desk", "user:dana@acme")
    decided = await service.resolve(dana, hold.id, "yes")
    assert decided.row.resolved_by == "user:dana@acme"


@pytest.mark.covers("AS-9", "AS-10")
async def test_a_hold_of_a_revoked_delegation_is_claimed_by_an_admin_and_becomes_theirs(
    hf: Holdfast,
) -> None:
    flow = asking("delegated_user")
    await hf.deploy("desk", flow, on_behalf_of="user:dana@acme")
    (hold,) = (await flow.run({}, on=hf, deployment="desk")).holds
    service, boss = HoldService(await hf.open()), operator("user:boss@acme")
    await (await hf.deployments()).revoke("desk", by="user:boss@acme")

    row = await service.claim(boss, hold.id)

    assert (row.assignee, row.assignee_type, row.assignee_value) == ("user:boss@acme", "user", "boss@acme")
    assert (await service.list(boss, view="unrouted")).rows == ()


async def test_who_a_deployment_works_for_is_changed_by_nobody_without_a_trace(hf: Holdfast) -> None:
    await hf.deploy("desk", "refund", on_behalf_of="user:dana@acme", by="user:boss@acme")
    await (await hf.deployments()).revoke("desk", by="user:sam@acme")

    deployed, first, second = await (await hf.open()).audit("default")

    assert (deployed.action, deployed.actor) == ("deployed", "user:boss@acme")
    assert (first.action, first.actor, second.action, second.actor) == (
        "delegated", "user:boss@acme", "delegation_revoked", "user:sam@acme",
    )  # fmt: skip
    assert msgspec.json.decode(first.data)["to"] == "user:dana@acme"


async def mine(service: HoldService, actor: Actor) -> list[str]:
    return [row.id for row in (await service.list(actor, view="mine")).rows]


@pytest.mark.covers("AS-9")
async def test_a_delegated_user_of_nobody_is_unrouted(hf: Holdfast) -> None:
    flow = asking("delegated_user")
    await hf.deploy("desk", flow)

    (hold,) = (await flow.run({}, on=hf, deployment="desk")).holds
    (bare,) = (await flow.run({}, on=hf)).holds

    for each in (hold, bare):
        assert (each.assignee, each.assignee_type) == ("delegated_user", "unrouted")
        assert "is not delegated" in each.assignee_reason


async def test_a_delegation_lasts_from_its_beginning_to_its_end(place: Place) -> None:
    hf = await place.hf()
    await hf.deploy("desk", "refund")
    deployments = await hf.deployments()
    now = datetime.fromtimestamp(place.clock.now() / 1e6, UTC)
    since, until = now + timedelta(days=1), now + timedelta(days=2)
    made = await deployments.delegate("desk", "dana@acme", since=since, until=until)
    assert made.delegation is not None
    assert made.delegation.to == "user:dana@acme"

    lasted: list[bool] = []
    for _ in range(3):
        lasted.append(
            bool(await deployments.delegated_to("default", frozenset({"dana@acme"}), place.clock.now()))
        )
        place.clock.advance(days=1)

    assert lasted == [False, True, False]
    await hf.deploy("other", "refund")
    with pytest.raises(InputError, match="is not delegated"):
        await deployments.revoke("other")
