"""Rules of the operator (of the program, of files) that one person with every right tries to lead around."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Policy, Rule
from holdfast.types.terms import ApprovalTerms
from tests.api.office import office_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-08")]

TWO = ApprovalTerms(mode="quorum", need=2)


def four_eyes(when: Any = None) -> Policy:
    return Policy("four-eyes", Rule(name="all", when=when, assign="group:finance", approval=TWO))


@pytest.mark.parametrize("chosen", [[], ["hers"], ["hers", "four-eyes"], ["none"]])
async def test_a_deployment_of_a_caller_deselects_no_policy_of_the_operator(chosen: list[str]) -> None:
    async with office_of(policies=[four_eyes(), "store"]) as office:
        rules = {"rules": [{"name": "all", "assign": "user:ada"}]}
        await office.ask("ada", "PUT", "/v1/policies/hers", rules)
        await office.ask("ada", "PUT", "/v1/deployments/till", {"flow": "refund", "policies": chosen})
        hold = await office.asks(deployment="till", assignee="user:ada")
        refused = await office.decide("ada", hold.id, reason="I have every right")
        assert refused.json().get("status") != "resolved"
        assert hold.terms.approval.mode == "quorum"


async def test_a_deployment_of_the_operator_selects_policies() -> None:
    async with office_of(policies=[four_eyes(), Policy("easy", Rule(name="all"))]) as office:
        await (await office.hf.deployments()).put("till", "refund", policies=["easy"])
        hold = await office.asks(deployment="till", assignee="user:dana")
        assert hold.terms.approval.mode == "any"


AMOUNTS = [5000, "5000", "5,000", [5000], {"value": 5000}, None]


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize(
    "when", ["amount > 1000", "context.amount > 1000", lambda facts: facts["context"]["amount"] > 1000]
)
async def test_a_rule_of_two_applies_when_its_condition_cannot_be_evaluated(when: Any, amount: Any) -> None:
    async with office_of(policies=[four_eyes(when)]) as office:
        flow = Flow("pay", effect="pure")
        asked: dict[str, Any] = {"assignee": "user:ada", "context": {"amount": "{{amount}}"}}
        flow.hold("approve", prompt="Pay?", options=["approve"], **asked)
        office.hf.register(flow.program())
        body = {"flow": "pay", "input": {"amount": amount}}
        run = (await office.ask("ada", "POST", "/v1/runs", body, status=201))["id"]
        (hold,) = (await flow.resume(run, on=office.hf)).holds
        assert (await office.row(hold.id)).terms.approval.mode == "quorum"


async def test_a_rule_of_two_does_not_apply_to_other_questions() -> None:
    async with office_of(policies=[four_eyes("amount > 1000")]) as office:
        assert (await office.asks(assignee="user:ada")).terms.approval.mode == "any"


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
    async with office_of(policies="store") as office:
        await office.ask("ada", "PUT", "/v1/policies/hers", {"rules": [{"name": "all", **EASIER[rule]}]})
        hold = await office.asks(**STRICT)
        assert (hold.priority, hold.terms.guarded, hold.terms.guardrails) == ("critical", True, ())
        assert (await office.decide("ada", hold.id)).status_code == 403
        assert (await office.decide("dana", hold.id)).status_code == 200
