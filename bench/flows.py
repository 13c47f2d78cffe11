"""The flows that are measured."""

from __future__ import annotations

import base64
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Annotated, Any

from holdfast import Flow
from holdfast.model.reducer_marks import append

ENDLESS = 1_000_000_000


@dataclass
class Count:
    limit: int = 0
    n: int = 0


@dataclass
class Grow(Count):
    messages: Annotated[list[str], append] = field(default_factory=list[str])


@dataclass
class Carry(Count):
    weight: str = ""


def message(number: int, size: int = 1000) -> str:
    """Text that does not compress below three quarters."""
    return base64.b64encode(random.Random(number).randbytes(size))[:size].decode()


async def count_up(state: Count) -> dict[str, Any]:
    return {"n": state.n + 1}


def line_of(nodes: int, mode: str = "barrier") -> Flow:
    """Trivial nodes one after the other."""
    flow = Flow(f"line-{nodes}", state=Count, effect="pure", mode=mode)
    flow.chain(*(flow.node(id=f"n{number:05}")(count_up) for number in range(nodes)))
    return flow


def ring_of(nodes: int, mode: str = "barrier") -> Flow:
    """The same, around and around until `limit` steps are done."""
    flow = Flow(f"ring-{nodes}", state=Count, effect="pure", mode=mode)
    handles = [flow.node(id=f"n{number:05}")(count_up) for number in range(nodes)]
    flow.start(handles[0])
    flow.chain(*handles)
    flow.loop(handles[-1], handles[0], when="n < limit", max=ENDLESS)
    return flow


Stepper = Callable[[Any], Awaitable[dict[str, Any]]]


class Looped:
    """One node, again and again until `limit` steps are done; remembers when each of them began."""

    def __init__(self, name: str, state: type, work: Stepper, mode: str = "barrier", after: int = 0) -> None:
        """`after`: how many more nodes the graph has, which are not reached while the loop runs."""
        self.flow = Flow(name, state=state, effect="pure", mode=mode)
        self.times: list[float] = []
        times = self.times

        async def step(s: Any) -> dict[str, Any]:
            times.append(perf_counter())
            return await work(s)

        first = self.flow.node(id="step")(step)
        self.flow.start(first)
        self.flow.loop(first, first, when="n < limit", max=ENDLESS)
        if after:
            rest = [self.flow.node(id=f"r{number:05}")(count_up) for number in range(after)]
            self.flow.edge(first, rest[0], otherwise=True)
            self.flow.chain(*rest)


MESSAGES = [message(number) for number in range(1000)]


async def grow(state: Grow) -> dict[str, Any]:
    return {"n": state.n + 1, "messages": [MESSAGES[state.n % 1000]]}


def siblings(count: int) -> Flow:
    """One node, then many that are ready together, then one that waits for all of them."""
    flow = Flow(f"siblings-{count}", state=Count, effect="pure")

    async def nothing() -> dict[str, Any]:
        return {}

    first = flow.node(id="first")(count_up)
    last = flow.node(id="last")(count_up)
    for number in range(count):
        one = flow.node(id=f"s{number:05}")(nothing)
        flow.edge(first, one)
        flow.edge(one, last)
    return flow


def person(queue: str | None = None) -> Flow:
    """`queue`: the queue that it asks in."""
    flow = Flow(
        "person" if queue is None else f"person-{queue.replace('/', '-')}", state=Count, effect="pure"
    )
    before = flow.node(id="before")(count_up)
    ask = flow.hold("ask", prompt="Go on?", options=["yes", "no"], queue=queue)
    after = flow.node(id="after")(count_up)
    flow.chain(before, ask, after)
    return flow
