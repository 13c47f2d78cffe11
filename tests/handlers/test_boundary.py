"""Kinds of user callable x kinds of misbehaviour: the node fails or asks, the neighbours complete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from holdfast import Flow, Holdfast, RunSettings, RunStatus, Worker
from tests.deadlines import HANG
from tests.flows.places import told
from tests.handlers.callables import BOTH, PLAIN, Bad, Case
from tests.handlers.misbehaviours import OF_TASKS, RAISED, as_coroutine, cancels_itself_and_returns

pytestmark = pytest.mark.anyio
SETTINGS = RunSettings(grace=0.2, poll=0.02, hot_timer=0.0)
# Only a hanging worker takes so long.
PATIENCE = HANG

PLAIN_CASES = [(kind, bad) for kind in (*BOTH, *PLAIN) for bad in RAISED]
ASYNC_CASES = [(kind, as_coroutine(bad)) for kind in BOTH for bad in (*RAISED, *OF_TASKS)]
NAMES = [f"{kind.__name__}-{bad.__name__}" for kind, bad in PLAIN_CASES] + [
    f"{kind.__name__}-async-{bad.__name__}" for kind in BOTH for bad in (*RAISED, *OF_TASKS)
]


def good() -> Flow:
    flow = Flow("good", effect="pure")

    @flow.node
    async def first() -> dict[str, int]:
        await asyncio.sleep(0)
        return {"found": 1}

    @flow.node
    def second(s: dict[str, int]) -> dict[str, int]:
        return {"found": s["found"] + 1}

    flow.chain(first, second)
    return flow


def also(case: Case, bad: Bad) -> set[RunStatus]:
    """A function that cancels the task of its node fails the node, unless it leaves an effect in doubt."""
    if bad.__name__ == cancels_itself_and_returns.__name__:
        return {RunStatus.failed}
    stops = {each.__name__ for each in OF_TASKS}
    return {RunStatus.failed} if bad.__name__ in stops and case.ends is RunStatus.completed else set()


@pytest.mark.covers("SAFE-HANDLER-01", "SAFE-HANDLER-02")
@pytest.mark.parametrize(("kind", "bad"), PLAIN_CASES + ASYNC_CASES, ids=NAMES)
async def test_only_the_node_fails_when_its_code_misbehaves(kind: Callable[[Bad], Case], bad: Bad) -> None:
    case = kind(bad)
    async with Holdfast("memory:", settings=SETTINGS, **case.options) as hf:
        service, beside = await hf.service(), good()
        worker = Worker(case.flow, beside, on=hf)
        row, _ = await service.create(case.flow.program(), dict(case.given))
        fine, _ = await service.create(beside.program(), {})
        async with asyncio.timeout(PATIENCE):
            await worker.run_until_idle()
        row = await service.get(row.id)
        assert row.status in {case.ends, *also(case, bad)}, row.error
        assert (await service.get(fine.id)).status is RunStatus.completed
        if case.node:
            failed = await told(hf, row.id, "node.failed")
            assert case.node in [str(event.node).partition("[")[0] for event in failed]
