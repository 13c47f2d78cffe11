"""Branches with real handlers: their folders, their context, their best; and which shape is which."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor import detached_commands
from holdfast.attractor.runner import Runner
from tests.attractor.run import begun, dot, line, listed, run, until

pytestmark = pytest.mark.anyio


def tool(name: str, command: str, more: str = "") -> str:
    return f'{name} [shape=parallelogram, tool_command="{command}"{more}];'


FAN = "fan [shape=component]; join [shape=tripleoctagon];"


@pytest.mark.covers("AT-127", "AT-197", "AT-189", "ATTRACTOR-PROOF-04")
async def test_branches_run_their_stages_once_and_keep_their_context(hf: Holdfast, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    stages = FAN + tool("a1", f"echo a1 >> {trace}") + tool("a2", f"echo a2 >> {trace}; echo from a")
    stages += tool("b1", f"echo b1 >> {trace}; echo from b; exit 1")
    links = "start -> fan; fan -> a1; fan -> b1; a1 -> a2 -> join; b1 -> join; join -> done"
    found = await run(hf, dot(stages, links), tmp_path / "logs")
    assert found.succeeded
    assert found.completed_nodes == ("start", "fan", "join", "done")
    assert sorted(trace.read_text().split()) == ["a1", "a2", "b1"]
    assert "tool.output" not in found.context
    assert [each["id"] for each in found.context["parallel.results"]] == ["a1", "b1"]
    assert found.context["parallel.results"][0]["context_updates"]["tool.output"] == "from a\n"
    assert found.context["parallel.fan_in.best_id"] == "a1"
    assert found.node_outcomes["fan"] == "partial_success"
    assert (tmp_path / "logs" / "a2" / "status.json").is_file()


async def test_a_stage_that_two_branches_share_has_a_folder_in_each(hf: Holdfast, tmp_path: Path) -> None:
    stages = FAN + tool("a", "true") + tool("b", "true") + tool("both", "echo $ATTRACTOR_STAGE_DIR")
    links = "start -> fan; fan -> a -> both; fan -> b -> both; both -> join; join -> done"
    found = await run(hf, dot(stages, links), tmp_path)
    places = [each["context_updates"]["tool.last_line"] for each in found.context["parallel.results"]]
    assert len(set(places)) == 2
    assert not (tmp_path / "both").exists()
    assert {"a", "b"} <= set(listed(tmp_path))


@pytest.mark.covers("ATTRACTOR-RUN-02", "AT-190", "ATTRACTOR-HANDLER-01")
async def test_the_first_success_stops_the_commands_of_the_others(hf: Holdfast, tmp_path: Path) -> None:
    fan = FAN.replace("component", "component, join_policy=first_success")
    stages = (
        fan
        + tool("slow", "sleep 60")
        + tool(
            "quick",
            "while test -d $ATTRACTOR_LOGS_ROOT && ! test -e $ATTRACTOR_LOGS_ROOT/slow/tool*/pid; "
            "do sleep 0.01; done",
        )
    )
    links = "start -> fan; fan -> slow -> join; fan -> quick -> join; join -> done"
    found = await run(hf, dot(stages, links), tmp_path)
    assert found.succeeded
    folder = next(each for each in begun(tmp_path) if each.parent.name == "slow")
    await until(lambda: not detached_commands.is_alive(folder))


@pytest.mark.covers("ATTRACTOR-PROOF-05")
async def test_defaults_never_override_an_explicit_shape(hf: Holdfast, tmp_path: Path) -> None:
    child = tmp_path / "child.dot"
    child.write_text(line("c;", "c").replace("digraph g", "digraph child"))
    text = f"""digraph g {{
        graph [stack.child_dotfile="{child}"]
        node [shape=box, timeout=900s]
        start [shape=Mdiamond]; done [shape=Msquare]
        gate [shape=hexagon, label="Ship?"]; boss [shape=house]; plan
        start -> plan -> boss -> gate -> done
    }}"""
    runner = Runner(hf, logs_root=tmp_path / "logs")
    found = await runner.run(text)
    assert found.status == "waiting"
    assert found.holds[0].node == "gate"
    assert found.completed_nodes == ("start", "plan", "boss")
    assert (tmp_path / "logs" / "boss" / "child-1" / "c" / "response.md").is_file()
    assert not (tmp_path / "logs" / "start" / "prompt.md").exists()
