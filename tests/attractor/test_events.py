"""The events of the specification: what is told, with which fields, in which order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.attractor.artifacts import ArtifactStore
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.event_stream import stored_events
from holdfast.attractor.events import (
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    PipelineCompleted,
    PipelineEvent,
    PipelineFailed,
    PipelineStarted,
    StageCompleted,
    StageFailed,
    StageRetrying,
    StageStarted,
)
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.errors import LeaseLostError
from holdfast.frontends.dot.document import Stage
from holdfast.types.status import RunStatus
from tests.attractor.run import dot, line, run, until

pytestmark = pytest.mark.anyio


def name(event: PipelineEvent) -> str:
    return type(event).__name__


def only(lines: list[PipelineEvent], *kinds: type[PipelineEvent]) -> list[Any]:
    return [event for event in lines if isinstance(event, kinds)]


async def heard(
    hf: Holdfast, text: str, tmp_path: Path, **options: Any
) -> tuple[PipelineResult, list[PipelineEvent]]:
    lines: list[PipelineEvent] = []
    return await run(hf, text, tmp_path, on_event=lines.append, **options), lines


@pytest.mark.covers("AT-230", "AT-231", "AT-234", "AT-235", "AT-236")
async def test_a_pipeline_is_reported_from_start_to_end(hf: Holdfast, tmp_path: Path) -> None:
    found, text = await heard(hf, line("a; b;", "a", "b"), tmp_path)
    stage = ["StageStarted", "StageCompleted", "CheckpointSaved"]
    assert [name(event) for event in text] == [
        "PipelineStarted", "CheckpointSaved", *stage * 4, "CheckpointSaved", "PipelineCompleted",
    ]  # fmt: skip
    (first,) = only(text, PipelineStarted)
    assert (first.name, first.id) == ("g", found.run_id)
    starts, ends = only(text, StageStarted), only(text, StageCompleted)
    assert [(e.name, e.index) for e in starts] == [("start", 0), ("a", 1), ("b", 2), ("done", 3)]
    assert [(e.name, e.index) for e in ends] == [("start", 0), ("a", 1), ("b", 2), ("done", 3)]
    assert all(e.duration >= 0 for e in ends)
    (last,) = only(text, PipelineCompleted)
    assert last.duration == pytest.approx((last.at - first.at) / 1e6)
    assert last.artifact_count == 0
    assert [e.place for e in text] == sorted((e.place for e in text), key=lambda p: [*map(int, p.split("."))])
    assert len({e.place for e in text}) == len(text)
    assert "stage a started" in [e.description for e in text]
    assert msgspec.json.decode(msgspec.json.encode(first.fields))["event"] == "PipelineStarted"


@pytest.mark.covers("AT-231", "AT-236")
async def test_the_events_of_a_stage_bracket_each_attempt(hf: Holdfast, tmp_path: Path) -> None:
    turns = iter(
        [StageOutcome(status="retry", failure_reason="not yet"), StageOutcome(status="retry"), StageOutcome()]
    )
    _, text = await heard(
        hf, line("a [max_retries=2];", "a"), tmp_path, backend=lambda node, prompt, context: next(turns)
    )
    mine = [e for e in text if getattr(e, "name", "") == "a"]
    assert [name(e) for e in mine] == [
        "StageStarted", "StageFailed", "StageRetrying", "StageStarted", "StageFailed", "StageRetrying",
        "StageStarted", "StageCompleted",
    ]  # fmt: skip
    assert {e.index for e in mine} == {1}
    failures, retries = only(mine, StageFailed), only(mine, StageRetrying)
    assert (failures[0].error, failures[0].will_retry) == ("not yet", True)
    assert [e.attempt for e in retries] == [2, 3]
    assert 0.05 < retries[0].delay < 0.31
    assert 0.1 < retries[1].delay < 0.61
    assert [e.attempt for e in only(mine, StageStarted)] == [1, 2, 3]


@pytest.mark.covers("AT-230", "AT-231", "AT-147")
async def test_a_failure_is_reported_with_its_reason(hf: Holdfast, tmp_path: Path) -> None:
    text = line('t [shape=parallelogram, tool_command="exit 9"];', "t")
    _, result = await heard(hf, text, tmp_path)
    (failed,) = only(result, StageFailed)
    assert (failed.name, failed.will_retry) == ("t", False)
    assert "exit code 9" in failed.error
    assert isinstance(result[-1], PipelineFailed)
    assert "exit code 9" in result[-1].error
    assert result[-1].duration > 0
    assert not only(result, PipelineCompleted)


FAN = dot(
    "p [shape=component]; a; b1; b2; c; j [shape=tripleoctagon];",
    "start -> p; p -> a -> j; p -> b1 -> b2 -> j; p -> c -> j; j -> done",
)


@pytest.mark.covers("AT-232")
async def test_branches_are_reported(hf: Holdfast, tmp_path: Path) -> None:
    def answer(node: Stage, prompt: str, context: PipelineContext) -> Any:
        return StageOutcome(status="fail", failure_reason="no") if node.id == "c" else "well"

    _, text = await heard(hf, FAN, tmp_path, backend=answer)
    (begun,) = only(text, ParallelStarted)
    assert (begun.stage, begun.branch_count) == ("p", 3)
    starts, ends = only(text, ParallelBranchStarted), only(text, ParallelBranchCompleted)
    assert sorted((e.branch, e.index) for e in starts) == [("a", 0), ("b1", 1), ("c", 2)]
    assert sorted((e.branch, e.index, e.success) for e in ends) == [
        ("a", 0, True), ("b1", 1, True), ("c", 2, False),
    ]  # fmt: skip
    (over,) = only(text, ParallelCompleted)
    assert (over.success_count, over.failure_count) == (2, 1)
    order = [name(e) for e in text]
    assert order.index("ParallelStarted") < order.index("ParallelBranchStarted")
    assert order.index("ParallelCompleted") > max(
        i for i, n in enumerate(order) if n == "ParallelBranchCompleted"
    )
    inside = [e for e in only(text, StageStarted) if e.branch]
    assert sorted(e.name for e in inside) == ["a", "b1", "b2", "c"]
    (joined,) = [i for i, e in enumerate(text) if isinstance(e, StageCompleted) and e.name == "p"]
    assert text.index(over) < joined


@pytest.mark.covers("AT-232")
async def test_losers_are_reported_as_such(hf: Holdfast, tmp_path: Path) -> None:
    text = dot(
        "p [shape=component, join_policy=first_success]; a; j [shape=tripleoctagon]; "
        'b [shape=parallelogram, tool_command="sleep 30"];',
        "start -> p; p -> a -> j; p -> b -> j; j -> done",
    )
    found, result = await heard(hf, text, tmp_path)
    assert found.succeeded
    ends = {e.branch: e.success for e in only(result, ParallelBranchCompleted)}
    assert ends == {"a": True, "b": False}
    (over,) = only(result, ParallelCompleted)
    assert (over.success_count, over.failure_count) == (1, 1)


GATE = dot(
    'h [shape=hexagon, label="Ship it?", timeout="1s", human.default_choice=no]; no;',
    "start -> h; h -> done [label=yes]; h -> no [label=no]; no -> done",
)


@pytest.mark.covers("AT-233")
async def test_a_question_and_its_answer_are_reported_and_a_resume_tells_only_what_is_new(
    hf: Holdfast, tmp_path: Path
) -> None:
    lines: list[PipelineEvent] = []
    runner = Runner(hf, logs_root=tmp_path, on_event=lines.append)
    waiting = await runner.run(GATE.replace(', timeout="1s"', ""))
    (asked,) = only(lines, InterviewStarted)
    assert (asked.question, asked.stage, asked.hold) == ("Ship it?", "h", waiting.holds[0].id)
    before = list(lines)
    service = await hf.service()
    await service.answer(waiting.holds[0].id, waiting.holds[0].options[0].id)
    lines.clear()
    assert (await runner.resume(waiting.run_id)).succeeded
    (answered,) = only(lines, InterviewCompleted)
    assert answered.question == "Ship it?"
    assert answered.answer == waiting.holds[0].options[0].id
    assert answered.duration > 0
    assert not {e.place for e in lines} & {e.place for e in before}
    assert [e.place for e in before + lines] == [
        e.place for e in await stored_events(service, waiting.run_id)
    ]


@pytest.mark.covers("AT-233")
async def test_a_question_that_nobody_answers_in_time_is_reported(hf: Holdfast, tmp_path: Path) -> None:
    lines: list[PipelineEvent] = []
    runner = Runner(hf, logs_root=tmp_path, on_event=lines.append)
    waiting = await runner.run(GATE)
    if waiting.status == "waiting":
        service = await hf.service()
        await until(lambda: service.store.now() > (waiting.holds[0].expires_at or 0))
        await service.runtime.sweep_holds()
        await runner.resume(waiting.run_id)
    (late,) = only(lines, InterviewTimeout)
    assert (late.question, late.stage) == ("Ship it?", "h")
    assert late.duration >= 1
    assert only(lines, PipelineCompleted)


@pytest.mark.covers("AT-235")
async def test_events_are_a_stream_too(hf: Holdfast, tmp_path: Path) -> None:
    seen: list[PipelineEvent] = []
    async for event in Runner(hf, logs_root=tmp_path).stream(line("a;", "a")):
        if isinstance(event, StageStarted) and event.name == "a":
            assert not only(seen, PipelineCompleted)
        seen.append(event)
    assert name(seen[-1]) == "PipelineCompleted"
    service = await hf.service()
    assert seen == await stored_events(service, seen[0].run)
    assert await stored_events(service, seen[0].run, after=seen[3].place) == seen[4:]


async def test_a_stream_that_nobody_reads_on_stops_what_it_began(hf: Holdfast, tmp_path: Path) -> None:
    text = line('t [shape=parallelogram, tool_command="sleep 30"];', "t")
    stream = Runner(hf, logs_root=tmp_path).stream(text)
    run_id = ""
    async for event in stream:
        run_id = event.run
        if isinstance(event, StageStarted) and event.name == "t":
            break
    await stream.aclose()
    service = await hf.service()
    assert (await service.get(run_id)).worker is None


@pytest.mark.covers("AT-230")
async def test_the_end_counts_the_artifacts(hf: Holdfast, tmp_path: Path) -> None:
    class Keeps:
        async def execute(
            self, node: Stage, context: PipelineContext, graph: Any, logs_root: Path, *, visit: StageVisit
        ) -> StageOutcome:
            store = await ArtifactStore.of(visit)
            store.store("one", "One", {"x": 1})
            store.store(node.id, "Own", [node.id])
            return StageOutcome()

    lines: list[PipelineEvent] = []
    runner = Runner(hf, logs_root=tmp_path, on_event=lines.append)
    runner.register_handler("keeps", Keeps())
    await runner.run(line("a [type=keeps]; b [type=keeps];", "a", "b"))
    assert only(lines, PipelineCompleted)[0].artifact_count == 3


@pytest.mark.covers("AT-236", "AT-231")
async def test_an_attempt_whose_worker_was_lost_is_one_bracket_a_caller_who_ends_it(
    hf: Holdfast, tmp_path: Path
) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def answer(node: Stage, prompt: str, context: PipelineContext) -> str:
        begun.set()
        await goes_on.wait()
        return "well"

    text = line("a [effect=read];", "a")
    running = asyncio.create_task(Runner(hf, backend=answer, logs_root=tmp_path).run(text))
    await begun.wait()
    service = await hf.service()
    (driver,) = service.runtime.drivers.values()
    await service.runtime.recorder.committed(driver.session.queue, driver.session.pos.head)
    driver.lost()
    goes_on.set()
    with pytest.raises(LeaseLostError):
        await running
    await service.store.park(driver.lease, status=RunStatus.resumable, inbox_seen=0, ready_at=None)
    found = await Runner(hf, backend=answer).resume(driver.run)
    assert found.succeeded
    result = await stored_events(service, found.run_id)
    mine = [e for e in result if getattr(e, "name", "") == "a"]
    assert [name(e) for e in mine] == ["StageStarted", "StageCompleted"]
    assert [e.place for e in result] == [e.place for e in await stored_events(service, found.run_id)]
