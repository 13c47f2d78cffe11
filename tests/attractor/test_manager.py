"""A manager and its child: started once, watched, steered, and never left behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import detached_commands
from holdfast.attractor.handlers.manager import ManagerOptions
from holdfast.attractor.prepare import input_of
from holdfast.attractor.runner import Runner
from holdfast.errors import PipelineInvalidError
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.store.rows import RunFilter
from holdfast.types.ids import new_run_id
from tests.attractor.run import begun, dot, line, run, until, written

pytestmark = pytest.mark.anyio

TOOL = "shape=parallelogram, tool_command"


def manager(child: Path, more: str = "", graph: str = "") -> str:
    named = f'stack.child_dotfile="{child}"{", " + graph if graph else ""}'
    return line(f"m [shape=house{more}];", "m", graph=named)


def child_file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "child.dot"
    file.write_text(text.replace("digraph g", "digraph child"))
    return file


@pytest.mark.covers("AT-200", "AT-202", "ATTRACTOR-RUN-03")
async def test_a_child_that_succeeds_is_a_success(hf: Holdfast, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    file = child_file(tmp_path, line(f'c [{TOOL}="pwd"];', "c"))
    found = await run(hf, manager(file, graph=f'stack.child_workdir="{work}"'), tmp_path / "logs")
    assert found.succeeded
    assert found.context["context.stack.child.status"] == "completed"
    assert found.context["context.stack.child.outcome"] == "success"
    assert found.context["context.stack.child.completed"] == ["start", "c", "done"]
    status = json.loads((tmp_path / "logs" / "m" / "status.json").read_text())
    assert status["notes"] == "Child completed"
    inside = tmp_path / "logs" / "m" / "child-1"
    assert json.loads((inside / "checkpoint.json").read_text())["current_node"] == "done"
    said = json.loads((inside / "checkpoint.json").read_text())["context"]["tool.last_line"]
    assert said == str(work)


@pytest.mark.covers("AT-202", "AT-A32")
async def test_a_child_that_fails_is_a_failure(hf: Holdfast, tmp_path: Path) -> None:
    file = child_file(tmp_path, line(f'c [{TOOL}="exit 4"];', "c"))
    found = await run(hf, manager(file), tmp_path / "logs")
    assert found.status == "fail"
    assert found.outcome.failure_reason == "Child failed: exit code 4"


@pytest.mark.covers("AT-200")
async def test_a_manager_without_a_child_fails(hf: Holdfast, tmp_path: Path) -> None:
    found = await run(hf, line("m [shape=house];", "m"), tmp_path)
    assert found.outcome.failure_reason == "No stack.child_dotfile specified"
    with pytest.raises(PipelineInvalidError, match=r"no\.dot does not exist"):
        await run(hf, manager(tmp_path / "no.dot"), tmp_path / "2")
    bad = child_file(tmp_path, "digraph g { a -> b }")
    with pytest.raises(PipelineInvalidError, match=r"child\.dot:1:1: error: .*start"):
        await run(hf, manager(bad), tmp_path / "3")
    service = await hf.service()
    assert len(await service.store.list_runs(RunFilter(), after=None, limit=10)) == 1


@pytest.mark.covers("AT-200", "AT-201")
def test_orders_have_the_specifications_defaults() -> None:
    class Visit:
        stage = Stage(id="m")
        pipeline = Pipeline(name="g", attrs={"stack.child_dotfile": "c.dot"})

    orders = ManagerOptions.of(Visit())  # type: ignore[arg-type]
    assert (orders.poll, orders.max_cycles, orders.actions) == (45.0, 1000, {"observe", "wait"})
    assert (orders.autostart, orders.dotfile) == (True, "c.dot")


@pytest.mark.covers("AT-203")
async def test_a_stop_condition_ends_the_watch(hf: Holdfast, tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"while test -d {tmp_path} && ! test -e {go}; do sleep 0.02; done"
    file = child_file(tmp_path, line(f'c [{TOOL}="{wait}"];', "c"))
    more = ', manager.poll_interval=20ms, manager.stop_condition="context.stack.child.active_stage=c"'
    found = await run(hf, manager(file, more), tmp_path / "logs")
    assert found.succeeded
    assert json.loads((tmp_path / "logs/m/status.json").read_text())["notes"] == "Stop condition satisfied"
    go.touch()


@pytest.mark.covers("AT-204")
async def test_a_manager_looks_only_so_often(hf: Holdfast, tmp_path: Path) -> None:
    go = tmp_path / "go"
    file = child_file(
        tmp_path, line(f'c [{TOOL}="while test -d {tmp_path} && ! test -e {go}; do sleep 0.02; done"];', "c")
    )
    more = ", manager.poll_interval=5ms, manager.max_cycles=3"
    found = await run(hf, manager(file, more), tmp_path / "logs")
    assert found.outcome.failure_reason == "Max cycles exceeded"
    assert found.context["stack.manager.cycle"] == 3
    go.touch()


@pytest.mark.covers("AT-205")
async def test_a_manager_steers_the_childs_active_stage(hf: Holdfast, tmp_path: Path) -> None:
    command = "until test -e $ATTRACTOR_STAGE_DIR/intervention.md || ! test -d $ATTRACTOR_STAGE_DIR; "
    command += "do sleep 0.01; done; "
    file = child_file(
        tmp_path, line(f'c [{TOOL}="{command} cat $ATTRACTOR_STAGE_DIR/intervention.md"];', "c")
    )
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return "hurry up"

    more = ', manager.actions="observe,steer,wait", manager.poll_interval=20ms, manager.steer_cooldown=30ms, '
    found = await run(hf, manager(file, more + 'prompt="Help for $goal"'), tmp_path / "logs", backend=answer)
    assert found.succeeded
    assert any('"context.stack.child.active_stage": "c"' in each for each in asked)
    checkpoint = json.loads((tmp_path / "logs/m/child-1/checkpoint.json").read_text())
    assert checkpoint["context"]["tool.output"] == "hurry up"


@pytest.mark.covers("AT-205")
@pytest.mark.parametrize(("cooldown", "times"), [("1h", 1), ("0s", 5)])
async def test_steering_has_a_cooldown(hf: Holdfast, tmp_path: Path, cooldown: str, times: int) -> None:
    go, asked = tmp_path / "go", list[str]()
    file = child_file(
        tmp_path, line(f'c [{TOOL}="while test -d {tmp_path} && ! test -e {go}; do sleep 0.02; done"];', "c")
    )
    more = f', manager.actions="steer,wait", manager.poll_interval=5ms, manager.steer_cooldown={cooldown}'
    text = manager(file, more + ", manager.max_cycles=5, prompt=Help")
    await run(hf, text, tmp_path / "logs", backend=lambda prompt: asked.append(prompt) or "go")
    assert len(asked) == times
    go.touch()


async def stopped_amid(hf: Holdfast, tmp_path: Path, go: Path) -> tuple[Runner, str]:
    """A manager whose child has begun its tool, and nobody advances either any more."""
    trace = tmp_path / "trace"
    command = f"echo x >> {trace}; while test -d {tmp_path} && ! test -e {go}; do sleep 0.02; done"
    file = child_file(tmp_path, line(f'c [{TOOL}="{command}"];', "c"))
    runner, run_id = Runner(hf, logs_root=tmp_path / "logs"), str(new_run_id())
    text = manager(file, ", manager.poll_interval=50ms")
    work = asyncio.ensure_future(runner.run(text, run_id=run_id))
    await until(lambda: begun(tmp_path / "logs" / "m" / "child-1") or work.done())
    await until(lambda: written(trace))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    return runner, run_id


@pytest.mark.covers("ATTRACTOR-RUN-03", "AT-155")
async def test_a_child_is_taken_up_again_and_never_started_twice(hf: Holdfast, tmp_path: Path) -> None:
    go = tmp_path / "go"
    runner, run_id = await stopped_amid(hf, tmp_path, go)
    go.touch()
    found = await runner.resume(run_id)
    assert found.succeeded
    assert (tmp_path / "trace").read_text() == "x\n"
    rows: Any = await (await hf.service()).list(RunFilter())
    assert sorted(row.flow for row in rows) == ["child", "g"]


async def test_a_cancelled_manager_takes_its_child_along(hf: Holdfast, tmp_path: Path) -> None:
    file = child_file(tmp_path, line(f'c [{TOOL}="sleep 60"];', "c"))
    runner, run_id = Runner(hf, logs_root=tmp_path / "logs"), str(new_run_id())
    work = asyncio.ensure_future(runner.run(manager(file), run_id=run_id))
    await until(lambda: begun(tmp_path / "logs" / "m" / "child-1") or work.done())
    service = await hf.service()
    await service.cancel(run_id)
    assert (await work).status == "cancelled"
    rows: Any = await service.list(RunFilter())
    assert {row.flow: row.status for row in rows} == {"child": "cancelled", "g": "cancelled"}
    tool = begun(tmp_path / "logs" / "m" / "child-1")[0]
    await until(lambda: not detached_commands.is_alive(tool))


async def test_a_failed_child_is_gone_on_with_when_its_manager_is(hf: Holdfast, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    file = child_file(
        tmp_path, line(f'a [{TOOL}="echo x >> {tmp_path}/trace"]; c [{TOOL}="test -e {flag}"];', "a", "c")
    )
    runner = Runner(hf, logs_root=tmp_path / "logs")
    found = await runner.run(manager(file))
    assert found.status == "fail"
    flag.touch()
    again = await runner.resume(found.run_id)
    assert again.succeeded
    assert (tmp_path / "trace").read_text() == "x\n"


@pytest.mark.covers("ATTRACTOR-RUN-03", "AT-201")
async def test_a_manager_sleeps_while_its_child_waits_for_a_person(hf: Holdfast, tmp_path: Path) -> None:
    gate = 'gate [shape=hexagon, label="Ship?"]; fix [label=Fix];'
    links = "start -> gate; gate -> done [label=Yes]; gate -> fix [label=No]; fix -> done"
    file = child_file(tmp_path, dot(gate, links))
    runner, run_id = Runner(hf, logs_root=tmp_path / "logs"), str(new_run_id())
    text = manager(file, ", manager.poll_interval=100ms")
    work = asyncio.ensure_future(runner.run(text, run_id=run_id))
    service = await hf.service()
    hold = None
    while hold is None:
        hold = next(iter(await service.holds()), None)
        await asyncio.sleep(0.01)
    assert hold.run != run_id
    await service.answer(hold.id, "Yes", by="user:dana")
    found = await work
    while found.status == "waiting":
        found = await runner.resume(run_id)
    assert found.succeeded


@pytest.mark.covers("AT-200")
async def test_a_child_is_found_beside_its_parents_file_also_by_another_worker(
    hf: Holdfast, tmp_path: Path
) -> None:
    child_file(tmp_path, line("c;", "c"))
    file = tmp_path / "parent.dot"
    file.write_text(manager(Path("child.dot")))
    first = Runner(hf).prepare(file)
    service = await hf.service()
    given = input_of(first.pipeline, logs=tmp_path / "logs", backend="simulation")
    row, _ = await service.create(first.program, given)
    # Of the stored graph, which has no path.
    found = await Runner(hf).resume(row.id)
    assert found.succeeded


@pytest.mark.covers("CP2-M4")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (', manager.stop_condition="context.stack.child.active_stage=c"', "success"),
        (", manager.max_cycles=2", "fail"),
        (", timeout=1s, manager.max_cycles=100000", "fail"),
    ],
    ids=["condition", "cycles", "timeout"],
)
@pytest.mark.parametrize("detach", [False, True], ids=["stops", "detached"])
async def test_manager_that_stops_stops_its_child(
    hf: Holdfast, tmp_path: Path, more: str, said: str, detach: bool
) -> None:
    wait = f"while test -d {tmp_path} && ! test -e {tmp_path}/go; do sleep 0.02; done"
    file = child_file(tmp_path, line(f'c [{TOOL}="{wait}"];', "c"))
    orders = f"{more}, manager.poll_interval=20ms{', stack.child_detach=true' if detach else ''}"
    found = await run(hf, manager(file, orders), tmp_path / "logs")
    assert found.status == said
    service = await hf.service()
    rows: Any = await service.list(RunFilter(flow="child"))
    assert [row.status == "cancelled" for row in rows] == [not detach]
    tool = begun(tmp_path / "logs" / "m" / "child-1")
    if not detach:
        await until(lambda: all(not detached_commands.is_alive(each) for each in tool))
    (tmp_path / "go").touch()
