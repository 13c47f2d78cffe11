"""Workers of pipelines on a cluster: what they need, what is asked when one is lost, who writes the
directory."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from holdfast import Holdfast, Worker
from holdfast.app.flow import wait_until_idle
from holdfast.attractor.detached_commands import is_living
from holdfast.attractor.export import export_directory
from holdfast.attractor.handlers.tool import DONE
from holdfast.attractor.interviewers import Answer, QueueInterviewer
from holdfast.attractor.program import PipelineDialect, PipelineSetup
from holdfast.attractor.runner import Runner
from holdfast.cli.main import Exit
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.pipeline_run import PipelineOptions, run_file
from holdfast.drivers.temporal.report import report_of
from holdfast.store.rows import RunFilter
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED
from tests.api.conftest import serving
from tests.attractor.cases import Scripted, cases
from tests.attractor.run import begun, dot, line, until, written
from tests.attractor.test_rundir import checkpoint, same
from tests.attractor.victims import CHILD, HELD, LINE, MANAGER, TOOL
from tests.deadlines import HANG
from tests.services import temporal
from tests.temporal.runs import assert_same, engine_of
from tests.temporal.test_pipelines import GATED

pytestmark = pytest.mark.anyio


class WorkerProcess:
    """`holdfast worker` in a folder of its own."""

    def __init__(self, folder: Path, store: str, engine: str, *more: str, **env: str) -> None:
        command = [sys.executable, "-m", "holdfast", "worker", "--store", store, "--engine", engine, *more]
        folder.mkdir(exist_ok=True)
        with (folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **env}, stdout=log, stderr=log
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.kill()


def groups(logs: Path) -> list[int]:
    """Of the commands that have begun."""
    return [int(written(folder / "pid").split()[0]) for folder in begun(logs)]


@pytest.mark.covers("TD-39", "TD-40")
async def test_command_line_that_follows_a_run_writes_the_whole_directory(
    sqlite: str,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "ship.dot"
    file.write_text(
        dot(
            f'a [prompt="Do $goal"]; t [{TOOL}="echo out; echo err >&2"]; p [shape=component]; b; c; '
            "j [shape=tripleoctagon];",
            "start -> a -> t -> p; p -> b -> j; p -> c -> j; j -> done",
        )
    )
    monkeypatch.setenv("HOLDFAST_LOGS", str(tmp_path / "followed"))
    asked, manner = PipelineOptions(simulate=True), OutputOptions(sqlite, False, True, engine)
    # As on another machine: the worker has its files elsewhere.
    with WorkerProcess(tmp_path / "worker", sqlite, engine, HOLDFAST_LOGS=str(tmp_path / "worked")):
        async with asyncio.timeout(HANG):
            done = await run_file(str(file), None, {}, asked, manner, detach=False)
    shown = json.loads(capsys.readouterr().out)
    assert (done, shown["completed_nodes"]) == (Exit.ok, ["start", "a", "t", "p", "j", "done"])
    async with Holdfast(sqlite) as hf:
        await export_directory(await hf.service(), shown["id"], tmp_path / "again")
    followed = tmp_path / "followed" / shown["id"]
    assert shown["logs_root"] == str(followed)
    assert same(followed, tmp_path / "again")
    assert (followed / "a" / "response.md").is_file()
    assert "out" in written(followed / "t" / "visits" / "1.stdout")
    # What only its process has seen: the folder of the command.
    assert begun(tmp_path / "worked" / shown["id"])
    assert not begun(followed)


@pytest.mark.covers("TD-39", "TD-46", "TD-20")
@pytest.mark.parametrize("lost", ["machine", "worker"])
async def test_command_of_a_killed_worker_runs_once_and_is_asked_about_if_it_is_gone(
    lost: str, sqlite: str, tmp_path: Path
) -> None:
    engine = temporal.own().address("1s")
    work, logs = tmp_path / "work", tmp_path / "logs"
    work.mkdir()
    async with Holdfast(sqlite, engine=engine) as hf, asyncio.timeout(HANG):
        service, runner = await hf.service(), Runner(hf, logs_root=logs)
        following = asyncio.ensure_future(runner.run(LINE, context={"internal.workdir": str(work)}))
        first = WorkerProcess(tmp_path / "first", sqlite, engine)
        await until((work / "b.began").exists)
        [group] = [each for each in groups(logs) if is_living(each)]
        first.kill()
        if lost == "machine":
            os.killpg(group, signal.SIGKILL)
        with WorkerProcess(tmp_path / "second", sqlite, engine):
            if lost == "worker":
                # Its command goes on, and the next worker waits for it.
                (work / "b.go").touch()
            result = await following
            if lost == "machine":
                [hold] = result.holds
                assert hold.prompt.startswith("The command of stage 'b' was started")
                await service.answer(hold.id, DONE)
                result = await runner.resume(result.run_id)
            assert result.status == "success", result
            assert result.completed_nodes == ("start", "a", "b", "c", "end")
            asked = await service.holds(RunId(result.run_id), open_only=False)
            assert len(asked) == (1 if lost == "machine" else 0)
            ended = {"b.end": 1} if lost == "worker" else {}
            assert Counter(written(work / "trace").split()) == {"a": 1, "b": 1, "c": 1, **ended}
            await assert_same(hf, result.run_id)


@pytest.mark.covers("TD-39")
async def test_cancelled_run_stops_its_command(sqlite: str, engine: str, tmp_path: Path) -> None:
    work, logs = tmp_path / "work", tmp_path / "logs"
    work.mkdir()
    async with Holdfast(sqlite, engine=engine) as hf, Worker(on=hf), asyncio.timeout(HANG):
        service, runner = await hf.service(), Runner(hf, logs_root=logs)
        following = asyncio.ensure_future(runner.run(LINE, context={"internal.workdir": str(work)}))
        await until((work / "b.began").exists)
        [group] = [each for each in groups(logs) if is_living(each)]
        (row,) = await service.list(RunFilter())
        await service.cancel(row.id, reason="enough")
        result = await following
        assert result.status == "cancelled"
        assert not is_living(group)
        assert checkpoint(logs)["status"] == "cancelled"
        assert written(work / "trace").split() == ["a", "b"]


@pytest.mark.covers("TD-39")
async def test_branch_that_is_given_up_stops_its_command_while_the_run_goes_on(
    sqlite: str, engine: str, tmp_path: Path
) -> None:
    text = dot(
        f'p [shape=component, join_policy=first_success]; b [{TOOL}="{HELD.format("b")}"]; '
        f'c [{TOOL}="while [ ! -e b.began ]; do sleep 0.01; done"]; j [shape=tripleoctagon]; '
        'gate [shape=hexagon, label="Ship?"];',
        'start -> p; p -> b -> j; p -> c -> j; j -> gate; gate -> done [label="[A] Approve"]',
    )
    (tmp_path / "trace").touch()
    async with Holdfast(sqlite, engine=engine) as hf, Worker(on=hf), asyncio.timeout(HANG):
        runner = Runner(hf, logs_root=tmp_path / "logs")
        waiting = await runner.run(text, context={"internal.workdir": str(tmp_path)})
        assert [hold.node for hold in waiting.holds] == ["gate"]
        [folder] = [each for each in begun(tmp_path / "logs") if each.parent.name == "b"]
        await until(lambda: not is_living(int(written(folder / "pid").split()[0])))
        assert "b.end" not in written(tmp_path / "trace")


@pytest.mark.covers("TD-39")
@pytest.mark.parametrize("detached", [True, False])
async def test_child_of_a_cancelled_manager_is_cancelled_unless_it_is_detached(
    detached: bool, sqlite: str, engine: str, tmp_path: Path
) -> None:
    (tmp_path / "child.dot").write_text(CHILD)
    boss = MANAGER.replace("[shape=house", f"[shape=house, stack.child_detach={str(detached).lower()}")
    (tmp_path / "boss.dot").write_text(boss)
    async with Holdfast(sqlite, engine=engine) as hf, Worker(on=hf), asyncio.timeout(HANG):
        service, runner = await hf.service(), Runner(hf, logs_root=tmp_path / "logs")
        given = {"internal.workdir": str(tmp_path)}
        following = asyncio.ensure_future(runner.run(tmp_path / "boss.dot", context=given))
        await until((tmp_path / "work.began").exists)
        [manager] = [row for row in await service.list(RunFilter()) if row.flow == "manager"]
        await service.cancel(manager.id)
        assert (await following).status == "cancelled"
        (tmp_path / "work.go").touch()
        [child] = [row for row in await service.list(RunFilter()) if row.flow == "child"]
        await wait_until_idle(service, child.id, HANG)
        assert (await service.get(child.id)).status == ("completed" if detached else "cancelled")


@pytest.mark.covers("TD-39", "TD-33")
async def test_worker_without_the_backend_leaves_a_pipeline_to_one_that_has_it(
    sqlite: str, engine: str, tmp_path: Path
) -> None:
    backend = Scripted(next(case for case in cases() if case.name == "linear"))
    async with Holdfast(sqlite, engine=engine) as hf, Worker(on=hf), asyncio.timeout(HANG):
        service = await hf.service()
        runner = Runner(hf, backend=backend, logs_root=tmp_path / "logs")
        following = asyncio.ensure_future(runner.run(line('a [prompt="Go"];', "a")))
        plain = await Runner(hf, logs_root=tmp_path / "plain").run(line("a;", "a"))
        assert plain.succeeded
        (row,) = [each for each in await service.list(RunFilter()) if each.id != plain.run_id]
        report = await report_of(await engine_of(hf), row)
        assert report.problem.endswith("start one with backend:function:tests.attractor.cases.Scripted")
        assert (row.head, following.done()) == (0, False)
        async with Holdfast(sqlite, engine=engine) as other:
            setup = PipelineSetup(backend=backend)
            other.dialects = {**other.dialects, "attractor": PipelineDialect(setup)}
            async with Worker(on=other):
                assert (await following).succeeded


@pytest.mark.covers("TD-39")
async def test_stage_whose_file_is_not_there_waits_for_it_and_does_not_fail(
    sqlite: str, engine: str, tmp_path: Path
) -> None:
    child = tmp_path / "child.dot"
    text = dot(
        f'boss [shape=house, manager.poll_interval=50ms, stack.child_dotfile="{child}", '
        "stack.child_resolve=late];",
        "start -> boss -> done",
    )
    async with Holdfast(sqlite, engine=engine) as hf, Worker(on=hf), asyncio.timeout(HANG):
        service, runner = await hf.service(), Runner(hf, logs_root=tmp_path / "logs")
        following = asyncio.ensure_future(runner.run(text))
        await until(lambda: (tmp_path / "logs" / "checkpoint.json").exists())
        (row,) = await service.list(RunFilter())
        handle = (await (await engine_of(hf)).client()).get_workflow_handle(row.id)
        while not await is_waiting(handle):
            await service.store.wait_change(0.05)
        child.write_text(line("a;", "a"))
        assert (await following).succeeded


async def is_waiting(handle: Any) -> bool:
    """Whether the workflow has a timer: it waits for another worker."""
    events = [event async for event in handle.fetch_history_events()]
    return any(event.HasField("timer_started_event_attributes") for event in events)


@pytest.mark.covers("TD-39")
async def test_gates_are_asked_by_the_process_that_follows_the_run(
    sqlite: str, engine: str, tmp_path: Path
) -> None:
    async with Holdfast(sqlite, engine=engine) as hf, Worker(on=hf), asyncio.timeout(HANG):
        asked = QueueInterviewer([Answer(value="F")])
        runner = Runner(hf, logs_root=tmp_path / "asked", interviewer=asked)
        found = await runner.run(GATED)
        assert found.completed_nodes == ("start", "plan", "gate", "fix", "done")
        auto = await Runner(hf, logs_root=tmp_path / "auto", auto_approve=True).run(GATED)
        assert auto.completed_nodes == ("start", "plan", "gate", "done")
        [hold] = await (await hf.service()).holds(RunId(auto.run_id), open_only=False)
        assert hold.resolved_by == "interviewer:auto-approve"


@pytest.mark.covers("TD-39")
async def test_question_of_a_child_reaches_its_manager_on_the_cluster(
    sqlite: str, engine: str, tmp_path: Path
) -> None:
    (tmp_path / "child.dot").write_text(GATED)
    (tmp_path / "boss.dot").write_text(MANAGER.replace("echo b >>trace", "true"))
    async with Holdfast(sqlite, engine=engine) as hf, Worker(on=hf), asyncio.timeout(HANG):
        service, runner = await hf.service(), Runner(hf, logs_root=tmp_path / "logs")
        waiting = await runner.run(tmp_path / "boss.dot")
        [hold] = waiting.holds
        assert (waiting.status, hold.prompt) == ("waiting", "Ship?")
        await service.answer(hold.id, "A")
        # Nobody follows it now: the worker that continues the child tells its manager.
        while (await service.get(waiting.run_id)).status not in ENDED:
            await service.store.wait_change(0.1)
        result = await runner.resume(waiting.run_id)
        assert result.completed_nodes == ("start", "boss", "b", "end"), result
        rows = await service.list(RunFilter())
        assert [str(row.status) for row in rows] == ["completed", "completed"]
        client = await (await engine_of(hf)).client()
        for row in rows:
            await client.get_workflow_handle(row.id).describe()


@pytest.mark.covers("TD-39")
async def test_submitted_pipeline_runs_on_the_cluster_of_its_server(
    sqlite: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with Holdfast(sqlite, engine=engine) as hf, serving(hf) as server, Worker(on=hf):
        service = await hf.service()
        made = await server.json("POST", "/v1/pipelines", 201, json={"dot": GATED, "simulate": True})
        await wait_until_idle(service, made["id"], HANG)
        assert (await service.get(made["id"])).worker == (await engine_of(hf)).name
        [question] = (await server.json("GET", f"/v1/pipelines/{made['id']}"))["questions"]
        await server.json(
            "POST", f"/v1/pipelines/{made['id']}/questions/{question}/answer", json={"value": "A"}
        )
        await wait_until_idle(service, made["id"], HANG)
        shown = await server.json("GET", f"/v1/pipelines/{made['id']}/checkpoint")
        assert (shown["status"], shown["current_node"]) == ("completed", "done")
        await export_directory(service, made["id"], tmp_path / "again")
        assert same(tmp_path / ".holdfast" / "logs" / made["id"], tmp_path / "again")
