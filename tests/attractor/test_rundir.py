"""The run directory: what is in it when, and that it is the journal's and nobody else's word."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.attractor import run_files
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.directory_sync import DirectorySync, JournalFollower
from holdfast.attractor.events import CheckpointSaved, PipelineEvent
from holdfast.attractor.export import export_directory
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.errors import InputError
from holdfast.frontends.dot.document import Stage
from tests.attractor.run import dot, line, listed, run
from tests.flows.conftest import Positions

pytestmark = pytest.mark.anyio

KEYS = ["timestamp", "current_node", "completed_nodes", "node_retries", "context", "logs"]
SEED = {
    "run_id", "pipeline_name", "current_node", "context", "outcome", "node_history", "goal_gate_status",
    "timestamp", "fidelity_state", "artifacts", "selected_edge", "edge_selected", "next_node",
}  # fmt: skip
TOOL = "shape=parallelogram, tool_command"


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def checkpoint(logs: Path) -> dict[str, Any]:
    return read(logs / "checkpoint.json")


@pytest.mark.covers("AT-138", "AT-A6", "ATTRACTOR-DIR-01", "AT-234")
async def test_a_checkpoint_is_written_before_the_first_stage_after_each_and_at_the_end(
    hf: Holdfast, tmp_path: Path
) -> None:
    seen: list[tuple[str, str, list[str], str]] = []

    def look(event: PipelineEvent) -> None:
        if isinstance(event, CheckpointSaved):
            now = checkpoint(tmp_path)
            seen.append((event.node_id, now["current_node"], now["completed_nodes"], now["status"]))

    # Commands are waited for, one commit each, so that every checkpoint can be seen.
    stages = f'a [{TOOL}="sleep 0.1"]; b [{TOOL}="sleep 0.1"];'
    await run(hf, line(stages, "a", "b"), tmp_path, on_event=look)
    assert [node for node, *_ in seen] == ["", "start", "a", "b", "done", "done"]
    for node, _, completed, _ in seen:
        assert not node or node in completed, "the file is there when it is told of"
    assert seen[-1][1:] == ("done", ["start", "a", "b", "done"], "completed")
    assert seen[0][3] == "running"


@pytest.mark.covers("AT-138", "ATTRACTOR-DIR-01")
async def test_the_first_checkpoint_is_there_when_the_first_stage_begins(
    hf: Holdfast, tmp_path: Path
) -> None:
    class Look:
        def execute(self, node: Stage, context: PipelineContext, graph: Any, logs_root: Path) -> StageOutcome:
            found = checkpoint(logs_root)
            return StageOutcome(
                context_updates={"seen": [found["completed_nodes"], found["context"]["graph.goal"]]}
            )

    runner = Runner(hf, logs_root=tmp_path)
    runner.register_handler("start", Look())
    found = await runner.run(line("a;", "a"))
    assert found.context["seen"] == [[], "ship it"]


@pytest.mark.covers("AT-139", "AT-140", "AT-141", "AT-142", "AT-143", "ATTRACTOR-DIR-01", "ATTRACTOR-DIR-02")
async def test_the_files_have_the_keys_of_the_specification_and_of_the_seed(
    hf: Holdfast, tmp_path: Path
) -> None:
    text = dot(
        "a [goal_gate=true]; b;",
        'start -> a -> b; b -> a [condition="context.again=yes"]; b -> done [condition="context.again!=yes"]',
    )
    turns = iter(["yes", "no"])

    def answer(node: Stage, prompt: str, context: PipelineContext) -> str:
        if node.id == "b":
            context.set("again", next(turns))
        context.append_log(f"at {node.id}")
        return f"<{prompt}>"

    found = await run(hf, text, tmp_path, backend=answer)
    saved = checkpoint(tmp_path)
    assert list(saved)[:6] == KEYS
    assert set(saved) >= SEED
    assert saved["completed_nodes"] == ["start", "a", "b", "a", "b", "done"]
    assert saved["node_history"] == [[node, "success"] for node in saved["completed_nodes"]]
    assert saved["node_outcomes"] == dict.fromkeys(("start", "a", "b", "done"), "success")
    assert saved["logs"] == ["at a", "at b", "at a", "at b"]
    assert saved["goal_gate_status"] == {"a": True}
    assert saved["context"]["graph.goal"] == "ship it"
    assert saved["context"]["again"] == "no"
    assert (saved["run_id"], saved["pipeline_name"]) == (found.run_id, "g")
    manifest = read(tmp_path / "manifest.json")
    assert (manifest["name"], manifest["goal"]) == ("g", "ship it")
    assert manifest["start_time"].endswith("+00:00")
    for stage in ("start", "a", "b"):
        assert read(tmp_path / stage / "status.json")["outcome"] == "success"
    assert not (tmp_path / "done" / "status.json").exists()
    assert (tmp_path / "a" / "prompt.md").read_text() == "a"
    assert (tmp_path / "a" / "response.md").read_text() == "<a>"


BRANCHES = dot(
    "r [max_retries=2]; p [shape=component]; a; b1; b2; d [shape=diamond]; "
    'j [shape=tripleoctagon, prompt="Which?"]; '
    f't [{TOOL}="echo out; exit 3"]; mend;',
    "start -> r -> p; p -> a -> j; p -> b1 -> b2 -> j; j -> t -> d; "
    'd -> done [condition="outcome=success"]; d -> mend [condition="outcome=fail"]; mend -> done',
)


def _stumbles(node: Stage, prompt: str, context: PipelineContext) -> Any:
    if node.id == "r" and not context.get_string("internal.retry_count.r"):
        tries = _stumbles.tries = getattr(_stumbles, "tries", 0) + 1  # type: ignore[attr-defined]
        if tries % 2:
            return StageOutcome(status="retry", failure_reason="not yet")
    if node.id == "b2":
        return StageOutcome(context_updates={"score": 3, "n": [1, {"x": None}]}, notes="b2 said ä")
    return f"{node.id}: {prompt}"


@pytest.mark.covers("ATTRACTOR-DIR-05", "AT-142", "AT-129")
async def test_the_directory_is_made_anew_from_the_journal_alone(
    hf: Holdfast, tmp_path: Path, positions: Positions
) -> None:
    live, again = tmp_path / "live", tmp_path / "again"
    found = await run(hf, BRANCHES, live, backend=_stumbles)
    assert found.succeeded
    exported = await export_directory(await hf.service(), found.run_id, again)
    assert same(live, again)
    assert "checkpoint.json" in exported.files
    assert read(again / "p" / "status.json")["outcome"] == "success"
    failed = read(again / "t" / "status.json")
    assert (failed["outcome"], "exit code 3" in failed["failure_reason"]) == ("fail", True)
    assert (again / "j" / "prompt.md").read_text().startswith("Which?")
    assert (again / "j" / "response.md").read_text().startswith("j: Which?")
    assert read(again / "b2" / "status.json")["context_updates"] == {"score": 3, "n": [1, {"x": None}]}


BESIDES = re.compile(
    r"/preamble\.md$|/tool-|/child-\d+/|^owner\.json$|\.bundle$|^worktrees/|/cycle$|/effects-"
)


def same(live: Path, again: Path) -> bool:
    """Every file that was made anew is the one that was written, byte by byte; only what commands left and
    what was told to models besides is not in the journal. Children of managers are runs of their own."""
    made = {path.relative_to(again) for path in again.rglob("*") if path.is_file()}
    there = {path.relative_to(live) for path in live.rglob("*") if path.is_file()}
    assert {path for path in there - made if not BESIDES.search(str(path))} == set()
    for path in made:
        assert (again / path).read_bytes() == (live / path).read_bytes(), path
    return True


@pytest.mark.covers("AT-A13", "AT-246", "ATTRACTOR-RUN-04", "ATTRACTOR-DIR-05")
async def test_a_restart_goes_on_in_a_directory_that_names_its_parent(hf: Holdfast, tmp_path: Path) -> None:
    live, again = tmp_path / "live", tmp_path / "again"
    turns = iter(["anew", "anew", "well"])
    text = dot("a; b;", "start -> a -> b; b -> a [label=anew, loop_restart=true]; b -> done [label=well]")

    def answer(node: Stage, prompt: str, context: PipelineContext) -> StageOutcome:
        return StageOutcome(
            preferred_label=next(turns) if node.id == "b" else "", context_updates={"by": node.id}
        )

    found = await run(hf, text, live, backend=answer)
    assert found.succeeded
    first, last = checkpoint(live), checkpoint(live / "restart-2")
    assert (first["completed_nodes"], first["goes_on_in"]) == (["start", "a", "b"], "restart-1")
    assert checkpoint(live / "restart-1")["goes_on_in"] == "../restart-2"
    assert (last["completed_nodes"], last["goes_on_in"]) == (["a", "b", "done"], None)
    assert last["counters"]["restarts"] == 2
    manifest = read(live / "restart-2" / "manifest.json")
    assert (manifest["restart"], manifest["parent"]) == (2, "../restart-1")
    assert manifest["run_id"] == read(live / "manifest.json")["run_id"]
    assert read(live / "restart-1" / "a" / "status.json")["outcome"] == "success"
    await export_directory(await hf.service(), found.run_id, again)
    assert same(live, again)


@pytest.mark.covers("ATTRACTOR-DIR-04")
def test_a_checkpoint_is_whole_on_the_disk_or_not_there(tmp_path: Path, monkeypatch: Any) -> None:
    path, done = tmp_path / "checkpoint.json", list[str]()
    real_sync, real_replace = os.fsync, Path.replace

    def sync(handle: int) -> None:
        done.append("sync")
        real_sync(handle)

    def replace(self: Path, target: Path) -> Path:
        done.append("rename")
        assert self.read_text() == "whole"
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    run_files.write_or_raise(path, "whole", durable=True)
    assert done == ["sync", "rename", "sync"]
    assert listed(tmp_path) == ["checkpoint.json"]


@pytest.mark.covers("ATTRACTOR-DIR-04", "AT-111")
async def test_a_directory_that_cannot_be_written_costs_the_run_nothing(
    hf: Holdfast, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    found = await run(hf, line("a;", "a"), blocked / "logs")
    assert found.succeeded
    assert "cannot be written" in caplog.text or "could not be updated" in caplog.text
    made = tmp_path / "made"
    await export_directory(await hf.service(), found.run_id, made)
    assert checkpoint(made)["current_node"] == "done"


@pytest.mark.covers("ATTRACTOR-DIR-04")
async def test_a_file_never_shows_what_is_not_committed(
    hf: Holdfast, tmp_path: Path, monkeypatch: Any
) -> None:
    """Each checkpoint that is written is of a record that the store has."""
    heads: list[tuple[int, int]] = []
    write = DirectorySync.write

    async def watched(self: DirectorySync) -> None:
        await write(self)
        row = await self.follower.store.get_run(self.follower.row.id)
        assert row is not None
        heads.append((checkpoint(tmp_path)["seq"], row.head))

    monkeypatch.setattr(DirectorySync, "write", watched)
    stages = "".join(f"s{i};" for i in range(30))
    await run(hf, line(stages, *(f"s{i}" for i in range(30))), tmp_path)
    assert heads
    assert all(shown <= stored for shown, stored in heads)
    assert checkpoint(tmp_path)["current_node"] == "done"


@pytest.mark.covers("AT-A12", "AT-99")
async def test_retry_counters_are_in_the_checkpoint_until_a_success(hf: Holdfast, tmp_path: Path) -> None:
    text = dot("a [max_retries=1]; b;", 'start -> a; a -> b [condition="outcome=fail"]; a -> done; b -> done')
    tries = iter(["retry", "retry"])

    def answer(node: Stage, prompt: str, context: PipelineContext) -> Any:
        return StageOutcome(status=next(tries)) if node.id == "a" else "well"

    await run(hf, text, tmp_path, backend=answer)
    saved = checkpoint(tmp_path)
    assert saved["node_retries"] == {"a": 1}
    assert saved["node_outcomes"]["a"] == "fail"
    assert read(tmp_path / "a" / "status.json")["failure_reason"] == "max retries exceeded"


@pytest.mark.covers("AT-147")
async def test_the_end_is_reported_after_the_last_checkpoint(hf: Holdfast, tmp_path: Path) -> None:
    lines: list[tuple[str, str]] = []

    def listen(event: PipelineEvent) -> None:
        there = (tmp_path / "checkpoint.json").exists()
        lines.append((type(event).__name__, checkpoint(tmp_path)["status"] if there else ""))

    await run(hf, line("a;", "a"), tmp_path, on_event=listen)
    assert lines[1] == ("CheckpointSaved", "running") or lines[1][1] == "completed"
    assert [name for name, _ in lines][-2:] == ["CheckpointSaved", "PipelineCompleted"]
    assert lines[-1][1] == "completed"


async def test_only_pipelines_have_a_run_directory(hf: Holdfast, tmp_path: Path) -> None:
    flow = Flow("plain")

    @flow.node
    async def one(state: Any) -> dict[str, Any]:
        return {}

    result = await flow.run({}, on=hf)
    with pytest.raises(InputError, match="not of a pipeline"):
        await export_directory(await hf.service(), result.run_id, tmp_path)


async def test_a_failed_run_says_so_in_its_checkpoint(hf: Holdfast, tmp_path: Path) -> None:
    found: PipelineResult = await run(hf, line(f't [{TOOL}="exit 7"];', "t"), tmp_path)
    saved = checkpoint(tmp_path)
    assert (found.status, saved["status"], saved["next_node"]) == ("fail", "failed", "t")
    assert "exit code 7" in saved["error"]
    assert saved["node_history"][-1] == ["t", "fail"]
    assert saved["current_node"] == "t"


@pytest.mark.covers("ATTRACTOR-DIR-05")
async def test_what_is_left_of_a_pruned_run_is_exported(hf: Holdfast, tmp_path: Path) -> None:
    live, again = tmp_path / "live", tmp_path / "again"
    names = [f"s{i}" for i in range(20)]
    found = await run(hf, line("".join(f"{name};" for name in names), *names), live)
    service = await hf.service()
    before = checkpoint(live)
    assert await service.prune(found.run_id, keep=3) > 0
    await export_directory(service, found.run_id, again)
    after = checkpoint(again)
    for key in ("completed_nodes", "context", "node_history", "node_outcomes", "current_node", "status"):
        assert after[key] == before[key], key
    assert read(again / "s0" / "status.json")["context_updates"] == {
        "last_stage": "s0", "last_response": "[Simulated] Response for stage: s0",
    }  # fmt: skip


async def test_a_run_that_waits_often_is_read_once(hf: Holdfast, tmp_path: Path, monkeypatch: Any) -> None:
    """What was read of a run that waits is kept: each turn costs what is new."""
    heads: list[int] = []
    real = JournalFollower.read_new

    async def read_on(self: JournalFollower, upto: int | None = None) -> Any:
        heads.append(self.head)
        return await real(self, upto)

    monkeypatch.setattr(JournalFollower, "read_new", read_on)
    text = dot("h [shape=hexagon, label=on];", 'start -> h; h -> h [label="more"]; h -> done [label="end"]')
    service = await hf.service()
    runner = Runner(hf, logs_root=tmp_path)
    found = await runner.run(text)
    assert heads[0] == -1
    for _ in range(3):
        (more,) = [o.id for o in found.holds[0].options or () if o.label == "more"]
        await service.answer(found.holds[0].id, more)
        heads.clear()
        found = await runner.resume(found.run_id)
        assert heads[0] > 0
    assert checkpoint(tmp_path)["completed_nodes"] == ["start", "h", "h", "h"]
