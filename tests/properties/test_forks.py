"""Forks of random runs, through the public face and a real store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Flow, Holdfast, append
from holdfast.model.snapshot import dump_position
from holdfast.runs.driver.load import load

Shape = list[tuple[int, list[int], bool]]
"""Per node after the first: (effect, sources among the earlier ones, whether its edges have conditions)."""


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    count = draw(st.integers(2, 6))
    return [
        (
            draw(st.integers(0, 2)),
            draw(st.lists(st.integers(0, i), min_size=1, max_size=2, unique=True)),
            draw(st.booleans()),
        )
        for i in range(count)
    ]


def flow_of(shape: Shape) -> Flow:
    flow = Flow("drawn", reducers={"log": append})
    handles: list[Any] = []
    for i, (kind, _, _) in enumerate([(0, [], False), *shape]):

        async def work(s: dict[str, Any], i: int = i) -> dict[str, Any]:
            return {f"n{i}": i, "log": [i], "last": i}

        handles.append(flow.node(id=f"n{i}", effect=("pure", "read", "external")[kind])(work))
    for i, (_, sources, conditional) in enumerate(shape, start=1):
        for source in sources:
            flow.edge(handles[source], handles[i], when=f"n{source} > {i // 2}" if conditional else None)
    return flow


async def everything(hf: Holdfast, run: str) -> list[Any]:
    service = await hf.service()
    row = await service.get(run)
    return [row, await service.store.read(row.id), await service.store.events(row.id, after=0, limit=10_000)]


async def check(shape: Shape, place: float, *, patched: bool) -> None:
    flow = flow_of(shape)
    async with Holdfast("memory:") as hf:
        source = (await flow.run({}, on=hf)).expect()
        service = await hf.service()
        before = await everything(hf, source.run_id)
        seq = int(place * before[0].head)
        patch = {"scratch": {"mark": seq}} if patched else None
        row = await service.fork(source.run_id, seq, patch=patch)
        assert await everything(hf, source.run_id) == before
        program = flow.program()
        codec, blobs = service.runtime.codec_for(program), service.runtime.blobs
        forked = await load(service.store, codec, program.graph, row.id, blobs=blobs)
        again = await load(service.store, codec, program.graph, row.id, blobs=blobs)
        assert dump_position(forked.pos) == dump_position(again.pos)
        picture = await service.checkpoint(row.id, 0)
        there = await service.checkpoint(source.run_id, seq)
        assert (picture.visited, picture.skipped) == (there.visited, there.skipped)
        result = await flow.resume(row.id, on=hf)
        while result.holds:
            # An effect whose intent the fork found open: nobody knows, so somebody is asked.
            await service.answer(result.holds[0].id, "not_happened")
            result = await flow.resume(row.id, on=hf)
        expected = {**source.state, "mark": seq} if patched else source.state
        assert result.expect().state == expected
        assert sorted((await service.latest(row.id)).visited) == sorted(
            (await service.latest(source.run_id)).visited
        )
        assert await everything(hf, source.run_id) == before


@pytest.mark.covers("CORE-PROP-04", "G-5", "CORE-CKPT-16")
@settings(max_examples=60, deadline=None)
@given(shape=shapes(), place=st.floats(0, 1), patched=st.booleans())
def test_fork_ends_like_its_source_and_leaves_it_alone_wherever_it_begins(
    shape: Shape, place: float, patched: bool
) -> None:
    asyncio.run(check(shape, place, patched=patched))
