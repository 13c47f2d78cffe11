"""Microsoft Agent Framework's workflows with file checkpoints: one file a superstep, without fsync."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

from kit import (
    GROWTH,
    LONG,
    PEOPLE,
    PERSON,
    RESUME,
    STEP,
    STEPS,
    STORED,
    ends,
    folder,
    heavy,
    main,
    measure,
    message,
    now,
    stored,
)

logging.disable(logging.WARNING)
from agent_framework import (  # noqa: E402
    Executor,
    FileCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)

MESSAGES = [message(number) for number in range(LONG + 100)]
NAME = "Agent Framework file (no fsync)"
TIMES: list[float] = []


class Node(Executor):
    def __init__(self, id: str, last: bool) -> None:  # noqa: A002
        super().__init__(id=id)
        self.last = last

    @handler
    async def go(self, x: int, ctx: WorkflowContext[int, int]) -> None:
        await (ctx.yield_output(x + 1) if self.last else ctx.send_message(x + 1))


class Grower(Executor):
    def __init__(self, limit: int) -> None:
        super().__init__(id="grower")
        self.limit = limit

    @handler
    async def go(self, x: int, ctx: WorkflowContext[int, int]) -> None:
        TIMES.append(now())
        log = ctx.get_state("messages") or []
        log.append(MESSAGES[x % LONG])
        ctx.set_state("messages", log)
        await (ctx.yield_output(x + 1) if x + 1 >= self.limit else ctx.send_message(x + 1))


class Counter(Executor):
    def __init__(self, limit: int, weight: str) -> None:
        super().__init__(id="counter")
        self.limit, self.weight = limit, weight

    @handler
    async def go(self, x: int, ctx: WorkflowContext[int, int]) -> None:
        if x == 0:
            ctx.set_state("weight", self.weight)
        ctx.set_state("n", x)
        await (ctx.yield_output(x) if x + 1 >= self.limit else ctx.send_message(x + 1))


class Start(Executor):
    @handler
    async def go(self, x: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(x)


class Asker(Executor):
    @handler
    async def go(self, x: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.request_info({"question": "approve?"}, int)

    @response_handler
    async def answer(self, original: dict, value: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(value + 1)


def looped(node: Executor, place: Path, steps: int) -> Any:
    keeper = FileCheckpointStorage(str(place))
    builder = WorkflowBuilder(
        start_executor=node, max_iterations=10 * steps + 100, name="w", checkpoint_storage=keeper
    )
    return builder.add_edge(node, node).build()


def row_a() -> None:
    async def run(keep: bool) -> float:
        with folder() as place:
            nodes = [Node(f"n{i}", i == STEPS - 1) for i in range(STEPS)]
            keeper = FileCheckpointStorage(str(place)) if keep else None
            builder = WorkflowBuilder(
                start_executor=nodes[0], max_iterations=10 * STEPS, name="w", checkpoint_storage=keeper
            )
            for source, target in pairwise(nodes):
                builder = builder.add_edge(source, target)
            flow = builder.build()
            began = now()
            await flow.run(0)
            return (now() - began) / STEPS

    measure("A", "Agent Framework none", lambda: run(False), STEP)
    measure("A", NAME, lambda: run(True), STEP, rounds=3)


def row_b() -> None:
    async def once() -> tuple[float, float]:
        with folder() as place:
            TIMES.clear()
            await looped(Grower(LONG), place, LONG).run(0)
            return ends(TIMES), stored(place)

    measure("B", NAME, once, GROWTH, STORED, rounds=1, warm=0)


def row_c() -> None:
    weight = heavy()

    async def once() -> tuple[float, float]:
        with folder() as place:
            flow = looped(Counter(STEPS, weight), place, STEPS)
            began = now()
            await flow.run(0)
            return (now() - began) / STEPS, stored(place)

    measure("C", NAME, once, STEP, STORED, rounds=2, warm=0)


def row_e() -> None:
    async def once() -> float:
        with folder() as place:
            await looped(Grower(LONG), place, LONG).run(0)
            found = await FileCheckpointStorage(str(place)).list_checkpoints(workflow_name="w")
            last = [one for one in sorted(found, key=lambda one: one.timestamp) if one.messages][-1]
            flow = looped(Grower(1), place, LONG)
            began = now()
            await flow.run(checkpoint_id=last.checkpoint_id)
            return now() - began

    measure("E", NAME, once, RESUME, rounds=1, warm=0)


def row_f() -> None:
    async def once() -> float:
        with folder() as place:
            took = 0.0
            for _ in range(PEOPLE):
                start, ask = Start(id="start"), Asker(id="ask")
                keeper = FileCheckpointStorage(str(place))
                builder = WorkflowBuilder(start_executor=start, name="w", checkpoint_storage=keeper)
                flow = builder.add_edge(start, ask).build()
                began = now()
                asked = (await flow.run(0)).get_request_info_events()
                await flow.run(responses={asked[0].request_id: 41})
                took += now() - began
            return took / PEOPLE

    measure("F", f"{NAME}, same process", once, PERSON)


if __name__ == "__main__":
    main({"A": row_a, "B": row_b, "C": row_c, "E": row_e, "F": row_f})
