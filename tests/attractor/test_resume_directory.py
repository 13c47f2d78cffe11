"""Going on from a run directory: of this store, of another machine, of another runner."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.errors import InputError, VersionMismatchError
from holdfast.frontends.dot.document import Stage
from tests.attractor.run import dot, line, until
from tests.flows.conftest import Positions, assert_replays

pytestmark = pytest.mark.anyio

THREE = line("a; b; c;", "a", "b", "c")


@pytest.fixture
async def elsewhere(anyio_backend: str, positions: Positions) -> AsyncIterator[Holdfast]:
    """Another machine: a store that knows nothing of the first."""
    async with Holdfast("memory:") as opened:
        yield opened
        service = await opened.service()
        for run, live in list(positions.items()):
            if await service.store.get_run(run) is not None:
                await assert_replays(opened, run, live)
                del positions[run]


class Script:
    """A backend that says who was asked; a stage may stop the world once."""

    def __init__(self, *, dies_at: str = "", **said: Any) -> None:
        self.trace: list[str] = []
        self.seen: dict[str, dict[str, Any]] = {}
        self.dies_at = dies_at
        self.said = said

    def run(self, node: Stage, prompt: str, context: PipelineContext) -> Any:
        self.trace.append(node.id)
        self.seen[node.id] = context.snapshot()
        if node.id == self.dies_at:
            self.dies_at = ""
            return StageOutcome(status="fail", failure_reason="the machine is gone", terminal=True)
        said = self.said.get(node.id)
        return said.pop(0) if isinstance(said, list) else said or f"{node.id} well"


def checkpoint(logs: Path) -> dict[str, Any]:
    return json.loads((logs / "checkpoint.json").read_text())


def write_checkpoint(logs: Path, **fields: Any) -> Path:
    """As a runner writes it that knows the specification and nothing of us."""
    logs.mkdir(parents=True, exist_ok=True)
    usual = {"timestamp": "2026-03-17T10:00:00Z", "node_retries": {}, "context": {}, "logs": []}
    (logs / "checkpoint.json").write_text(json.dumps({**usual, **fields}))
    return logs


def status(logs: Path, stage: str, **fields: Any) -> None:
    (logs / stage).mkdir(parents=True, exist_ok=True)
    (logs / stage / "status.json").write_text(json.dumps(fields))


@pytest.mark.covers("ATTRACTOR-CLI-02", "AT-155", "AT-152", "ATTRACTOR-DIR-06")
async def test_a_directory_of_this_store_is_its_run(hf: Holdfast, tmp_path: Path) -> None:
    script = Script(dies_at="b")
    runner = Runner(hf, backend=script, logs_root=tmp_path)
    failed = await runner.run(THREE)
    assert failed.status == "fail"
    found = await runner.resume(tmp_path)
    assert found.succeeded
    assert found.run_id == failed.run_id
    assert script.trace == ["a", "b", "b", "c"]
    assert found.completed_nodes == ("start", "a", "b", "c", "done")


@pytest.mark.covers("ATTRACTOR-DIR-06", "AT-155")
async def test_the_stage_that_failed_is_what_goes_on_elsewhere(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    await Runner(hf, backend=Script(dies_at="b"), logs_root=tmp_path).run(THREE)
    script = Script()
    found = await Runner(elsewhere, backend=script).resume(tmp_path)
    assert found.succeeded
    assert script.trace == ["b", "c"]
    assert found.completed_nodes == ("start", "a", "b", "c", "done")
    assert checkpoint(tmp_path)["completed_nodes"] == ["start", "a", "b", "c", "done"]


@pytest.mark.covers("AT-149", "AT-150", "AT-153", "AT-155", "ATTRACTOR-DIR-06")
async def test_a_directory_goes_on_on_another_machine_as_if_nothing_had_happened(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    logs, moved = tmp_path / "logs", tmp_path / "moved"

    class Copied(Script):
        """The directory as a crash would leave it while b is at work."""

        effect = "read"

        async def run(self, node: Stage, prompt: str, context: PipelineContext) -> Any:
            if node.id == "b":
                await until(lambda: checkpoint(logs)["next_node"] == "b")
                await asyncio.to_thread(shutil.copytree, logs, moved)
            return super().run(node, prompt, context)

    whole = await Runner(hf, backend=Copied(), logs_root=logs).run(THREE, context={"ticket": "T-1"})
    assert checkpoint(moved)["completed_nodes"] == ["start", "a"]
    there = Script()
    found = await Runner(elsewhere, backend=there).resume(moved, force=True)
    assert found.succeeded
    assert found.run_id != whole.run_id
    assert there.trace == ["b", "c"], "what was done is not done again"
    assert found.completed_nodes == whole.completed_nodes
    assert found.node_outcomes == whole.node_outcomes
    listed = {key for key in whole.context if not key.startswith("internal.")}
    assert {key: found.context[key] for key in listed} == {key: whole.context[key] for key in listed}
    assert (there.seen["b"]["ticket"], there.seen["b"]["last_stage"]) == ("T-1", "a")
    assert found.logs_root == moved
    saved = checkpoint(moved)
    assert (saved["run_id"], saved["current_node"]) == (found.run_id, "done")
    assert saved["completed_nodes"] == list(whole.completed_nodes)
    again = await Runner(elsewhere, backend=there).resume(moved)
    assert (again.run_id, again.status, there.trace) == (found.run_id, "success", ["b", "c"])


ROUTES = dot(
    "a; b [prompt=left]; c [prompt=right];",
    'start -> a; a -> b [condition="outcome=fail"]; a -> c [label=right]; a -> b [label=left, weight=5]; '
    "b -> done; c -> done",
)


@pytest.mark.covers("AT-152", "ATTRACTOR-DIR-03", "ATTRACTOR-DIR-06")
@pytest.mark.parametrize(
    ("fields", "way"),
    [
        ({"outcome": {"outcome": "success"}}, ["b"]),
        ({"outcome": {"outcome": "success", "preferred_label": "right"}}, ["c"]),
        ({"outcome": {"outcome": "success", "suggested_next_ids": ["c"]}}, ["c"]),
        ({"node_outcomes": {"a": "fail"}}, ["b"]),
        ({"node_history": [["start", "success"], ["a", "FAIL"]]}, ["b"]),
        ({"context": {"outcome": "success", "preferred_label": "right"}}, ["c"]),
    ],
)
async def test_before_the_edge_was_selected_it_is_selected_by_the_stored_outcome(
    elsewhere: Holdfast, tmp_path: Path, fields: dict[str, Any], way: list[str]
) -> None:
    logs = write_checkpoint(tmp_path, current_node="a", completed_nodes=["start", "a"], **fields)
    script = Script()
    found = await Runner(elsewhere, backend=script).resume(logs, source=ROUTES)
    assert script.trace == way
    assert found.completed_nodes == ("start", "a", *way, "done")


@pytest.mark.covers("AT-152", "ATTRACTOR-DIR-06")
async def test_the_status_file_says_what_the_checkpoint_does_not(elsewhere: Holdfast, tmp_path: Path) -> None:
    logs = write_checkpoint(tmp_path, current_node="a", completed_nodes=["start", "a"])
    status(logs, "a", outcome="success", preferred_next_label="right")
    script = Script()
    await Runner(elsewhere, backend=script).resume(logs, source=ROUTES)
    assert script.trace == ["c"]


@pytest.mark.covers("ATTRACTOR-DIR-03", "ATTRACTOR-DIR-06", "AT-152")
async def test_after_the_edge_was_selected_its_target_is_next(elsewhere: Holdfast, tmp_path: Path) -> None:
    """Whatever the selection would say now."""
    logs = write_checkpoint(
        tmp_path,
        current_node="a",
        completed_nodes=["start", "a"],
        outcome={"outcome": "success", "preferred_label": "left"},
        next_node="c",
        selected_edge="a->c",
    )
    script = Script()
    found = await Runner(elsewhere, backend=script).resume(logs, source=ROUTES)
    assert script.trace == ["c"]
    assert found.completed_nodes == ("start", "a", "c", "done")


@pytest.mark.covers("ATTRACTOR-DIR-06", "AT-A1")
async def test_a_routing_stage_passes_on_what_led_to_it(elsewhere: Holdfast, tmp_path: Path) -> None:
    text = dot(
        "a; d [shape=diamond]; fix;",
        'start -> a -> d; d -> done [condition="outcome=success"]; '
        'd -> fix [condition="outcome=fail"]; fix -> done',
    )
    logs = write_checkpoint(
        tmp_path, current_node="d", completed_nodes=["start", "a", "d"], context={"outcome": "fail"},
        node_outcomes={"start": "success", "a": "fail", "d": "success"},
    )  # fmt: skip
    script = Script()
    assert (await Runner(elsewhere, backend=script).resume(logs, source=text)).succeeded
    assert script.trace == ["fix"]


@pytest.mark.covers("ATTRACTOR-DIR-06")
async def test_a_current_stage_that_is_not_completed_is_the_one_to_start(
    elsewhere: Holdfast, tmp_path: Path
) -> None:
    logs = write_checkpoint(tmp_path, current_node="b", completed_nodes=["start", "a"])
    script = Script()
    found = await Runner(elsewhere, backend=script).resume(logs, source=THREE)
    assert script.trace == ["b", "c"]
    assert found.completed_nodes == ("start", "a", "b", "c", "done")


@pytest.mark.covers("AT-151", "AT-A12")
async def test_retry_counters_are_not_reset_by_going_on(elsewhere: Holdfast, tmp_path: Path) -> None:
    text = dot(
        "a [max_retries=3]; fix;", 'start -> a -> done; a -> fix [condition="outcome=fail"]; fix -> done'
    )
    logs = write_checkpoint(
        tmp_path, current_node="start", completed_nodes=["start"], next_node="a", node_retries={"a": 2}
    )
    script = Script(a=[StageOutcome(status="retry")] * 9)
    found = await Runner(elsewhere, backend=script).resume(logs, source=text)
    assert script.trace == ["a", "a", "fix"], "two of four attempts were used up before"
    assert checkpoint(found.logs_root)["node_retries"] == {"a": 3}


@pytest.mark.covers("AT-118", "AT-115")
@pytest.mark.parametrize(
    "shown",
    [
        {"goal_gate_status": {"gate": False}},
        {"node_outcomes": {"gate": "fail"}},
        {"node_history": [["start", "success"], ["gate", "fail"], ["b", "success"]]},
        {},
    ],
)
async def test_a_goal_gate_that_was_not_met_is_not_forgotten(
    elsewhere: Holdfast, tmp_path: Path, shown: dict[str, Any]
) -> None:
    text = dot(
        "gate [goal_gate=true]; b; c;",
        'start -> gate -> b -> c -> done; gate -> b [condition="outcome=fail"]',
    )
    logs = write_checkpoint(tmp_path, current_node="b", completed_nodes=["start", "gate", "b"], **shown)
    status(logs, "b", outcome="success")
    if not shown:
        status(logs, "gate", outcome="fail")
    script = Script()
    found = await Runner(elsewhere, backend=script).resume(logs, source=text)
    assert found.status == "fail"
    assert found.outcome.failure_reason == "Goal gate unsatisfied and no retry target"
    assert script.trace == ["c"]


@pytest.mark.covers("AT-118", "AT-117")
async def test_a_goal_gate_that_was_not_met_sends_the_resumed_run_back(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    text = dot(
        "gate [goal_gate=true, retry_target=gate]; b;",
        'start -> gate; gate -> b [condition="outcome=fail"]; gate -> b; b -> done',
    )
    here = Script(gate=[StageOutcome(status="fail", failure_reason="no")], dies_at="b")
    await Runner(hf, backend=here, logs_root=tmp_path).run(text)
    assert checkpoint(tmp_path)["goal_gate_status"] == {"gate": False}
    there = Script(gate=["met"])
    found = await Runner(elsewhere, backend=there).resume(tmp_path)
    assert found.succeeded
    assert there.trace == ["b", "gate", "b"]
    assert checkpoint(tmp_path)["goal_gate_status"] == {"gate": True}


@pytest.mark.covers("AT-156")
async def test_a_run_that_has_ended_stays_as_it_is(hf: Holdfast, elsewhere: Holdfast, tmp_path: Path) -> None:
    script = Script()
    first = await Runner(hf, backend=script, logs_root=tmp_path).run(THREE)
    before = (tmp_path / "checkpoint.json").read_bytes()
    for where in (hf, elsewhere):
        again = await Runner(where, backend=script).resume(tmp_path)
        assert (again.status, again.run_id) == ("success", first.run_id)
        assert again.completed_nodes == first.completed_nodes
    assert script.trace == ["a", "b", "c"]
    assert (tmp_path / "checkpoint.json").read_bytes() == before
    foreign = write_checkpoint(
        tmp_path / "f", current_node="done", completed_nodes=["start", "a", "b", "c", "done"]
    )
    ended = await Runner(elsewhere, backend=script).resume(foreign, source=THREE)
    assert ended.succeeded
    assert script.trace == ["a", "b", "c"]


@pytest.mark.covers("AT-157")
async def test_a_changed_pipeline_is_refused_with_what_differs(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    await Runner(hf, backend=Script(dies_at="b"), logs_root=tmp_path).run(THREE)
    changed = line('a; b [prompt="other"]; c; d;', "a", "b", "c", "d")
    for where in (hf, elsewhere):
        with pytest.raises(VersionMismatchError) as refused:
            await Runner(where, backend=Script()).resume(tmp_path, source=changed)
        text = str(refused.value)
        assert "stage d is new" in text
        assert "stage b: prompt differs" in text
        assert "edge c->d is new" in text
        assert "--force" in text
    script = Script()
    forced = await Runner(elsewhere, backend=script).resume(tmp_path, source=changed, force=True)
    assert forced.succeeded
    assert script.trace == ["b", "c", "d"]


async def test_a_stage_that_the_pipeline_does_not_have_is_named(elsewhere: Holdfast, tmp_path: Path) -> None:
    logs = write_checkpoint(tmp_path, current_node="zed", completed_nodes=["start", "zed"])
    with pytest.raises(InputError, match="is at 'zed'"):
        await Runner(elsewhere).resume(logs, source=THREE, force=True)


@pytest.mark.covers("ATTRACTOR-DIR-06")
async def test_a_checkpoint_of_before_the_first_stage_begins_at_the_start(
    elsewhere: Holdfast, tmp_path: Path
) -> None:
    logs = write_checkpoint(tmp_path, current_node="", completed_nodes=[], context={"ticket": "T-9"})
    script = Script()
    found = await Runner(elsewhere, backend=script).resume(logs, source=THREE)
    assert found.succeeded
    assert script.seen["a"]["ticket"] == "T-9"
    assert found.completed_nodes == ("start", "a", "b", "c", "done")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"current_node": 3}', "current_node is 3, not text"),
        ('{"current_node": "a", "completed_nodes": "a"}', 'completed_nodes is "a", not a list'),
        ('{"current_node": "a", "context": []}', r"context is \[1\], not an object"),
    ],
)
async def test_what_is_no_run_directory_is_refused(
    elsewhere: Holdfast, tmp_path: Path, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "checkpoint.json").write_text(content.replace("[]}", "[1]}"))
    with pytest.raises(InputError, match=said):
        await Runner(elsewhere).resume(tmp_path, source=THREE)


async def test_without_its_pipeline_it_says_what_to_name(elsewhere: Holdfast, tmp_path: Path) -> None:
    logs = write_checkpoint(tmp_path, current_node="a", completed_nodes=["start", "a"])
    with pytest.raises(InputError, match=r"FILE\.dot --resume"):
        await Runner(elsewhere).resume(logs)


@pytest.mark.covers("AT-154", "ATTRACTOR-RUN-05", "CORE-CKPT-15-attractor")
@pytest.mark.parametrize(
    ("graph", "asked", "first"),
    [("", "", "summary:high"), ("", "compact", "compact"), (", resume_fidelity=compact", "", "compact"),
     ("", "keep", "full")],
)  # fmt: skip
async def test_full_becomes_less_for_exactly_one_hop(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, graph: str, asked: str, first: str
) -> None:
    text = line("a; b; c;", "a", "b", "c", graph=f'goal="g", default_fidelity=full{graph}')
    await Runner(hf, backend=Script(dies_at="b"), logs_root=tmp_path).run(text)
    assert not [key for key in checkpoint(tmp_path)["context"] if key.startswith("internal.session.")]
    script = Script()
    found: PipelineResult = await Runner(elsewhere, backend=script).resume(tmp_path, fidelity=asked)
    assert found.succeeded
    assert script.seen["b"]["internal.fidelity"]["mode"] == first
    assert script.seen["c"]["internal.fidelity"]["mode"] == "full"
    assert checkpoint(tmp_path)["fidelity_state"]["mode"] == "full"


@pytest.mark.covers("AT-A13", "ATTRACTOR-RUN-04")
async def test_a_walk_that_began_anew_goes_on_in_its_last_directory(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    text = dot("a; b;", "start -> a -> b; b -> a [label=anew, loop_restart=true]; b -> done [label=well]")
    here = Script(b=[StageOutcome(preferred_label="anew"), StageOutcome(status="fail", terminal=True)])
    await Runner(hf, backend=here, logs_root=tmp_path).run(text)
    there = Script(b=[StageOutcome(preferred_label="well")])
    found = await Runner(elsewhere, backend=there).resume(tmp_path)
    assert found.succeeded
    assert there.trace == ["b"]


@pytest.mark.covers("AT-153", "ATTRACTOR-DIR-06")
async def test_a_parallel_stage_that_was_under_way_is_done_again_as_a_whole(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    text = dot(
        "p [shape=component]; a; b; j [shape=tripleoctagon]; c;",
        "start -> p; p -> a -> j; p -> b -> j; j -> c -> done",
    )
    logs = write_checkpoint(tmp_path, current_node="start", completed_nodes=["start"], next_node="p")
    there = Script()
    found = await Runner(elsewhere, backend=there).resume(logs, source=text)
    assert found.succeeded
    assert sorted(there.trace) == ["a", "b", "c"]
    assert found.completed_nodes == ("start", "p", "j", "c", "done")


@pytest.mark.covers("CP2-D7")
async def test_a_checkpoint_whose_next_stage_is_past_a_gate_is_refused(
    elsewhere: Holdfast, tmp_path: Path
) -> None:
    text = dot("a; ask [shape=hexagon]; ship;", "start -> a -> ask -> ship -> done")
    logs = write_checkpoint(
        tmp_path,
        current_node="a",
        completed_nodes=["start", "a"],
        node_outcomes={"a": "success"},
        next_node="ship",
    )
    there = Script()
    with pytest.raises(InputError, match="no edge or retry target leads there from 'a'"):
        await Runner(elsewhere, backend=there).resume(logs, source=text)
    assert not there.trace
