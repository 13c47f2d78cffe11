"""Messages of people to an agent at work: delivered once, after its tool calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Agent, Context, Flow, Holdfast, InputError, Scripted, tool, tool_call
from holdfast.errors import RunEndedError, RunStatusError
from holdfast.runs.steer import LONGEST
from holdfast.runs.steer_messages import MOST, SteerMessages
from tests.agents.helpers import spoken
from tests.flows.places import Place

pytestmark = pytest.mark.anyio

LOOK = tool_call("look", place="a")


def a_flow(model: Scripted, place: Place, *said: str) -> Flow:
    """An agent that gets these messages while it looks, one at each look."""
    left = list(said)

    @tool(effect="read")
    async def look(place: str, ctx: Context) -> str:
        """Looks at a place."""
        if left:
            service = await houses[0].service()
            await service.steer(ctx.run_id, left.pop(0), by="user:ann")
        return f"{place} is calm"

    houses: list[Holdfast] = place._instances
    flow = Flow("steered")
    agent = Agent("bot", model=model, tools=[look], steerable=True)
    flow.agent("bot", agent, output="answer")
    return flow


def users(model: Scripted) -> list[str]:
    return [text for role, text in spoken(model.requests[-1]) if role == "user"]


@pytest.mark.covers("CP2-A8")
async def test_a_message_is_delivered_once_after_the_tool_round(place: Place) -> None:
    model = Scripted([LOOK], [LOOK, tool_call("look", place="b")], "done")
    hf = await place.hf()
    flow = a_flow(model, place, "Only the east side.", "And be quick.")
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.state["answer"] == "done"
    assert users(model) == ["Go", "Only the east side.", "And be quick."]
    roles = [role for role, _ in spoken(model.requests[-1])]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "tool", "tool", "user"]
    row = (await (await hf.open()).find_runs(""))[0]
    assert await SteerMessages(await hf.open(), row.tenant, row.id).all() == []


@pytest.mark.covers("CP2-A8")
@pytest.mark.parametrize("nth", range(1, 10))
async def test_a_message_is_delivered_once_whenever_the_worker_dies(place: Place, nth: int) -> None:
    model = Scripted(LOOK, LOOK, "done")
    flow = a_flow(model, place, "Only the east side.")
    await place.hf()
    await place.die_at(
        "after_substep", nth, lambda: flow.run({"prompt": "Go"}, on=place._instances[0]), may_miss=True
    )
    place.lapse()
    hf = await place.finish(flow)
    (row,) = await (await hf.open()).find_runs("")
    assert row.status == "completed"
    assert users(model) == ["Go", "Only the east side."]
    assert await SteerMessages(await hf.open(), row.tenant, row.id).all() == []


@pytest.mark.covers("CP2-A8")
async def test_an_answer_before_a_message_is_not_the_last_one(place: Place) -> None:
    """The message arrives while the model gives its final answer."""
    hf = await place.hf()
    model: Scripted
    runs: list[str] = []

    class Late(Scripted):
        async def reply(self, request: Any, emit: Any) -> Any:
            reply = await super().reply(request, emit)
            if len(self.requests) == 2:
                await (await hf.service()).steer(runs[0], "One more thing.")
            return reply

    @tool(effect="read")
    async def look(place: str, ctx: Context) -> str:
        """Looks at a place."""
        runs.append(ctx.run_id)
        return "calm"

    model = Late(LOOK, "done", "done with that too")
    flow = Flow("late")
    flow.agent("bot", Agent("bot", model=model, tools=[look], steerable=True), output="answer")
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.state["answer"] == "done with that too"
    assert users(model) == ["Go", "One more thing."]


@pytest.mark.covers("CP2-A8")
async def test_a_run_without_an_active_agent_refuses_a_message(place: Place) -> None:
    hf = await place.hf()
    flow = Flow("plain")
    flow.hold("ask", prompt="Go on?", options=["yes"])
    result = await flow.run({}, on=hf)
    service = await hf.service()
    with pytest.raises(RunStatusError, match="no stage"):
        await service.steer(result.run_id, "Hello")
    done = await a_flow(Scripted("done"), place).run({"prompt": "Go"}, on=hf)
    with pytest.raises(RunEndedError):
        await service.steer(done.run_id, "Hello")
    for text in ("", "x" * (LONGEST + 1)):
        with pytest.raises(InputError):
            await service.steer(result.run_id, text)


async def test_messages_that_wait_have_a_limit_and_end_with_their_run(tmp_path: Path) -> None:
    refused: list[str] = []
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf:

        @tool(effect="read")
        async def look(place: str, ctx: Context) -> str:
            """Looks at a place."""
            for _ in range(MOST + 1):
                try:
                    await (await hf.service()).steer(ctx.run_id, "x")
                except RunStatusError as error:
                    refused.append(error.message)
            return "calm"

        flow = Flow("deaf")
        flow.agent("bot", Agent("bot", model=Scripted(LOOK, "done"), tools=[look]), output="answer")
        result = await flow.run({"prompt": "Go"}, on=hf)
        assert len(refused) == 1
        (row,) = await (await hf.open()).find_runs("")
        box = SteerMessages(await hf.open(), row.tenant, row.id)
        assert len(await box.all()) == MOST
        await (await hf.service()).delete(result.run_id)
        assert await box.all() == []


async def test_two_conversations_do_not_take_the_same_message(place: Place) -> None:
    store = await (await place.hf()).open()
    box = SteerMessages(store, "default", "run-1")  # type: ignore[arg-type]
    made = await box.put("hello", "user:ann")
    assert await box.waiting("a")
    assert [each.id for each in await box.take("a")] == [made.id]
    assert await box.take("b") == []
    assert not await box.waiting("b")
    # The one that took it gets it again, until it is removed.
    assert [each.text for each in await box.take("a")] == ["hello"]
    await box.remove(made.id)
    assert await box.take("a") == []
