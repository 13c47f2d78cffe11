"""Flows that stop, for the tests of breakpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast import Flow, Holdfast
from holdfast.types.hold import HoldRow
from tests.flows.conftest import node
from tests.flows.places import open_holds


def inner(log: list[str]) -> Flow:
    child = Flow("child", effect="pure")

    @child.node
    async def deep() -> dict[str, Any]:
        log.append("x")
        return {"n": 2}

    return child


def with_stop(kind: str, log: list[str], stop: Any = True) -> Flow:
    """`a`, then `x` of this kind with a breakpoint, then `z`."""
    flow = Flow("stops", effect="pure")

    def work() -> None:
        log.append("x")

    node(flow, "a", {"n": 1, "items": [1, 2]})
    if kind in ("node", "script"):
        getattr(flow, kind)(id="x", breakpoint=stop)(work)
    elif kind == "guardrail":
        flow.guardrail("x", breakpoint=stop)(work)
    elif kind == "hold":
        flow.hold("x", prompt="Well?", options=["yes"], breakpoint=stop)
    elif kind == "timer":
        flow.timer("x", "1h", breakpoint=stop)
    elif kind == "map":
        flow.map("x", over="items", body=lambda item: log.append("x"), into="out", breakpoint=stop)
    else:
        flow.subflow("x", inner(log), inputs={"n": "n"}, breakpoint=stop)
    node(flow, "z")
    flow.chain("a", "x", "z")
    return flow


async def the_stop(hf: Holdfast, run: str) -> HoldRow:
    (hold,) = await open_holds(hf, run)
    assert hold.type == "debug_breakpoint"
    return hold


KINDS = ["node", "script", "guardrail", "hold", "timer", "map", "subflow"]


def plain(log: list[str]) -> Flow:
    flow = Flow("plain", effect="pure")

    def noting(name: str) -> Callable[[], None]:
        return lambda: log.append(name)

    for name in ("one", "two", "three"):
        flow.node(id=name)(noting(name))
    flow.chain("one", "two", "three")
    return flow
