"""Answers that do not fit, come twice, or are meant for something else: the hold stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Result
from holdfast.errors import (
    HoldDecidedError,
    HoldNotFoundError,
    InputError,
    ValueTooLargeError,
)
from holdfast.holds.actions import submission
from holdfast.types.status import HoldStatus, RunStatus
from tests.bad_input.messages import Odd, assert_refused
from tests.cli.conftest import Cli, given

pytestmark = pytest.mark.anyio


def approval() -> Flow:
    flow = Flow("approval", effect="pure")
    flow.hold("approve", prompt="Go on?", options=["approve", "reject"])
    return flow


def question() -> Flow:
    flow = Flow("question", effect="pure")

    @flow.script
    async def wonder(_s: Any, ctx: Context) -> dict[str, Any]:
        return {"said": (await ctx.ask("What is its name?")).decision}

    return flow


async def asked(flow: Flow, hf: Holdfast) -> Result:
    result = await flow.run({}, on=hf)
    assert result.status is RunStatus.pending_input
    return result


WRONG: dict[str, tuple[Callable[[], Flow], Any, dict[str, Any], str]] = {
    "an unknown option": (approval, "aprove", {}, "Choose one of: approve, reject."),
    "an option in capitals": (approval, "Approve", {}, "Choose one of: approve, reject."),
    "nothing": (approval, None, {}, "Choose one of"),
    "an empty text": (question, "", {}, "must not be empty"),
    "only blanks": (question, "  \n", {}, "must not be empty"),
    "a number": (question, 5, {}, "must be text, not int"),
    "a truth value": (approval, True, {}, "must be text, not bool"),
    "a list": (approval, ["approve"], {}, "must be text, not list"),
    "data that is no JSON": (approval, "approve", {"data": Odd()}, "must be JSON"),
    "half a character": (question, "\ud800", {}, "must be JSON"),
    "a comment that is no text": (approval, "approve", {"comment": 5}, "comment"),
    "nobody's name": (approval, "approve", {"by": 5}, "resolved_by"),
}


@pytest.mark.covers("CORE-BAD-07", "CORE-BAD-20")
@pytest.mark.parametrize("what", list(WRONG))
async def test_hold_stays_open_when_an_answer_does_not_fit(hf: Holdfast, what: str) -> None:
    make, decision, more, part = WRONG[what]
    flow = make()
    waiting = await asked(flow, hf)
    service = await hf.service()
    (hold,) = waiting.holds
    with pytest.raises(InputError) as caught:
        await service.answer(hold.id, decision, **more)
    assert_refused(caught.value, part)

    assert (await service.holds(waiting.run_id))[0] == hold
    assert (await service.get(waiting.run_id)).status is RunStatus.pending_input
    await service.answer(hold.id, "approve")
    assert (await flow.resume(waiting.run_id, on=hf)).completed


@pytest.mark.covers("CORE-BAD-07")
async def test_hold_stays_open_when_an_answer_is_too_large(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "MAX_DATA", 1000)
    waiting = await asked(approval(), hf)
    service = await hf.service()
    with pytest.raises(ValueTooLargeError) as caught:
        await service.answer(waiting.holds[0].id, "approve", data="x" * 2000)
    assert_refused(caught.value, "1,000", "reference")
    assert (await service.holds(waiting.run_id))[0].status is HoldStatus.pending


@pytest.mark.covers("CORE-BAD-07")
@pytest.mark.parametrize("which", ["00000000-0000-4000-8000-000000000000", "nonsense", ""])
async def test_answer_is_refused_when_there_is_no_such_hold(hf: Holdfast, which: str) -> None:
    service = await hf.service()
    with pytest.raises(HoldNotFoundError) as caught:
        await service.answer(which, "approve")
    assert_refused(caught.value, "no hold", "holdfast holds list")


@pytest.mark.covers("CORE-BAD-07")
async def test_answer_is_refused_when_its_hold_is_no_text(hf: Holdfast) -> None:
    service = await hf.service()
    with pytest.raises(InputError):
        await service.answer(5, "approve")  # type: ignore[arg-type]


@pytest.mark.covers("CORE-BAD-07")
async def test_second_answer_names_the_winner_and_changes_nothing(hf: Holdfast) -> None:
    flow = approval()
    waiting = await asked(flow, hf)
    service = await hf.service()
    hold = waiting.holds[0].id
    await service.answer(hold, "reject", by="user:ada")
    for moment in ("before the run goes on", "after it ended"):
        with pytest.raises(HoldDecidedError) as caught:
            await service.answer(hold, "approve", by="user:bob")
        assert_refused(caught.value, "already decided", "'reject'", "user:ada")
        assert caught.value.facts["resolved_by"] == "user:ada", moment
        result = await flow.resume(waiting.run_id, on=hf)
        assert result.completed
    assert result.state["decision"] == "reject"


@pytest.mark.covers("CORE-BAD-07")
async def test_run_still_waits_when_it_is_resumed_without_an_answer(hf: Holdfast) -> None:
    flow = approval()
    waiting = await asked(flow, hf)
    again = await flow.resume(waiting.run_id, on=hf)
    assert again.status is RunStatus.pending_input
    assert [hold.id for hold in again.holds] == [hold.id for hold in waiting.holds]


@pytest.mark.covers("CORE-BAD-07")
def test_command_line_says_what_to_choose_when_an_answer_does_not_fit(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    for wrong in ("aprove", "", "APPROVE"):
        said = cli("answer", run, wrong)
        assert (said.code, "approve, reject" in said.err, "Traceback" in said.err) == (2, True, False)
    said = cli("answer", run, "approve", "--data", "{not json")
    assert (said.code, "--data is not JSON" in said.err) == (2, True)
    assert cli("runs", "--json").items[0]["status"] == "pending_input"
    assert cli("answer", run, "approve", "--resume").code == 0
