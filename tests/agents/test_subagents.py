from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import (
    Agent,
    Budget,
    Context,
    Flow,
    Holdfast,
    ModelUnavailableError,
    RunStatus,
    Scripted,
    tool_call,
)
from holdfast.agents.messages import TokenUsage
from tests.agents.helpers import World, a_flow, asked, results, turns_listed
from tests.flows.places import Place, told

pytestmark = pytest.mark.anyio


def task(text: str) -> Any:
    return tool_call("researcher", task=text)


@pytest.mark.covers("TOOL-AGENT-09", "RS-AGENT-7")
async def test_an_agent_hands_a_task_to_another_and_goes_on_with_its_report(hf: Holdfast) -> None:
    world = World()
    inner = Scripted(
        tool_call("look", place="pier"), lambda r: f"{r.messages[1].text}: {r.messages[-1].text}"
    )
    researcher = Agent("researcher", model=inner, instructions="Dig.", tools=[world.looks()])
    outer = Scripted(task("the pier"), "It is calm.")
    result = await a_flow(outer, researcher.as_tool()).run({"prompt": "Go"}, on=hf)
    assert result.completed
    assert world.done == ["look pier"]
    assert results(outer.requests[-1])[0].text == "the pier: pier is calm"
    # Of its own conversation the sub-agent shares nothing but task and report.
    assert [message.role for message in inner.requests[0].messages] == ["system", "user"]
    assert await turns_listed(hf, result) == [1, 2]
    steps = [event.data["step"] for event in await told(hf, result, "node.step_done")]
    assert "researcher/model" in steps
    assert 'researcher/look(place="pier")' in steps


@pytest.mark.covers("TOOL-AGENT-09", "RS-AGENT-7", "RS-AGENT-4")
async def test_the_limit_on_calls_of_a_sub_agent_holds_over_pauses_and_crashes(place: Place) -> None:
    world = World()
    inner = Scripted(tool_call("pay", amount=5), "Paid.")
    researcher = Agent("researcher", model=inner, tools=[world.pays(approval=True)])
    outer = Scripted(task("one"), task("two"), task("three"), "Enough.")
    flow = a_flow(outer, researcher.as_tool(max_calls=2))
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    while result.status is RunStatus.pending_input:
        hf = await place.hf()
        await (await hf.service()).answer(result.holds[0].id, "approve")
        result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert world.done == ["pay 5 c-9", "pay 5 c-9"]
    said = results(outer.requests[-1])
    assert [message.failed for message in said] == [False, False, True]
    assert "2 times" in said[-1].text


@pytest.mark.covers("TOOL-AGENT-09", "R-29-tool")
async def test_approvals_at_any_depth_pause_the_run_and_are_answered_one_by_one(place: Place) -> None:
    world = World()
    clerk = Agent(
        "clerk",
        model=Scripted(tool_call("pay", amount=5), "Paid by the clerk."),
        tools=[world.pays(approval=True)],
    )
    chief = Agent(
        "chief", model=Scripted(tool_call("clerk", task="pay"), "The clerk paid."), tools=[clerk.as_tool()]
    )
    outer = Scripted([tool_call("chief", task="a"), tool_call("chief", task="b")], "All paid.")
    flow = a_flow(outer, chief.as_tool())
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    assert result.status is RunStatus.pending_input
    assert len(result.holds) == 2
    assert [json.loads(hold.context)["agent"] for hold in result.holds] == ["clerk", "clerk"]
    service = await (await place.hf()).service()
    picture = await service.checkpoint(result.run_id, (await service.get(result.run_id)).head)
    assert sorted(picture.agents) == [
        "bot", "bot/1/tool/0/agent", "bot/1/tool/0/agent/1/tool/0/agent",
        "bot/1/tool/1/agent", "bot/1/tool/1/agent/1/tool/0/agent",
    ]  # fmt: skip
    assert picture.agents["bot/1/tool/1/agent/1/tool/0/agent"]["pending"][0]["name"] == "pay"
    for hold in result.holds:
        hf = await place.hf()
        await (await hf.service()).answer(hold.id, "approve")
        result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert world.done == ["pay 5 c-9", "pay 5 c-9"]
    assert [message.text for message in results(outer.requests[-1])] == ["The clerk paid.", "The clerk paid."]


@pytest.mark.covers("RS-AGENT-7", "TOOL-AGENT-05")
async def test_finished_turns_of_a_sub_agent_are_not_repeated_when_the_worker_dies(place: Place) -> None:
    world = World()
    inner = Scripted(tool_call("look", place="pier"), tool_call("look", place="mole"), "Both calm.")
    researcher = Agent("researcher", model=inner, tools=[world.looks()])
    outer = Scripted(task("look"), "Calm.")
    flow = a_flow(outer, researcher.as_tool())
    # outer prompt and model, inner prompt, model, look, turn, model, look.
    run = await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=8)
    assert (asked(outer), asked(inner)) == (1, 2)
    assert (await flow.resume(run, on=await place.hf())).completed
    assert (asked(outer), asked(inner)) == (2, 3)


@pytest.mark.covers("TOOL-AGENT-09", "TOOL-AGENT-10", "SAFE-BUDGET-02", "SAFE-BUDGET-03")
async def test_sub_agents_draw_on_one_budget_and_ask_once(place: Place) -> None:
    world = World()
    used = TokenUsage(20, 0)
    inner = Scripted(tool_call("look", place="pier"), tool_call("look", place="mole"), "Calm.", tokens=used)
    researcher = Agent("researcher", model=inner, tools=[world.looks()])
    outer = Scripted([task("a"), task("b")], "Done.", tokens=used)
    flow = a_flow(outer, researcher.as_tool(), budget=Budget(tokens=100))
    hf = await place.hf()
    result = await flow.run({"prompt": "Go"}, on=hf)
    (hold,) = result.holds
    assert hold.prompt == "Agent 'bot' has used 80 of 100 tokens. Continue?"
    # Each answer is bounded by what neither of them has used or reserved.
    assert all(0 < (request.max_tokens or 0) <= 60 for request in inner.requests)
    service = await hf.service()
    await service.answer(hold.id, "continue")
    result = await flow.resume(result.run_id, on=await place.hf())
    # The grant counts for both, and for the agent that they work for: 160 of 200 is the next threshold.
    assert result.completed
    assert result.totals["tokens"] == 160


@pytest.mark.covers("SAFE-BUDGET-02", "SAFE-BUDGET-03")
async def test_sub_agents_stop_together_when_a_person_says_so(place: Place) -> None:
    world = World()
    used = TokenUsage(20, 0)
    inner = Scripted(*[tool_call("look", place="pier")] * 5, "Calm.", tokens=used)
    researcher = Agent("researcher", model=inner, tools=[world.looks()])
    outer = Scripted([task("a"), task("b"), task("c")], "Done.", tokens=used)
    flow = a_flow(outer, researcher.as_tool(), budget=Budget(tokens=100))
    hf = await place.hf()
    result = await flow.run({"prompt": "Go"}, on=hf)
    (hold,) = result.holds
    await (await hf.service()).answer(hold.id, "stop")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert result.totals["tokens"] == 80


@pytest.mark.covers("SAFE-BUDGET-02")
async def test_a_sub_agent_with_its_own_budget_draws_on_the_other_too(place: Place) -> None:
    world = World()
    used = TokenUsage(20, 0)
    inner = Scripted(*[tool_call("look", place="pier")] * 9, "Calm.", tokens=used)
    own = Budget(tokens=1000, at_limit="stop")
    researcher = Agent("researcher", model=inner, tools=[world.looks()], budget=own)
    outer = Scripted(task("a"), "Done.", tokens=used)
    flow = a_flow(outer, researcher.as_tool(), budget=Budget(tokens=100, at_limit="stop"))
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    assert result.completed
    assert result.totals["tokens"] == 80


@pytest.mark.covers("TOOL-AGENT-09")
async def test_an_agent_is_reported_when_its_sub_agent_gives_up(hf: Holdfast) -> None:
    world = World()
    inner = Scripted(*[tool_call("look", place="pier")] * 9)
    researcher = Agent("researcher", model=inner, tools=[world.looks()], max_turns=2)
    outer = Scripted(task("look"), "Nobody knows.")
    result = await a_flow(outer, researcher.as_tool()).run({"prompt": "Go"}, on=hf)
    assert result.completed
    (said,) = results(outer.requests[-1])
    assert said.failed
    assert "took 2 turns and is not done" in said.text


@pytest.mark.covers("TOOL-AGENT-09")
async def test_trouble_with_the_model_of_a_sub_agent_fails_the_run_which_then_goes_on(place: Place) -> None:
    trouble: list[Exception] = [ModelUnavailableError("http://x did not answer.")]
    inner = Scripted(lambda _request: trouble.pop() if trouble else "Calm.")
    outer = Scripted(task("look"), "It is calm.")
    flow = a_flow(outer, Agent("researcher", model=inner).as_tool())
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    assert result.status is RunStatus.failed
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert (asked(outer), asked(inner)) == (2, 2)


@pytest.mark.covers("TOOL-AGENT-09")
async def test_a_script_runs_agents_of_its_own_one_after_the_other(place: Place) -> None:
    world = World()
    model = Scripted(tool_call("pay", amount=5), lambda r: f"{r.messages[0].text} is paid")
    payer = Agent("payer", model=model, tools=[world.pays(approval=True)])
    flow = Flow("script")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        said = [(await payer.run(ctx, name)).value for name in ("Ada", "Bo")]
        return {"said": said}

    result = await flow.run(on=await place.hf())
    while result.status is RunStatus.pending_input:
        hf = await place.hf()
        await (await hf.service()).answer(result.holds[0].id, "approve")
        result = await flow.resume(result.run_id, on=await place.hf())
    assert result.state == {"said": ["Ada is paid", "Bo is paid"]}
    assert asked(model) == 4
    assert len(world.done) == 2
