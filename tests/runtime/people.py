"""Small flows that the tests of the runtime share."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from holdfast import Flow, Holdfast
from holdfast.checkpoint.checkpoint import CheckpointMeta
from holdfast.runs.service import RunService
from tests.deadlines import HANG

T = TypeVar("T")
State = dict[str, Any]


class Seen:
    """What nodes did, in order; and what they are told to do."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.broken = False

    def count(self, name: str) -> int:
        return self.calls.count(name)


def step(flow: Flow, name: str, seen: Seen, **options: Any) -> str:
    """A node that notes that it was called and adds its name to the trace."""

    async def handler(s: State) -> State:
        seen.calls.append(name)
        return {"trace": [*s.get("trace", []), name], name: True}

    return flow.node(id=name, **options)(handler)


def line(name: str, seen: Seen, *names: str, **options: Any) -> Flow:
    flow = Flow(name, **{"effect": "pure", **options})
    nodes = [step(flow, each, seen) for each in names]
    for before, after in itertools.pairwise(nodes):
        flow.edge(before, after)
    return flow


def breaking(name: str, seen: Seen, **options: Any) -> Flow:
    """one, two, three; two raises as long as `seen.broken`."""
    flow = Flow(name, **{"effect": "pure", **options})
    one = step(flow, "one", seen)

    @flow.node
    async def two(s: State) -> State:
        seen.calls.append("two")
        if seen.broken:
            raise RuntimeError("the bank is closed")
        return {"trace": [*s["trace"], "two"]}

    three = step(flow, "three", seen)
    flow.edge(one, two)
    flow.edge(two, three)
    return flow


def approval(name: str, seen: Seen, **hold: Any) -> Flow:
    """before, a question, then `after` if approved."""
    flow = Flow(name, effect="pure")
    before = step(flow, "before", seen)
    options = {"prompt": "Pay {{amount}}?", "options": ["approve", "reject"], **hold}
    gate = flow.hold("gate", **options)
    after = step(flow, "after", seen)
    flow.edge(before, gate)
    flow.edge(gate, after, when="decision == 'approve'")
    return flow


async def listed(hf: Holdfast, run: str) -> list[CheckpointMeta]:
    return await (await hf.service()).checkpoints(run, limit=0)


async def until(found: Callable[[], Awaitable[T]]) -> T:
    """Look until there is something, for five seconds."""
    async with asyncio.timeout(HANG):
        while not (what := await found()):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return what


async def has_status(service: RunService, run: str, status: str) -> bool:
    return (await service.get(run)).status == status
