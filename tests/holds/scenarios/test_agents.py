"""What speaks for an agent decides nothing but a no, and arranges nothing (section 3, rule 13)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.errors import ForbiddenError
from holdfast.types.status import HoldStatus
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE
from tests.holds.scenarios.firm import Firm, person

pytestmark = pytest.mark.anyio


@pytest.mark.covers("HOLD-SEC-12")
@pytest.mark.parametrize("channel", ["agent", "mcp"])
async def test_agent_does_not_choose_who_decides_or_until_when(firm: Firm, channel: str) -> None:
    row = await firm.asks(assignee="user:dana", timeout="1h")
    agent = person("dana", MANAGE, RESOLVE, OVERRIDE, channel=channel)
    for act in (
        firm.holds.resolve(agent, row.id, "approve", reason="I say so"),
        firm.holds.reassign(agent, row.id, "user:bob"),
        firm.holds.reassign(agent, row.id, None),
        firm.holds.extend(agent, row.id, timedelta(days=1)),
        firm.holds.cancel(agent, row.id),
        firm.holds.claim(agent, row.id),
        firm.holds.ask_back(agent, row.id, "Why?"),
    ):
        with pytest.raises(ForbiddenError, match="a credential of an agent"):
            await act
    await firm.holds.comment(agent, row.id, "I would not.")
    done = await firm.holds.resolve(agent, row.id, "reject")
    assert done.row.status is HoldStatus.resolved
