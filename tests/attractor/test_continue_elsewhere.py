"""A run directory is enough to continue on another store: nothing is repeated in silence."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import detached_commands, directory_sync
from holdfast.attractor.backends.cli import CommandBackend
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.directory_owner import read_owner
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import Runner
from holdfast.errors import InputError, RequirementsMissingError
from holdfast.frontends.dot.document import Stage
from holdfast.store.rows import RunFilter
from holdfast.types.ids import RunId
from tests.attractor.repositories import made
from tests.attractor.run import dot, line, until
from tests.attractor.test_resume_directory import Script, checkpoint, elsewhere, status, write_checkpoint
from tests.cli.conftest import Cli
from tests.flows.conftest import Positions

__all__ = ["elsewhere"]
pytestmark = pytest.mark.anyio

TOOL = "shape=parallelogram, tool_command"
HELD = "until test -e $ATTRACTOR_LOGS_ROOT/go || ! test -d $ATTRACTOR_LOGS_ROOT; do sleep 0.01; done; "


def counted(stage: str, more: str = "") -> str:
    """A command that writes a line for each time it runs."""
    return f'{stage} [{TOOL}="echo {stage} >> $ATTRACTOR_LOGS_ROOT/ran; {more}true"];'


def ran(logs: Path) -> list[str]:
    path = logs / "ran"
    return path.read_text().split() if path.exists() else []


async def left_running(runner: Runner, source: str, ready: Callable[[], bool], **options: Any) -> None:
    """Start a run, and leave it as a process that ends does."""
    task = asyncio.ensure_future(runner.run(source, **options))
    await until(ready)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


WAITS = line(
    counted("t", HELD),
    "t",
)


@pytest.mark.covers("CP2-D1")
async def test_intent_is_on_disk_before_a_command_starts(hf: Holdfast, tmp_path: Path) -> None:
    shown = "cat $ATTRACTOR_STAGE_DIR/tool-1-1-1/intent.json"
    found = await Runner(hf, logs_root=tmp_path).run(line(f't [{TOOL}="{shown}"];', "t"))
    intent = json.loads(found.context["tool.output"])
    assert (intent["run"], intent["stage"], intent["visit"], intent["attempt"]) == (found.run_id, "t", 1, 1)
    assert intent["idempotency_key"]
    assert len(intent["command"]) == 64
    assert shown not in found.context["tool.output"]
    assert intent["host"]
    assert (tmp_path / "t/tool-1-1-1/exit_code").read_text().strip() == "0"


@pytest.mark.covers("CP2-D3")
async def test_command_that_still_runs_is_waited_for_on_another_store(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    await left_running(Runner(hf, logs_root=tmp_path), WAITS, lambda: ran(tmp_path) == ["t"])
    going = asyncio.ensure_future(Runner(elsewhere).resume(tmp_path))
    await until(lambda: read_owner(tmp_path) is not None and checkpoint(tmp_path)["status"] == "running")
    (tmp_path / "go").touch()
    assert (await going).succeeded
    assert ran(tmp_path) == ["t"]


@pytest.mark.covers("CP2-D3")
async def test_exit_code_in_the_directory_is_adopted_on_another_store(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    await left_running(Runner(hf, logs_root=logs), WAITS, lambda: ran(logs) == ["t"])
    (logs / "go").touch()
    await until((logs / "t/tool-1-1-1/exit_code").exists)
    # Another machine: only the files are there.
    moved = tmp_path / "moved"
    shutil.copytree(logs, moved)
    _set_host(moved)
    found = await Runner(elsewhere).resume(moved)
    assert found.succeeded
    assert ran(moved) == ["t"]


@pytest.mark.covers("CP2-D5")
@pytest.mark.parametrize(
    "effect",
    [
        f'b [{TOOL}="cat $ATTRACTOR_LOGS_ROOT/checkpoint.json > $ATTRACTOR_LOGS_ROOT/seen"];',
        "b [type=looks];",
        'b [prompt="Look"];',
    ],
    ids=["command", "handler", "function"],
)
async def test_directory_has_all_that_was_settled_before_an_effect_begins(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effect: str
) -> None:
    """A worker that is killed then leaves a directory that continues at the right stage."""
    # It is written when a run begins and ends, and else only where something waits for it.
    monkeypatch.setattr(directory_sync, "PAUSE", 3600.0)

    def look() -> None:
        shutil.copyfile(tmp_path / "checkpoint.json", tmp_path / "seen")

    class Looks:
        def execute(self, node: Any, context: Any, graph: Any, logs_root: Path) -> StageOutcome:
            look()
            return StageOutcome()

    def answer(node: Stage, prompt: str) -> str:
        if node.id == "b":
            look()
        return "done"

    registry = HandlerRegistry({"looks": Looks()})
    runner = Runner(hf, backend=answer, registry=registry, logs_root=tmp_path)
    found = await runner.run(line(f"a; c [effect=read]; {effect}", "a", "c", "b"))
    assert found.succeeded
    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["completed_nodes"], seen["next_node"]) == (["start", "a", "c"], "b")


@pytest.mark.covers("CP2-D3")
@pytest.mark.parametrize("alive", [False, True])
@pytest.mark.parametrize(
    ("answer", "runs", "ends"),
    [
        ("it succeeded", ["t"], "success"),
        ("it failed", ["t"], "fail"),
        ("run again", ["t", "changed"], "success"),
    ],
)
async def test_result_of_a_changed_command_is_not_adopted(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, alive: bool, answer: str, runs: list[str], ends: str
) -> None:
    await left_running(Runner(hf, logs_root=tmp_path), WAITS, lambda: ran(tmp_path) == ["t"])
    folder = tmp_path / "t/tool-1-1-1"
    if not alive:
        (tmp_path / "go").touch()
        await until((folder / "exit_code").exists)
        await until(lambda: not detached_commands.is_alive(folder))
    changed = line(f't [{TOOL}="echo changed >> $ATTRACTOR_LOGS_ROOT/ran"];', "t")
    runner = Runner(elsewhere)
    found = await runner.resume(tmp_path, source=changed, force=True)
    assert found.status == "waiting"
    assert "had started another command before its pipeline was changed" in found.holds[0].prompt
    assert detached_commands.is_alive(folder) == alive
    await (await elsewhere.service()).answer(found.holds[0].id, answer)
    assert (await runner.resume(found.run_id)).status == ends
    assert ran(tmp_path) == runs
    await until(lambda: not detached_commands.is_alive(folder))


async def test_policy_of_a_stage_decides_about_a_changed_command(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    await left_running(Runner(hf, logs_root=tmp_path), WAITS, lambda: ran(tmp_path) == ["t"])
    changed = line(f't [{TOOL}="echo changed >> $ATTRACTOR_LOGS_ROOT/ran", in_doubt=retry];', "t")
    assert (await Runner(elsewhere).resume(tmp_path, source=changed, force=True)).succeeded
    assert ran(tmp_path) == ["t", "changed"]
    assert not detached_commands.is_alive(tmp_path / "t/tool-1-1-1")


async def test_answer_of_an_agent_is_adopted_for_the_same_prompt_alone(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    script = f"cat >> {tmp_path}/ran; until test -e {tmp_path}/go; do sleep 0.01; done; echo well"
    backend = CommandBackend(f"sh -c '{script}'")
    logs = tmp_path / "logs"
    source = line('a [prompt="first", fidelity=full];', "a")
    await left_running(
        Runner(hf, backend=backend, logs_root=logs), source, lambda: ran(tmp_path) == ["first"]
    )
    (tmp_path / "go").touch()
    await until((logs / "a/tool-1-1-1/exit_code").exists)
    for name in ("same", "changed"):
        shutil.copytree(logs, tmp_path / name)
    assert (await Runner(elsewhere, backend=backend).resume(tmp_path / "same")).succeeded
    changed = source.replace("first", "second")
    found = await Runner(elsewhere, backend=backend).resume(tmp_path / "changed", source=changed, force=True)
    assert found.status == "waiting"
    assert ran(tmp_path) == ["first"]


def _set_host(logs: Path) -> None:
    for path in logs.rglob("intent.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "host": "another", "boot_id": "x"}))


@pytest.mark.covers("CP2-D3")
@pytest.mark.parametrize(
    ("answer", "runs", "ends"),
    [("it succeeded", 1, "success"), ("it failed", 1, "fail"), ("run again", 2, "success")],
)
async def test_command_whose_end_is_not_known_is_asked_about_on_another_store(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, answer: str, runs: int, ends: str
) -> None:
    logs, moved = tmp_path / "logs", tmp_path / "moved"
    await left_running(Runner(hf, logs_root=logs), WAITS, lambda: ran(logs) == ["t"])
    shutil.copytree(logs, moved)
    (logs / "go").touch()
    (moved / "go").touch()
    _set_host(moved)
    runner = Runner(elsewhere)
    found = await runner.resume(moved)
    assert found.status == "waiting"
    assert "how it ended is not known" in found.holds[0].prompt
    await (await elsewhere.service()).answer(found.holds[0].id, answer)
    assert (await runner.resume(found.run_id)).status == ends
    assert ran(moved) == ["t"] * runs


async def test_attempts_that_are_settled_are_not_adopted(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    """The run failed; its resume runs the command again, as on its own store."""
    source = line(f't [{TOOL}="echo t >> $ATTRACTOR_LOGS_ROOT/ran; test -e $ATTRACTOR_LOGS_ROOT/go"];', "t")
    assert (await Runner(hf, logs_root=tmp_path).run(source)).status == "fail"
    (tmp_path / "go").touch()
    assert (await Runner(elsewhere).resume(tmp_path)).succeeded
    assert ran(tmp_path) == ["t", "t"]


FAN = dot(
    counted("a") + counted("a2", HELD)
    + counted("b") + "m; fan [shape=component]; join [shape=tripleoctagon];" + counted("z"),
    "start -> fan; fan -> m -> a -> a2 -> join; fan -> b -> join; join -> z -> done",
)  # fmt: skip


class Asked:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, node: Stage, prompt: str, context: PipelineContext) -> Any:
        self.asked.append(node.id)
        return StageOutcome(notes=f"notes of {node.id}", context_updates={f"of.{node.id}": 7})


@pytest.mark.covers("CP2-D2", "CP2-D3", "CP2-D6")
async def test_branches_continue_where_they_were_on_another_store(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    script = Asked()

    def both() -> bool:
        known = (tmp_path / "checkpoint.json").exists() and checkpoint(tmp_path)["node_outcomes"]
        return "a2" in ran(tmp_path) and {"m", "a", "b"} <= set(known or ())

    await left_running(Runner(hf, backend=script, logs_root=tmp_path), FAN, both)
    saved = checkpoint(tmp_path)
    assert saved["completed_nodes"] == ["start"]
    assert {name: saved["node_outcomes"][name] for name in ("m", "a", "b")} == dict.fromkeys("mab", "success")
    assert sorted(name for name, _ in saved["node_history"]) == ["a", "b", "m", "start"]
    assert saved["branches"]["fan.1[0]/"] == {"status": "success", "completed": ["m", "a"]}
    branch = json.loads((tmp_path / "branches/fan.1[0]/checkpoint.json").read_text())
    assert (branch["current_node"], branch["completed_nodes"]) == ("a", ["m", "a"])
    assert branch["context"]["of.m"] == 7
    going = asyncio.ensure_future(Runner(elsewhere, backend=script).resume(tmp_path))
    await until(lambda: (owner := read_owner(tmp_path)) is not None and owner.run != saved["run_id"])
    (tmp_path / "go").touch()
    found = await going
    assert found.succeeded
    assert sorted(ran(tmp_path)) == ["a", "a2", "b", "z"]
    assert script.asked == ["m"]
    assert json.loads((tmp_path / "m/status.json").read_text())["notes"] == "notes of m"
    ended = checkpoint(tmp_path)
    assert sorted(name for name, _ in ended["node_history"]) == sorted(
        ["start", "m", "a", "a2", "b", "fan", "join", "z", "done"]
    )


@pytest.mark.covers("CP2-D4")
async def test_run_whose_directory_was_taken_over_stops_before_its_next_effect(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    gate = dot(
        'g [shape=hexagon, label="Go on?"];' + counted("t"), "start -> g; g -> t [label=Yes]; t -> done"
    )
    first = await Runner(hf, logs_root=tmp_path).run(gate)
    owner = read_owner(tmp_path)
    assert owner is not None
    assert (first.status, owner.run) == ("waiting", first.run_id)
    other = Runner(elsewhere)
    second = await other.resume(tmp_path)
    owner = read_owner(tmp_path)
    assert owner is not None
    assert (second.status, owner.run) == ("waiting", second.run_id)
    service = await hf.service()
    await service.answer(first.holds[0].id, "Yes")
    stopped = await Runner(hf).resume(first.run_id)
    assert stopped.status == "cancelled"
    assert ran(tmp_path) == []
    assert checkpoint(tmp_path)["run_id"] == second.run_id
    await (await elsewhere.service()).answer(second.holds[0].id, "Yes")
    assert (await other.resume(second.run_id)).succeeded
    assert ran(tmp_path) == ["t"]


@pytest.mark.covers("CP2-D4")
async def test_start_into_the_directory_of_another_run_is_refused(hf: Holdfast, tmp_path: Path) -> None:
    first = await Runner(hf, logs_root=tmp_path).run(line("a;", "a"))
    with pytest.raises(InputError, match=f"is the directory of run {first.run_id}") as refused:
        await Runner(hf, logs_root=tmp_path).run(line("a;", "a"))
    assert refused.value.hint is not None
    assert "--resume" in refused.value.hint
    again = Runner(hf, logs_root=tmp_path / "keyed")
    one = await again.run(line("a;", "a"), idempotency_key="k")
    two = await again.run(line("a;", "a"), idempotency_key="k")
    assert one.run_id == two.run_id


DIES = """import os, sys, asyncio
from holdfast import Holdfast
from holdfast.attractor.runner import Runner
from holdfast.runs.service import RunService
RunService.create = lambda *_, **__: os._exit(9)
async def main():
    async with Holdfast("memory:") as hf:
        await Runner(hf, logs_root=sys.argv[1]).run("digraph g { start; exit; start -> exit }")
asyncio.run(main())
"""


@pytest.mark.covers("CP2-D4")
async def test_directory_of_a_process_that_died_before_its_run_was_made_is_free(
    hf: Holdfast, tmp_path: Path
) -> None:
    died = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES, str(tmp_path / "logs"))
    assert await died.wait() == 9
    assert read_owner(tmp_path / "logs") is not None
    made = await Runner(hf, logs_root=tmp_path / "logs").run(line("a;", "a"))
    owner = read_owner(tmp_path / "logs")
    assert owner is not None
    assert (owner.run, owner.pending) == (made.run_id, False)


@pytest.mark.covers("CP2-D4")
async def test_run_under_a_new_key_does_nothing_in_the_directory_of_another(
    hf: Holdfast, tmp_path: Path
) -> None:
    """Whether a key is new is known when its run is there: that one is cancelled before its first stage."""
    source = line(f't [shape=parallelogram, tool_command="echo t >> {tmp_path}/ran"];', "t")
    first = await Runner(hf, logs_root=tmp_path / "logs").run(source, idempotency_key="one")
    second = await Runner(hf, logs_root=tmp_path / "logs").run(source, idempotency_key="two")
    assert (first.status, second.status) == ("success", "cancelled")
    assert (tmp_path / "ran").read_text() == "t\n"
    assert checkpoint(tmp_path / "logs")["run_id"] == first.run_id


async def test_directory_has_what_the_run_needs_and_its_child_pipelines(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    home, logs = tmp_path / "home", tmp_path / "logs"
    home.mkdir()
    (home / "child.dot").write_text(line("c;", "c"))
    source = line(
        'ask [shape=hexagon, label="Go on?"]; d [type=deploy]; '
        'm [shape=house, "stack.child_dotfile"="child.dot", "manager.poll_interval"="10ms"];',
        "ask",
        "d",
        "m",
    )
    (home / "x.dot").write_text(source)

    class Deploys:
        def execute(self, node: Any, context: Any, graph: Any, logs_root: Path) -> StageOutcome:
            return StageOutcome(notes="deployed")

    registry = HandlerRegistry({"deploy": Deploys()})
    first = await Runner(hf, registry=registry, logs_root=logs).run(home / "x.dot")
    assert (first.status, checkpoint(logs)["current_node"]) == ("waiting", "start")
    assert json.loads((logs / "document.json").read_text())["requires"] == ["handler:deploy"]
    shutil.rmtree(home)
    with pytest.raises(RequirementsMissingError, match="handler:deploy"):
        await Runner(elsewhere).resume(logs)
    owner = read_owner(logs)
    assert owner is not None
    assert owner.run == first.run_id
    other = Runner(elsewhere, registry=registry)
    second = await other.resume(logs)
    await (await elsewhere.service()).answer(second.holds[0].id, "d")
    assert (await other.resume(second.run_id)).succeeded


@pytest.mark.covers("CP2-D7")
async def test_outcome_without_evidence_is_refused_or_assumed(hf: Holdfast, tmp_path: Path) -> None:
    source = dot(
        "a; b; c;",
        'start -> a; a -> b [condition="outcome=success"]; a -> c [condition="outcome=fail"]; '
        "b -> done; c -> done",
    )
    logs = write_checkpoint(tmp_path, current_node="a", completed_nodes=["start", "a"])
    with pytest.raises(InputError, match="does not say how stage 'a' ended") as refused:
        await Runner(hf).resume(logs, source=source)
    assert refused.value.hint is not None
    assert "--assume" in refused.value.hint
    with pytest.raises(InputError, match="cannot be assumed"):
        await Runner(hf).resume(logs, source=source, assume="maybe")
    for assumed, stage in (("success", "b"), ("fail", "c")):
        copy = tmp_path / assumed
        write_checkpoint(copy, current_node="a", completed_nodes=["start", "a"])
        script = Script()
        await Runner(hf, backend=script).resume(copy, source=source, assume=assumed)
        assert script.trace == [stage]


@pytest.mark.covers("CP2-D7")
@pytest.mark.parametrize("evidence", ["node_outcomes", "node_history", "status.json", "context"])
async def test_failure_stays_one_wherever_the_directory_says_it(
    hf: Holdfast, tmp_path: Path, evidence: str
) -> None:
    source = dot(
        "a; b; c;",
        'start -> a; a -> b [condition="outcome=success"]; a -> c [condition="outcome=fail"]; '
        "b -> done; c -> done",
    )
    fields: dict[str, Any] = {
        "node_outcomes": {"node_outcomes": {"a": "fail"}},
        "node_history": {"node_history": [["a", "success"], ["a", "fail"]]},
        "context": {"context": {"outcome": "fail"}},
    }.get(evidence, {})
    logs = write_checkpoint(tmp_path, current_node="a", completed_nodes=["start", "a"], **fields)
    if evidence == "status.json":
        status(logs, "a", outcome="fail", failure_reason="no")
    script = Script()
    await Runner(hf, backend=script).resume(logs, source=source)
    assert script.trace == ["c"]


@pytest.mark.covers("CP2-D7")
async def test_stage_without_evidence_satisfies_no_goal_gate(hf: Holdfast, tmp_path: Path) -> None:
    source = dot("g [goal_gate=true, retry_target=g]; b;", "start -> g -> b -> done")
    logs = write_checkpoint(
        tmp_path, current_node="b", completed_nodes=["start", "g", "b"], node_outcomes={"b": "success"}
    )
    script = Script()
    assert (await Runner(hf, backend=script).resume(logs, source=source)).succeeded
    assert script.trace == ["g", "b"]


ODD: dict[str, Any] = {
    "node_retries.a": {"node_retries": {"a": "two"}},
    "node_retries.b": {"node_retries": {"b": -1}},
    "node_retries.c": {"node_retries": {"c": 1.5}},
    "node_retries.d": {"node_retries": {"d": True}},
    "node_retries": {"node_retries": [1]},
    "visits.a": {"visits": {"a": "1"}},
    "counters.jumps": {"counters": {"jumps": "many"}},
    "counters.before.a": {"counters": {"before": {"a": -2}}},
    "goal_gate_status.g": {"goal_gate_status": {"g": "yes"}},
    "node_history": {"node_history": "a"},
    "node_history[0]": {"node_history": ["a"]},
    "node_outcomes.a": {"node_outcomes": {"a": 3}},
    "current_node": {"current_node": 4},
    "completed_nodes": {"completed_nodes": "a"},
    "context": {"context": []},
    "logs": {"logs": "x"},
    "run_id": {"run_id": 5},
    "next_node": {"next_node": ["a"]},
    "selected_edge": {"selected_edge": 1},
    "outcome": {"outcome": 7},
}


@pytest.mark.covers("CP2-D8")
@pytest.mark.parametrize("key", ODD)
async def test_odd_value_of_a_checkpoint_is_named_and_no_run_is_made(
    hf: Holdfast, tmp_path: Path, key: str
) -> None:
    usual = {"current_node": "a", "completed_nodes": ["start", "a"], "node_outcomes": {"a": "success"}}
    logs = write_checkpoint(tmp_path)
    (logs / "checkpoint.json").write_text(json.dumps({**usual, **ODD[key]}))
    with pytest.raises(InputError) as refused:
        await Runner(hf).resume(logs, source=line("a; b;", "a", "b"))
    value = next(iter(ODD[key].values()))
    inner = value
    while isinstance(inner, dict) and inner:
        inner = next(iter(inner.values()))
    shown = json.dumps(inner).replace('", "', '","')
    assert f"{logs / 'checkpoint.json'}: {key} is " in refused.value.message
    assert shown.strip("[]") in refused.value.message
    service = await hf.service()
    assert not await service.store.list_runs(RunFilter(), after=None, limit=1)


@pytest.mark.covers("CP2-D3")
@pytest.mark.parametrize("ended", [False, True], ids=["running", "ended"])
async def test_child_of_a_manager_continues_on_another_store(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, ended: bool
) -> None:
    logs = tmp_path / "logs"
    inside = logs / "m/child-1"
    child = line(
        counted("c") + counted("w", HELD.replace("$ATTRACTOR_LOGS_ROOT", str(tmp_path))),
        "c",
        "w",
    )
    (tmp_path / "child.dot").write_text(child)
    slow = 'm [shape=house, "stack.child_dotfile"="child.dot", "manager.poll_interval"="30s"];'
    (tmp_path / "x.dot").write_text(line(slow + counted("z"), "m", "z"))
    task = asyncio.ensure_future(Runner(hf, logs_root=logs).run(tmp_path / "x.dot"))
    await until(lambda: ran(inside) == ["c", "w"] and checkpoint(inside)["current_node"] == "c")
    await until(lambda: checkpoint(logs)["next_node"] == "m")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    (tmp_path / "go").touch()
    if ended:
        # The child ended, and its manager did not learn it.
        only = json.loads((inside / "checkpoint.json").read_text())
        await Runner(hf).resume(only["run_id"])
        assert checkpoint(inside)["status"] == "completed"
    found = await Runner(elsewhere).resume(logs)
    assert found.succeeded
    assert ran(inside) == ["c", "w"]
    assert ran(logs) == ["z"]


async def test_retried_manager_has_a_directory_for_each_child(hf: Holdfast, tmp_path: Path) -> None:
    child = line(f't [{TOOL}="echo t >> {tmp_path}/ran; test $(wc -l < {tmp_path}/ran) -ge 2"];', "t")
    (tmp_path / "child.dot").write_text(child)
    (tmp_path / "x.dot").write_text(
        line('m [shape=house, "stack.child_dotfile"="child.dot", "manager.poll_interval"="10ms", '
             'max_retries=2, retry_policy=none];', "m")
    )  # fmt: skip
    found = await Runner(hf, logs_root=tmp_path / "logs").run(tmp_path / "x.dot")
    assert found.succeeded
    assert checkpoint(tmp_path / "logs/m/child-1")["status"] == "failed"
    assert checkpoint(tmp_path / "logs/m/child-1.1")["status"] == "completed"


GATED = dot('g [shape=hexagon, label="Go on?"];' + counted("t"), "start -> g; g -> t [label=Yes]; t -> done")


async def test_fork_has_a_directory_of_its_own_and_both_go_on(hf: Holdfast, tmp_path: Path) -> None:
    runner = Runner(hf, logs_root=tmp_path)
    first = await runner.run(GATED)
    service = await hf.service()
    forked = await service.fork((await service.latest(first.run_id)).id)
    for run in (forked.id, first.run_id):
        (hold,) = await service.holds(run)
        await service.answer(hold.id, "Yes")
        assert (await runner.resume(run)).succeeded
    inside = tmp_path / "forks" / forked.id
    assert (ran(tmp_path), ran(inside)) == (["t"], ["t"])
    assert checkpoint(tmp_path)["run_id"] == first.run_id
    assert checkpoint(inside)["run_id"] == forked.id


def test_end_of_a_run_leaves_the_commands_of_its_forks_alone(tmp_path: Path) -> None:
    folder = tmp_path / "forks" / "f" / "t" / "tool-1-1-1"
    folder.mkdir(parents=True)
    detached_commands.begin(
        folder, "while test -d . ; do sleep 0.01; done", shell="/bin/sh", cwd=folder, env={}
    )
    try:
        detached_commands.kill_all(tmp_path)
        assert detached_commands.is_alive(folder)
    finally:
        detached_commands.kill_now(folder)


@pytest.mark.covers("CP2-D4")
async def test_every_former_owner_of_a_directory_stops(
    hf: Holdfast, tmp_path: Path, positions: Positions
) -> None:
    first = await Runner(hf, logs_root=tmp_path).run(GATED)
    async with Holdfast("memory:") as second, Holdfast("memory:") as third:
        middle = await Runner(second).resume(tmp_path)
        last = await Runner(third).resume(tmp_path)
        service = await hf.service()
        await service.answer(first.holds[0].id, "Yes")
        assert (await Runner(hf).resume(first.run_id)).status == "cancelled"
        assert ran(tmp_path) == []
        await (await third.service()).answer(last.holds[0].id, "Yes")
        assert (await Runner(third).resume(last.run_id)).succeeded
    assert ran(tmp_path) == ["t"]
    for run in (middle, last):
        del positions[RunId(run.run_id)]


@pytest.mark.covers("CP2-D4")
def test_directory_belongs_to_a_run_that_no_worker_has_begun(cli: Cli) -> None:
    Path("x.dot").write_text(line("a;", "a"))
    first = cli("run", "x.dot", "--simulate", "--detach", "--logs", "D", "--json").json["id"]
    assert [each.name for each in Path("D").iterdir()] == ["owner.json"]
    said = cli("run", "x.dot", "--simulate", "--logs", "D")
    assert (said.code, f"the directory of run {first}" in said.err) == (2, True)
    assert cli("worker", "--until-idle").code == 0
    assert [(each["id"], each["status"]) for each in cli("runs", "--json").items] == [(first, "completed")]


@pytest.mark.covers("CP2-D4")
async def test_of_two_runs_that_start_at_once_one_gets_the_directory(hf: Holdfast, tmp_path: Path) -> None:
    runner = Runner(hf, logs_root=tmp_path / "D")
    found = await asyncio.gather(*(runner.run(line("a;", "a")) for _ in range(4)), return_exceptions=True)
    assert sorted(type(each).__name__ for each in found) == ["InputError"] * 3 + ["PipelineResult"]
    assert not list((tmp_path / "D").glob(".owner*"))


async def test_directory_of_a_run_that_was_not_created_is_free(hf: Holdfast, tmp_path: Path) -> None:
    runner = Runner(hf, logs_root=tmp_path / "D")
    with pytest.raises(InputError):
        await runner.run(line("a;", "a"), tenant="")
    assert not (tmp_path / "D").exists()
    assert (await runner.run(line("a;", "a"))).succeeded


@pytest.mark.parametrize("workspace", ["shared", "worktree"])
async def test_command_that_ran_in_the_source_of_a_fork_did_its_work(
    hf: Holdfast, tmp_path: Path, workspace: str
) -> None:
    """A person says so; what it made in a worktree of the source is not in one of the fork."""
    repo = made(tmp_path / "repo")
    wait = f"until test -e {tmp_path}/NAME || ! test -e {tmp_path}; do sleep 0.02; done"
    source = dot(
        f'fan [shape=component, workspace={workspace}]; a2 [{TOOL}="touch {tmp_path}/go"];'
        f'a [{TOOL}="{wait.replace("NAME", "ran")}"]; join [shape=tripleoctagon];'
        f'b [{TOOL}="echo b >> {tmp_path}/ran; {wait.replace("NAME", "go")}"];',
        "start -> fan; fan -> a -> a2 -> join; fan -> b -> join; join -> done",
        f'goal="ship it", workdir="{repo}"',
    )
    runner = Runner(hf, logs_root=tmp_path / "logs")
    first = await runner.run(source)
    assert first.succeeded
    service = await hf.service()
    inside = next(c for c in await service.checkpoints(first.run_id, limit=0) if c.node == "a")
    fork = await service.fork(first.run_id, inside.seq)
    waiting = await runner.resume(fork.id)
    assert waiting.status == "waiting"
    await service.answer(waiting.holds[0].id, "happened")
    ended = await runner.resume(fork.id)
    assert ended.succeeded
    assert (tmp_path / "ran").read_text() == "b\n"
    b = ended.context["parallel.results"][1]
    assert b["outcome"] == ("success" if workspace == "shared" else "fail")
    assert b["failure_reason"].startswith(
        "the command did its work in a worktree" if b["failure_reason"] else ""
    )
