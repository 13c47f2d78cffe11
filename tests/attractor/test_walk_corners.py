"""Corners of the walk: what a skipped stage goes by, and what the stage leaves whose failure ends the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast import Holdfast
from holdfast.attractor import StageOutcome
from holdfast.attractor.stored_source import shared_stages
from holdfast.frontends.dot.lower import lower
from holdfast.frontends.dot.parse import parse
from holdfast.model.graph import Edge
from tests.attractor.run import dot, run
from tests.attractor.stages import Stages

pytestmark = pytest.mark.anyio

FIX = """digraph p {
    start [shape=Mdiamond]; end [shape=Msquare]; d [shape=diamond]
    start -> a -> s; s -> d [label=Fix]; s -> plain [weight=1]; plain -> d
    d -> x [label=Fix]; d -> y [weight=1]; x -> end; y -> end
}"""


@pytest.mark.covers("AT-128", "AT-A31", "AT-59")
@pytest.mark.parametrize(("own", "taken"), [("", ["plain", "d", "x"]), ("fix", ["d", "x"])])
async def test_a_skipped_stage_goes_by_its_own_label_and_leaves_that_of_the_stage_before(
    hf: Holdfast, own: str, taken: list[str]
) -> None:
    from holdfast import Outcome as Settled

    stages = Stages(FIX, a=Settled(label="Fix"), s=Settled("skipped", label=own), plain=Settled("skipped"))
    (await stages.run(hf)).expect()
    assert stages.trace == ["start", "a", "s", *taken, "end"]


@pytest.mark.covers("AT-74", "AT-138", "AT-139")
async def test_the_stage_whose_failure_ends_the_run_is_the_last_one_in_the_checkpoint(
    hf: Holdfast, tmp_path: Path
) -> None:
    text = dot("a [prompt=x, max_retries=1]; b [prompt=x]", "start -> b -> a -> done")
    failing = StageOutcome(status="fail", failure_reason="the disk is full")
    found = await run(hf, text, tmp_path / "L", backend=lambda node, *_: failing if node.id == "a" else "")
    assert (found.status, found.completed_nodes) == ("fail", ("start", "b", "a"))
    assert (found.node_outcomes["a"], found.context["outcome"]) == ("fail", "fail")
    shown = json.loads((tmp_path / "L" / "checkpoint.json").read_text())
    assert (shown["current_node"], shown["completed_nodes"]) == ("a", ["start", "b", "a"])
    assert (shown["node_outcomes"]["a"], shown["outcome"]["outcome"]) == ("fail", "fail")
    context = shown["context"]
    assert (context["outcome"], context["current_node"]) == ("fail", "a")
    assert shown["node_retries"] == {"a": context["internal.retry_count.a"]} == {"a": 1}


class Counted(tuple[Edge, ...]):
    """Edges that tell how often somebody went through them."""

    __slots__ = ()
    rounds = 0

    def __iter__(self) -> Iterator[Edge]:
        Counted.rounds += 1
        return super().__iter__()


async def test_the_edges_of_many_branches_are_gone_through_once() -> None:
    branches = " ".join(f"fan -> b{i} -> shared;" for i in range(50))
    ends = "start [shape=Mdiamond]; done [shape=Msquare]; fan [shape=component]; join [shape=tripleoctagon];"
    spec = lower(parse(f"digraph p {{ {ends} start -> fan; {branches} shared -> join -> done }}").pipeline)
    (inner,) = spec.subgraphs
    counted = replace(spec, subgraphs=(replace(inner, edges=Counted(inner.edges)),))
    Counted.rounds = 0
    assert "shared" in shared_stages(counted)
    assert Counted.rounds == 1


@pytest.mark.covers("ATTRACTOR-BOUND-05", "AT-129")
async def test_a_stage_does_not_change_what_the_engine_keeps(hf: Holdfast, tmp_path: Path) -> None:
    said = {"outcome": "success", "context_updates": {"internal.budget.time": 1e9, "mine": 1}}
    file = tmp_path / "status"
    file.write_text(json.dumps(said))
    stage = f'a [shape=parallelogram, tool_command="cp {file} $ATTRACTOR_STAGE_DIR/status.json; sleep 0.05"];'
    text = dot(f"{stage} b [prompt=x];", "start -> a -> b -> done", "budget_time=20ms")
    found = await run(hf, text, tmp_path / "L")
    assert found.context["mine"] == 1
    assert "internal.budget.time" not in found.context
    assert (found.status, "is used up" in found.outcome.failure_reason) == ("fail", True)
