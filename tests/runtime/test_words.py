"""Plain words as answers (R-66), and the classic store's update and clear (RS-STORE)."""

from __future__ import annotations

import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import AnswerInvalidError, ConflictError, HoldDecidedError, HoldNotFoundError
from holdfast.runs.history.checkpoint_store import CheckpointView
from holdfast.store.rows import RunFilter
from tests.flows.conftest import Positions
from tests.flows.places import Place, open_holds
from tests.runtime.people import Seen, approval, line

pytestmark = pytest.mark.anyio

OPTIONS = [
    {"id": "approve", "label": "Yes, pay"},
    {"id": "reject", "label": "No"},
    {"id": "later", "label": "Ask again"},
]


@pytest.mark.covers("R-66")
@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("approve", "approve"),
        (" Approve ", "approve"),
        ("yes, PAY", "approve"),
        ("NO", "reject"),
        ("later", "later"),
        ("ask AGAIN", "later"),
        ("reject", "reject"),
    ],
)
async def test_words_fit_an_option_by_its_id_and_then_by_its_label(
    hf: Holdfast, words: str, meant: str
) -> None:
    flow = approval("words", Seen(), options=OPTIONS)
    waiting = await flow.run({"amount": 1}, on=hf)
    await (await hf.service()).say(waiting.run_id, words, by="user:ada")
    result = await flow.resume(waiting.run_id, on=hf)
    assert result.state["decision"] == meant


@pytest.mark.covers("R-66")
async def test_words_are_taken_whole_when_the_question_is_free(hf: Holdfast) -> None:
    flow = approval("free", Seen(), options=None, type="freeform")
    waiting = await flow.run({"amount": 1}, on=hf)
    await (await hf.service()).say(waiting.run_id, "  As You Like It. ")
    assert (await flow.resume(waiting.run_id, on=hf)).state["decision"] == "  As You Like It. "


@pytest.mark.covers("R-66")
async def test_a_mapping_is_the_answer_itself(hf: Holdfast) -> None:
    flow = approval("mapping", Seen())
    waiting = await flow.run({"amount": 1}, on=hf)
    row = await (await hf.service()).say(waiting.run_id, {"decision": "reject", "comment": "too much"})
    assert b"too much" in (row.resolution or b"")
    assert (await flow.resume(waiting.run_id, on=hf)).state["decision"] == "reject"


@pytest.mark.covers("R-66", "RF-4")
async def test_each_way_of_missing_a_question_has_its_own_error(hf: Holdfast) -> None:
    flow = Flow("missing", effect="pure")
    for name in ("left", "right"):
        flow.hold(name, prompt=f"{name}?", options=["yes", "no"], bind=name)
    waiting = await flow.run({}, on=hf)
    service = await hf.service()
    left, right = sorted(waiting.holds, key=lambda hold: hold.node)

    with pytest.raises(ConflictError) as several:
        await service.say(waiting.run_id, "yes")
    assert set(several.value.facts["holds"]) == {left.id, right.id}  # type: ignore[arg-type]
    for words in ("perhaps", "", "y"):
        with pytest.raises(AnswerInvalidError) as nothing:
            await service.say(waiting.run_id, words, hold=left.id)
        assert nothing.value.facts["options"] == ["yes", "no"]
    with pytest.raises(HoldNotFoundError):
        await service.say(waiting.run_id, "yes", hold=waiting.run_id)
    assert len(await open_holds(hf, waiting)) == 2

    await service.say(waiting.run_id, "yes", hold=left.id)
    with pytest.raises(HoldDecidedError):
        await service.say(waiting.run_id, "no", hold=left.id)
    await service.say(waiting.run_id, "no")
    result = await flow.resume(waiting.run_id, on=hf)
    assert (result.state["left"], result.state["right"]) == ("yes", "no")
    with pytest.raises(HoldNotFoundError, match="has no open question"):
        await service.say(waiting.run_id, "yes")


@pytest.mark.covers("R-66")
async def test_words_never_reach_the_question_of_another_run(hf: Holdfast) -> None:
    flow = approval("others", Seen())
    mine, other = await flow.run({"amount": 1}, on=hf), await flow.run({"amount": 2}, on=hf)
    with pytest.raises(HoldNotFoundError):
        await (await hf.service()).say(mine.run_id, "approve", hold=other.holds[0].id)
    assert len(await open_holds(hf, other)) == 1


@pytest.mark.covers("RS-STORE-3", "RS-STORE-4")
async def test_an_update_is_a_fork_that_is_seen_through_the_adapter(hf: Holdfast) -> None:
    flow = line("updated", Seen(), "one", "two")
    result = await flow.run({"n": 1}, on=hf)
    service = await hf.service()
    view = CheckpointView(service)
    known = await view.load(result.run_id, "one")
    assert known is not None
    changed = {**known, "state": {**known["state"], "scratch": {"n": 2}}}

    with pytest.raises(ConflictError, match="fork"):
        await view.save(changed)
    with pytest.raises(ConflictError):
        await view.save({**known, "id": result.run_id})
    fork = await view.fork(known["id"], {"scratch": {"n": 2}})

    updated = await view.load(fork)
    assert updated is not None
    assert updated["state"]["scratch"]["n"] == 2
    assert await view.get(known["id"]) == known
    assert {each["runId"] for each in await view.list(flow.program().version)} == {result.run_id, fork}


@pytest.mark.covers("RS-STORE-19", "R-55")
async def test_nothing_is_left_when_everything_that_ended_is_cleared(
    place: Place, positions: Positions
) -> None:
    hf = await place.hf()
    flow = line("cleared", Seen(), "one")
    runs = [await flow.run({"n": n}, on=hf) for n in range(3)]
    waiting = await approval("stays", Seen()).run({"amount": 1}, on=hf)
    service = await hf.service()
    place.clock.advance(seconds=1)

    cleared = await service.clean(older_than=0)

    assert cleared.runs == 3
    assert [row.id for row in await service.list(RunFilter())] == [waiting.run_id]
    assert await CheckpointView(service).list(flow.program().version) == []
    for run in runs:
        del positions[run.run_id]
        assert await service.store.read(run.run_id) == []
        assert await service.store.events(run.run_id, after=0, limit=10) == []
