"""Shadow answers: a judge answers before people see the question, and is shown after they have decided."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import (
    Context,
    Flow,
    FlowInvalidError,
    Holdfast,
    Judgement,
    ModelJudge,
    Result,
    Scripted,
    Worker,
    tool_call,
)
from holdfast.agents.messages import FINAL, TokenUsage
from holdfast.errors import SettingsError, StoreBusyError
from holdfast.holds.policies import shadow
from holdfast.holds.policies.shadow import KIND, ShadowAnswer
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.document import Document
from tests.api.people import Hall, hall_of
from tests.flows.places import RUN, Place, a_place, answer, open_holds

pytestmark = pytest.mark.anyio

YES = Judgement("approve", 0.9, "Small amount.")


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Place]:
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'h.db'}"
    async with a_place(address) as found:
        yield found


def refund(judge: Any, **more: Any) -> Flow:
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Refund {{amount}}?", options=["approve", "reject"], shadow=judge, **more)
    return flow


def asks(judge: Any) -> Flow:
    flow = Flow("asks", effect="read")

    @flow.script(id="approve")
    async def ask(ctx: Context) -> dict[str, Any]:
        return {"out": (await ctx.ask("Refund 5?", options=["approve", "reject"], shadow=judge)).decision}

    return flow


async def answer_of(hf: Holdfast, hold: str) -> ShadowAnswer:
    service = await hf.service()
    row = await service.store.hold(hold)  # type: ignore[arg-type]
    assert row is not None
    found = await shadow.shadow_of(service.store, row)
    assert found is not None
    return found


@pytest.mark.covers("USERS-SHADOW")
@pytest.mark.parametrize("flow_of", [refund, asks])
@pytest.mark.parametrize(("decision", "agrees"), [("approve", True), ("reject", False)])
async def test_the_answer_of_a_judge_is_sealed_until_people_have_decided(
    place: Place, flow_of: Any, decision: str, agrees: bool
) -> None:
    seen: list[Any] = []

    def judge(facts: Any) -> Judgement:
        seen.append(dict(facts))
        return YES

    hf = await place.hf()
    flow = flow_of(judge)
    result = await flow.run({"amount": 5}, on=hf)
    (hold,) = await open_holds(hf, result)
    assert seen[0]["prompt"] == "Refund 5?"
    before = await answer_of(hf, hold.id)
    assert before == ShadowAnswer(judge=f"{flow.name}/approve", sealed=before.sealed)
    # Nothing that people are shown has it.
    assert "Small amount" not in msgspec.json.encode(hold).decode()
    for event in await (await hf.service()).events(result.run_id):
        assert "Small amount" not in str(event.data)
    await answer(hf, result, decision)
    after = await answer_of(hf, hold.id)
    assert (after.decision, after.confidence, after.reasoning) == ("approve", 0.9, "Small amount.")
    assert (after.agrees, after.intact, after.sealed) == (agrees, True, before.sealed)
    assert set(after.digests) == {"judge", "holdfast"}
    assert len(seen) == 1


@pytest.mark.covers("USERS-SHADOW")
async def test_an_answer_that_was_changed_later_is_not_shown_as_the_one_that_was_sealed(place: Place) -> None:
    hf = await place.hf()
    result = await refund(lambda _facts: YES).run({"amount": 5}, on=hf)
    (hold,) = await open_holds(hf, result)
    store = (await hf.service()).store
    name = f"{result.run_id}/{hold.id}"
    kept = await store.document("default", KIND, name)
    assert kept is not None
    forged = {**msgspec.json.decode(kept.body), "decision": "reject"}
    await store.put_document(
        Document(tenant="default", kind=KIND, name=name, body=msgspec.json.encode(forged))
    )
    await answer(hf, result, "reject")
    assert (await answer_of(hf, hold.id)).intact is False


def fails(_facts: Any) -> Judgement:
    raise ValueError("no idea")


async def hangs(_facts: Any) -> Judgement:
    await asyncio.Event().wait()
    return YES


@pytest.mark.covers("USERS-SHADOW")
@pytest.mark.parametrize(
    ("judge", "why"),
    [
        (fails, "ValueError: no idea"),
        (hangs, "it took longer than 0.05 s"),
        (lambda _facts: 5, "ValueError: int is not a judgement"),
        (lambda _facts: "perhaps", "ValueError: 'perhaps' is not one of the options"),
    ],
)
async def test_a_judge_that_gives_no_answer_does_not_delay_the_question(
    place: Place, judge: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow, "TIMEOUT", 0.05)
    hf = await place.hf()
    result = await refund(judge).run({"amount": 5}, on=hf)
    (hold,) = await open_holds(hf, result)
    assert hold.terms.warnings == ()
    await answer(hf, result, "approve")
    found = await answer_of(hf, hold.id)
    assert (found.error, found.decision, found.agrees) == (why, None, None)


@pytest.mark.covers("USERS-SHADOW")
async def test_questions_that_are_asked_beside_each_other_have_judges_of_their_own(place: Place) -> None:
    flow = Flow("both", effect="read")

    @flow.script(id="ask")
    async def ask(ctx: Context) -> dict[str, Any]:
        def judge(word: str) -> Any:
            return lambda _facts: Judgement(word)

        both = await ctx.gather(
            ctx.ask("One?", options=["approve", "reject"], shadow=judge("approve")),
            ctx.ask("Two?", options=["approve", "reject"], shadow=judge("reject")),
        )
        return {"out": [each.decision for each in both]}

    hf = await place.hf()
    result = await flow.run({}, on=hf)
    service = await hf.service()
    found: dict[str, str | None] = {}
    for hold in await open_holds(hf, result):
        await service.answer(hold.id, "approve")
        found[hold.prompt] = (await answer_of(hf, hold.id)).decision
    assert found == {"One?": "approve", "Two?": "reject"}


@pytest.mark.covers("USERS-SHADOW")
async def test_a_question_that_was_withdrawn_keeps_its_answer_sealed(place: Place) -> None:
    hf = await place.hf()
    result = await refund(lambda _facts: YES).run({"amount": 5}, on=hf)
    (hold,) = await open_holds(hf, result)
    await (await hf.service()).rewind(result.run_id, 0)
    assert (await answer_of(hf, hold.id)).decision is None


@pytest.mark.covers("USERS-SHADOW")
async def test_a_judge_of_the_instance_is_given_by_name(place: Place) -> None:
    hf = await place.hf(judges={"risk": lambda _facts: False})
    result = await refund("risk").run({"amount": 5}, on=hf)
    (hold,) = await open_holds(hf, result)
    await answer(hf, result, "reject")
    found = await answer_of(hf, hold.id)
    assert (found.judge, found.decision, found.agrees) == ("risk", "reject", True)


@pytest.mark.covers("USERS-SHADOW", "USERS-DIGESTS")
async def test_a_model_as_judge_has_digests_and_its_cost_is_in_the_totals(place: Place) -> None:
    def judge(criteria: str) -> ModelJudge:
        verdict = tool_call(FINAL, approved=True, confidence=0.7, reasoning="")
        return ModelJudge(Scripted(verdict, tokens=TokenUsage(30, 10)), criteria)

    digests: list[dict[str, str]] = []
    for criteria in ("Small ones.", "Small ones.", "Large ones."):
        hf = await place.hf()
        result = await refund(judge(criteria)).run({"amount": 5}, on=hf)
        (hold,) = await open_holds(hf, result)
        await answer(hf, result, "approve")
        result = await refund(judge(criteria)).resume(result.run_id, on=hf)
        assert result.expect().totals["tokens"] == 40
        digests.append((await answer_of(hf, hold.id)).digests)
    first, same, other = digests
    assert first == same
    assert {name for name in first if first[name] != other[name]} == {"judge"}
    assert set(first) == {"judge", "model", "prompt", "tools", "holdfast"}


@pytest.mark.covers("USERS-SHADOW")
@pytest.mark.parametrize("point", ["inside_settle", "before_park", "after_settle"])
async def test_a_worker_that_dies_leaves_one_answer(place: Place, point: str) -> None:
    answers = iter([YES, Judgement("reject"), Judgement("reject"), Judgement("reject")])
    flow = refund(lambda _facts: next(answers))
    with armed(point) as reached, suppress(Crash):
        await flow.run({"amount": 5}, on=await place.hf(), run_id=RUN)
    place.lapse()
    later = await place.hf()
    result: Result = await flow.resume(RUN, on=later)
    (hold,) = await open_holds(later, result)
    await answer(later, result, "approve")
    found = await answer_of(later, hold.id)
    assert found.intact, reached
    store = (await later.service()).store
    assert len(await store.documents("default", KIND)) == 1


@pytest.mark.covers("USERS-SHADOW")
async def test_a_question_whose_answer_could_not_be_stored_at_once_asks_its_judge_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf = await place.hf()
    store = await hf.open()
    put, away = store.put_document, [1]

    async def fails_once(document: Document, **more: Any) -> Any:
        if document.kind == KIND and away:
            away.pop()
            raise StoreBusyError("the store is away")
        return await put(document, **more)

    monkeypatch.setattr(store, "put_document", fails_once)
    result = await asks(lambda _facts: YES).run({}, on=hf)
    (hold,) = await open_holds(hf, result)
    await answer(hf, result, "approve")
    assert away == []
    assert (await answer_of(hf, hold.id)).decision == "approve"


@pytest.mark.covers("USERS-SHADOW")
async def test_the_answer_is_deleted_with_its_run(place: Place) -> None:
    hf = await place.hf()
    flow = refund(lambda _facts: YES)
    result = await flow.run({"amount": 5}, on=hf)
    await answer(hf, result, "approve")
    await flow.resume(result.run_id, on=hf)
    service = await hf.service()
    assert await service.store.documents("default", KIND)
    await service.delete(result.run_id)
    assert await service.store.documents("default", KIND) == []


@pytest.mark.covers("USERS-SHADOW")
async def test_a_preview_asks_no_judge(place: Place) -> None:
    asked: list[int] = []

    def judge(_facts: Any) -> Judgement:
        asked.append(1)
        return YES

    flow = Flow("two", effect="pure")
    first = flow.hold("first", prompt="First?", options=["yes", "no"], bind="one")
    second = flow.hold("second", prompt="Second?", options=["yes", "no"], bind="two", shadow=judge)
    flow.chain(first, second)
    hf = await place.hf()
    result = await flow.run({}, on=hf)
    (hold,) = await open_holds(hf, result)
    service = await hf.service()
    assert await service.preview(hold)
    assert asked == []


@pytest.mark.covers("USERS-SHADOW")
def test_what_is_no_judge_is_refused() -> None:
    with pytest.raises(FlowInvalidError, match="shadow=5 is neither a judge nor the name of one"):
        refund(5).compile()


@pytest.mark.covers("USERS-SHADOW")
async def test_a_name_that_is_no_judge_is_refused_before_people_are_asked(place: Place) -> None:
    hf = await place.hf(judges={"risk": lambda _facts: YES})
    over = Flow("over", effect="pure")
    over.subflow("inner", refund("nobody"))
    for flow in (refund("nobody"), over):
        with pytest.raises(SettingsError, match="shadow='nobody' is no judge here"):
            await flow.run({"amount": 5}, on=hf)
        with pytest.raises(SettingsError, match="shadow='nobody' is no judge here"):
            Worker(flow, on=hf)
    result = await asks("nobody").run({}, on=hf)
    assert result.error is not None
    assert "shadow='nobody' is no judge here" in result.error.message
    assert await (await hf.service()).holds() == []
    for known in (refund("risk"), asks("risk")):
        assert (await known.run({"amount": 5}, on=hf)).holds


@pytest.mark.covers("USERS-SHADOW")
async def test_people_see_the_answer_over_http_after_the_decision(tmp_path: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf, hall_of(hf) as hall:
        await _over_http(hf, hall)


async def _over_http(hf: Holdfast, hall: Hall) -> None:
    hold = await hall.asks(shadow=lambda _facts: YES)
    before = await hall.ask("dana", "GET", f"/v1/holds/{hold}")
    assert set(before["shadow"]) == {"judge", "sealed"}
    listed = await hall.send("dana", "GET", "/v1/holds")
    assert "Small amount" not in listed.text
    await hall.ask("dana", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "reject"})
    after = (await hall.ask("dana", "GET", f"/v1/holds/{hold}"))["shadow"]
    assert (after["decision"], after["agrees"], after["reasoning"]) == ("approve", False, "Small amount.")
    assert after["sealed"] == before["shadow"]["sealed"]
    assert (await hall.send("eve", "GET", f"/v1/holds/{hold}")).status_code == 404
