"""When records become durable: the bounds on what is not yet written, and what `exit` writes at once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.types.ids import RunId, new_run_id

pytestmark = pytest.mark.anyio


async def head(hf: Holdfast, run: RunId) -> int:
    row = await (await hf.open()).get_run(run)
    assert row is not None
    return row.head


@pytest.mark.covers("D-9")
async def test_records_are_written_within_the_bound_when_no_handler_ever_waits(hf: Holdfast) -> None:
    run, seen = new_run_id(), []
    flow = Flow("busy", effect="pure")

    async def work() -> None:
        until = time.perf_counter() + 0.005
        while time.perf_counter() < until:
            pass
        seen.append(await head(hf, run))

    names = [flow.node(id=f"n{i}")(work) for i in range(40)]
    flow.chain(*names)
    (await flow.run({}, on=hf, run_id=run)).expect()
    # Far fewer than the 64 records that would be written for their number alone.
    assert seen[-1] > 0


async def test_loop_goes_on_for_others_when_no_handler_ever_waits(hf: Holdfast) -> None:
    flow, ticks = Flow("greedy", effect="pure"), 0

    async def work() -> None:
        time.sleep(0.002)  # noqa: ASYNC251

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    flow.chain(*[flow.node(id=f"n{i}")(work) for i in range(60)])
    ticking = asyncio.create_task(tick())
    (await flow.run({}, on=hf)).expect()
    ticking.cancel()
    assert ticks >= 4


@pytest.mark.covers("D-10")
async def test_exit_writes_effects_as_barrier_does_and_nothing_else_when_it_goes_on(hf: Holdfast) -> None:
    run: RunId = new_run_id()
    seen: dict[str, int] = {}
    flow = Flow("thrifty", effect="pure", mode="exit")

    async def look(name: str) -> None:
        await asyncio.sleep(0.1)
        seen[name] = await head(hf, run)

    @flow.node
    async def first() -> dict[str, Any]:
        await look("first")
        return {"x": 1}

    @flow.node
    async def second() -> None:
        await look("second")

    @flow.node(effect="external")
    async def pay() -> None:
        seen["pay"] = await head(hf, run)

    @flow.node
    async def after() -> None:
        await look("after")

    flow.chain(first, second, pay, after)
    (await flow.run({}, on=hf, run_id=run)).expect()
    # 0 created, 1 first, 2 second, 3 the intent of pay, 4 pay.
    assert seen == {"first": 0, "second": 0, "pay": 3, "after": 4}


async def test_effect_is_not_run_again_when_only_its_router_failed(hf: Holdfast) -> None:
    paid: list[int] = []
    answers: list[Any] = ["nowhere", "done"]
    flow = Flow("pays")

    @flow.node(effect="external")
    async def pay() -> dict[str, Any]:
        paid.append(1)
        return {"receipt": "r"}

    @flow.node(effect="pure")
    async def done() -> dict[str, Any]:
        return {"ok": True}

    flow.start(pay)
    flow.router(pay, lambda s: answers.pop(0), targets=[done])
    failed = await flow.run({}, on=hf)
    assert failed.failed
    assert failed.error is not None
    assert failed.error.code == "routing"
    result = await flow.resume(failed.run_id, on=hf)
    assert result.expect().state["receipt"] == "r"
    assert result.state["ok"] is True
    assert paid == [1]
