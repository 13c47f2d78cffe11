"""Changed code matters where it is still to run, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Context, Flow, RunStatus, VersionMismatchError
from tests.flows.places import Place, answer, open_holds, told

pytestmark = pytest.mark.anyio


async def one(s: Any) -> dict[str, Any]:
    return {"by": 1}


async def two(s: Any) -> dict[str, Any]:
    return {"by": 2}


def release(before: Callable[..., Any], after: Callable[..., Any], **settings: Any) -> Flow:
    flow = Flow("release", effect="read", **settings)
    flow.node(id="before")(before)
    flow.hold("gate", prompt="Go?", options=["yes"])
    flow.node(id="after")(after)
    flow.node(id="never")(after)
    flow.edge("before", "gate")
    flow.edge("gate", "after", when="decision == 'yes'")
    flow.edge("after", "never", when="false")
    return flow


@pytest.mark.parametrize("policy", ["allow", "ask", "refuse"])
@pytest.mark.covers("D-34")
async def test_nothing_is_reported_asked_or_refused_when_the_changed_node_is_behind(
    place: Place, policy: str
) -> None:
    waiting = await release(one, one, code_change=policy).run(on=await place.hf())
    hf = await place.hf()
    await answer(hf, waiting, "yes")
    result = await release(two, one, code_change=policy).resume(waiting.run_id, on=hf)
    assert result.completed
    assert not await told(hf, waiting, "run.code_changed")


@pytest.mark.covers("D-34")
async def test_the_event_names_the_changed_nodes_that_are_ahead(place: Place) -> None:
    waiting = await release(one, one).run(on=await place.hf())
    hf = await place.hf()
    await release(two, two).resume(waiting.run_id, on=hf)
    (changed,) = await told(hf, waiting, "run.code_changed")
    assert changed.data["nodes"] == ["after", "never"]
    # The next change is told apart from this one.
    other = await place.hf()
    await release(one, two).resume(waiting.run_id, on=other)
    assert len(await told(other, waiting, "run.code_changed")) == 1


@pytest.mark.covers("D-34")
async def test_a_refusal_and_a_question_name_the_nodes(place: Place) -> None:
    hf = await place.hf()
    refusing = await release(one, one, code_change="refuse").run(on=hf)
    with pytest.raises(VersionMismatchError, match=r"\(of after, never\)"):
        await release(one, two, code_change="refuse").resume(refusing.run_id, on=await place.hf())
    asking = await release(one, one, code_change="ask").run(on=hf)
    later = await place.hf()
    await release(one, two, code_change="ask").resume(asking.run_id, on=later)
    asked = [hold for hold in await open_holds(later, asking) if hold.type == "code_changed"]
    assert "(of after, never)" in asked[0].prompt


@pytest.mark.covers("D-34")
async def test_code_of_a_sub_flow_matters_when_the_run_may_still_come_to_it(place: Place) -> None:
    def parent(inner: Callable[..., Any], *, first: bool) -> Flow:
        child = Flow("child", effect="read")
        child.node(id="work")(inner)
        flow = Flow("parent", effect="read")
        flow.hold("gate", prompt="Go?", options=["yes"])
        flow.subflow("sub", child)
        flow.edge(*(("sub", "gate") if first else ("gate", "sub")))
        return flow

    for first in (True, False):
        waiting = await parent(one, first=first).run(on=await place.hf())
        hf = await place.hf()
        await parent(two, first=first).resume(waiting.run_id, on=hf)
        changed = await told(hf, waiting, "run.code_changed")
        assert [event.data["nodes"] for event in changed] == ([] if first else [["child/work"]])


def script(number: int, **options: Any) -> Flow:
    flow = Flow("script")

    async def look() -> int:
        return number

    if number == 1:

        async def work(ctx: Context) -> dict[str, Any]:
            seen = await ctx.step("look", look, effect="read")
            await ctx.ask("Well?", options=["yes"])
            return {"seen": seen, "by": 1}
    else:

        async def work(ctx: Context) -> dict[str, Any]:
            seen = await ctx.step("look", look, effect="read")
            await ctx.ask("Well?", options=["yes"])
            return {"seen": seen, "by": 2}

    flow.script(id="work", **options)(work)
    return flow


@pytest.mark.covers("D-34")
async def test_the_refusal_to_reenter_says_what_to_declare_and_that_works(place: Place) -> None:
    hf = await place.hf()
    waiting = await script(1).run(on=hf)
    await answer(hf, waiting, "yes")
    with pytest.raises(VersionMismatchError, match="compatible_with='c1-") as refused:
        await script(2).resume(waiting.run_id, on=await place.hf())
    mark = str(refused.value).split("compatible_with='")[1].split("'")[0]
    result = await script(2, compatible_with=mark).resume(waiting.run_id, on=await place.hf())
    assert result.state == {"seen": 1, "by": 2}


@pytest.mark.covers("D-34", "RM-4", "USERS-MANY-MIGRATE")
async def test_a_check_lists_runs_of_the_same_version_inside_of_a_script_whose_code_has_changed(
    place: Place,
) -> None:
    waiting = await script(1).run(on=await place.hf())
    later = await place.hf()
    assert await script(1).check_runs(on=later) == []
    (verdict,) = await script(2).check_runs(on=later)
    assert (verdict.run, verdict.fits) == (waiting.run_id, False)
    mark = verdict.misfits[0].fix.split('"')[1]
    assert await script(2, compatible_with=mark).check_runs(on=later) == []


@pytest.mark.parametrize("forced", [True, False], ids=["forced", "declared"])
@pytest.mark.covers("D-34", "RM-4", "G-6")
async def test_a_visit_with_sub_steps_is_taken_over_only_when_somebody_answers_for_it(
    place: Place, forced: bool
) -> None:
    def version(label: str, number: int, **options: Any) -> Flow:
        flow = script(number, **options)
        flow.label = label
        flow.node(id=f"end{label}", effect="read")(one)
        flow.edge("work", f"end{label}")
        return flow

    old = version("1", 1)
    hf = await place.hf()
    waiting = await old.run(on=hf)
    assert waiting.status is RunStatus.pending_input
    later = await place.hf()
    (verdict,) = await version("2", 2).migrate_runs(on=later)
    assert not verdict.migrated
    assert "sub-steps that other code made" in verdict.misfits[0].why
    assert verdict.misfits[0].soft
    if forced:
        new = version("2", 2)
        (verdict,) = await new.migrate_runs(waiting.run_id, force=True, on=later)
        assert "sub-steps that other code made" in verdict.forced[0]
        (migrated,) = await told(later, waiting, "run.migrated")
        assert migrated.data["forced"] == verdict.forced
    else:
        mark = verdict.misfits[0].fix.split('"')[1]
        new = version("2", 2, compatible_with=[mark])
        (verdict,) = await new.migrate_runs(on=later)
    assert verdict.migrated
    await answer(later, waiting, "yes")
    result = await new.resume(waiting.run_id, on=later)
    assert result.state["seen"] == 1
