"""What is worked out about a hold before anybody can see it, and what happens when it cannot be."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, Holdfast, RunStatus
from holdfast.holds.preparation import HoldPreparation, assigned
from holdfast.runs.hold_preparation import Preparer
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.ids import RunId
from holdfast.types.status import HoldStatus
from tests.flows.places import Place

pytestmark = pytest.mark.anyio


class Step:
    """Something to look up that takes a while, or fails."""

    def __init__(self, error: Exception | None = None, **fields: Any) -> None:
        self.fields, self.error = fields, error
        self.seen: list[tuple[str, HoldFacts]] = []

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        return True

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        self.seen.append((hold.assignee_type, facts))
        await asyncio.sleep(0.005)
        if self.error is not None:
            raise self.error
        return msgspec.structs.replace(hold, **self.fields)


async def furnished(place: Place, **steps: Step) -> Holdfast:
    hf = await place.hf()
    (await hf.service()).runtime.preparer = Preparer(HoldPreparation(**steps))
    return hf


def asking(**manner: Any) -> Flow:
    flow = Flow("asking", effect="pure")

    @flow.node
    async def before() -> None: ...

    flow.edge(before, flow.hold("gate", prompt="Pay?", options=["yes"], **manner))
    return flow


async def test_a_row_is_complete_when_anybody_can_see_it(place: Place) -> None:
    rule = Step(assignee="role:cfo", priority="critical", tags=("ruled",))
    person = Step(assignee_value="somebody")
    hf = await furnished(place, policies=rule, directory=person)
    result = await asking(assignee="user:dana").run(on=hf, started_by="user:ada", instance_key="o-7")
    (hold,) = result.holds
    assert (hold.assignee, hold.assignee_type, hold.assignee_value) == ("role:cfo", "role", "somebody")
    assert (hold.priority, hold.tags) == ("critical", ("ruled",))
    ((seen, facts),) = rule.seen
    assert (seen, person.seen[0][0]) == ("user", "role"), "what a rule says is read before it is looked up"
    assert (facts.run, facts.flow, facts.started_by, facts.instance_key) == (
        result.run_id, "asking", "user:ada", "o-7",
    )  # fmt: skip


@pytest.mark.parametrize("error", [ValueError("boom"), RuntimeError("away")])
async def test_a_question_is_asked_when_nothing_can_be_looked_up(place: Place, error: Exception) -> None:
    hf = await furnished(place, policies=Step(error), directory=Step(error), deadlines=Step(error))
    flow = asking(assignee="user:dana", timeout="1h")
    result = await flow.run(on=hf)
    (hold,) = result.holds
    assert (hold.assignee, hold.assignee_type, hold.assignee_reason) == ("user:dana", "unrouted", str(error))
    assert hold.expires_at == hold.created_at + 3600 * 1_000_000
    await (await hf.service()).answer(hold.id, "yes")
    assert (await flow.resume(result.run_id, on=hf)).completed


async def test_an_assignee_that_a_rule_gets_wrong_is_nobody_and_says_why(place: Place) -> None:
    hf = await furnished(place, policies=Step(assignee="user:a\nb"))
    (hold,) = (await asking(assignee="user:dana").run(on=hf)).holds
    assert (hold.assignee_type, hold.assignee_value) == ("unrouted", "")
    assert "invisible character" in hold.assignee_reason


@pytest.mark.covers("CP-11")
async def test_a_deadline_in_the_past_is_taken_and_acted_on_by_the_next_sweep(place: Place) -> None:
    hf = await furnished(place, deadlines=Step(expires_at=1))
    flow = asking()
    result = await flow.run(on=hf)
    # On a busy machine a sweep comes before the run is left.
    if result.status is RunStatus.pending_input:
        result = await flow.resume(result.run_id, on=hf)
    assert result.status is RunStatus.failed
    (hold,) = await (await hf.open()).holds(run=RunId(result.run_id))
    assert (hold.status, hold.expires_at) == (HoldStatus.expired, 1)


async def test_records_keep_their_order_when_others_write_while_a_question_is_looked_up(place: Place) -> None:
    flow = Flow("busy", effect="pure")

    @flow.node
    async def start() -> None: ...

    @flow.script
    async def busy(ctx: Context) -> dict[str, Any]:
        for number in range(20):
            await ctx.step(f"s{number}", lambda: None, effect="external")
        return {"steps": 20}

    @flow.script
    async def asks(ctx: Context) -> dict[str, Any]:
        replies = await asyncio.gather(*(ctx.ask(f"{name}?", options=["yes"]) for name in "abc"))
        return {"said": [reply.decision for reply in replies]}

    flow.hold("gate", prompt="Go?", options=["yes"])
    for node in (busy, asks, "gate"):
        flow.edge(start, node)
    hf = await furnished(place, directory=Step(assignee_value="x"))
    result = await flow.run(on=hf)
    assert len(result.holds) == 4
    service = await hf.service()
    for hold in result.holds:
        await service.answer(hold.id, "yes")
    result = (await flow.resume(result.run_id, on=hf)).expect()
    assert (result.state["steps"], result.state["said"]) == (20, ["yes"] * 3)
    records = await service.store.read(RunId(result.run_id), first=0)
    assert [record.seq for record in records] == list(range(len(records)))


async def test_first_questions_and_those_of_a_fork_come_to_the_preparation_too(place: Place) -> None:
    flow = Flow("at-once", effect="pure")
    flow.hold("gate", prompt="Pay?", options=["yes"], assignee="user:dana")
    hf = await furnished(place, directory=Step(assignee_value="looked-up"))
    result = await flow.run(on=hf)
    forked = await flow.fork(result.holds[0].id, on=hf)
    assert [hold.assignee_value for hold in (*result.holds, *forked.holds)] == ["looked-up"] * 2


def test_a_hold_without_anything_to_look_up_is_ready_at_once() -> None:
    facts = HoldFacts(tenant="t", run="r", flow="f")
    hold = NewHold(
        id="h", seq=1, node="n", scope="", visit=1, ordinal=0, type="approval", prompt="", options=None,
        assignee="group:finance", priority="normal", context=b"{}", schema=None, created_at=5,
        expires_at=None, expiry_action=None, request_hash="", reminder_interval=60,
    )  # type: ignore[arg-type]  # fmt: skip
    found = HoldPreparation().prepare_now(hold, facts)
    assert found is not None
    assert (found.assignee_type, found.assignee_value) == ("group", "finance")
    assert found.remind_at == 5 + 3600 * 1_000_000
    assert HoldPreparation(policies=Step()).prepare_now(hold, facts) is None
    assert assigned(found).assignee_value == "finance"
