"""A run reads what it wrote itself, and finds memories by type, strength and likeness."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.runs.node_memory import InProcessMemory, MemoryBackend, StoredMemory
from holdfast.types.memory import Memory
from tests.flows.places import Place, answer

pytestmark = pytest.mark.anyio

CONSISTENCIES = ("live", "snapshot", "journaled")
MODES = ("barrier", "strict", "exit")


def contents(found: list[Memory]) -> list[str]:
    return [memory.content for memory in found]


class PlainMemory:
    """A memory that knows only the two methods of the protocol."""

    def __init__(self) -> None:
        self.kept: dict[str, Memory] = {}

    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        found = [
            m for m in self.kept.values() if (m.tenant, m.scope) == (tenant, scope) and query in m.content
        ]
        return found[:limit]

    async def write(self, memory: Memory) -> None:
        self.kept.setdefault(memory.id, memory)


def chain(consistency: str) -> Flow:
    """Its nodes read what they, the nodes before them, branches and children wrote."""
    flow = Flow("chain", effect="pure", memory=consistency)

    async def first(ctx: Context) -> dict[str, Any]:
        await ctx.memory.write("one")
        return {"own": contents(await ctx.memory.read())}

    def second(ctx: Any) -> dict[str, Any]:
        found = contents(ctx.memory.read())
        ctx.memory.write("two")
        return {"next": found, "sync": contents(ctx.memory.read())}

    async def third(ctx: Context) -> dict[str, Any]:
        return {"last": contents(await ctx.memory.read()), "few": contents(await ctx.memory.read(limit=1))}

    nodes = [flow.node(id=name)(each) for name, each in (("a", first), ("b", second), ("c", third))]
    flow.start(nodes[0])
    flow.edge(nodes[0], nodes[1])
    flow.edge(nodes[1], nodes[2])
    return flow


@pytest.mark.covers("SAFE-READ-03")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
async def test_run_reads_its_own_writes_in_every_mode(hf: Holdfast, mode: str, consistency: str) -> None:
    require_own((await chain(consistency).run(on=hf, mode=mode)).expect().state)


@pytest.mark.covers("SAFE-READ-03")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("backend", [InProcessMemory, PlainMemory])
async def test_run_reads_its_own_writes_in_a_memory_outside_the_store(
    mode: str, consistency: str, backend: type[MemoryBackend]
) -> None:
    async with Holdfast("memory:", memory=backend()) as hf:
        require_own((await chain(consistency).run(on=hf, mode=mode)).expect().state)


def require_own(state: dict[str, Any]) -> None:
    assert state["own"] == ["one"]
    assert state["next"] == ["one"]
    assert sorted(state["sync"]) == ["one", "two"]
    assert sorted(state["last"]) == ["one", "two"]
    assert len(state["few"]) == 1


@pytest.mark.covers("SAFE-READ-03")
@pytest.mark.parametrize("consistency", ["snapshot", "journaled"])
async def test_node_that_is_entered_again_reads_its_own_write_again(place: Place, consistency: str) -> None:
    flow = Flow("again", memory=consistency)

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        await ctx.memory.write("mine")
        before = contents(await ctx.memory.read())
        await ctx.ask("Well?", options=["yes"])
        return {"before": before, "after": contents(await ctx.memory.read())}

    hf = await place.hf()
    result = await flow.run(on=hf)
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert (result.state["before"], result.state["after"]) == (["mine"], ["mine"])


@pytest.mark.covers("SAFE-READ-03")
async def test_write_of_a_failed_attempt_is_not_read(hf: Holdfast) -> None:
    flow = Flow("fails", effect="pure", memory="journaled")

    async def bad(ctx: Context) -> None:
        await ctx.memory.write("never")
        raise ValueError("no")

    async def rest(ctx: Context) -> dict[str, Any]:
        return {"found": contents(await ctx.memory.read())}

    one = flow.node(on_failure="skip")(bad)
    flow.start(one)
    flow.edge(one, flow.node()(rest))
    assert (await flow.run(on=hf)).expect().state["found"] == []


@pytest.mark.covers("SAFE-READ-03")
@pytest.mark.parametrize(("consistency", "pending"), [("snapshot", []), ("journaled", ["from the run"])])
async def test_checkpoint_shows_a_write_as_pending_only_until_it_is_committed(
    hf: Holdfast, consistency: str, pending: list[str]
) -> None:
    flow = Flow("asks", effect="pure", memory=consistency)

    async def work(ctx: Context) -> dict[str, Any]:
        await ctx.memory.write("from the run")
        await ctx.ask("Well?", options=["yes"])
        return {}

    async def rest() -> None:
        return None

    one = flow.node()(work)
    flow.start(one)
    flow.edge(one, flow.node()(rest))
    result = await flow.run(on=hf)
    service = await hf.service()
    waiting = await service.latest(result.run_id)
    assert waiting.memory is not None
    assert [each["content"] for each in waiting.memory["pendingWrites"]] == pending
    assert set(waiting.memory["pendingWrites"][0] if pending else ()) <= {"type", "content", "scope"}
    assert waiting.diagnostics["memoryWrites"] == 1
    await answer(hf, result, "yes")
    (await flow.resume(result.run_id, on=hf)).expect()
    for meta in await service.checkpoints(result.run_id, limit=0):
        seen = await service.checkpoint(meta.id)
        done = "work" in seen.visited
        shown = [] if seen.memory is None else seen.memory["pendingWrites"]
        assert [each["content"] for each in shown] == ([] if done else pending * (seen.memory is not None))
    ended = await service.latest(result.run_id)
    assert ended.diagnostics["memoryWrites"] == 1
    assert ended.memory == {"reads": [], "pendingWrites": []}


FILLED = (
    ("a", "The customer prefers steel pipes", "semantic", 0.9),
    ("b", "Ordered forty steel pipes in May", "episodic", 0.6),
    ("c", "Call before delivery", "procedural", 0.3),
    ("d", "Prefers to be called in the morning", "semantic", 0.2),
)


def filled() -> list[Memory]:
    return [
        Memory(id=name, tenant="default", scope="global", type=kind, content=text, strength=strength)
        for name, text, kind, strength in FILLED
    ]


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["a", "b", "c", "d"]),
    ({"types": ["semantic"]}, ["a", "d"]),
    ({"types": ["semantic", "procedural"]}, ["a", "c", "d"]),
    ({"types": ["unknown"]}, []),
    ({"min_strength": 0.3}, ["a", "b", "c"]),
    ({"min_strength": 2}, []),
    ({"query": "steel"}, ["a", "b"]),
    ({"query": "steel", "types": ["episodic"], "min_strength": 0.5}, ["b"]),
    ({"semantic": "what steel pipe is preferred?", "limit": 1}, ["a"]),
    ({"semantic": "calls in mornings", "limit": 2}, ["d", "c"]),
    ({"semantic": "calls in mornings", "min_strength": 0.3, "limit": 1}, ["c"]),
    ({"semantic": "zzz qqq"}, []),
]


async def read_all(hf: Holdfast) -> list[list[str]]:
    """Through `ctx.memory.read`, each filter in turn."""
    flow = Flow("finds", effect="pure")

    async def find(ctx: Context) -> dict[str, Any]:
        found = [await ctx.memory.read(**given) for given, _ in FILTERS]
        return {"found": [[memory.id for memory in each] for each in found]}

    flow.node()(find)
    return (await flow.run(on=hf)).expect().state["found"]


@pytest.mark.covers("SAFE-READ-07")
async def test_stored_memories_are_found_by_type_strength_and_likeness(hf: Holdfast) -> None:
    for each in filled():
        await StoredMemory(await hf.open()).write(each)
    assert await read_all(hf) == [expected for _, expected in FILTERS]


@pytest.mark.covers("SAFE-READ-07")
@pytest.mark.parametrize("backend", [InProcessMemory, PlainMemory])
async def test_memories_elsewhere_are_found_by_type_strength_and_likeness(
    backend: type[MemoryBackend],
) -> None:
    memory = backend()
    for each in filled():
        await memory.write(each)
    async with Holdfast("memory:", memory=memory) as hf:
        assert await read_all(hf) == [expected for _, expected in FILTERS]


@pytest.mark.covers("SAFE-READ-07")
async def test_likeness_is_by_the_given_embedding_where_there_is_one() -> None:
    asked: list[str] = []

    async def embed(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0, 0.0] if "steel" in text or "iron" in text else [0.0, 1.0] for text in texts]

    flow = Flow("finds", effect="pure")

    async def find(ctx: Context) -> dict[str, Any]:
        return {"found": [m.id for m in await ctx.memory.read(semantic="iron")]}

    flow.node()(find)
    for options in ({"embed": embed}, {"memory": InProcessMemory(embed=embed)}):
        async with Holdfast("memory:", **options) as hf:
            memory = (await hf.service()).runtime.memory
            for each in filled():
                await memory.write(each)
            assert (await flow.run(on=hf)).expect().state["found"] == ["a", "b"]
    assert "iron" in asked


@pytest.mark.covers("SAFE-READ-07")
@pytest.mark.parametrize("wrong", [[], [[1.0], [1.0, 2.0]]])
async def test_embedding_that_gives_other_vectors_fails_the_node(wrong: list[list[float]]) -> None:
    async def embed(_texts: list[str]) -> list[list[float]]:
        return wrong

    flow = Flow("finds", effect="pure")

    async def find(ctx: Context) -> None:
        await ctx.memory.write("x")
        await ctx.memory.read(semantic="iron")

    flow.node()(find)
    async with Holdfast("memory:", embed=embed) as hf:
        result = await flow.run(on=hf)
        assert result.error is not None
        assert "one vector for each text" in (result.error.message + str(result.error))
