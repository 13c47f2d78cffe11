from __future__ import annotations

from typing import Any

import pytest

from holdfast import AnswerInvalidError, Flow, Worker
from holdfast.testing.human import Human

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CORE-TEST-03")]


def _two_questions() -> Flow:
    flow = Flow("two", effect="pure")
    first = flow.hold("first", prompt="One?", options=["yes", "no"], bind="one")
    wait = flow.timer("wait", "3h")
    second = flow.hold("second", prompt="Two?", type="freeform", bind="two", timeout="1h", on_timeout="fail")
    flow.chain(first, wait, second)
    return flow


@pytest.mark.covers("CORE-TEST-03")
async def test_human_says_it_in_the_words_of_the_hold_and_time_passes_when_they_approve(
    human: Human, clock: Any
) -> None:
    human.answers("in words", to="second", data={"why": 1})
    human.approves(within="2h", to="first")
    before = clock.now()
    result = await human.runs(_two_questions(), {})
    assert (result.expect().state["one"], result.state["two"]) == ("yes", "in words")
    assert result.state["two_result"]["response_data"] == {"why": 1}
    assert [hold.node for hold in human.asked] == ["first", "second"]
    assert clock.now() - before == 5 * 3600 * 1_000_000


async def test_run_stays_where_it_asks_when_nobody_promised_an_answer(human: Human) -> None:
    human.rejects(to="first")
    result = await human.runs(_two_questions(), {})
    assert result.status == "pending_input"
    assert [hold.node for hold in result.holds] == ["second"]


async def test_answer_comes_too_late_when_the_hold_expired_within_its_time(human: Human) -> None:
    human.approves(to="first")
    human.answers("late", within="2h", to="second")
    result = await human.runs(_two_questions(), {})
    assert result.failed
    assert result.error is not None
    assert result.error.code == "hold_expired"


async def test_wrong_word_is_an_error_when_the_hold_does_not_offer_it(human: Human) -> None:
    human.answers("perhaps")
    with pytest.raises(AnswerInvalidError, match="yes, no"):
        await human.runs(_two_questions(), {})


async def test_human_answers_what_is_open_when_a_worker_drives_the_runs(human: Human) -> None:
    flow = _two_questions()
    service = await human.hf.service()
    row, _ = await service.create(flow.program(), {})
    worker = Worker(flow, on=human.hf)
    await worker.run_until_idle()
    human.approves()
    assert await human.replies() == 1
    await worker.run_until_idle()
    assert (await service.get(row.id)).status == "waiting"


@pytest.mark.covers("CORE-RUN-02")
def test_flow_needs_no_event_loop_when_it_runs_in_the_instance_of_the_plugin(hf: Any) -> None:
    flow = Flow("sync", effect="pure")

    @flow.node
    async def only(_s: dict[str, Any]) -> dict[str, Any]:
        return {"x": 1}

    assert flow.run_sync({}, on=hf).expect().state == {"x": 1}
