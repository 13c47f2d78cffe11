from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, RunStatus, VersionMismatchError
from tests.flows.places import Place, answer, open_holds, told

pytestmark = pytest.mark.anyio


def release(number: int, *, more: bool = False, version: str | None = None, **settings: Any) -> Flow:
    """The same graph with other code; `more`: with another graph."""
    flow = Flow("release", effect="read", **settings)
    flow.hold("gate", prompt="Go?", options=["yes"])
    if number == 1:

        async def after() -> dict[str, Any]:
            return {"by": 1}
    else:

        async def after() -> dict[str, Any]:
            return {"by": 2}

    flow.node(id="after", version=version)(after)
    flow.edge("gate", "after")
    if more:
        flow.node(id="extra")(after)
        flow.edge("after", "extra")
    return flow


@pytest.mark.covers("D-34", "CORE-CKPT-14")
async def test_a_run_keeps_its_place_and_is_refused_when_the_graph_has_changed(place: Place) -> None:
    old, new = release(1), release(1, more=True)
    hf = await place.hf()
    waiting = await old.run(on=hf)
    await answer(hf, waiting, "yes")
    with pytest.raises(VersionMismatchError, match="started on version"):
        await new.resume(waiting.run_id, on=await place.hf())
    result = await old.resume(waiting.run_id, on=hf)
    assert result.completed
    assert result.state["by"] == 1


@pytest.mark.covers("D-34")
async def test_changed_code_goes_on_and_the_change_is_reported_once_when_the_flow_allows_it(
    place: Place,
) -> None:
    waiting = await release(1).run(on=await place.hf())
    new = release(2)
    hf = await place.hf()
    # Looking without an answer tells it once, however often.
    await new.resume(waiting.run_id, on=hf)
    await new.resume(waiting.run_id, on=hf)
    await answer(hf, waiting, "yes")
    result = await new.resume(waiting.run_id, on=hf)
    assert result.state["by"] == 2
    (changed,) = await told(hf, waiting, "run.code_changed")
    assert changed.data["code"] == new.program().code_digest


@pytest.mark.covers("D-34")
async def test_nothing_is_reported_when_changed_code_declares_the_same_version(place: Place) -> None:
    waiting = await release(1, version="v1").run(on=await place.hf())
    hf = await place.hf()
    await answer(hf, waiting, "yes")
    result = await release(2, version="v1").resume(waiting.run_id, on=hf)
    assert result.state["by"] == 2
    assert not await told(hf, waiting, "run.code_changed")


@pytest.mark.covers("D-34")
async def test_changed_code_is_refused_when_the_flow_says_so(place: Place) -> None:
    old = release(1, code_change="refuse")
    hf = await place.hf()
    waiting = await old.run(on=hf)
    await answer(hf, waiting, "yes")
    with pytest.raises(VersionMismatchError, match="refuses changed code"):
        await release(2, code_change="refuse").resume(waiting.run_id, on=await place.hf())
    assert (await old.resume(waiting.run_id, on=hf)).state["by"] == 1


@pytest.mark.parametrize("said", ["accept", "refuse"])
@pytest.mark.covers("D-34")
async def test_a_person_decides_about_changed_code_when_the_flow_says_ask(place: Place, said: str) -> None:
    first = await place.hf()
    waiting = await release(1, code_change="ask").run(on=first)
    await answer(first, waiting, "yes")
    new, hf = release(2, code_change="ask"), await place.hf()
    result = await new.resume(waiting.run_id, on=hf)
    assert result.status is RunStatus.pending_input
    (asked,) = await open_holds(hf, waiting)
    assert asked.type == "code_changed"
    # The answer that was given before waits, and nothing runs.
    result = await new.resume(waiting.run_id, on=hf)
    assert result.status is RunStatus.pending_input
    await answer(hf, waiting, said)
    result = await new.resume(waiting.run_id, on=hf)
    if said == "accept":
        assert result.completed, result
        assert result.state["by"] == 2
    else:
        assert result.failed
        assert result.error is not None
        assert result.error.code == "version_mismatch"


def script(number: int, version: str | None = None) -> Flow:
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

    flow.script(id="work", version=version)(work)
    return flow


@pytest.mark.covers("D-34")
async def test_a_visit_with_sub_steps_is_not_entered_again_when_its_code_has_changed(place: Place) -> None:
    old = script(1)
    hf = await place.hf()
    waiting = await old.run(on=hf)
    await answer(hf, waiting, "yes")
    with pytest.raises(VersionMismatchError, match="sub-steps"):
        await script(2).resume(waiting.run_id, on=await place.hf())
    result = await old.resume(waiting.run_id, on=hf)
    assert result.state == {"seen": 1, "by": 1}


@pytest.mark.covers("D-34")
async def test_a_visit_with_sub_steps_is_entered_again_when_the_code_is_declared_compatible(
    place: Place,
) -> None:
    hf = await place.hf()
    waiting = await script(1, "v1").run(on=hf)
    await answer(hf, waiting, "yes")
    result = await script(2, "v1").resume(waiting.run_id, on=await place.hf())
    assert result.state == {"seen": 1, "by": 2}
