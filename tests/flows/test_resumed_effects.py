"""Runs with effects that fail at random, in branches, items and sub-flows, are resumed and their questions
answered truthfully until they complete: no effect happens twice, and no run stands still."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, Holdfast, NotDone, Retry
from holdfast.types.hold import HoldRow

pytestmark = pytest.mark.anyio

TRIES = 200


class World:
    """What really happened."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.happened: list[str] = []

    async def pause(self) -> None:
        for _ in range(self.chance.randrange(8)):
            await asyncio.sleep(0)

    async def act(self, what: str) -> str:
        await self.pause()
        kind = self.chance.choice(["fine", "fine", "before", "after", "refused"])
        if kind == "refused":
            raise NotDone("refused")
        if kind == "before":
            raise ConnectionError("before it happened")
        self.happened.append(what)
        await self.pause()
        if kind == "after":
            raise ConnectionError("after it happened")
        return what

    async def look(self) -> None:
        await self.pause()
        if self.chance.random() < 0.4:
            raise ValueError("it cannot be read")

    def has(self, hold: HoldRow) -> bool:
        """Of the effect that a question is about."""
        facts = msgspec.json.decode(hold.context)
        what = facts["step"] or facts["place"].partition("[")[0]
        item = hold.prompt.partition("branch '")[2][:1] or facts.get("item", "")
        return f"{what} {item}" in self.happened


def flow_of(world: World) -> Flow:
    flow = Flow("all-kinds", effect="read")
    begin = flow.node(id="begin")(lambda: None)

    async def item(item: str) -> str:
        return await world.act(f"each {item}")

    async def inner() -> None:
        await world.act("sub/pay ")

    child = Flow("child", effect="read")
    start = child.node(id="start")(lambda: None)
    child.edge(start, child.node(id="pay", effect="external")(inner))
    child.edge(start, child.node(id="look")(world.look))

    @flow.script
    async def script(ctx: Context) -> dict[str, Any]:
        async def one(item: str) -> str:
            await ctx.step("item", world.act, f"item {item}", effect="external")
            await world.look()
            return item

        last = ctx.step("last", world.act, "last ", effect="external", retry=Retry(2, delay="1ms"))
        return {"out": await ctx.gather(ctx.map(one, ["a", "b"], item_key=str), last)}

    each = flow.map("each", over="items", body=item, into="done", effect="external", concurrency=2)
    for target in (each, flow.subflow("sub", child), script, flow.node(id="look")(world.look)):
        flow.edge(begin, target)
    return flow


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.covers("D-15", "D-20", "G-35", "G-36")
async def test_no_effect_happens_twice_and_each_run_ends_when_it_is_resumed(hf: Holdfast, seed: int) -> None:
    world = World(seed)
    flow, service = flow_of(world), await hf.service()
    result = await flow.run({"items": ["x", "y", "z"]}, on=hf)
    for _ in range(TRIES):
        if result.completed:
            break
        for hold in result.holds:
            if world.chance.random() < 0.6:
                await service.answer(hold.id, "happened" if world.has(hold) else "not_happened")
        result = await flow.resume(result.run_id, on=hf)
    assert result.completed, result
    once = [*(f"each {item}" for item in "xyz"), "item a", "item b", "last ", "sub/pay "]
    assert Counter(world.happened) == Counter(once)
