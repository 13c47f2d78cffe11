"""Rules of the operator (of the program, of files) that one person with every right tries to lead around."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Flow, Policy, Rule
from holdfast.holds.policies.stored import delete_policy, put_policy
from holdfast.types.document import Document
from holdfast.types.status import HoldStatus
from holdfast.types.terms import ApprovalTerms
from tests.api.harness import Harness, harness_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-08")]

TWO = ApprovalTerms(mode="quorum", need=2)


def four_eyes(when: Any = None) -> Policy:
    return Policy("four-eyes", Rule(name="all", when=when, assign="group:finance", approval=TWO))


@pytest.mark.parametrize("chosen", [[], ["hers"], ["hers", "four-eyes"], ["none"]])
async def test_a_deployment_of_a_caller_deselects_no_policy_of_the_operator(chosen: list[str]) -> None:
    async with harness_of(policies=[four_eyes(), "store"]) as harness:
        rules = {"rules": [{"name": "all", "assign": "user:ada"}]}
        await harness.ask("ada", "PUT", "/v1/policies/hers", rules)
        await harness.ask("ada", "PUT", "/v1/deployments/till", {"flow": "refund", "policies": chosen})
        hold = await harness.asks(deployment="till", assignee="user:ada")
        refused = await harness.decide("ada", hold.id, reason="I have every right")
        assert refused.json().get("status") != "resolved"
        assert hold.terms.approval.mode == "quorum"


async def test_a_deployment_of_the_operator_selects_policies() -> None:
    async with harness_of(policies=[four_eyes(), Policy("easy", Rule(name="all"))]) as harness:
        await (await harness.hf.deployments()).put("till", "refund", policies=["easy"])
        hold = await harness.asks(deployment="till", assignee="user:dana")
        assert hold.terms.approval.mode == "any"


AMOUNTS = [5000, "5000", "5,000", [5000], {"value": 5000}, None]


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize(
    "when", ["amount > 1000", "context.amount > 1000", lambda facts: facts["context"]["amount"] > 1000]
)
async def test_a_rule_of_two_applies_when_its_condition_cannot_be_evaluated(when: Any, amount: Any) -> None:
    async with harness_of(policies=[four_eyes(when)]) as harness:
        flow = Flow("pay", effect="pure")
        asked: dict[str, Any] = {"assignee": "user:ada", "context": {"amount": "{{amount}}"}}
        flow.hold("approve", prompt="Pay?", options=["approve"], **asked)
        harness.hf.register(flow.program())
        body = {"flow": "pay", "input": {"amount": amount}}
        run = (await harness.ask("ada", "POST", "/v1/runs", body, status=201))["id"]
        (hold,) = (await flow.resume(run, on=harness.hf)).holds
        assert (await harness.row(hold.id)).terms.approval.mode == "quorum"


async def test_a_rule_of_two_does_not_apply_to_other_questions() -> None:
    async with harness_of(policies=[four_eyes("amount > 1000")]) as harness:
        assert (await harness.asks(assignee="user:ada")).terms.approval.mode == "any"


STRICT: dict[str, Any] = {"assignee": "user:dana", "strict_assignee": True, "priority": "critical"}
EASIER: dict[str, dict[str, Any]] = {
    "other voters": {"approval": {"mode": "quorum", "need": 1, "of": ["user:ada"]}},
    "others in order": {"approval": {"mode": "sequential", "of": ["user:ada"]}},
    "another assignee": {"assign": "user:ada"},
    "not strict": {"strict_assignee": False},
    "a lower priority": {"priority": "low"},
    "without guardrails": {"guarded": False, "guardrails": ["none"]},
}


@pytest.mark.parametrize("rule", EASIER)
async def test_a_rule_of_a_caller_makes_a_strict_hold_no_easier(rule: str) -> None:
    async with harness_of(policies="store") as harness:
        await harness.ask("ada", "PUT", "/v1/policies/hers", {"rules": [{"name": "all", **EASIER[rule]}]})
        hold = await harness.asks(**STRICT)
        assert (hold.priority, hold.terms.guarded, hold.terms.guardrails) == ("critical", True, ())
        assert (await harness.decide("ada", hold.id)).status_code == 403
        assert (await harness.decide("dana", hold.id)).status_code == 200


GUARD: dict[str, Any] = {
    "name": "guard",
    "rules": [
        {"name": "all", "assign": "group:finance", "approval": {"mode": "quorum", "need": 2}},
        {"name": "rest", "priority": "high"},
    ],
}
EASY: dict[str, Any] = {"rules": [{"name": "all", "assign": "user:ada"}]}
YES: dict[str, Any] = {"rules": [{"name": "all", "decide": "approve"}]}
LAPSE: dict[str, Any] = {"rules": [{"name": "all", "timeout": "1h", "on_timeout": "accept"}]}


async def removes(harness: Harness) -> None:
    await harness.ask("ada", "DELETE", "/v1/policies/guard", status=204)


async def removes_twice(harness: Harness) -> None:
    await removes(harness)
    other = await harness.mint("ada", "user:lee", rights=["admin"])
    for who in ("ada", "ada@acme", other):
        assert (await harness.send(who, "DELETE", "/v1/policies/guard")).status_code == 404


async def weakens(harness: Harness) -> None:
    await harness.ask("ada", "PUT", "/v1/policies/guard", EASY)


async def weakens_by_order(harness: Harness) -> None:
    rules = {"rules": [{"name": "first", "assign": "user:ada"}, *GUARD["rules"]]}
    await harness.ask("ada", "PUT", "/v1/policies/guard", rules)


async def weakens_and_confirms_herself(harness: Harness) -> None:
    for _ in range(2):
        await weakens(harness)


async def removes_and_writes_anew(harness: Harness) -> None:
    await removes(harness)
    await weakens(harness)


async def overtakes(harness: Harness) -> None:
    await harness.ask("ada", "PUT", "/v1/policies/before", EASY)


async def overtakes_with_a_yes(harness: Harness) -> None:
    await harness.ask("ada", "PUT", "/v1/policies/before", YES)


async def overtakes_with_a_deadline(harness: Harness) -> None:
    await harness.ask("ada", "PUT", "/v1/policies/before", LAPSE)


async def deselects(harness: Harness) -> None:
    await harness.ask("ada", "PUT", "/v1/policies/zz", {"rules": [{"name": "none", "when": "false"}]})
    await harness.ask("ada", "PUT", "/v1/deployments/till", {"flow": "refund", "policies": ["zz"]})


WAYS_AROUND = {
    each.__name__: each
    for each in (
        removes, removes_twice, weakens, weakens_by_order, weakens_and_confirms_herself,
        removes_and_writes_anew, overtakes, overtakes_with_a_yes, overtakes_with_a_deadline, deselects,
    )
}  # fmt: skip


async def guarded_harness(harness: Harness) -> None:
    """The rule of two is in the store only, written by an operator."""
    await put_policy(await harness.hf.open(), "default", GUARD, by="user:local")


@pytest.mark.parametrize("way", WAYS_AROUND)
async def test_who_takes_a_rule_of_two_out_of_force_decides_nothing_that_it_bound(
    way: str,
) -> None:
    async with harness_of(policies="store") as harness:
        await guarded_harness(harness)
        before = await harness.asks(assignee="user:ada")
        await WAYS_AROUND[way](harness)
        # An open hold keeps what it was opened with.
        assert (await harness.row(before.id)).terms == before.terms
        await harness.decide("ada", before.id, reason="I have every right")
        assert (await harness.row(before.id)).status is HoldStatus.pending
        deployment = "till" if way == "deselects" else None
        hold = await harness.asks(assignee="user:ada", deployment=deployment)
        refused = await harness.decide("ada", hold.id, reason="I have every right")
        assert refused.status_code == 403, refused.text
        harness.clock.advance(hours=2)
        runtime = (await harness.hf.service()).runtime
        assert runtime.sweeper is not None
        await runtime.sweeper.sweep()
        if runtime.arbiter is not None:
            await runtime.arbiter.work()
        row = await harness.row(hold.id)
        assert row.status is not HoldStatus.resolved, row.resolution


@pytest.mark.parametrize("way", ["removes", "weakens"])
async def test_another_person_confirms_that_a_rule_is_out_of_force(way: str) -> None:
    async with harness_of(policies="store") as harness:
        await guarded_harness(harness)
        await WAYS_AROUND[way](harness)
        if way == "removes":
            await harness.ask("kim-admin", "DELETE", "/v1/policies/guard", status=204)
        else:
            await harness.ask("kim-admin", "PUT", "/v1/policies/guard", EASY)
        hold = await harness.asks(assignee="user:ada", started_by="user:kim")
        assert (await harness.decide("ada", hold.id)).status_code == 200
        actions = [each["action"] for each in await harness.audit()]
        if way == "removes":
            assert actions.index("policy_dropped") < actions.index("policy_removal_confirmed")


async def test_an_operator_takes_a_rule_out_of_force() -> None:
    async with harness_of(policies="store") as harness:
        await guarded_harness(harness)
        await delete_policy(await harness.hf.open(), "default", "guard", by="user:local")
        hold = await harness.asks(assignee="user:ada", started_by="user:kim")
        assert (await harness.decide("ada", hold.id)).status_code == 200


async def test_a_removal_is_audited_with_the_rules_that_it_removes() -> None:
    async with harness_of(policies="store") as harness:
        await guarded_harness(harness)
        await removes(harness)
        (entry,) = [each for each in await harness.audit() if each["action"] == "policy_dropped"]
        assert entry["actor"] == "user:ada"
        assert entry["data"]["rules"] == GUARD["rules"]


async def test_a_rule_applies_however_many_others_are_written() -> None:
    async with harness_of(policies="store") as harness:
        await guarded_harness(harness)
        store = await harness.hf.open()
        none = msgspec.json.encode({"rules": [{"name": "none", "when": "false"}]})
        for number in range(1001):
            name = f"a{number}"
            await store.put_document(Document(tenant="default", kind="policy", name=name, body=none))
        assert (await harness.asks(assignee="user:ada")).terms.approval.need == 2
