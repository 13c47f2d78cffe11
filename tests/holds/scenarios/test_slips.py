"""Slips of whoever writes a flow or a rule: said before anything is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, FlowInvalidError, Holdfast, PolicyInvalidError, read_policy
from holdfast.holds.policies.parse import policy_of

pytestmark = pytest.mark.anyio


@pytest.mark.covers("HOLD-AUTH-08")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"approval": {"exclude": ["iniator"]}}, "'iniator' in `exclude`"),
        ({"excluded": ["earlier_approver"]}, "excluded=.*earlier_approver"),
        ({"approval": {"mode": "quorum", "need": 1, "of": ["group:a", " "]}}, "' ' in `of`: it is empty"),
        ({"approval": {"veto": ["role:x\u202e"]}}, "in `veto`: it has the invisible character"),
        ({"assignee": 5}, "its assignee 5 is not text"),
    ],
)
def test_slip_in_who_decides_is_found_when_the_flow_is_built(given: dict[str, Any], said: str) -> None:
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["yes", "no"], **given)
    with pytest.raises(FlowInvalidError, match=said):
        flow.compile()


@pytest.mark.covers("AS-1")
async def test_question_of_a_node_to_what_is_no_text_says_so(anyio_backend: str) -> None:
    flow = Flow("refund", effect="pure")

    @flow.node
    async def ask(ctx: Any) -> None:
        await ctx.ask("Pay?", assignee=5)

    async with Holdfast("memory:") as hf:
        result = await flow.run({}, on=hf)
    assert result.error is not None
    assert "assignee 5: it is not text" in result.error.message


@pytest.mark.covers("HOLD-AUTH-08")
def test_slip_in_a_rule_is_found_when_it_is_read(tmp_path: Path) -> None:
    rule = {"name": "two", "assignee": "group:a", "approval": {"exclude": ["last_edtor"]}}
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"rules": [rule]}))
    with pytest.raises(PolicyInvalidError, match="last_edtor"):
        read_policy(path)


@pytest.mark.covers("HOLD-AUTH-08")
@pytest.mark.parametrize(
    ("approval", "said"),
    [
        ({"exclude": ["user:initiator"]}, "write 'initiator' alone"),
        ({"exclude": ["user:{{requester}}"]}, "placeholders are not filled in"),
        ({"mode": "quorum", "of": ["user:a", "user:b"]}, "how many people it takes"),
    ],
)
def test_rule_that_one_person_would_pass_is_refused_when_it_is_written(
    tmp_path: Path, approval: dict[str, Any], said: str
) -> None:
    plain = {"name": "money", "rules": [{"name": "two", "assign": "group:a", "approval": approval}]}
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(plain))
    with pytest.raises(PolicyInvalidError, match=said):
        read_policy(path)
    # One that an older release stored stays in force.
    assert policy_of(plain, written=False).rules
