"""Runs on the server: workers of one instance, and what is compared after each run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from holdfast import Flow, Holdfast
from holdfast.drivers.temporal.client import TemporalEngine
from holdfast.drivers.temporal.payloads import RecordRegistry, Wire
from holdfast.drivers.temporal.worker import EngineWorker
from holdfast.model.snapshot import dump_position
from holdfast.runs.driver.load import load
from holdfast.runs.service import RunService
from tests.deadlines import HANG


async def engine_of(hf: Holdfast) -> TemporalEngine:
    found = (await hf.service()).runtime.engine
    assert isinstance(found, TemporalEngine)
    return found


@asynccontextmanager
async def workers(
    hf: Holdfast, *flows: Flow, count: int = 1, cached: int = 1000
) -> AsyncIterator[list[TemporalEngine]]:
    """Engine workers alone: no built-in one. Each has a connection of its own, as in a process of its own."""
    async with AsyncExitStack() as stack:
        first = await engine_of(hf)
        address = str(hf._given)
        made = [await stack.enter_async_context(_worker(hf, flows, cached))]
        for _ in range(count - 1):
            other = await stack.enter_async_context(Holdfast(address, engine=text_of(first)))
            made.append(await stack.enter_async_context(_worker(other, flows, cached)))
        yield made


def text_of(engine: TemporalEngine) -> str:
    address = engine.cluster.address
    return f"{address.name}?heartbeat={address.heartbeat:g}s"


@asynccontextmanager
async def _worker(hf: Holdfast, flows: Sequence[Flow], cached: int) -> AsyncIterator[TemporalEngine]:
    for flow in flows:
        hf.register(flow.program())
    service = await hf.new_service()
    engine = service.runtime.engine
    assert isinstance(engine, TemporalEngine)
    made = EngineWorker(engine, cached=cached, grace=0.5)
    serving = asyncio.ensure_future(made.serve())
    try:
        yield engine
    finally:
        made.stop()
        await serving
        await service.runtime.close()


async def run(flow: Flow, hf: Holdfast, given: Any = None, **options: Any) -> Any:
    async with asyncio.timeout(HANG):
        return await flow.run(given, on=hf, **options)


async def settled(flow: Flow, hf: Holdfast, run_id: str) -> Any:
    """When it has ended, or waits for a person."""
    async with asyncio.timeout(HANG):
        return await flow.result(run_id, wait=None, on=hf)


async def assert_same(hf: Holdfast, run_id: str) -> None:
    """The folded journal equals the position of the workflow (TD-12)."""
    service = await hf.service()
    engine = await engine_of(hf)
    client = await engine.client()
    raw = await client.get_workflow_handle(run_id).query("holdfast.position", result_type=bytes)
    wire = Wire(RecordRegistry())
    there = wire.read(raw)
    here = wire.read(wire.dump(await _folded(service, run_id, wire)))
    assert here == there
    again = await service.replay(run_id)
    assert again.same, again.difference


async def _folded(service: RunService, run_id: str, wire: Wire) -> dict[str, Any]:
    row = await service.get(run_id)
    program = await service.runtime.find_program(row.version, row.flow)
    codec = wire.codec
    loaded = await load(service.store, codec, program.graph, row.id, blobs=service.runtime.blobs)
    await service.runtime.blobs.materialise(loaded.pos, codec.registry)
    return dump_position(loaded.pos)
