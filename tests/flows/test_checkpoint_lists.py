"""A list of checkpoints and each of them alone say the same."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Scripted, tool_call
from holdfast.checkpoint.checkpoint import Checkpoint, CheckpointMeta
from holdfast.runs.service import RunService
from tests.agents.helpers import World, a_flow
from tests.storage.canary import ring

pytestmark = pytest.mark.anyio


def eventful() -> Flow:
    """Memory, a question, a large value."""
    flow = Flow("eventful", effect="read", memory="snapshot")

    async def recall(ctx: Context) -> dict[str, Any]:
        await ctx.memory.write("seen")
        await ctx.memory.read()
        return {"text": "z" * 200_000}

    async def last() -> dict[str, Any]:
        return {"done": True}

    first = flow.node()(recall)
    gate = flow.hold("gate", prompt="Well?", options=["yes"])
    flow.start(first)
    flow.edge(first, gate)
    flow.edge(gate, flow.node()(last))
    return flow


async def ended(hf: Holdfast) -> str:
    flow = eventful()
    run = await flow.run({}, on=hf)
    await (await hf.service()).answer(run.holds[0].id, "yes")
    (await flow.resume(run.run_id, on=hf)).expect()
    return run.run_id


async def require_alike(service: RunService, run: str) -> list[CheckpointMeta]:
    listed = await service.checkpoints(run, limit=0)
    assert listed
    for meta in listed:
        seen = await service.checkpoint(meta.id)
        shown = {name: getattr(seen, name, None) for name in CheckpointMeta.__struct_fields__}
        shown["has_memory_snapshot"] = seen.memory is not None
        assert shown == {name: getattr(meta, name) for name in CheckpointMeta.__struct_fields__}
        assert meta.state_size > 0
    return listed


def test_checkpoint_has_every_field_of_its_line_in_the_list() -> None:
    own = set(Checkpoint.__struct_fields__) | {"has_memory_snapshot"}
    assert set(CheckpointMeta.__struct_fields__) <= own


@pytest.mark.covers("SAFE-READ-08")
async def test_list_and_checkpoint_say_the_same(bare_hf: Holdfast) -> None:
    service, run = await bare_hf.service(), await ended(bare_hf)
    assert [meta.node for meta in await require_alike(service, run)] == [
        "",
        "last",
        "gate",
        "gate",
        "recall",
        "",
    ]
    await service.prune(run, keep=3)
    pruned = await require_alike(service, run)
    assert [meta.has_memory_snapshot for meta in pruned] == [True] * 3
    fork = await service.fork(pruned[-1].id)
    assert (await require_alike(service, fork.id))[-1].has_memory_snapshot


@pytest.mark.covers("SAFE-READ-08")
async def test_list_and_checkpoint_say_the_same_in_an_encrypted_store() -> None:
    async with Holdfast("memory:", keys=ring()) as hf:
        service, run = await hf.service(), await ended(hf)
        await require_alike(service, run)
        await service.prune(run, keep=2)
        await require_alike(service, run)


@pytest.mark.covers("SAFE-READ-08")
@pytest.mark.parametrize("at", ["0", "1", "recall", "gate"])
async def test_moment_of_a_run_is_found_by_record_and_node(bare_hf: Holdfast, at: str) -> None:
    service, run = await bare_hf.service(), await ended(bare_hf)
    row, seq = await service.find(f"{run}@{at}")
    seen = await service.checkpoint(row.id, seq)
    assert seen.seq == seq
    assert seen.node == (at if not at.isdigit() else seen.node)


@pytest.mark.covers("SAFE-READ-08")
async def test_list_and_checkpoint_name_the_same_turn_of_an_agent(bare_hf: Holdfast) -> None:
    flow = a_flow(Scripted(tool_call("look", place="here"), "Done."), World().looks())
    run = (await flow.run({"prompt": "Look."}, on=bare_hf)).expect().run_id
    listed = await require_alike(await bare_hf.service(), run)
    assert [meta.turn for meta in listed if meta.turn is not None]
