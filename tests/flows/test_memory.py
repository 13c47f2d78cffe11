from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.runs.node_memory import InProcessMemory
from holdfast.types.memory import Memory
from holdfast.types.record import Kind
from tests.flows.places import Place, answer

pytestmark = pytest.mark.anyio


def contents(found: list[Memory]) -> list[str]:
    return [memory.content for memory in found]


def remembering() -> Flow:
    flow = Flow("remembers", effect="read")

    @flow.node
    async def learn(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        before = await ctx.memory.read(s["about"])
        await ctx.memory.write(f"knows {s['about']}", type="semantic")
        return {"before": contents(before)}

    return flow


@pytest.mark.covers("CORE-CTX-06")
async def test_one_run_reads_what_another_wrote_when_memory_is_in_the_store(place: Place) -> None:
    flow = remembering()
    first = await flow.run({"about": "steel"}, on=await place.hf())
    second = await flow.run({"about": "steel"}, on=await place.hf())
    other = await flow.run({"about": "glass"}, on=await place.hf())
    assert first.state["before"] == []
    assert second.state["before"] == ["knows steel"]
    assert other.state["before"] == []


@pytest.mark.covers("CORE-CTX-05")
async def test_memory_is_shared_in_the_process_when_the_instance_is_given_one(place: Place) -> None:
    memory = InProcessMemory()
    flow = remembering()
    await flow.run({"about": "steel"}, on=await place.hf(memory=memory))
    result = await flow.run({"about": "steel"}, on=await place.hf(memory=memory))
    assert result.state["before"] == ["knows steel"]
    without = await flow.run({"about": "steel"}, on=await place.hf(memory=InProcessMemory()))
    assert without.state["before"] == []


async def test_tenants_and_runs_have_memories_of_their_own(hf: Holdfast) -> None:
    flow = Flow("scopes", effect="read")

    @flow.node
    async def learn(ctx: Context) -> dict[str, Any]:
        await ctx.memory.write("ours")
        await ctx.memory.write("mine", scope="run")
        shared, own = await ctx.memory.read(), await ctx.memory.read(scope="run")
        return {"shared": len(shared), "own": contents(own)}

    for expected in (1, 2):
        result = await flow.run(on=hf)
        assert result.state == {"shared": expected, "own": ["mine"]}
    result = await flow.run(on=hf, tenant="another")
    assert result.state == {"shared": 1, "own": ["mine"]}


def asking(consistency: str, log: list[list[str]]) -> Flow:
    flow = Flow("asks", memory=consistency)

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        found = contents(await ctx.memory.read())
        log.append(found)
        await ctx.memory.write("from the run")
        await ctx.ask("Well?", options=["yes"])
        return {"found": found}

    return flow


def trace(content: str) -> Memory:
    return Memory(id=content, tenant="default", scope="global", type="episodic", content=content)


@pytest.mark.parametrize("consistency", ["snapshot", "journaled"])
@pytest.mark.covers("D-22", "CORE-CTX-07")
async def test_a_recorded_read_gives_the_same_when_the_node_is_entered_again(
    place: Place, consistency: str
) -> None:
    log: list[list[str]] = []
    flow = asking(consistency, log)
    hf = await place.hf()
    store = await hf.open()
    await store.put_memory(trace("old"))
    result = await flow.run(on=hf)
    await store.put_memory(trace("new"))
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.state["found"] == ["old"]
    assert log == [["old"], ["old"]]
    records = [r for r in await store.read(result.run_id) if r.kind == Kind.substep and r.effect == "memory"]
    assert len(records) == 2


@pytest.mark.covers("D-22")
async def test_a_live_read_sees_what_is_new_when_the_node_is_entered_again(place: Place) -> None:
    log: list[list[str]] = []
    flow = asking("live", log)
    hf = await place.hf()
    result = await flow.run(on=hf)
    await (await hf.open()).put_memory(trace("new"))
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert log == [[], ["new", "from the run"]]


async def everything(hf: Holdfast) -> list[str]:
    found = await (await hf.open()).find_memories(tenant="default", scope="global", query="", limit=99)
    return contents(found)


@pytest.mark.parametrize(
    ("consistency", "while_it_waits"), [("snapshot", ["from the run"]), ("journaled", [])]
)
@pytest.mark.covers("D-22", "CORE-CTX-08")
async def test_a_journaled_write_is_pending_until_its_node_has_settled(
    place: Place, consistency: str, while_it_waits: list[str]
) -> None:
    flow = asking(consistency, [])
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert await everything(hf) == while_it_waits
    await answer(hf, result, "yes")
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert await everything(hf) == ["from the run"]


@pytest.mark.covers("D-22", "CORE-CTX-08")
async def test_a_journaled_write_is_applied_once_when_the_worker_dies_again_and_again(place: Place) -> None:
    flow = Flow("dies", memory="journaled")

    async def nothing() -> None:
        return None

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        await ctx.memory.write("one")
        await ctx.step("wire", nothing, effect="external", idempotent=True)
        await ctx.memory.write("two")
        return {}

    run = await place.crash(flow, {}, "after_intent")
    hf = await place.hf()
    assert await everything(hf) == []
    assert (await flow.resume(run, on=hf)).completed
    assert await everything(hf) == ["two", "one"]


@pytest.mark.covers("D-22")
async def test_a_journaled_write_is_never_applied_when_its_node_fails(hf: Holdfast) -> None:
    flow = Flow("fails", effect="read", memory="journaled")

    @flow.node
    async def work(ctx: Context) -> dict[str, Any]:
        await ctx.memory.write("never")
        raise ValueError("no")

    assert (await flow.run(on=hf)).failed
    assert await everything(hf) == []


@pytest.mark.covers("CORE-CTX-08")
async def test_a_journaled_write_reaches_a_memory_outside_the_store_when_its_node_has_settled(
    place: Place,
) -> None:
    memory = InProcessMemory()
    hf = await place.hf(memory=memory)
    flow = asking("journaled", [])
    result = await flow.run(on=hf)
    assert await memory.read("default", "global", "", 9) == []
    await answer(hf, result, "yes")
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert contents(await memory.read("default", "global", "", 9)) == ["from the run"]
    assert await everything(hf) == []


@pytest.mark.covers("R-60")
async def test_a_sync_node_has_a_memory_too(hf: Holdfast) -> None:
    flow = Flow("thread", effect="read", memory="snapshot")

    @flow.node
    def learn(ctx: Context) -> dict[str, Any]:
        ctx.memory.write("from a thread")  # type: ignore[unused-coroutine]
        found: Any = ctx.memory.read("thread")
        return {"found": contents(found)}

    assert (await flow.run(on=hf)).state == {"found": ["from a thread"]}
