"""A node is renamed while a person thinks: the decision is never dropped, and applied once."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, RunStatus, VersionMismatchError
from tests.flows.places import Place, answer, open_holds, told

pytestmark = pytest.mark.anyio


def refund(gate: str, *, paid: list[str] | None = None, declared: bool = False, **settings: Any) -> Flow:
    """Two versions: the gate is called otherwise."""
    flow = Flow("refund", effect="read", **settings)
    flow.hold(gate, prompt="Pay?", options=["yes", "no"])

    async def pay(s: Any) -> dict[str, Any]:
        if paid is not None:
            paid.append(s["decision"])
        return {"paid": s["decision"]}

    flow.node(id="pay", effect="external", idempotency_key="once")(pay)
    flow.edge(gate, "pay", when="decision == 'yes'")
    if declared:
        flow.migrate("1", rename={"approve": gate})
    return flow


@pytest.mark.covers("TOOL-VER-06", "TOOL-VER-04", "RM-4", "G-6")
async def test_an_answer_waits_when_its_node_was_renamed_and_nothing_was_declared(place: Place) -> None:
    old, new = refund("approve", version="1"), refund("confirm", version="2")
    hf = await place.hf()
    waiting = await old.run(on=hf)
    await answer(hf, waiting, "yes")
    later = await place.hf()
    with pytest.raises(VersionMismatchError, match=r"flows check|flows migrate"):
        await new.resume(waiting.run_id, on=later)
    (verdict,) = await new.check_runs(on=later)
    assert not verdict.fits
    assert "'approve'" in verdict.misfits[0].why
    assert 'rename={"approve": "confirm"}' in verdict.misfits[0].fix
    (verdict,) = await new.migrate_runs(on=later)
    assert not verdict.migrated
    # Nothing is lost: the old version still applies the answer.
    result = await old.resume(waiting.run_id, on=hf)
    assert result.state["paid"] == "yes"


@pytest.mark.parametrize("first", [True, False], ids=["answered before", "answered after"])
@pytest.mark.covers("TOOL-VER-04", "TOOL-VER-06", "G-6", "RM-4")
async def test_a_decision_is_applied_once_when_its_node_was_renamed_and_migrated(
    place: Place, first: bool
) -> None:
    paid: list[str] = []
    hf = await place.hf()
    waiting = await refund("approve", version="1").run(on=hf)
    (before,) = await open_holds(hf, waiting)
    if first:
        await answer(hf, waiting, "yes")
    new, later = refund("confirm", version="2", declared=True, paid=paid), await place.hf()
    (verdict,) = await new.migrate_runs(on=later)
    assert verdict.migrated, verdict
    assert verdict.renamed == {"approve": "confirm"}
    service = await later.service()
    hold = await service.store.hold(before.id)
    assert hold is not None
    assert (hold.id, hold.node) == (before.id, "confirm")
    if not first:
        row = await service.get(waiting.run_id)
        assert row.status is RunStatus.pending_input
        await service.answer(before.id, "yes")
    result = await new.resume(waiting.run_id, on=later)
    assert result.completed, result.error
    assert paid == ["yes"]
    assert (await new.resume(waiting.run_id, on=later)).completed
    assert paid == ["yes"]
    (migrated,) = await told(later, waiting, "run.migrated")
    assert (migrated.data["from_label"], migrated.data["to_label"]) == ("1", "2")


@pytest.mark.covers("TOOL-VER-04")
async def test_a_breakpoint_is_continued_after_its_node_was_renamed(place: Place) -> None:
    def version(label: str) -> Flow:
        flow = Flow("stop", effect="read", version=label)

        async def work() -> dict[str, Any]:
            return {"by": label}

        first, second = ("a", "b") if label == "1" else ("x", "y")
        flow.node(id=first)(work)
        flow.node(id=second)(work)
        flow.edge(first, second)
        if label == "2":
            flow.migrate("1", rename={"a": "x", "b": "y"})
        return flow

    stopped = await version("1").run(on=await place.hf(), breaks=["a", "b"])
    (before,) = stopped.holds
    hf, new = await place.hf(), version("2")
    (verdict,) = await new.migrate_runs(on=hf)
    assert verdict.migrated, verdict.misfits
    service = await hf.service()
    (moved,) = await open_holds(hf, stopped)
    assert (before.node, moved.node, moved.id) == ("a__breakpoint", "x__breakpoint", before.id)
    assert [asked.node for asked in (await service.latest(stopped.run_id)).pending_input] == ["x__breakpoint"]
    await service.answer(before.id, "continue")
    result = await new.resume(stopped.run_id, on=hf)
    (second,) = result.holds
    assert second.node == "y__breakpoint"
    await service.answer(second.id, "continue")
    assert (await new.resume(stopped.run_id, on=hf)).completed
