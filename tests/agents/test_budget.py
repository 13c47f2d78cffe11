from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from holdfast import (
    Agent,
    AnswerInvalidError,
    Budget,
    Flow,
    Holdfast,
    InputError,
    Prices,
    RunStatus,
    Scripted,
    tool,
    tool_call,
)
from holdfast.agents.messages import Message, ModelReply, TokenUsage
from tests.agents.helpers import World, a_flow, asked
from tests.flows.places import Place

pytestmark = pytest.mark.anyio

LOOKS = [tool_call("look", place=f"p{n}") for n in range(6)]


FORTY = TokenUsage(30, 10)


def eager(tokens: TokenUsage = FORTY, **options: Any) -> Scripted:
    return Scripted(*LOOKS, "Done.", tokens=tokens, **options)


@pytest.mark.covers("TOOL-AGENT-10")
async def test_an_agent_pauses_at_the_threshold_and_goes_on_with_as_much_again(place: Place) -> None:
    world = World()
    model = eager()
    flow = a_flow(model, world.looks(), budget=Budget(tokens=100, assignee="role:owner"))
    hf = await place.hf()
    result = await flow.run({"prompt": "Go"}, on=hf)
    # 80 of 100 after two turns: nothing more is asked of the model.
    assert result.status is RunStatus.pending_input
    assert asked(model) == 2
    (hold,) = result.holds
    assert hold.prompt == "Agent 'bot' has used 80 of 100 tokens. Continue?"
    assert hold.assignee == "role:owner"
    assert [option.id for option in hold.options or ()] == ["continue", "stop"]
    await (await hf.service()).answer(hold.id, "continue")
    result = await flow.resume(result.run_id, on=await place.hf())
    # 160 of 200.
    assert asked(model) == 4
    assert [h.prompt for h in result.holds] == ["Agent 'bot' has used 160 of 200 tokens. Continue?"]
    # The answer has the parts that this budget has; another would grant nothing.
    assert set(msgspec.json.decode(result.holds[0].schema or b"{}")["properties"]) == {"tokens"}
    with pytest.raises(InputError):
        await (await hf.service()).answer(result.holds[0].id, "continue", data={"money": "1"})
    await (await hf.service()).answer(result.holds[0].id, "continue", data={"tokens": 1000})
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert asked(model) == 7


@pytest.mark.covers("TOOL-AGENT-10")
async def test_an_agent_stops_with_what_there_is_when_a_person_says_so(hf: Holdfast) -> None:
    world = World()
    model = Scripted("unused")
    model.turns = (lambda _r: _saying("So far: calm.", LOOKS[0]), *LOOKS[1:])
    model.tokens = TokenUsage(50, 50)
    flow = a_flow(model, world.looks(), budget=Budget(tokens=100))
    result = await flow.run({"prompt": "Go"}, on=hf)
    await (await hf.service()).answer(result.holds[0].id, "stop")
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert result.state["answer"] == "So far: calm."
    assert asked(model) == 1


def _saying(text: str, call: Any) -> Any:
    from holdfast.agents.messages import Message, ModelReply, ToolCall

    return ModelReply(
        Message("assistant", text, (ToolCall("k", call.name, call.arguments),)), TokenUsage(50, 50)
    )


@pytest.mark.covers("TOOL-AGENT-10")
async def test_money_is_counted_exactly_and_asked_about(hf: Holdfast) -> None:
    world = World()
    # A turn costs 0.1 exactly; ten of them are 1, which no sum of floats says.
    model = eager(TokenUsage(100_000, 0), prices=Prices(input="1", output="1"))
    flow = a_flow(model, world.looks(), budget=Budget(money="0.3", ask_at=1.0))
    result = await flow.run({"prompt": "Go"}, on=hf)
    # A third call would leave nothing for its answer.
    assert [hold.prompt for hold in result.holds] == [
        "Agent 'bot' has used 0.2 of 0.3 money (the next call needs up to 0.100001 money). Continue?"
    ]
    assert asked(model) == 2
    service = await hf.service()
    with pytest.raises(AnswerInvalidError):
        await service.answer(result.holds[0].id, "continue", data={"money": "much"})
    with pytest.raises(AnswerInvalidError):
        await service.answer(result.holds[0].id, "continue", data={"money": "0.00"})
    await service.answer(result.holds[0].id, "continue", data={"money": "0.05"})
    result = await flow.resume(result.run_id, on=hf)
    assert [hold.prompt for hold in result.holds] == [
        "Agent 'bot' has used 0.3 of 0.35 money (the next call needs up to 0.100001 money). Continue?"
    ]


@pytest.mark.covers("TOOL-AGENT-10", "RM-6")
async def test_time_is_that_of_models_and_tools_and_not_of_people(place: Place) -> None:
    @tool(effect="read", approval=True)
    async def dig(hours: int) -> str:
        """Digs."""
        place.clock.advance(hours=hours)
        return "dug"

    model = Scripted(tool_call("dig", hours=1), tool_call("dig", hours=2), "Deep.")
    flow = a_flow(model, dig, budget=Budget(seconds=3 * 3600, ask_at=0.9))
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    for _ in range(2):
        # A person thinks for days: that is nobody's budget.
        assert "wants to run dig" in result.holds[0].prompt
        place.clock.advance(days=3)
        hf = await place.hf()
        await (await hf.service()).answer(result.holds[0].id, "approve")
        result = await flow.resume(result.run_id, on=await place.hf())
    assert [hold.prompt for hold in result.holds] == [
        "Agent 'bot' has used 10800 of 10800 seconds. Continue?"
    ]


@pytest.mark.covers("TOOL-AGENT-10")
async def test_a_budget_stops_or_fails_without_asking_when_it_says_so(hf: Holdfast) -> None:
    world = World()
    stopped = await a_flow(eager(), world.looks(), budget=Budget(tokens=80, at_limit="stop")).run(
        {"prompt": "Go"}, on=hf
    )
    assert stopped.completed
    assert stopped.totals["tokens"] == 80
    failed = await a_flow(eager(), world.looks(), budget=Budget(tokens=80, at_limit="fail")).run(
        {"prompt": "Go"}, on=hf
    )
    assert failed.status is RunStatus.failed
    assert failed.error is not None
    assert failed.error.code == "budget"


@pytest.mark.covers("TOOL-AGENT-10")
async def test_a_run_that_met_its_budget_goes_on_when_the_budget_is_raised(place: Place) -> None:
    world = World()
    model = eager()

    def flow(**budget: Any) -> Flow:
        return a_flow(model, world.looks(), budget=Budget(**budget))

    result = await flow(tokens=80, at_limit="fail").run({"prompt": "Go"}, on=await place.hf())
    assert result.status is RunStatus.failed
    hf = await place.hf()
    result = await flow(tokens=200).resume(result.run_id, on=hf)
    # 160 of 200: what was asked then is not forgotten when the budget is another one again.
    (hold,) = result.holds
    assert asked(model) == 4
    await (await hf.service()).answer(hold.id, "continue")
    result = await flow(tokens=100_000).resume(result.run_id, on=await place.hf())
    assert result.completed
    assert asked(model) == 7


@pytest.mark.covers("TOOL-AGENT-10")
async def test_an_answer_is_never_longer_than_the_budget_allows(hf: Holdfast) -> None:
    world = World()
    model = eager()
    await a_flow(model, world.looks(), budget=Budget(tokens=100), max_tokens=70).run({"prompt": "Go"}, on=hf)
    # Of the 60 that are left in the second turn, 30 are for its input.
    assert [request.max_tokens for request in model.requests] == [70, 30]


@pytest.mark.covers("TOOL-AGENT-10")
async def test_going_over_the_budget_in_the_last_turn_is_reported(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    longer = ModelReply(Message("assistant", "A very long answer."), TokenUsage(10, 490))
    model = Scripted(longer)
    result = await a_flow(model, budget=Budget(tokens=100)).run({"prompt": "Go"}, on=hf)
    assert result.completed
    assert "exceeded its budget: 500 of 100 tokens" in caplog.text


@pytest.mark.covers("TOOL-AGENT-10")
async def test_a_budget_that_cannot_be_counted_is_an_error_and_not_a_blank_cheque(hf: Holdfast) -> None:
    quiet = Scripted("Hi.", tokens=TokenUsage(0, 0))
    result = await a_flow(quiet, budget=Budget(tokens=100)).run({"prompt": "Go"}, on=hf)
    assert result.error is not None
    assert result.error.code == "model_reply"
    assert "does not report its tokens" in result.error.message
    assert (await a_flow(quiet, budget=Budget(seconds=100)).run({"prompt": "Go"}, on=hf)).completed


@pytest.mark.covers("TOOL-AGENT-10")
async def test_a_typed_agent_that_is_stopped_without_an_answer_fails(hf: Holdfast) -> None:
    world = World()
    flow = a_flow(
        eager(), world.looks(), returns={"type": "object"}, budget=Budget(tokens=40, at_limit="stop")
    )
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert result.error.code == "budget"


@pytest.mark.parametrize(
    "options",
    [
        {"tokens": 0},
        {"money": "-1"},
        {"money": "x"},
        {"seconds": 0},
        {"ask_at": 0},
        {"ask_at": 2},
        {"at_limit": "x"},
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Budget(**options)


def test_a_budget_in_money_needs_prices() -> None:
    with pytest.raises(InputError, match="the prices of 'scripted' are not known"):
        a_flow(Scripted("x"), budget=Budget(money=1))
    # Also of those who work for it: what they spend would not be counted.
    helper = Agent("helper", model=Scripted("x"))
    priced = Scripted("x", prices=Prices(input=1, output=1))
    with pytest.raises(InputError, match="the model of 'helper'"):
        a_flow(priced, helper.as_tool(), budget=Budget(money=1))


def test_prices_are_exact() -> None:
    prices = Prices(input=0.1, output="0.2", cached="0.05")
    assert prices.cost(TokenUsage(1_000_000, 500_000, 200_000)) == Decimal("0.08") + Decimal(
        "0.01"
    ) + Decimal("0.1")
    for wrong in ("-1", "x", float("nan"), float("inf")):
        with pytest.raises(InputError):
            Prices(input=wrong, output=1)
