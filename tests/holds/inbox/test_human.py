"""The people of a test: several of them, who do all that people do to holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Flow, ForbiddenError, Holdfast
from holdfast.testing.clock import FakeClock
from holdfast.testing.human import Human
from holdfast.types.status import HoldStatus

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-HAND-04")]


def asking(**asked: Any) -> Flow:
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"], **asked)
    return flow


async def actions(hf: Holdfast, hold: str) -> list[str]:
    store = await hf.open()
    return [each.action for each in await store.audit("default", hold=hold)]


async def test_human_talks_claims_and_hands_on_before_somebody_decides(human: Human, hf: Holdfast) -> None:
    dana, sam = human.as_("user:dana@acme"), human.as_("user:sam@acme")
    dana.comments("Looks odd.")
    dana.claims(within="1h")
    dana.releases()
    dana.reassigns("user:sam@acme", within="1h")
    sam.approves()

    result = await human.runs(asking(assignee="user:dana@acme"), {})

    assert result.expect().state["decision"] == "approve"
    assert result.state["decision_result"]["resolved_by"] == "user:sam@acme"
    text = await actions(hf, human.asked[0].id)
    assert text == ["created", "commented", "claimed", "released", "reassigned", "resolved"]


async def test_human_is_refused_as_the_person_would_be(human: Human) -> None:
    human.as_("user:eve@acme").approves()

    with pytest.raises(ForbiddenError, match="not to user:eve@acme"):
        await human.runs(asking(assignee="user:dana@acme"), {})


async def test_people_vote_and_the_closing_vote_decides(human: Human) -> None:
    flow = asking(assignee="group:finance", approval={"mode": "quorum", "need": 2, "of": ["group:finance"]})
    human.as_("user:dana@acme", groups=["finance"]).votes("approve")
    human.as_("user:sam@acme", groups=["finance"]).approves(within="2h")

    result = await human.runs(flow, {})

    votes = result.expect().state["decision_result"]["votes"]
    assert [vote["person"] for vote in votes] == ["user:dana@acme", "user:sam@acme"]


async def test_human_asks_back_and_the_deadline_stands_still(human: Human, clock: FakeClock) -> None:
    dana, ian = human.as_("user:dana@acme"), human.as_("user:ian@acme")
    dana.asks_back("Which invoice?", of="requester")
    ian.answers_question("Number 42.", within="3d")
    dana.approves(within="1h")
    flow = asking(assignee="user:dana@acme", timeout="2h", on_timeout="cancel")

    result = await human.runs(flow, {}, started_by="user:ian@acme")

    assert result.expect().state["decision"] == "approve"


async def test_human_places_takes_back_and_decides_otherwise(human: Human, hf: Holdfast) -> None:
    dana = human.as_("user:dana@acme")
    dana.places("approve")
    dana.undoes(within="5s")
    dana.places("reject")

    result = await human.runs(asking(assignee="user:dana@acme"), {})

    assert result.expect().state["decision"] == "reject"
    text = await actions(hf, human.asked[0].id)
    assert text == ["created", "placed", "taken_back", "placed", "resolved"]


async def test_human_withdraws_the_question(human: Human) -> None:
    human.cancels("ordered twice")

    result = await human.runs(asking(), {})

    assert result.status == "cancelled"


@pytest.mark.covers("EX-6")
async def test_time_that_passes_escalates_and_expires(human: Human, hf: Holdfast) -> None:
    flow = asking(assignee="user:dana@acme", timeout="2h", on_timeout="escalate:role:cfo")
    result = await flow.run({}, on=hf)
    store = await hf.open()

    await human.waits("3h")
    row = await store.hold(result.holds[0].id)
    assert row is not None
    assert (row.assignee_value, row.escalation_count) == ("cfo", 1)
    await human.waits("3h")

    row = await store.hold(result.holds[0].id)
    assert row is not None
    assert row.status is HoldStatus.expired
    result = await human.resumes(flow, result.run_id)
    assert result.failed


async def test_human_as_somebody_keeps_one_order_of_promises(human: Human) -> None:
    flow = Flow("two", effect="pure")
    flow.chain(
        flow.hold("first", prompt="One?", options=["yes", "no"], bind="one", assignee="user:dana@acme"),
        flow.hold("second", prompt="Two?", options=["yes", "no"], bind="two", assignee="user:sam@acme"),
    )
    human.as_("user:dana@acme").approves()
    human.as_("user:sam@acme").rejects()

    result = await human.runs(flow, {})

    assert (result.expect().state["one"], result.state["two"]) == ("yes", "no")
    said = [msgspec.to_builtins(hold.node) for hold in human.asked]
    assert said == ["first", "second"]
