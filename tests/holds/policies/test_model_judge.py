"""A model as a judge."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import ModelJudge, OpenAI, Retries, RunStatus, Scripted, tool_call
from holdfast.agents.messages import FINAL
from tests.agents.provider import Answer, Provider, a_provider
from tests.holds.policies.conftest import MakeHoldfast
from tests.holds.policies.flows import actions, given, refund, said
from tests.holds.policies.test_automatic import judged

pytestmark = pytest.mark.anyio


def verdict(**said: Any) -> Any:
    return tool_call(FINAL, **said)


@pytest.mark.covers("G-42", "HOLD-POL-02")
async def test_a_model_judges_by_criteria_and_says_how_sure_it_is(make_hf: MakeHoldfast) -> None:
    model = Scripted(verdict(approved=True, confidence=0.95, reasoning="within limits"))
    hf = await make_hf(policies=judged(ModelJudge(model, "Refunds under 50 are fine."), threshold=0.8))
    result = await refund().run(given(7), on=hf)
    kept = await said(hf, result)
    assert (kept["decided_by"], kept["confidence"], kept["comment"]) == ("llm-judge", 0.95, "within limits")
    (request,) = model.requests
    task, shown = request.messages
    assert "Refunds under 50 are fine." in task.text
    assert json.loads(shown.text)["context"]["amount"] == 7


NO_VERDICT: dict[str, Any] = {
    "under the threshold": verdict(approved=True, confidence=0.3, reasoning=""),
    "no JSON": "Sure, go ahead!",
    "not typed": verdict(approved="true", confidence=0.9, reasoning=""),
    "without confidence": verdict(approved=True, reasoning="yes"),
    "error": RuntimeError("down"),
}


@pytest.mark.covers("G-42", "HOLD-POL-02")
@pytest.mark.parametrize("trouble", NO_VERDICT)
async def test_a_model_without_a_clear_verdict_leaves_it_to_people(
    make_hf: MakeHoldfast, trouble: str
) -> None:
    hf = await make_hf(policies=judged(ModelJudge(Scripted(NO_VERDICT[trouble]), "x"), threshold=0.8))
    result = await refund().run(given(7), on=hf)
    assert result.status is RunStatus.pending_input
    assert "left_to_people" in await actions(hf, result.holds[0].id)


@pytest.fixture
async def provider(anyio_backend: str) -> AsyncIterator[Provider]:
    async with a_provider() as found:
        yield found


@pytest.mark.covers("HOLD-POL-02")
async def test_a_model_is_asked_over_http(make_hf: MakeHoldfast, provider: Provider) -> None:
    said_yes = {"approved": True, "confidence": 0.9, "reasoning": "fine"}
    provider.turns = [Answer(calls=[("c1", FINAL, said_yes)]), Answer(text="hm")]

    async def nap(_seconds: float) -> None: ...

    model = OpenAI(
        "m-1",
        base_url=f"{provider.url}/v1",
        key=lambda: "k",
        retries=Retries(attempts=1, jitter=0.0),
        sleep=nap,
    )
    hf = await make_hf(policies=judged(ModelJudge(model, "small ones")))
    assert (await said(hf, await refund().run(given(7), on=hf)))["decided_by"] == "llm-judge"
    assert (await refund().run(given(7), on=hf)).status is RunStatus.pending_input
