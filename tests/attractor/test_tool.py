"""Commands: run once, in a process group of their own, with what they need, and no longer than they may."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import detached_commands
from holdfast.attractor.runner import Runner
from holdfast.types.ids import new_run_id
from holdfast.types.status import RunStatus
from tests.attractor.run import begun, dot, either, line, run, until, whole, written

pytestmark = pytest.mark.anyio


def tool(command: str, more: str = "") -> str:
    escaped = command.replace("\\", "\\\\").replace('"', '\\"')
    return f't [shape=parallelogram, tool_command="{escaped}"{more}];'


def group_of(logs: Path) -> int:
    return int((begun(logs)[0] / "pid").read_text())


@pytest.mark.covers("AT-181")
async def test_a_tool_without_a_command_fails(hf: Holdfast, tmp_path: Path) -> None:
    found = await run(hf, line("t [shape=parallelogram];", "t"), tmp_path)
    assert found.outcome.failure_reason == "No tool_command specified"


@pytest.mark.covers("AT-182")
async def test_what_a_tool_says_is_in_the_context(hf: Holdfast, tmp_path: Path) -> None:
    found = await run(hf, line(tool("echo one; echo two; echo odd >&2"), "t"), tmp_path)
    assert found.context["tool.output"] == "one\ntwo\n"
    assert found.context["tool_stdout"] == "one\ntwo\n"
    assert found.context["tool.stderr"] == "odd\n"
    assert found.context["tool.last_line"] == "two"
    assert found.context["tool.exit_code"] == 0
    notes = json.loads((tmp_path / "t" / "status.json").read_text())["notes"]
    assert notes == "Tool completed: echo one; echo two; echo odd >&2"


@pytest.mark.covers("AT-183", "ATTRACTOR-PROOF-03")
@pytest.mark.parametrize("way", ["t", "d"])
async def test_a_tool_that_fails_takes_the_fail_edge_and_runs_once(
    hf: Holdfast, tmp_path: Path, way: str
) -> None:
    trace = tmp_path / "trace"
    stages = tool(f"echo ran >> {trace}; echo why >&2; exit 7") + " fix; never;"
    stages += " d [shape=diamond];" if way == "d" else ""
    links = f'{way} -> never [condition="outcome=success"]; {way} -> fix [condition="outcome=fail"]; '
    links += "start -> t; fix -> done; never -> done;" + (" t -> d" if way == "d" else "")
    found = await run(hf, dot(stages, links), tmp_path)
    routed = ("d",) if way == "d" else ()
    assert found.completed_nodes == ("start", "t", *routed, "fix", "done")
    assert trace.read_text() == "ran\n"
    assert found.node_outcomes["t"] == "fail"


@pytest.mark.covers("AT-183", "AT-74")
async def test_a_tool_that_fails_tells_why(hf: Holdfast, tmp_path: Path) -> None:
    alone = await run(hf, line(tool("echo why >&2; exit 7"), "t"), tmp_path / "alone")
    assert alone.outcome.failure_reason == "exit code 7: why"
    assert alone.context["tool.exit_code"] == 7


@pytest.mark.covers("AT-184", "AT-185", "ATTRACTOR-PROOF-06", "ATTRACTOR-HANDLER-01")
async def test_a_tool_that_takes_too_long_is_killed_with_all_that_it_started(
    hf: Holdfast, tmp_path: Path
) -> None:
    left = tmp_path / "left"
    stages = tool(f"(sleep 1.5; echo late > {left}) & sleep 60", ", timeout=200ms") + " fix;"
    found = await run(hf, dot(stages, either("t", "fix")), tmp_path)
    assert found.completed_nodes == ("start", "t", "fix", "done")
    assert not detached_commands.is_living(group_of(tmp_path))
    assert not left.exists()


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
async def test_what_a_tool_leaves_behind_is_killed_when_it_ends(hf: Holdfast, tmp_path: Path) -> None:
    found = await run(hf, line(tool("sleep 60 & echo ok"), "t"), tmp_path)
    assert found.context["tool.output"] == "ok\n"
    await until(lambda: not detached_commands.is_living(group_of(tmp_path)))


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
async def test_long_output_keeps_its_beginning_and_its_end(hf: Holdfast, tmp_path: Path) -> None:
    command = "echo first; head -c 300000 /dev/zero | tr '\\0' x; echo; echo last"
    found = await run(hf, line(tool(command), "t"), tmp_path)
    said = found.context["tool.output"]
    assert said.startswith("first\nxxx")
    assert said.endswith("\nlast\n")
    assert "bytes left out" in said
    assert len(said) < detached_commands.SHOWN + 100
    assert len((begun(tmp_path)[0] / "stdout").read_bytes()) > 300_000


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
async def test_a_tool_that_never_stops_writing_is_stopped(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached_commands, "MAX_STREAM", 100_000)
    found = await run(hf, line(tool("yes"), "t"), tmp_path)
    assert found.outcome.failure_reason == "the command wrote more than 100,000 bytes and was stopped"


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
@pytest.mark.covers("SAFE-EDGE-10")
async def test_a_tool_gets_only_the_variables_on_the_list(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOLDFAST_TOKEN", "HOLDFAST_STORE", "OPENAI_API_KEY", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, f"hush-{name}")
    monkeypatch.setenv("CI_JOB", "fine")
    monkeypatch.setenv("LC_TIME", "C")
    found = await run(hf, line(tool("env"), "t"), tmp_path / "1")
    said = found.context["tool.output"]
    assert "hush" not in said
    assert "fine" not in said
    assert "LC_TIME=C" in said
    assert f"PATH={os.environ['PATH']}" in said
    # The operator may name more, and a stage sets its own.
    monkeypatch.setenv("HOLDFAST_TOOL_ENV", "CI_*, PGPASSWORD")
    found = await run(hf, line(tool("env", ', env.MINE="yes"'), "t"), tmp_path / "2")
    said = found.context["tool.output"]
    assert "CI_JOB=fine" in said
    assert "PGPASSWORD=hush-PGPASSWORD" in said
    assert "MINE=yes" in said
    assert "hush-HOLDFAST" not in said


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
async def test_a_tool_finds_its_place_and_its_values_in_its_environment(hf: Holdfast, tmp_path: Path) -> None:
    names = (
        "HOLDFAST_RUN_ID HOLDFAST_NODE ATTRACTOR_LOGS_ROOT ATTRACTOR_STAGE_DIR ATTRACTOR_GOAL TICKET PLAIN"
    )
    command = "; ".join(f'echo "${name}"' for name in names.split())
    stage = tool(command, ', env.TICKET="context.ticket", env.PLAIN="a b"')
    found = await run(hf, line(stage, "t"), tmp_path, context={"ticket": "T-1"})
    logs = whole(tmp_path)
    lines = [found.run_id, "t", logs, f"{logs}/t", "ship it", "T-1", "a b"]
    assert found.context["tool.output"].splitlines() == lines


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
async def test_a_tool_runs_where_it_is_asked_to(hf: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    stage = tool("pwd", f', cwd="{tmp_path / "work"}"')
    found = await run(hf, line(stage, "t"), tmp_path / "logs")
    assert found.context["tool.last_line"] == str((tmp_path / "work").resolve())
    wrong = await run(hf, line(tool("pwd", ', cwd="/no/such"'), "t"), tmp_path / "logs2")
    assert "the folder '/no/such' does not exist. Create /no/such on " in wrong.outcome.failure_reason


@pytest.mark.covers("AT-129")
async def test_a_tool_may_write_its_own_status(hf: Holdfast, tmp_path: Path) -> None:
    command = (
        'echo \'{"outcome": "needs_dod", "context_updates": {"k": 1}}\' > $ATTRACTOR_STAGE_DIR/status.json'
    )
    stages = tool(command) + " more;"
    found = await run(hf, dot(stages, either("t", "more", "needs_dod")), tmp_path)
    assert found.completed_nodes == ("start", "t", "more", "done")
    assert found.context["k"] == 1
    liar = command.replace("needs_dod", "success") + "; exit 3"
    assert (await run(hf, line(tool(liar), "t"), tmp_path / "liar")).status == "fail"


async def test_a_tool_that_is_tried_again_runs_again(hf: Holdfast, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    command = f"echo x >> {trace}; test $(wc -l < {trace}) -ge 3"
    found = await run(hf, line(tool(command, ", max_retries=3"), "t"), tmp_path)
    assert found.succeeded
    assert trace.read_text() == "x\n" * 3


async def test_a_failed_pipeline_that_is_resumed_runs_its_failed_tool_again(
    hf: Holdfast, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    runner = Runner(hf, logs_root=tmp_path / "logs")
    found = await runner.run(line(tool(f"test -e {flag}"), "t"))
    assert found.status == "fail"
    flag.touch()
    again = await runner.resume(found.run_id)
    assert again.succeeded
    assert again.completed_nodes == ("start", "t", "done")


class Stopping:
    """A run that is let go while its tool works, as when a worker is stopped or dies."""

    def __init__(self, hf: Holdfast, logs: Path) -> None:
        self.hf = hf
        self.logs = logs
        self.runner = Runner(hf, logs_root=logs)

    async def begin(self, text: str, **options: Any) -> str:
        """Until the tool has begun; then nobody advances the run any more."""
        run_id = str(new_run_id())
        work = asyncio.ensure_future(self.runner.run(text, run_id=run_id, **options))
        await until(lambda: begun(self.logs) or work.done())
        assert not work.done()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return run_id

    @property
    def folder(self) -> Path:
        return begun(self.logs)[0]


@pytest.mark.covers("ATTRACTOR-HANDLER-01", "AT-155")
async def test_a_tool_that_ended_while_nobody_looked_is_taken_as_it_ended(
    hf: Holdfast, tmp_path: Path
) -> None:
    trace, stopping = tmp_path / "trace", Stopping(hf, tmp_path / "logs")
    run_id = await stopping.begin(line(tool(f"echo x >> {trace}; sleep 0.2; echo end"), "t"))
    await until((stopping.folder / "exit_code").exists)
    found = await stopping.runner.resume(run_id)
    assert found.succeeded
    assert found.context["tool.output"] == "end\n"
    assert trace.read_text() == "x\n"


@pytest.mark.covers("ATTRACTOR-HANDLER-01", "AT-155")
async def test_a_tool_that_still_runs_is_waited_for(hf: Holdfast, tmp_path: Path) -> None:
    trace, go = tmp_path / "trace", tmp_path / "go"
    stopping = Stopping(hf, tmp_path / "logs")
    command = f"echo x >> {trace}; while test -d {tmp_path} && ! test -e {go}; do sleep 0.02; done; echo end"
    run_id = await stopping.begin(line(tool(command), "t"))
    going = asyncio.ensure_future(stopping.runner.resume(run_id))
    await asyncio.sleep(0.1)
    assert not going.done()
    go.touch()
    found = await going
    assert found.succeeded
    assert trace.read_text() == "x\n"


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
async def test_a_tool_that_still_runs_is_killed_at_its_timeout(hf: Holdfast, tmp_path: Path) -> None:
    stopping = Stopping(hf, tmp_path / "logs")
    run_id = await stopping.begin(line(tool("sleep 60", ", timeout=400ms"), "t"))
    found = await stopping.runner.resume(run_id)
    assert "timeout" in found.outcome.failure_reason
    assert not detached_commands.is_alive(stopping.folder)


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
@pytest.mark.parametrize(
    ("more", "answer", "status", "runs"),
    [
        ("", "run again", "success", 2),
        ("", "it succeeded", "success", 1),
        ("", "it failed", "fail", 1),
        (", in_doubt=fail", "", "fail", 1),
        (", in_doubt=retry", "", "success", 2),
        (", idempotent=true", "", "success", 2),
    ],
)
async def test_a_tool_whose_end_nobody_knows_is_in_doubt(
    hf: Holdfast, tmp_path: Path, more: str, answer: str, status: str, runs: int
) -> None:
    trace, again = tmp_path / "trace", tmp_path / "again"
    stopping = Stopping(hf, tmp_path / "logs")
    command = f"echo x >> {trace}; test -e {again} || sleep 60"
    run_id = await stopping.begin(line(tool(command, more), "t"))
    await until(lambda: written(trace))
    detached_commands.kill_now(stopping.folder)
    await until(lambda: not detached_commands.is_alive(stopping.folder))
    again.touch()
    found = await stopping.runner.resume(run_id)
    if answer:
        assert found.status == "waiting"
        assert "how it ended is not known" in found.holds[0].prompt
        service = await hf.service()
        await service.answer(found.holds[0].id, answer, by="user:dana")
        found = await stopping.runner.resume(run_id)
    assert found.status == status
    assert trace.read_text() == "x\n" * runs


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
async def test_on_another_machine_only_an_exit_code_that_is_there_counts(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, stopping = tmp_path / "go", Stopping(hf, tmp_path / "logs")
    run_id = await stopping.begin(
        line(tool(f"while test -d {tmp_path} && ! test -e {go}; do sleep 0.02; done", ", in_doubt=fail"), "t")
    )
    monkeypatch.setattr("holdfast.attractor.handlers.tool.machine", lambda: "elsewhere")
    monkeypatch.setattr(detached_commands, "is_alive", lambda folder: False)
    found = await stopping.runner.resume(run_id)
    assert found.status == "fail"
    assert "its result is unknown" in found.outcome.failure_reason
    go.touch()


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
async def test_a_cancelled_run_takes_its_tool_along(hf: Holdfast, tmp_path: Path) -> None:
    run_id = str(new_run_id())
    runner = Runner(hf, logs_root=tmp_path)
    work = asyncio.ensure_future(runner.run(line(tool("sleep 60"), "t"), run_id=run_id))
    await until(lambda: begun(tmp_path))
    service = await hf.service()
    await service.cancel(run_id)
    found = await work
    assert found.status == "cancelled"
    assert (await service.get(run_id)).status is RunStatus.cancelled
    await until(lambda: not detached_commands.is_living(group_of(tmp_path)))


@pytest.mark.covers("ATTRACTOR-HANDLER-01")
async def test_a_run_that_is_cancelled_while_nobody_advances_it_takes_its_tool_along(
    hf: Holdfast, tmp_path: Path
) -> None:
    stopping = Stopping(hf, tmp_path / "logs")
    run_id = await stopping.begin(line(tool("sleep 60"), "t"))
    assert detached_commands.is_alive(stopping.folder)
    await (await hf.service()).cancel(run_id)
    assert (await stopping.runner.resume(run_id)).status == "cancelled"
    await until(lambda: not detached_commands.is_living(group_of(tmp_path / "logs")))


def test_a_folder_is_begun_by_one_only(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    first = detached_commands.begin(tmp_path, "sleep 0.3", shell="/bin/sh", cwd=None, env=os.environ)
    second = detached_commands.begin(tmp_path, "sleep 0.3", shell="/bin/sh", cwd=None, env=os.environ)
    assert (first, second) == (True, False)
