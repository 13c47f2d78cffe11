"""A misspelt name in a rule of several people, or in a deployment, does not switch the rule off."""

from __future__ import annotations

import pytest

from holdfast import Policy, Rule
from holdfast.types.terms import ApprovalTerms
from tests.holds.policies.conftest import MakeHoldfast
from tests.holds.policies.flows import given, refund

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-POL-01", "SAFE-CHECK-16")]
TWO = ApprovalTerms(mode="quorum", need=2)


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        ("flow == 'refund' && ammount >= 1000", True),
        ("ammount >= 1000 && flow == 'refund'", True),
        ("flow == 'refund' && !(ammount < 1000)", True),
        ("flow == 'refund' && (ammount >= 1000 || note == 'x')", True),
        ("flow == 'refund' && ammount >= 1000 && amount < 100", False),
        ("ammount >= 1000 && flow == 'invoice'", False),
        ("flow == 'refund' && exists(ammount) && ammount >= 1000", False),
        ("flow == 'refund' && ammount | default(0) >= 1000", False),
        ("flow == 'refund' && amount >= 1000", True),
        ("flow == 'refund' && amount >= 9000", False),
        ("ammount >= 1000", False),  # of many flows, which lack it
    ],
)
async def test_rule_of_two_that_names_its_flow_applies_where_a_name_is_missing(
    make_hf: MakeHoldfast, when: str, applies: bool
) -> None:
    hf = await make_hf(policies=Policy("p", Rule(name="two", when=when, approval=TWO)))
    (hold,) = (await refund().run(given(5000), on=hf)).holds
    assert (hold.terms.approval.need == 2) is applies


async def test_rule_without_a_person_does_not_apply_where_a_name_is_missing(make_hf: MakeHoldfast) -> None:
    rule = Rule(name="small", when="flow == 'refund' && !(ammount > 50)", decide="approve")
    hf = await make_hf(policies=Policy("p", rule))
    assert len((await refund().run(given(5000), on=hf)).holds) == 1


@pytest.mark.parametrize(
    ("named", "need", "routed"),
    [
        (["gaurd"], 2, "guard/two"),
        (["gaurd", "desk"], 2, "guard/two"),
        (["desk"], 1, "desk/quick"),
    ],
)
async def test_deployment_that_names_a_policy_which_does_not_exist_keeps_the_rules_of_several_people(
    make_hf: MakeHoldfast, named: list[str], need: int, routed: str
) -> None:
    guard = Policy(
        "guard", Rule(name="quick", when="amount < 9", decide="approve"), Rule(name="two", approval=TWO)
    )
    harness = Policy("desk", Rule(name="quick", assign="role:cfo"))
    hf = await make_hf(policies=[guard, harness])
    await hf.deploy("till", "refund", policies=named)
    (hold,) = (await refund().run(given(5), on=hf, deployment="till")).holds
    assert (hold.terms.approval.need, hold.terms.routed_by) == (need, routed)
