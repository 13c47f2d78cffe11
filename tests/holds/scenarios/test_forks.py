"""A fork does not forget who approved before it was made."""

from __future__ import annotations

import pytest

from holdfast import Flow
from holdfast.errors import ExcludedError
from holdfast.types.status import HoldStatus
from tests.holds.scenarios.firm import Firm, person

pytestmark = pytest.mark.anyio


@pytest.mark.covers("HOLD-AUTH-08")
async def test_who_approved_in_the_run_that_was_forked_does_not_approve_again(firm: Firm) -> None:
    flow = Flow("refund", effect="pure")
    options = ["approve", "reject"]
    first = flow.hold("check", prompt="Check?", options=options, assignee="group:finance")
    second = flow.hold(
        "pay", prompt="Pay?", options=options, assignee="group:finance", bind="paid",
        approval={"exclude": ["earlier_approvers"]},
    )  # fmt: skip
    flow.chain(first, second)
    asked = await flow.run({}, on=firm.hf)
    before = (await firm.row(asked.holds[0].id)).seq
    await firm.holds.resolve(person("dana"), asked.holds[0].id, "approve")
    paying = await flow.resume(asked.run_id, on=firm.hf)
    service = await firm.hf.service()

    late = await service.fork(paying.run_id, (await firm.row(paying.holds[0].id)).seq - 1)
    (again,) = (await flow.resume(late.id, on=firm.hf)).holds
    with pytest.raises(ExcludedError, match="approved an earlier hold"):
        await firm.holds.resolve(person("dana@acme"), again.id, "approve")

    early = await service.fork(paying.run_id, before - 1)
    (checking,) = (await flow.resume(early.id, on=firm.hf)).holds
    await firm.holds.resolve(person("sam"), checking.id, "approve")
    (last,) = (await flow.resume(early.id, on=firm.hf)).holds
    done = await firm.holds.resolve(person("dana"), last.id, "approve")
    assert done.row.status is HoldStatus.resolved
