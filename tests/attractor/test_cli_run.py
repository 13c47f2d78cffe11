"""`holdfast run FILE.dot`: what it says, what it leaves, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attractor.run import dot, either, line
from tests.cli.conftest import Cli, cli, logs

__all__ = ["cli", "logs"]

TOOL = "shape=parallelogram, tool_command"
HELPERS = """
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.registry import HandlerRegistry

def answer(node, prompt, context):
    return "answered " + prompt

class Mine:
    def execute(self, node, context, graph, logs_root):
        return StageOutcome(context_updates={"context.mine": node.id})

registry = HandlerRegistry({"mine": Mine()})
nonsense = 7
"""


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


@pytest.mark.covers("ATTRACTOR-CLI-01")
def test_a_pipeline_is_simulated_stage_by_stage(cli: Cli) -> None:
    text = dot(f'plan [prompt="Plan $goal"]; t [{TOOL}="echo why >&2; exit 1"]; '
               f'd [shape=diamond]; fix [{TOOL}="true"];',
               'start -> plan -> t -> d; d -> done [condition="outcome=success"]; '
               'd -> fix [condition="outcome=fail"]; fix -> done')  # fmt: skip
    said = cli("run", write("x.dot", text), "--simulate", "--logs", "D")
    assert said.code == 0
    lines = [each.split("  ")[0] for each in said.out.splitlines()]
    assert lines[:6] == ["✓ start", "✓ plan", "✗ t", "✓ d", "✓ fix", "✓ done"]
    assert "exit code 1: why" in said.out
    assert "g: completed, 6 stages" in said.out
    assert Path("D/plan/prompt.md").read_text() == "Plan ship it"
    assert json.loads(Path("D/checkpoint.json").read_text())["current_node"] == "done"
    assert json.loads(Path("D/manifest.json").read_text())["name"] == "g"


@pytest.mark.covers("ATTRACTOR-CLI-01")
def test_machines_get_one_object(cli: Cli) -> None:
    said = cli("run", write("x.dot", line("a;", "a")), "--simulate", "--json", "--input", '{"ticket": "T-1"}')
    assert said.code == 0
    assert said.json["status"] == "completed"
    assert said.json["completed_nodes"] == ["start", "a", "done"]
    assert said.json["state"]["ticket"] == "T-1"
    assert Path(said.json["logs_root"], "a", "response.md").is_file()


@pytest.mark.covers("ATTRACTOR-CLI-01")
def test_without_a_model_it_says_both_ways_out(cli: Cli) -> None:
    said = cli("run", write("x.dot", line("a; b;", "a", "b")))
    assert said.code == 2
    assert "need a model, and none is configured: a, b." in said.err
    assert "--backend" in said.err
    assert "--simulate" in said.err
    assert not Path(".holdfast").exists()
    alone = cli("run", write("y.dot", line(f't [{TOOL}="true"];', "t")))
    assert alone.code == 0


@pytest.mark.covers("ATTRACTOR-CLI-01", "ATTRACTOR-HANDLER-02", "ATTRACTOR-HANDLER-09")
def test_backend_and_handlers_come_from_a_module(cli: Cli) -> None:
    write("helpers_of_a_pipeline.py", HELPERS)
    file = write("x.dot", line('a [prompt="hi"]; b [type=mine];', "a", "b"))
    said = cli("run", file, "--backend", "helpers_of_a_pipeline.py:answer",
               "--handlers", "helpers_of_a_pipeline.py:registry", "--json")  # fmt: skip
    assert said.json["state"]["last_response"] == "answered hi"
    assert said.json["state"]["context.mine"] == "b"
    wrong = cli("run", file, "--simulate", "--handlers", "helpers_of_a_pipeline.py:nonsense")
    assert wrong.code == 2
    assert "--handlers names a int" in wrong.err
    both = cli("run", file, "--simulate", "--backend", "helpers_of_a_pipeline.py:answer")
    assert both.code == 2


@pytest.mark.covers("ATTRACTOR-CLI-01")
def test_gates_are_passed_only_where_that_was_asked_for(cli: Cli) -> None:
    links = 'start -> gate; gate -> done [label="[A] Approve"]; gate -> fix [label="[F] Fix"]; fix -> done'
    text = dot('gate [shape=hexagon, label="Ship?"]; fix [label=Fix];', links)
    file = write("x.dot", text)
    alone = cli("run", file, "--simulate", "--auto-approve")
    assert (alone.code, "✓ gate" in alone.out) == (0, True)
    asked = cli("run", file, "--simulate")
    assert "F  # [F] Fix" in asked.out
    said = cli("run", file, "--simulate", "--json")
    assert (said.code, said.json["status"]) == (3, "pending_input")
    run_id = said.json["id"]
    assert cli("answer", run_id, "F").code == 0
    again = cli("resume", run_id)
    assert again.code == 0
    assert [each.split("  ")[0] for each in again.out.splitlines()][:3] == ["✓ gate", "✓ fix", "✓ done"]


@pytest.mark.covers("ATTRACTOR-CLI-01")
def test_a_failed_pipeline_says_why_and_how_to_go_on(cli: Cli) -> None:
    said = cli("run", write("x.dot", line(f't [{TOOL}="test -e flag"];', "t")))
    assert said.code == 1
    assert "reason: exit code 1" in said.out
    assert "holdfast resume" in said.err
    Path("flag").touch()
    run_id = next(word for word in said.err.split() if word.count("-") == 4)
    again = cli("resume", run_id)
    assert (again.code, "✓ t" in again.out) == (0, True)


@pytest.mark.covers("ATTRACTOR-CLI-01")
@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("digraph g { a -> ", "x.dot:1:"),
        ("digraph g { a [shape=Mdiamond]; a -> b }", "[terminal_node]"),
        (b"\x00\x01\xff\xfe", "x.dot"),
        ("", "x.dot"),
    ],
)
def test_a_file_that_is_no_pipeline_is_reported_by_its_place(
    cli: Cli, text: str | bytes, result: str
) -> None:
    Path("x.dot").write_bytes(text if isinstance(text, bytes) else text.encode())
    said = cli("run", "x.dot", "--simulate")
    assert said.code == 2
    assert result in said.err
    assert "Traceback" not in said.err
    assert not Path(".holdfast").exists()


@pytest.mark.covers("ATTRACTOR-CLI-01")
def test_leniency_is_warned_about_and_refused_when_strict(cli: Cli) -> None:
    file = write("x.dot", line("a [label=A prompt=B];", "a"))
    said = cli("run", file, "--simulate")
    assert (said.code, "warning" in said.err) == (0, True)
    strict = cli("run", file, "--simulate", "--strict")
    assert (strict.code, "error" in strict.err) == (2, True)


def test_options_of_pipelines_are_refused_for_flows(cli: Cli) -> None:
    said = cli("run", "x.py", "--simulate", "--logs", "D")
    assert said.code == 2
    assert "--simulate, --logs: x.py is not a pipeline" in said.err


def test_a_detached_pipeline_is_left_to_a_worker(cli: Cli) -> None:
    write("flows.py", 'from holdfast import Flow\nflow = Flow("other")\n\n@flow.node\nasync def a(s): ...\n')
    said = cli("run", write("x.dot", line("a;", "a")), "--simulate", "--detach", "--json", "--logs", "D")
    assert said.json["status"] == "pending"
    assert cli("worker", "flows.py", "--until-idle").code == 0
    assert Path("D/a/response.md").is_file()


def test_either_is_a_pipeline(cli: Cli) -> None:
    file = write("x.gv", dot(f't [{TOOL}="exit 1"]; fix [{TOOL}="true"];', either("t", "fix")))
    assert cli("run", file).code == 0
