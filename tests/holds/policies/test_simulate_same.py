"""The same rules over their own decisions differ in nothing: whatever decided, whatever the rule changes."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Guardrails, Holdfast, Judgement, RunStatus
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.rules import Rule
from holdfast.holds.policies.simulate import simulate
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import Option
from holdfast.types.terms import ApprovalTerms, Rung
from tests.holds.policies.conftest import MakeHoldfast
from tests.holds.policies.flows import decide, given, refund, said

pytestmark = pytest.mark.anyio

SURE, UNSURE = Judgement("approve", 0.9, "fine"), Judgement("approve", 0.1)

RULES: dict[str, dict[str, Any]] = {
    "approves": {"decide": "approve", "reason": "small"},
    "rejects": {"decide": "reject"},
    "decides nothing that there is": {"decide": "perhaps"},
    "approves unguarded": {"decide": "approve", "guarded": False},
    "approves by one guardrail": {"decide": "approve", "guardrails": ("other",)},
    "approves what is small": {"decide": "approve", "when": "amount < 50"},
    "judges": {"judge": "sure", "threshold": 0.8, "judge_timeout": 5.0},
    "leaves it to people": {"judge": "unsure", "threshold": 0.8},
    "has a judge that fails": {"judge": "fails"},
    "routes": {
        "assign": "user:dana", "priority": "high", "tags": ("routed",), "reminder": "1h", "max_reminders": 2,
        "strict_assignee": True,
    },
    "takes a vote": {"approval": ApprovalTerms(mode="quorum", need=1, of=("user:dana",))},
    "lapses": {"timeout": "2h", "on_timeout": "reject"},
    "accepts at the end": {"timeout": "2h", "on_timeout": "accept"},
    "has a default": {"timeout": "2h", "on_timeout": "accept", "default_option": "approve"},
    "escalates": {"timeout": "2h", "ladder": (Rung("role:lead", "1h"),)},
    "has a calendar": {"timeout": "2bh", "calendar": "office"},
}  # fmt: skip

JUDGES: dict[str, Any] = {"sure": lambda _f: SURE, "unsure": lambda _f: UNSURE, "fails": lambda _f: 1 / 0}
RAILS: dict[str, Any] = {
    "none": lambda: Guardrails({}),
    "standard": Guardrails,
    "objects": lambda: Guardrails({"own": lambda _f: "not today", "other": lambda _f: None}),
    "objects to people": lambda: Guardrails({"own": lambda f: f["context"]["amount"] < 50}, people=True),
    "required": lambda: Guardrails({}, required=True),
}


def test_every_field_of_a_rule_is_in_the_table() -> None:
    used = {name for rule in RULES.values() for name in rule} | {"name"}
    assert used == set(Rule.__struct_fields__)


async def ended(hf: Holdfast, clock: FakeClock, amount: int, by: str, **hold: Any) -> bool:
    """A hold that is decided by the rule, else by this person or its deadline. Whether it was decided."""
    result = await refund(**hold).run(given(amount, note="4111 1111 1111 1111"), on=hf)
    if result.status is not RunStatus.pending_input:
        return True
    if by in ("approve", "reject"):
        row = await decide(hf, result.holds[0].id, by, comment="because")
        return row.resolution is not None
    clock.advance(days=3)
    await (await hf.service()).runtime.sweep_holds(result.run_id)
    return bool(await said(hf, result))


@pytest.mark.covers("SAFE-BUDGET-04", "HOLD-POL-04")
@pytest.mark.parametrize("rails", RAILS)
@pytest.mark.parametrize("rule", RULES)
async def test_the_same_rules_over_their_own_decisions_differ_in_nothing(
    clock: FakeClock, rule: str, rails: str
) -> None:
    policy = Policy("p", Rule(name="r", **RULES[rule]), judges=JUDGES)
    guardrails = RAILS[rails]()
    async with Holdfast("memory:", clock=clock, policies=policy, guardrails=guardrails) as hf:
        await assert_same(hf, clock, policy, guardrails)


async def assert_same(hf: Holdfast, clock: FakeClock, policy: Policy, guardrails: Guardrails) -> None:
    comment = (Option("approve", "Approve", requires_comment=True), Option("reject", "Reject"))
    lapses = (Option("approve", "Approve"), Option("reject", "Reject", default=True))
    form = {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]}
    decided = 0
    for amount in (7, 70):
        for by in ("approve", "reject", "nobody"):
            decided += await ended(hf, clock, amount, by)
        decided += await ended(hf, clock, amount, "reject", options=comment)
        decided += await ended(
            hf, clock, amount, "nobody", timeout="1h", on_timeout="default_option", options=lapses
        )
        decided += await ended(hf, clock, amount, "nobody", schema=form)
    done = await simulate(await hf.open(), [policy], guardrails=guardrails)
    assert done.looked_at == decided > 0
    assert done.differing == ()


@pytest.mark.covers("SAFE-BUDGET-04")
async def test_a_guardrail_is_seen_in_what_other_rules_would_decide(make_hf: MakeHoldfast) -> None:
    hf = await make_hf(guardrails=Guardrails({"own": lambda f: f["context"]["amount"] < 50}))
    for amount in (7, 70):
        await decide(hf, (await refund().run(given(amount), on=hf)).holds[0].id, "approve")
    rules = Policy("new", Rule(name="all", decide="approve"))
    rails = (await hf.holds()).ctx.guardrails
    done = await simulate(await hf.open(), [rules], guardrails=rails)
    outcomes = {d.prompt: [x.would_be for x in d.differences if x.field == "outcome"] for d in done.differing}
    assert outcomes == {"Refund 7 to c-9?": [], "Refund 70 to c-9?": ["reject"]}
    assert (done.automatic, done.agreeing, done.overturned) == (2, 1, 1)


@pytest.mark.covers("SAFE-BUDGET-04")
async def test_a_higher_threshold_leaves_known_judgements_to_people(make_hf: MakeHoldfast) -> None:
    def rules(threshold: float) -> Policy:
        return Policy("p", Rule(name="r", judge="sure", threshold=threshold), judges=JUDGES)

    hf = await make_hf(policies=rules(0.8))
    await refund().run(given(7), on=hf)
    assert (await simulate(await hf.open(), [rules(0.8)])).differing == ()
    (back,) = (await simulate(await hf.open(), [rules(0.95)])).differing
    assert [(d.field, d.was, d.would_be) for d in back.differences] == [("outcome", "approve", "(people)")]
