"""Each reason for which a run cannot go on in a new version, in words, with the run untouched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Context, Flow, RunStatus, quorum
from holdfast.testing.crashpoints import Crash, armed
from tests.flows.places import Place, answer, told

pytestmark = pytest.mark.anyio

Shape = Callable[[Flow, bool], None]


def version(label: str, shape: Shape, **settings: Any) -> Flow:
    flow = Flow("order", effect="read", version=label, **settings)
    shape(flow, label == "2")
    return flow


def task(flow: Flow, name: str, **options: Any) -> None:
    async def work() -> None: ...

    flow.node(id=name, **options)(work)


def gone(flow: Flow, new: bool) -> None:
    if new:
        task(flow, "only")
        return
    flow.hold("gate", prompt="Go?", options=["yes"])


def other_kind(flow: Flow, new: bool) -> None:
    if new:
        flow.timer("gate", "1d")
    else:
        flow.hold("gate", prompt="Go?", options=["yes"])


def join_gets_an_edge(flow: Flow, new: bool) -> None:
    for name in ("a", "join"):
        task(flow, name)
    flow.hold("gate", prompt="Go?", options=["yes"])
    task(flow, "start")
    flow.start("start")
    flow.edge("start", "a")
    flow.edge("start", "gate")
    flow.edge("a", "join")
    flow.edge("gate", "join")
    if new:
        task(flow, "c")
        flow.edge("start", "c")
        flow.edge("c", "join")


def join_policy(flow: Flow, new: bool) -> None:
    task(flow, "start")
    task(flow, "a")
    flow.hold("gate", prompt="Go?", options=["yes"])
    task(flow, "join", join=quorum(2) if new else "all")
    flow.start("start")
    for name in ("a", "gate"):
        flow.edge("start", name)
        flow.edge(name, "join")


def waits_for_what_is_past(flow: Flow, new: bool) -> None:
    task(flow, "start")
    flow.hold("gate", prompt="Go?", options=["yes"])
    task(flow, "last")
    flow.start("start")
    flow.edge("start", "gate")
    flow.edge("gate", "last")
    if new:
        task(flow, "extra")
        flow.edge("start", "extra")
        flow.edge("extra", "last")


def loop_changes(flow: Flow, new: bool) -> None:
    task(flow, "head")
    flow.hold("gate", prompt="Again?", options=["again", "stop"])
    task(flow, "out")
    flow.start("head")
    flow.edge("head", "gate")
    flow.loop("gate", "head", when="decision == 'again'", max=3)
    flow.edge("gate", "out", when="decision == 'stop'")
    if new:
        task(flow, "aside")
        flow.edge("head", "aside", when="decision == 'stop'")


def expiry(flow: Flow, new: bool) -> None:
    flow.hold(
        "gate", prompt="Go?", options=["yes"], timeout="1d", on_timeout="branch:late" if not new else "fail"
    )
    task(flow, "after")
    flow.edge("gate", "after")
    if not new:
        task(flow, "late")


def options(flow: Flow, new: bool) -> None:
    """`no` leads to `otherwise` in the new version, and `reject` would lead there too."""
    yes, no = ("yes", "no") if new else ("approve", "reject")
    flow.hold("gate", prompt="Go?", options=[yes, no])
    task(flow, "stop")
    task(flow, "after")
    flow.edge("gate", "stop", when=f"decision == '{no}'")
    flow.edge("gate", "after", otherwise=True)


def options_of_a_form(flow: Flow, new: bool) -> None:
    ids = ["yes", "no"] if new else ["yes", "no", "later"]
    form = [{"type": "decision", "options": [{"id": each, "label": each} for each in ids]}]
    flow.hold("gate", prompt="Go?", sections=form)
    task(flow, "after")
    flow.edge("gate", "after")


def free_answer(flow: Flow, new: bool) -> None:
    flow.hold("gate", prompt="Go?", **({"options": ["yes", "no"]} if new else {"options": None}))
    task(flow, "after")
    flow.edge("gate", "after")


def earlier_decision(flow: Flow, new: bool) -> None:
    """Decided at the first gate, read behind the second."""
    yes, no = ("yes", "no") if new else ("approve", "reject")
    flow.hold("first", prompt="Go?", options=[yes, no], bind="agreed")
    flow.hold("gate", prompt="Sure?", options=["ok"])
    task(flow, "stop")
    task(flow, "after")
    flow.edge("first", "gate")
    flow.edge("gate", "stop", when=f"agreed == '{no}'")
    flow.edge("gate", "after", otherwise=True)


def traversal(flow: Flow, new: bool) -> None:
    flow.hold("gate", prompt="Go?", options=["yes"])
    task(flow, "after")
    flow.edge("gate", "after")


CASES: list[tuple[Shape, str]] = [
    (gone, "it is at node 'gate', where a person is asked, and NEW has no such node"),
    (other_kind, "a hold that is a timer in NEW"),
    (join_gets_an_edge, "branches come together at node 'join', and other edges lead there in NEW"),
    (join_policy, "node 'join', which joins them differently in NEW"),
    (waits_for_what_is_past, "node 'last' waits for 'extra' in NEW, which is not ahead of this run"),
    (loop_changes, "it is inside the loop at 'head', whose edges back or out differ in NEW"),
    (expiry, "leads to 'late' when it expires, which NEW lacks"),
    (options, "the open question at 'gate' offers 'approve', 'reject', which NEW does not"),
    (options_of_a_form, "the open question at 'gate' offers 'later', which NEW does not"),
    (free_answer, "the open question at 'gate' offers a free answer, which NEW does not"),
]


@pytest.mark.parametrize(("shape", "why"), CASES, ids=[shape.__name__ for shape, _ in CASES])
@pytest.mark.covers("TOOL-VER-02", "TOOL-VER-07")
async def test_a_run_is_refused_with_the_reason_and_left_untouched(
    place: Place, shape: Shape, why: str
) -> None:
    old, new = version("1", shape), version("2", shape)
    hf = await place.hf()
    waiting = await old.run(on=hf)
    assert waiting.status is RunStatus.pending_input
    service = await hf.service()
    before = (await service.get(waiting.run_id), await service.store.read(waiting.run_id))
    for verdicts in (await new.check_runs(on=hf), await new.migrate_runs(on=hf)):
        (verdict,) = verdicts
        assert not verdict.fits
        assert not verdict.migrated
        assert any(why in misfit.why for misfit in verdict.misfits), verdict.misfits
        assert all(misfit.fix for misfit in verdict.misfits)
    assert (await service.get(waiting.run_id), await service.store.read(waiting.run_id)) == before


@pytest.mark.covers("TOOL-VER-02")
async def test_another_traversal_is_a_reason(place: Place) -> None:
    hf = await place.hf()
    await version("1", traversal).run(on=hf)
    (verdict,) = await version("2", traversal, traversal="walk").check_runs(on=hf)
    assert "traversed as a walk" in verdict.misfits[0].why


def paying(label: str, effect: str, key: str | None = None) -> Flow:
    flow = Flow("order", version=label)

    async def pay(ctx: Context) -> dict[str, Any]:
        return {"key": ctx.idempotency_key}

    flow.node(id="pay" if label == "1" else "settle", effect=effect, idempotency_key=key)(pay)
    flow.migrate("1", rename={"pay": "settle"}) if label == "2" else None
    return flow


@pytest.mark.covers("TOOL-VER-07", "P1")
async def test_an_effect_under_way_is_not_made_one_that_may_run_twice(place: Place) -> None:
    hf = await place.hf()
    with armed("after_handler"), pytest.raises(Crash):
        await paying("1", "external").run(on=hf)
    place.lapse()
    later = await place.hf()
    (verdict,) = await paying("2", "read").migrate_runs(on=later)
    assert "it could happen twice" in verdict.misfits[0].why
    (verdict,) = await paying("2", "external", "k").migrate_runs(on=later)
    assert "another idempotency key" in verdict.misfits[0].why
    (verdict,) = await paying("2", "external").migrate_runs(on=later)
    assert verdict.migrated
    # Its outcome is still unknown, and a person is asked: nothing ran again.
    result = await paying("2", "external").resume(verdict.run, on=later)
    assert result.status is RunStatus.pending_input
    assert result.holds[0].type == "in_doubt"


@pytest.mark.covers("D-18", "TOOL-VER-04")
async def test_the_key_of_an_effect_stays_what_it_was_when_its_node_was_renamed(place: Place) -> None:
    seen: list[str] = []

    def flow_of(label: str) -> Flow:
        flow = Flow("order", version=label, in_doubt="retry")

        async def pay(ctx: Context) -> None:
            seen.append(ctx.idempotency_key)

        flow.node(id="pay" if label == "1" else "settle", effect="external")(pay)
        if label == "2":
            flow.migrate("1", rename={"pay": "settle"})
        return flow

    with armed("after_handler"), pytest.raises(Crash):
        await flow_of("1").run(on=await place.hf())
    place.lapse()
    hf = await place.hf()
    (verdict,) = await flow_of("2").migrate_runs(on=hf)
    assert verdict.migrated, verdict
    assert (await flow_of("2").resume(verdict.run, on=hf)).completed
    assert len(seen) == 2
    assert seen[0] == seen[1]


@pytest.mark.covers("TOOL-VER-02", "TOOL-VER-03")
async def test_a_decision_in_words_that_the_new_version_does_not_know_is_translated_or_refused(
    place: Place,
) -> None:
    """Otherwise a rejection would take the way of `otherwise`."""
    hf = await place.hf()
    old, new = version("1", earlier_decision), version("2", earlier_decision)
    waiting = await old.run(on=hf)
    await answer(hf, waiting, "reject")
    waiting = await old.resume(waiting.run_id, on=hf)
    (verdict,) = await new.check_runs(on=hf)
    assert [misfit.why for misfit in verdict.misfits] == [
        "'agreed' is 'reject', a decision that is no option in NEW"
    ]
    words = {"approve": "yes", "reject": "no"}
    translated = version("2", earlier_decision)
    translated.migrate("1", state={"agreed": lambda s: words[s["agreed"]]})
    (verdict,) = await translated.migrate_runs(on=hf)
    assert verdict.migrated, verdict.misfits
    await answer(hf, waiting, "ok")
    ended = await translated.resume(waiting.run_id, on=hf)
    assert ended.completed
    assert [event.node for event in await told(hf, ended, "node.completed")][-1] == "stop"
