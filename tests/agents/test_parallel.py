from __future__ import annotations

import asyncio

import pytest

from holdfast import Holdfast, RunStatus, Scripted, tool, tool_call
from holdfast.testing.crashpoints import Crash, armed
from tests.agents.helpers import World, a_flow, asked, results, turns_listed
from tests.flows.places import Place, answer, open_holds, told

pytestmark = pytest.mark.anyio

CALLS = [tool_call("look", place=place) for place in ("pier", "mole", "quay")]


class Meeting:
    """Tools that end only when all have begun, in an order that is not that of their calls."""

    def __init__(self, order: str) -> None:
        self.begun: set[str] = set()
        self.all_here = asyncio.Event()
        self.turn = {name: asyncio.Event() for name in order}
        self.order = order

    async def meet(self, name: str) -> str:
        self.begun.add(name)
        if len(self.begun) == len(self.order):
            self.turn[self.order[0]].set()
        await self.turn[name].wait()
        place = self.order.index(name)
        if place + 1 < len(self.order):
            self.turn[self.order[place + 1]].set()
        return f"{name} was number {place + 1}"


@pytest.mark.covers("TOOL-AGENT-08", "RS-AGENT-6")
async def test_tools_of_one_turn_work_side_by_side_and_are_reported_in_the_order_of_their_calls(
    hf: Holdfast,
) -> None:
    meeting = Meeting("cab")
    meet = tool(effect="read", name="meet")(meeting.meet)
    model = Scripted([tool_call("meet", name=name) for name in "abc"], "Met.")
    result = await a_flow(model, meet).run({"prompt": "Go"}, on=hf)
    assert result.completed
    assert [message.text for message in results(model.requests[-1])] == [
        "a was number 2", "b was number 3", "c was number 1",
    ]  # fmt: skip
    done = [e.data["step"] for e in await told(hf, result, "node.step_done") if "meet" in e.data["step"]]
    assert done == ['meet(name="c")', 'meet(name="a")', 'meet(name="b")']


@pytest.mark.covers("TOOL-AGENT-08")
async def test_tools_work_one_after_the_other_when_the_agent_is_not_parallel(hf: Holdfast) -> None:
    busy: list[int] = [0]

    @tool(effect="read")
    async def alone(n: int) -> int:
        """Counts who is here."""
        busy[0] += 1
        await asyncio.sleep(0)
        here = busy[0]
        busy[0] -= 1
        return here

    model = Scripted([tool_call("alone", n=n) for n in range(3)], "Ok.")
    assert (await a_flow(model, alone, parallel=False).run({"prompt": "Go"}, on=hf)).completed
    assert [message.text for message in results(model.requests[-1])] == ["1", "1", "1"]


@pytest.mark.covers("RS-AGENT-6", "TOOL-AGENT-08")
async def test_a_crash_keeps_the_tools_of_a_turn_that_had_finished(place: Place) -> None:
    world = World()
    model = Scripted([tool_call("pay", amount=n) for n in (1, 2, 3)], "Paid.")
    flow = a_flow(model, world.pays(), parallel=False)
    # The intent of the third payment is durable, and with it what the first two came to.
    run = await place.crash(flow, {"prompt": "Go"}, "after_intent", nth=3)
    assert world.done == ["pay 1 c-9", "pay 2 c-9"]
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.status is RunStatus.pending_input
    await answer(hf, run, "not_happened")
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert world.done == ["pay 1 c-9", "pay 2 c-9", "pay 3 c-9"]
    assert asked(model) == 2
    assert await turns_listed(hf, run) == [1, 2]


@pytest.mark.covers("RS-AGENT-6", "TOOL-AGENT-06")
async def test_each_effect_in_flight_is_asked_about_when_the_worker_dies_amid_a_turn(place: Place) -> None:
    world = World()
    model = Scripted(
        [tool_call("pay", amount=1), tool_call("pay", amount=2), tool_call("look", place="pier")], "Ok."
    )
    flow = a_flow(model, world.pays(), world.looks())
    run = await place.crash(flow, {"prompt": "Go"}, "after_intent", nth=1)
    hf = await place.hf()
    prompts = []
    result = await flow.resume(run, on=hf)
    while result.status is RunStatus.pending_input:
        (hold,) = await open_holds(hf, run)
        prompts.append(hold.prompt.split("'")[1])
        await answer(hf, run, "happened", data={"value": {"paid": "by hand"}})
        result = await flow.resume(run, on=hf)
    assert result.completed
    assert prompts
    # What a person said had happened was not done again, and the model was told what they said.
    done = [each for each in world.done if each.startswith("pay")]
    assert len(done) == 2 - len(prompts)
    assert '{"paid":"by hand"}' in [message.text for message in results(model.requests[-1])]


@pytest.mark.covers("TOOL-AGENT-06")
async def test_an_error_of_an_effect_is_a_question_and_not_an_answer_to_the_model(hf: Holdfast) -> None:
    trouble = ["connection lost"]

    @tool
    async def send(to: str) -> str:
        """Sends."""
        if trouble:
            raise ConnectionError(trouble.pop())
        return "sent"

    model = Scripted([tool_call("look", place="pier"), tool_call("send", to="a")], "Ok.")
    world = World()
    flow = a_flow(model, send, world.looks())
    result = await flow.run({"prompt": "Go"}, on=hf)
    (hold,) = result.holds
    assert hold.type == "in_doubt"
    assert "connection lost" in hold.prompt
    # The other tool of the turn came to its end all the same, and is not done again.
    assert world.done == ["look pier"]
    await answer(hf, result, "not_happened")
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert world.done == ["look pier"]
    assert [message.text for message in results(model.requests[-1])] == ["pier is calm", "sent"]


@pytest.mark.covers("RS-AGENT-6")
async def test_a_resume_skips_the_finished_tools_of_a_turn_over_several_crashes(place: Place) -> None:
    world = World()
    model = Scripted(CALLS, "Calm.")
    # Strict: else the last answer of the model may not be durable yet when the process dies.
    flow = a_flow(model, world.looks(), parallel=False, in_doubt="retry", mode="strict")
    flow_run = await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=3)
    for _ in range(2):
        hf = await place.hf()
        with armed("after_substep", nth=2) as point:
            try:
                await flow.resume(flow_run, on=hf)
            except Crash:
                place.lapse()
        if not point.reached:
            break
    result = await flow.resume(flow_run, on=await place.hf())
    assert result.completed
    assert asked(model) == 2
    # A read may be repeated where its result was not yet durable, and no further.
    assert world.done.count("look quay") <= 2
    assert [message.text for message in results(model.requests[-1])] == [
        f"{p} is calm" for p in ("pier", "mole", "quay")
    ]


@pytest.mark.covers("TOOL-AGENT-06")
async def test_an_idempotent_tool_gets_the_same_key_when_it_is_called_again(place: Place) -> None:
    keys: list[str] = []

    @tool(idempotent=True)
    async def charge(amount: int, idempotency_key: str) -> str:
        """Charges."""
        keys.append(idempotency_key)
        return f"charged {amount}"

    model = Scripted([tool_call("charge", amount=1), tool_call("charge", amount=1)], "Ok.")
    flow = a_flow(model, charge, parallel=False)
    # The second charge was made and its result lost.
    run = await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=4)
    result = await flow.resume(run, on=await place.hf())
    assert result.completed
    first, second, again = keys[0], keys[1], keys[-1]
    assert again == second
    assert first != second
    assert "idempotency_key" not in repr(model.requests[0].tools)
