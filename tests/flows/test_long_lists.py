"""Lists that were left in the journal (D-27): whoever looks finds them whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from holdfast import Flow, Holdfast, append
from holdfast.model.child_scopes import child_result
from holdfast.model.growing_lists import Segment
from holdfast.model.position import new_scope
from holdfast.types.value import FrozenDict

pytestmark = pytest.mark.anyio

LONG = 300  # records: more than a snapshot waits for


@dataclass
class Log:
    n: int = 0
    lines: Annotated[list[str], append] = field(default_factory=list)


def growing() -> Flow:
    """Grows for a long time, asks, then goes on with a node that reads only the counter."""
    flow = Flow("growing", state=Log, effect="pure", reducers={"artifacts.trail": "append"})

    @flow.node
    async def work(s: Log, ctx: Any) -> dict[str, Any]:
        ctx.artifact("trail", [s.n])
        return {"n": s.n + 1, "lines": [f"line {s.n}"]}

    flow.loop(work, work, when=f"n < {LONG}", max=LONG)
    ask = flow.hold("ask", prompt="On?", options=["yes"])

    @flow.node
    async def on(s: Log) -> dict[str, Any]:
        return {"n": s.n + 1}

    flow.chain(work, ask, on)
    return flow


async def resumed(hf: Holdfast) -> tuple[Flow, Any]:
    flow = growing()
    paused = await flow.run({}, on=hf)
    await (await hf.service()).answer(paused.holds[0].id, "yes")
    return flow, (await flow.resume(paused.run_id, on=hf)).expect()


@pytest.mark.covers("FLEET-PG-16")
async def test_result_has_the_whole_lists_when_nobody_looked_at_them(hf: Holdfast) -> None:
    _, result = await resumed(hf)
    assert result.state.n == LONG + 1
    assert result.artifacts["trail"] == list(range(LONG))
    assert result.state.lines == [f"line {i}" for i in range(LONG)]


async def test_fork_has_the_whole_lists_when_it_is_patched(hf: Holdfast) -> None:
    flow, result = await resumed(hf)
    head = (await (await hf.service()).get(result.run_id)).head
    forked = await flow.fork(result.run_id, head, patch={"scratch": {"n": 7}}, on=hf)
    assert forked.state.n == 7
    assert forked.state.lines == [f"line {i}" for i in range(LONG)]
    assert forked.artifacts["trail"] == list(range(LONG))


def test_owner_gets_whole_lists_when_its_child_was_loaded_and_never_looked() -> None:
    scope = new_scope("m.1[0]/", "m", {"input": FrozenDict({}), "scratch": {}, "artifacts": {}})
    scope.tree.values["scratch"]["log"] = Segment([], [], 2, lambda _segment: ["a", "b"])
    scope.tree.lazy.add(("scratch", "log"))
    assert child_result(scope)["state"]["log"] == ["a", "b"]
