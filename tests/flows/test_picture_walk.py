"""What a checkpoint carries for a walk to go on: gates, retry counters, artifacts, fidelity (seed 004)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Outcome, Retry
from holdfast.checkpoint.checkpoint import ArtifactRef, Checkpoint, FidelityState
from holdfast.checkpoint.registry import EMPTY
from holdfast.engine import walk_mode
from holdfast.model.graph import WalkSpec
from holdfast.testing.conformance.flows import add
from holdfast.types.value import BlobRef
from tests.flows.places import Place, answer

pytestmark = pytest.mark.anyio

LARGE = bytes(range(256)) * 1000


def checked() -> Flow:
    """`check` is a gate that is met when it is asked for the second time."""
    flow = Flow("checked", effect="pure", traversal="walk")
    add(flow, "build", lambda s: {"n": s["n"] + 1})
    add(
        flow,
        "check",
        lambda s: Outcome("success" if s["n"] > 1 else "fail"),
        walk=WalkSpec(goal_gate=True, retry_target="build"),
    )
    add(flow, "end", {}, walk=WalkSpec(terminal=True))
    flow.start("build")
    flow.edge("build", "check")
    flow.edge("check", "end", when="outcome == 'fail'")
    flow.edge("check", "end", when="outcome != 'fail'")
    return flow


async def pictures(hf: Holdfast, run: str, node: str) -> list[Checkpoint]:
    """Of every checkpoint of a node, oldest first."""
    service = await hf.service()
    found = await service.checkpoints(run, node=node, limit=0)
    return [await service.checkpoint(each.id) for each in reversed(found)]


@pytest.mark.covers("CORE-CKPT-15")
async def test_checkpoint_tells_of_each_gate_whether_it_was_met(hf: Holdfast) -> None:
    result = await checked().run({"n": 0}, on=hf)
    result.expect()
    assert [p.goal_gates for p in await pictures(hf, result.run_id, "build")] == [{}, {"check": False}]
    first, second = await pictures(hf, result.run_id, "check")
    assert first.goal_gates == {"check": False}
    assert second.goal_gates == {"check": True}


@pytest.mark.covers("CORE-CKPT-15")
async def test_checkpoint_counts_retries_until_the_node_succeeds(place: Place) -> None:
    flow = Flow("retries", traversal="walk", effect="read")
    tries: list[int] = []

    @flow.node(retry=Retry(3, delay="1h"))
    async def flaky() -> dict[str, Any]:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("no")
        return {}

    hf = await place.hf()
    result = await flow.run({}, on=hf)
    service = await hf.service()
    counted: list[dict[str, int]] = []
    while not result.completed:
        assert not result.failed
        row = await service.get(result.run_id)
        counted.append((await service.checkpoint(result.run_id, row.head)).retries)
        place.clock.advance(hours=3)
        await service.store.fire_timers(limit=10)
        result = await flow.resume(result.run_id, on=await place.hf())
    assert counted == [{"flaky": 1}, {"flaky": 2}]
    assert (await service.latest(result.run_id)).retries == {}


@pytest.mark.covers("CORE-CKPT-15")
async def test_checkpoint_names_every_artifact_and_where_the_large_ones_lie(hf: Holdfast) -> None:
    flow = Flow("gives", effect="pure", traversal="walk")

    @flow.node
    async def gives(ctx: Context) -> None:
        ctx.artifact("note", "short")
        ctx.artifact("film", LARGE)

    result = await flow.run({}, on=hf)
    service = await hf.service()
    picture = await service.latest(result.run_id)
    assert picture.artifacts == {"note": "short", "film": LARGE}
    assert picture.artifact_refs["note"] == ArtifactRef()
    film = picture.artifact_refs["film"]
    assert film.digest is not None
    stored = await service.runtime.blobs.content(bytes.fromhex(film.digest))
    assert stored is not None
    assert film.size == len(stored)
    ref = BlobRef(bytes.fromhex(film.digest), film.size)
    assert await service.runtime.blobs.fetch(ref, EMPTY) == LARGE


@pytest.mark.covers("CORE-CKPT-15")
async def test_checkpoint_serves_the_fidelity_of_a_walk_through_a_wait_and_a_fork(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = {"mode": "summary:high", "summaries": {"plan": "build, then check"}}
    note = walk_mode.note_outcome

    def with_fidelity(graph: Any, scope: Any, execution: Any, message: Any) -> None:
        note(graph, scope, execution, message)
        if graph.nodes[execution.node].id == "plan":
            scope.walk["fidelity"] = noted

    monkeypatch.setattr(walk_mode, "note_outcome", with_fidelity)
    flow = Flow("plans", effect="pure", traversal="walk")
    for name in ("first", "plan", "end"):
        add(flow, name, {})
    flow.hold("ask", prompt="Go?", options=["yes"])
    flow.chain("first", "plan", "ask", "end")
    hf = await place.hf()
    result = await flow.run({}, on=hf)
    service = await hf.service()
    (first,) = await pictures(hf, result.run_id, "first")
    assert first.fidelity_state == FidelityState(mode=None, summaries={})
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    ended = await service.latest(result.run_id)
    assert ended.fidelity_state == FidelityState(**noted)
    (plan,) = await pictures(hf, result.run_id, "plan")
    fork = await service.fork(plan.id)
    assert (await service.checkpoint(fork.id, 0)).fidelity_state == FidelityState(**noted)


async def test_checkpoint_says_that_there_is_no_fidelity_when_the_flow_is_no_walk(hf: Holdfast) -> None:
    flow = Flow("plain", effect="pure")
    add(flow, "a", {})
    result = await flow.run({}, on=hf)
    picture = await (await hf.service()).latest(result.run_id)
    assert (picture.fidelity_state.mode, picture.fidelity_state.summaries) == (None, {})


@pytest.mark.covers("CORE-CKPT-16")
@pytest.mark.parametrize("label", ["left", "right"])
@pytest.mark.parametrize("point", ["after_handler", "inside_settle", "after_settle"])
async def test_walk_goes_the_same_way_when_its_worker_dies_around_the_selection_of_an_edge(
    place: Place, point: str, label: str
) -> None:
    """Before the edge is on record it is chosen again; afterwards it stays chosen. One condition reads the
    state, the label decides between the others, and weight and name would decide otherwise."""
    flow = Flow("ways", effect="read", traversal="walk", mode="strict", reducers={"log": "append"})
    add(flow, "first", {"log": ["first"]})
    add(flow, "fork", lambda s: Outcome("success", {"log": ["fork"]}, label=s["wanted"]))
    for name in ("aside", "left", "right"):
        add(flow, name, {"log": [name]})
        flow.edge("fork", name, label=name, **({"when": "n > 5", "weight": 9} if name == "aside" else {}))
    flow.start("first")
    flow.edge("first", "fork")
    run = await place.crash(flow, {"log": [], "n": 1, "wanted": label}, point, nth=2)
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.expect().state["log"] == ["first", "fork", label]
    service = await hf.service()
    for seq in range((await service.get(run)).head + 1):
        forked = await flow.fork(run, seq, on=hf)
        assert forked.expect().state["log"] == ["first", "fork", label], seq
