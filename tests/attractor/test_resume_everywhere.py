"""A directory as it was after any record goes on elsewhere, to the end that the run itself came to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.directory_sync import JournalFollower, write_files
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.frontends.dot.document import Stage
from holdfast.runs.events import reader_of
from holdfast.types.ids import RunId
from holdfast.types.record import Kind
from tests.attractor.run import dot
from tests.flows.conftest import Positions, assert_replays

pytestmark = [pytest.mark.anyio, pytest.mark.covers("AT-153", "AT-118", "AT-151", "ATTRACTOR-DIR-03")]

PIPELINES = {
    "a loop with a way out": dot(
        "plan; work; check [shape=diamond]; ship;",
        'start -> plan -> work -> check; check -> ship [condition="outcome=success"]; '
        'check -> plan [condition="outcome=fail"]; ship -> done',
    ),
    "a goal gate that sends back": dot(
        "plan; work [goal_gate=true, retry_target=plan]; ship;",
        'start -> plan -> work -> ship -> done; work -> ship [condition="outcome=fail"]',
    ),
    "a goal gate that is never met": dot(
        "work [goal_gate=true]; ship;",
        'start -> work -> ship -> done; work -> ship [condition="outcome=fail"]',
    ),
    "labels and suggestions": dot(
        "choose; hint; left; right;",
        "start -> choose; choose -> left [label=left, weight=9]; choose -> right [label=right]; "
        "right -> hint; left -> done; hint -> left; hint -> done",
    ),
    "a failure with a target": dot(
        "plan; work [retry_target=plan]; ship;", "start -> plan -> work -> ship -> done"
    ),
    "branches": dot(
        "plan; p [shape=component]; a; b; j [shape=tripleoctagon]; ship;",
        "start -> plan -> p; p -> a -> j; p -> b -> j; j -> ship -> done",
    ),
    "a walk that begins anew": dot(
        "plan; anew;",
        "start -> plan -> anew; anew -> plan [label=again, loop_restart=true]; anew -> done [label=on]",
    ),
}
# Stages that say something else than "well" do so by how often they were asked, which the context knows.
SAID: dict[str, list[StageOutcome]] = {
    "work": [StageOutcome(status="fail", failure_reason="not yet")],
    "choose": [StageOutcome(preferred_label="right")],
    "hint": [StageOutcome(suggested_next_ids=("left",))],
    "b": [StageOutcome(status="fail", failure_reason="no")],
}


def answer(node: Stage, prompt: str, context: PipelineContext) -> Any:
    times = int(context.get(f"times.{node.id}", 0))
    context.set(f"times.{node.id}", times + 1)
    said = SAID.get(node.id, [])
    if node.id == "anew":
        # A walk that began anew knows nothing of before but its directory's name.
        return StageOutcome(preferred_label="again" if times == 0 and not context.get("given") else "on")
    return said[times] if times < len(said) else "well"


async def run_whole(hf: Holdfast, text: str, logs: Path) -> PipelineResult:
    return await Runner(hf, backend=answer, logs_root=logs).run(text)


async def directories(hf: Holdfast, run: str, folder: Path) -> list[Path]:
    """As it was after each record that the checkpoint tells of."""
    service = await hf.service()
    row = await service.get(run)
    reader = await reader_of(service, row)
    made: list[Path] = []
    for record in await service.store.read(row.id, payloads=False):
        if record.kind in (Kind.created, Kind.step) and not record.scope:
            follower = JournalFollower(service.store, service.runtime.blobs, reader.codec, reader.graph, row)
            made.append(folder / str(record.seq))
            write_files(made[-1], (await follower.read_new(record.seq)).take())
    return made


async def resumed(folder: Path, positions: Positions) -> PipelineResult:
    """On another machine; deciding again from the journal there leads to the same place."""
    async with Holdfast("memory:") as elsewhere:
        found = await Runner(elsewhere, backend=answer).resume(folder)
        if found.run_id in positions and await (await elsewhere.open()).get_run(RunId(found.run_id)):
            await assert_replays(elsewhere, RunId(found.run_id), positions.pop(RunId(found.run_id)))
        return found


def as_before_the_selection(folder: Path) -> None:
    """A checkpoint that says what its stage came to, and nothing of where that leads."""
    path = folder / "checkpoint.json"
    fields: dict[str, Any] = json.loads(path.read_text())
    for key in ("next_node", "selected_edge", "edge_selected"):
        del fields[key]
    path.write_text(json.dumps(fields))


@pytest.mark.parametrize("selected", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("name", [name for name in PIPELINES if "anew" not in name])
async def test_a_run_goes_on_from_every_record(
    name: str, selected: bool, hf: Holdfast, tmp_path: Path, positions: Positions
) -> None:
    whole = await run_whole(hf, PIPELINES[name], tmp_path / "whole")
    found = await directories(hf, whole.run_id, tmp_path / "then")
    assert len(found) > 3
    for folder in found:
        if not selected:
            as_before_the_selection(folder)
        again = await resumed(folder, positions)
        assert again.status == whole.status, folder
        assert again.completed_nodes == whole.completed_nodes, folder
        assert again.node_outcomes == whole.node_outcomes, folder
        assert again.outcome.failure_reason == whole.outcome.failure_reason or whole.succeeded, folder
        for key in whole.context:
            if not key.startswith("internal."):
                assert again.context[key] == whole.context[key], (folder, key)


async def test_a_walk_that_began_anew_goes_on_from_its_records(
    hf: Holdfast, tmp_path: Path, positions: Positions
) -> None:
    """Each directory knows of its own walk only."""
    whole = await run_whole(hf, PIPELINES["a walk that begins anew"], tmp_path / "whole")
    # Every walk here says "again" once more: the bound on restarts ends it, wherever it goes on.
    assert whole.status == "fail"
    assert "restarted the walk 10 times" in whole.outcome.failure_reason
    for folder in (await directories(hf, whole.run_id, tmp_path / "then"))[::5]:
        again = await resumed(folder, positions)
        assert (again.status, again.outcome.failure_reason) == ("fail", whole.outcome.failure_reason), folder
