"""Messages of people to an agent at work: delivered once, after its tool calls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Agent, Context, Flow, Holdfast, InputError, Scripted, tool, tool_call
from holdfast.attractor import ModelBackend, Runner
from holdfast.errors import RunEndedError, RunStatusError
from holdfast.runs.steer import LONGEST
from holdfast.runs.steer_messages import MOST, SteerMessages
from tests.agents.helpers import spoken
from tests.attractor.run import line
from tests.deadlines import HANG
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
            service = await instances[0].service()
            await service.steer(ctx.run_id, left.pop(0), by="user:ann")
        return f"{place} is calm"

    instances: list[Holdfast] = place._instances
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
    assert await box.waiting("a", "n")
    assert [each.id for each in await box.take("a", "n")] == [made.id]
    assert await box.take("b", "n") == []
    assert not await box.waiting("b", "n")
    # The one that took it gets it again, until it is removed.
    assert [each.text for each in await box.take("a", "n")] == ["hello"]
    await box.remove(made.id)
    assert await box.take("a", "n") == []


@pytest.mark.covers("CP2-A8")
async def test_a_message_for_a_stage_is_given_to_that_one(place: Place) -> None:
    hf = await place.hf()
    ready, sent = [asyncio.Event(), asyncio.Event()], asyncio.Event()

    def an_agent(name: str, number: int) -> tuple[Agent, Scripted]:
        @tool(effect="read")
        async def look(place: str, ctx: Context) -> str:
            """Looks at a place."""
            ready[number].set()
            await sent.wait()
            return "calm"

        model = Scripted(LOOK, "done")
        return Agent(name, model=model, tools=[look], steerable=True), model

    flow = Flow("both")
    (first, one), (second, two) = an_agent("east", 0), an_agent("west", 1)
    flow.agent("east", first, output="a", prompt="Go")
    flow.agent("west", second, output="b", prompt="Go")
    running = asyncio.create_task(flow.run({}, on=hf))
    for each in ready:
        await asyncio.wait_for(each.wait(), HANG)
    service = await hf.service()
    (row,) = await (await hf.open()).find_runs("")
    with pytest.raises(RunStatusError, match="stage 'north'") as refused:
        await service.steer(row.id, "Hello", stage="north")
    assert refused.value.hint == "At work are: east, west."
    await service.steer(row.id, "Only the harbour.", stage="west")
    sent.set()
    assert (await running).completed
    assert (users(one), users(two)) == (["Go"], ["Go", "Only the harbour."])


async def test_a_long_run_is_not_read_whole_to_steer_it(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf = await place.hf()
    store = await hf.open()
    heads, seen = list[int](), list[int]()
    read = store.read

    async def counted(*given: Any, **more: Any) -> Any:
        found = await read(*given, **more)
        seen.append(len(found))
        return found

    @tool(effect="read")
    async def look(place: str, ctx: Context) -> str:
        """Looks at a place."""
        with monkeypatch.context() as patched:
            patched.setattr(store, "read", counted)
            await (await hf.service()).steer(ctx.run_id, "Enough.", stage="last")
        heads.extend(row.head for row in await store.find_runs(""))
        return f"{place} is calm"

    model = Scripted(LOOK, "done", "enough")
    names = [f"s{number}" for number in range(600)]
    stages = "".join(f"{name} [llm_provider=simulation]; " for name in names)
    runner = Runner(hf, backend=ModelBackend(model=model, tools=[look]), logs_root=tmp_path / "logs")
    result = await runner.run(line(f'{stages} last [prompt="Look"];', *names, "last"))
    assert result.succeeded
    assert "Enough." in users(model)
    # From the newest snapshot on.
    assert sum(seen) < heads[0] / 2, (seen, heads)
