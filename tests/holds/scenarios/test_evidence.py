"""What evidence shows of a hold beside the question: found out where it was changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.holds.queries.evidence import make_pack, signed_pack
from holdfast.types.terms import operator
from tests.holds.evidence.test_packs import problems
from tests.holds.scenarios.firm import Firm, person

pytestmark = pytest.mark.anyio

STRICT = {"exclude": ["initiator"]}


@pytest.mark.covers("HOLD-AUDIT-03")
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        {"terms": {}},
        {"priority": "low"},
        {"created_at": "2020-01-01T00:00:00Z"},
        {"block_index": 7},
        {"assignee": "user:eve", "assignee_type": "user", "assignee_value": "eve"},
    ],
)
async def test_changed_fact_of_a_hold_is_found(firm: Firm, change: dict[str, Any], moved: bool) -> None:
    row = await firm.asks(assignee="user:dana", approval=STRICT, priority="high", timeout="2d")
    if moved:
        await firm.holds.reassign(operator(), row.id, "user:kim")
    await firm.holds.resolve(person("kim" if moved else "dana"), row.id, "approve")
    content = json.loads(await make_pack(firm.holds.store, row.id))["content"]
    assert list(problems(signed_pack(content))) == []
    content["hold"] |= change
    (problem,) = problems(signed_pack(content))
    assert problem.startswith("the audit tells")
