"""Agents take what the run's skills say, and the tools of their kit that skills hand out."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from holdfast import Agent, Flow, Holdfast, Scripted, tool_call
from holdfast.errors import InputError, SkillNotFoundError
from tests.agents.helpers import World, spoken
from tests.flows.places import Place, answer

pytestmark = pytest.mark.anyio


def a_flow(model: Scripted, world: World, **more: Any) -> Flow:
    flow = Flow("talk")
    flow.agent(
        "bot", model=model, prompt="Pay c-9", instructions="Be brief.", output="answer",
        toolkit=[world.pays(approval=True), world.looks()], **more,
    )  # fmt: skip
    return flow


async def publish(hf: Holdfast, version: str, says: str, *tools: Any) -> None:
    await (await hf.skills()).publish("payments", version, instructions=says, tools=tools)


def offered(model: Scripted, turn: int) -> dict[str, str]:
    return {spec.name: spec.description for spec in model.requests[turn].tools}


@pytest.mark.covers("HOLD-SKILL-03", "SK-3")
async def test_an_agent_keeps_its_pinned_skill_when_a_newer_one_is_published(place: Place) -> None:
    world = World()
    model = Scripted(tool_call("pay", amount=5), "Paid.")
    flow = a_flow(model, world)
    hf = await place.hf()
    await publish(hf, "1.0.0", "Pay {{little}}.", {"name": "pay", "description": "Pays up to 10."})
    await hf.deploy("desk", flow, skills=["payments"])
    run = await flow.run({}, on=hf, deployment="desk")
    await publish(hf, "2.0.0", "Pay nobody.", "look")
    await answer(hf, run, "approve")

    result = await flow.resume(run.run_id, on=await place.hf())

    assert result.state["answer"] == "Paid."
    assert world.done == ["pay 5 c-9"]
    for turn in (0, 1):
        assert offered(model, turn) == {"pay": "Pays up to 10."}
        assert spoken(model.requests[turn])[0] == ("system", "Be brief.\n\n# payments\n\nPay {{little}}.")
    fresh = Scripted("No.")
    other = a_flow(fresh, world)
    await other.run({}, on=hf, deployment="desk")
    assert list(offered(fresh, 0)) == ["look"]
    assert "Pay nobody." in spoken(fresh.requests[0])[0][1]


async def test_an_agent_has_no_tool_of_its_kit_that_no_skill_hands_out(hf: Holdfast) -> None:
    model = Scripted("Hello.")

    await a_flow(model, World()).run({}, on=hf)

    assert offered(model, 0) == {}
    assert spoken(model.requests[0])[0] == ("system", "Be brief.")


async def test_an_agent_takes_only_the_skills_that_it_names(hf: Holdfast) -> None:
    model, picky = Scripted("Hello."), Scripted("Hello.")
    flow, other = a_flow(model, World(), skills=[]), a_flow(picky, World(), skills=["refunds"])
    await publish(hf, "1.0.0", "Pay little.", "pay")
    await hf.deploy("desk", flow, skills=["payments"])

    await flow.run({}, on=hf, deployment="desk")
    result = await other.run({}, on=hf, deployment="desk")

    assert offered(model, 0) == {}
    assert result.error is not None
    assert result.error.code == SkillNotFoundError.code


async def test_a_tool_that_the_code_does_not_carry_is_warned_of(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    model = Scripted("Hello.")
    flow = a_flow(model, World())
    await publish(hf, "1.0.0", "Pay little.", "pay", "fly")
    await hf.deploy("desk", flow, skills=["payments"])

    with caplog.at_level(logging.WARNING, "holdfast"):
        assert (await flow.run({}, on=hf, deployment="desk")).completed

    assert "does not have tools that its skills provide: fly" in caplog.text
    assert list(offered(model, 0)) == ["pay"]


@pytest.mark.covers("SK-5")
async def test_a_conversation_that_has_begun_goes_on_when_its_skill_is_gone(place: Place) -> None:
    model = Scripted(tool_call("pay", amount=5), "Paid.")
    flow = a_flow(model, World(), tools=[World().pays(approval=True, name="give")])
    model.turns = (tool_call("give", amount=5), "Given.")
    hf = await place.hf()
    await publish(hf, "1.0.0", "Pay little.")
    await hf.deploy("desk", flow, skills=["payments"])
    run = await flow.run({}, on=hf, deployment="desk")
    await (await hf.open()).drop_document("default", "skill", "payments@1.0.0")
    await answer(hf, run, "approve")

    result = await flow.resume(run.run_id, on=hf)

    assert result.state["answer"] == "Given."
    assert "Pay little." in spoken(model.requests[1])[0][1]


def test_tools_and_toolkit_share_their_names() -> None:
    with pytest.raises(InputError, match="invalid names: pay"):
        Agent("bot", model=Scripted("x"), tools=[World().pays()], toolkit=[World().pays()])
