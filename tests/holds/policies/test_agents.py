"""Rules over what agents ask: tool calls, and ready-made questions."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Policy, Rule, RunStatus, Scripted, tool, tool_call
from holdfast.holds.interactions import approval, reply_to
from tests.agents.helpers import World, a_flow

pytestmark = pytest.mark.anyio


@pytest.mark.covers("HOLD-POL-01", "G-47")
async def test_a_rule_approves_small_calls_of_a_tool() -> None:
    rule = Rule(name="small", when="tool == 'pay' && arguments.amount < 100", decide="approve")
    async with Holdfast("memory:", policies=Policy("calls", rule)) as hf:
        for amount, done in ((50, ["pay 50 c-9"]), (250, [])):
            world = World()
            flow = a_flow(Scripted(tool_call("pay", amount=amount), "Well."), world.pays(approval=True))
            result = await flow.run({"prompt": "Pay"}, on=hf)
            assert world.done == done
            assert result.completed is bool(done)


@pytest.mark.covers("HOLD-POL-03", "G-44", "G-47")
async def test_a_destructive_call_is_vetoed_and_the_model_is_reported() -> None:
    ran: list[str] = []

    @tool(approval=True)
    async def shell(command: str) -> str:
        """Runs a command."""
        ran.append(command)
        return "ok"

    model = Scripted(
        tool_call("shell", command="rm -rf /srv/data"), tool_call("shell", command="ls"), "Done."
    )
    async with Holdfast("memory:", policies=Policy("calls", Rule(name="all", decide="approve"))) as hf:
        result = await a_flow(model, shell).run({"prompt": "Clean up"}, on=hf)
        assert result.completed
    assert ran == ["ls"]
    assert "refused this call" in model.requests[1].messages[-1].text


@pytest.mark.covers("HOLD-POL-01", "HOLD-LIFE-14")
@pytest.mark.parametrize(("severity", "asked"), [("low", False), ("high", True)])
@pytest.mark.parametrize("inside", [True, False])
async def test_rules_know_ready_made_questions(severity: str, asked: bool, inside: bool) -> None:
    question = approval("Tidy up?", severity=severity, reversible=True)
    flow = Flow("tidy", effect="pure")
    if inside:

        @flow.script
        async def ask(ctx: Context) -> dict[str, Any]:
            return {"yes": reply_to(question, await ctx.ask(**question.for_ask())).approved}  # type: ignore[union-attr]
    else:
        flow.hold("ask", **question.for_hold())

    when = "interaction == 'approval' && severity == 'low' && reversible == true"
    async with Holdfast("memory:", policies=Policy("p", Rule(name="low", when=when, decide="approve"))) as hf:
        result = await flow.run({}, on=hf)
        assert (result.status is RunStatus.pending_input) is asked
