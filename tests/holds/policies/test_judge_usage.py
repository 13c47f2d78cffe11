"""What judges use is in the totals of the run, and is drawn from its budget."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from holdfast import Budget, Holdfast, Judgement, ModelJudge, Prices, Result, RunStatus, Scripted, tool_call
from holdfast.agents.messages import FINAL, ModelReply, ModelRequest, TokenUsage
from holdfast.errors import ModelUnavailableError
from tests.deadlines import HANG
from tests.holds.policies.conftest import MakeHoldfast
from tests.holds.policies.flows import actions, decide, given, refund, said
from tests.holds.policies.test_automatic import judged

pytestmark = pytest.mark.anyio

FORTY = TokenUsage(30, 10)
LONGEST = 500  # tokens of a verdict
PRICES = Prices(input="1", output="7")  # 0.0001 a call


def verdict(confidence: float = 0.9) -> Any:
    return tool_call(FINAL, approved=True, confidence=confidence, reasoning="")


def a_judge(*turns: Any) -> tuple[ModelJudge, Scripted]:
    model = Scripted(*turns, tokens=FORTY, prices=PRICES)
    return ModelJudge(model, "Small ones."), model


async def ended(hf: Holdfast, result: Result) -> Result:
    """A person decides what the judge left."""
    flow = refund()
    if result.status is RunStatus.pending_input:
        await decide(hf, result.holds[0].id, "approve")
        result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    return result


@pytest.mark.covers("SAFE-BUDGET-02", "SAFE-BUDGET-03")
@pytest.mark.parametrize("turn", [verdict(), verdict(0.1), "Sure!"], ids=["sure", "unsure", "no verdict"])
async def test_what_a_model_that_judges_uses_is_in_the_totals(make_hf: MakeHoldfast, turn: Any) -> None:
    judge, _model = a_judge(turn)
    hf = await make_hf(policies=judged(judge, threshold=0.8))
    result = await ended(hf, await refund().run(given(7), on=hf))
    assert result.totals["tokens"] == 40
    assert result.totals["cost"] == pytest.approx(0.0001)
    # The same in what a reader makes of the journal.
    service = await hf.service()
    history = await service.checkpoint(result.run_id, (await service.get(result.run_id)).head)
    assert sum(visit.tokens for visit in history.executions) == 40
    steps = [each for each in await service.events(result.run_id) if each.data.get("step") == "judge"]
    assert [each.data["usage"]["tokens"] for each in steps] == [40]


@pytest.mark.covers("SAFE-BUDGET-03")
async def test_what_any_judge_reports_is_in_the_totals(make_hf: MakeHoldfast) -> None:
    hf = await make_hf(policies=judged(lambda _facts: Judgement("approve", tokens=7, cost=0.5)))
    result = await refund().run(given(7), on=hf)
    assert (result.totals["tokens"], result.totals["cost"]) == (7, 0.5)


@pytest.mark.covers("SAFE-BUDGET-03")
async def test_what_a_judge_of_another_worker_uses_is_counted_with_its_answer(make_hf: MakeHoldfast) -> None:
    plain = await make_hf(policies=judged(lambda _facts: "approve", threshold=0.8))
    judge, model = a_judge(verdict())
    # The run is left before its hold is judged: a worker finds the message.
    arbiter = (await plain.service()).runtime.arbiter
    assert arbiter is not None
    (await plain.service()).runtime.arbiter = None
    result = await refund().run(given(7), on=plain)
    assert result.status is RunStatus.pending_input
    other = await make_hf(policies=judged(judge, threshold=0.8))
    assert await (await other.service()).runtime.arbiter.work() == 1
    result = await refund().resume(result.run_id, on=plain)
    assert result.completed
    assert len(model.requests) == 1
    assert result.totals["tokens"] == 40


@pytest.mark.covers("SAFE-BUDGET-02")
@pytest.mark.parametrize(
    ("budget", "calls"),
    [
        (Budget(tokens=100), 1),
        (Budget(tokens=30), 0),
        (Budget(money="0.0001"), 1),
        (Budget(money="0.00003"), 0),
    ],
)
async def test_a_judge_is_not_called_beyond_the_budget_of_the_run(
    make_hf: MakeHoldfast, budget: Budget, calls: int
) -> None:
    judge, model = a_judge(verdict())
    hf = await make_hf(policies=judged(judge, threshold=0.8))
    flow = refund()
    flow.budget = budget
    result = await flow.run(given(7), on=hf)
    assert len(model.requests) == calls
    if calls:
        assert result.completed
        # Its answer is limited to what is left.
        assert (model.requests[0].max_tokens or 0) <= 70
    else:
        assert result.status is RunStatus.pending_input
        assert "left_to_people" in await actions(hf, result.holds[0].id)


class Odd(Scripted):
    """Answers after `broken` attempts that broke off, reports `tokens`, takes `seconds`, or raises."""

    def __init__(self, *, broken: int = 0, tokens: int = 40, seconds: float = 0, error: Any = None) -> None:
        super().__init__(verdict(), tokens=TokenUsage(tokens, 0))
        self.answers, self.broken, self.seconds, self.error = tokens, broken, seconds, error

    async def reply(self, request: ModelRequest, emit: Any) -> ModelReply:
        if self.error is not None:
            raise self.error
        await asyncio.sleep(self.seconds)
        return msgspec.structs.replace(await super().reply(request, emit), broken=self.broken)


@pytest.mark.covers("SAFE-BUDGET-01", "SAFE-BUDGET-02")
@pytest.mark.parametrize(
    ("model", "budget", "decides", "reserved"),
    [
        (Odd(broken=2), Budget(tokens=5000), True, 2),
        (Odd(tokens=0), Budget(tokens=5000), False, 1),
        (Odd(tokens=0), Budget(seconds=HANG), True, 0),
        (Odd(seconds=HANG), Budget(seconds=0.05), False, 1),
        (Odd(error=ModelUnavailableError("503")), Budget(tokens=5000), False, 0),
        (Odd(error=ModelUnavailableError("cut", may_be_paid=True)), Budget(tokens=5000), False, 1),
        (Odd(error=RuntimeError("of a model of one's own")), Budget(tokens=5000), False, 1),
    ],
    ids=["broken", "no usage", "no usage needed", "too slow", "unpaid", "perhaps paid", "unknown"],
)
async def test_a_call_of_a_judge_is_settled_as_that_of_an_agent(
    make_hf: MakeHoldfast, model: Odd, budget: Budget, decides: bool, reserved: int
) -> None:
    hf = await make_hf(policies=judged(ModelJudge(model, "Small ones."), threshold=0.8))
    flow = refund()
    flow.budget = budget
    result = await flow.run(given(7), on=hf)
    assert result.completed is decides
    # Beside what was reported: all that was reserved for a call that may have been paid for.
    reported = model.answers if decides else 0
    assert (result.totals["tokens"] - reported) // LONGEST == reserved


@pytest.mark.covers("USERS-DIGESTS")
async def test_the_decision_of_a_judge_has_digests_of_judge_model_and_prompt(make_hf: MakeHoldfast) -> None:
    judge, _model = a_judge(verdict())
    hf = await make_hf(policies=judged(judge, threshold=0.8))
    result = await refund().run(given(7), on=hf)
    assert (await said(hf, result))["digests"] == judge.digests()
    assert set(judge.digests()) == {"judge", "model", "prompt", "tools", "holdfast"}
