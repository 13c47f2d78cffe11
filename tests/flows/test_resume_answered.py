"""Resuming at the question that was just answered continues the run; older checkpoints are forked."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.runs.resume import resume
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio


def by_node(log: list[str], *, fails: bool = False) -> Flow:
    """Asks in a node of its own; then works, asks nobody else."""
    flow = Flow("asks", effect="read")

    async def before() -> None:
        log.append("before")

    async def after() -> None:
        log.append("after")
        if fails:
            raise ValueError("broken")

    first = flow.node()(before)
    gate = flow.hold("gate", prompt="Well?", options=["yes", "no"])
    flow.start(first)
    flow.edge(first, gate)
    flow.edge(gate, flow.node()(after))
    return flow


def inside(log: list[str], *, fails: bool = False) -> Flow:
    flow = Flow("asks", effect="read")

    async def before() -> None:
        log.append("before")

    async def gate(ctx: Context) -> None:
        await ctx.ask("Well?", options=["yes", "no"])
        log.append("after")
        if fails:
            raise ValueError("broken")

    first = flow.node()(before)
    flow.start(first)
    flow.edge(first, flow.script(gate))
    return flow


async def answered(flow: Flow, hf: Holdfast) -> tuple[str, str]:
    run = await flow.run(on=hf)
    (hold,) = run.holds
    await (await hf.service()).answer(hold.id, "yes")
    return run.run_id, hold.id


@pytest.mark.covers("SAFE-READ-04", "R-1")
@pytest.mark.parametrize("make", [by_node, inside])
@pytest.mark.parametrize("advanced", [False, True])
@pytest.mark.parametrize("by_hold", [False, True])
async def test_answered_question_is_resumed_in_its_run_however_far_that_has_come(
    hf: Holdfast, make: Any, advanced: bool, by_hold: bool
) -> None:
    log: list[str] = []
    flow = make(log)
    run, hold = await answered(flow, hf)
    if advanced:
        # A worker was faster than the caller.
        await flow.resume(run, on=hf)
    result = await (flow.resume(hold, on=hf) if by_hold else flow.resume(run, checkpoint=hold, on=hf))
    assert (result.run_id, result.status) == (run, "completed")
    service = await hf.service()
    assert [row.id for row in await service.holds(open_only=False)] == [hold], "asked once"
    assert log == ["before", "after"]


@pytest.mark.covers("SAFE-READ-04")
@pytest.mark.parametrize("make", [by_node, inside])
async def test_run_that_failed_after_the_answer_is_resumed_where_it_failed(hf: Holdfast, make: Any) -> None:
    log: list[str] = []
    run, hold = await answered(make(log, fails=True), hf)
    failed = await make(log, fails=True).resume(run, on=hf)
    assert failed.failed
    service = await hf.service()
    row, new = await resume(service, await service.get(run), checkpoint=hold)
    assert (row.id, new) == (run, False)
    assert [each.id for each in await service.holds(open_only=False)] == [hold]


@pytest.mark.covers("SAFE-READ-04", "R-1")
async def test_older_question_and_changed_input_are_forked(hf: Holdfast) -> None:
    flow = Flow("two", effect="read")
    one = flow.hold("one", prompt="First?", options=["yes"])
    two = flow.hold("two", prompt="Second?", options=["yes"])
    flow.start(one)
    flow.edge(one, two)
    run, first = await answered(flow, hf)
    second = (await flow.resume(run, on=hf)).holds[0].id
    service = await hf.service()
    older = await flow.resume(run, checkpoint=first, on=hf)
    assert older.run_id != run
    assert [hold.prompt for hold in older.holds] == ["First?"]
    await service.answer(second, "yes")
    for given in ({"x": 1}, {}):
        changed = await flow.resume(run, checkpoint=second, input=given, on=hf)
        assert changed.run_id != run
        assert [hold.prompt for hold in changed.holds] == ["Second?"]
    # What was asked for by name stays what it is.
    forked = await flow.fork(second, on=hf)
    assert [hold.prompt for hold in forked.holds] == ["Second?"]
    for mode in ("fork", "rewind"):
        row, new = await resume(service, await service.get(run), checkpoint=second, mode=mode)
        assert new
        assert row.id != run


@pytest.mark.covers("SAFE-READ-04")
async def test_either_of_two_questions_that_were_open_together_continues_the_run(hf: Holdfast) -> None:
    flow = Flow("both", effect="read")

    async def begin() -> None:
        return None

    async def done() -> None:
        return None

    first, last = flow.node()(begin), flow.node()(done)
    gates = [flow.hold(name, prompt=f"{name}?", options=["yes"]) for name in ("left", "right")]
    flow.start(first)
    for gate in gates:
        flow.edge(first, gate)
        flow.edge(gate, last)
    run = await flow.run(on=hf)
    service = await hf.service()
    for hold in run.holds:
        await service.answer(hold.id, "yes")
    (await flow.resume(run.run_id, on=hf)).expect()
    for hold in run.holds:
        assert (await flow.resume(run.run_id, checkpoint=hold.id, on=hf)).run_id == run.run_id
    assert len(await service.holds(open_only=False)) == 2


@pytest.mark.covers("SAFE-READ-04")
async def test_checkpoint_before_the_answered_question_is_forked(hf: Holdfast) -> None:
    flow, service = refund_flow(), await hf.service()
    run = await flow.run(GIVEN, on=hf)
    await service.answer(run.holds[0].id, "approve")
    (await flow.resume(run.run_id, on=hf)).expect()
    assessed = await service.latest(run.run_id, "assess")
    forked = await flow.resume(run.run_id, checkpoint=assessed.id, on=hf)
    assert forked.run_id != run.run_id
    assert len(forked.holds) == 1
