"""Approvals of tools are kept whoever does a stage, and whichever file it is from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import AgentBackend, CommandBackend, Runner
from holdfast.attractor.backends.select import SimulationBackend
from holdfast.attractor.program import PipelineSetup
from holdfast.errors import PipelineInvalidError, PipelineSyntaxError
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.policies import wanted_approvals
from holdfast.frontends.dot.transforms import prepare
from tests.attractor.fake_agents import FakeAgents, agents, claude
from tests.attractor.run import line, run, written
from tests.cli.conftest import Cli

__all__ = ["agents"]
pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-A6")]


@pytest.mark.parametrize("where", ["stage", "graph"])
async def test_agent_that_asks_nobody_is_refused(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, where: str
) -> None:
    agents.plays("claude", claude())
    of_stage, of_graph = (", tool_approval=all", "") if where == "stage" else ("", ", tool_approval=all")

    async def result(more: str = "") -> Any:
        text = line(f"a [label=A{of_stage}{more}];", "a", graph=f"goal=g{of_graph}")
        return await run(hf, text, tmp_path / (more or "-"), backend=AgentBackend("claude"))

    refused = await result()
    assert "calls its tools without asking" in refused.outcome.failure_reason
    assert not agents.calls("claude")
    assert refused.context["failure_class"] == "terminal"
    assert (await result(", agent_permissions=plan")).succeeded  # it changes nothing
    if where == "graph":
        assert (await result(", tool_approval=none")).succeeded


async def test_command_that_asks_nobody_is_refused(hf: Holdfast, tmp_path: Path) -> None:
    text = line('a [label=A, tool_approval="shell"];', "a")
    refused = await run(hf, text, tmp_path, backend=CommandBackend(f"touch {tmp_path}/ran"))
    assert "tool_approval=shell" in refused.outcome.failure_reason
    assert not (tmp_path / "ran").exists()


class Conversing:
    """Asks nobody, and does not say so."""

    async def answer(self, visit: Any, prompt: str) -> str:
        raise AssertionError(prompt)

    async def converse(self, asking: Any) -> Any:
        raise AssertionError(asking)


async def test_function_that_asks_nobody_is_refused(hf: Holdfast, tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return "done"

    text = line("a [label=A, tool_approval=all];", "a")
    for name, backend in {"function": answer, "object": Conversing()}.items():
        refused = await run(hf, text, tmp_path / name, backend=backend)
        assert "calls its tools without asking" in refused.outcome.failure_reason
        assert refused.context["failure_class"] == "terminal"
    assert not asked
    answer.effect = "read"  # type: ignore[attr-defined]
    assert (await run(hf, text, tmp_path / "read", backend=answer)).succeeded
    assert (await run(hf, text, tmp_path / "simulated", backend=SimulationBackend())).succeeded


@pytest.mark.parametrize("backend", ["agent:claude", "cli:touch ran", "helpers.py:answer"])
def test_run_that_cannot_ask_is_refused_before_it_starts(cli: Cli, agents: FakeAgents, backend: str) -> None:
    agents.plays("claude", claude())
    Path("helpers.py").write_text("def answer(prompt): open('ran', 'w')\n")
    Path("x.dot").write_text(line("a [label=A];", "a", graph="goal=g, tool_approval=all"))
    said = cli("run", "x.dot", "--backend", backend)
    assert (said.code, "without asking" in said.err) == (2, True)
    assert not Path("ran").exists()
    assert not agents.calls("claude")


# ---------------------------------------------------------------------- included files


def included(tmp_path: Path, outer: str, stage: str, inner: str, of_inner: str = "") -> Pipeline:
    text = f"digraph I {{ graph [{inner}]; start; exit; a [label=A{of_inner}]; start -> a -> exit }}"
    (tmp_path / "inner.dot").write_text(text)
    text = f"""digraph O {{ graph [goal=g{outer}]; start; exit; r [subgraph_file="inner.dot"{stage}]
        start -> r -> exit }}"""
    return prepare(text, path=str(tmp_path / "o.dot")).require_valid()


@pytest.mark.parametrize(
    ("outer", "stage", "inner", "of_inner", "asked"),
    [
        ("", "", "tool_approval=shell", "", {"shell"}),
        ("", ", tool_approval=shell", "", "", {"shell"}),
        (", tool_approval=all", "", "tool_approval=shell", "", {"all", "shell"}),
        (", tool_approval=all", "", "tool_approval=none", "", {"all"}),
        (", tool_approval=all", ", tool_approval=none", "tool_approval=shell", "", {"shell"}),
        (", tool_approval=all", ", tool_approval=none", "", "", set[str]()),
        ("", ", tool_approval=write_file", "tool_approval=shell", "", {"shell", "write_file"}),
        (", tool_approval=all", "", "tool_approval=shell", ", tool_approval=none", set[str]()),
    ],
)
def test_no_file_takes_an_approval_of_another_away(
    tmp_path: Path, outer: str, stage: str, inner: str, of_inner: str, asked: set[str]
) -> None:
    whole = included(tmp_path, outer, stage, inner, of_inner)
    assert wanted_approvals(whole.stages["r__a"], whole) == asked


def test_approvals_reach_files_that_included_files_include(tmp_path: Path) -> None:
    deep = "digraph D { graph [tool_approval=write_file]; start; exit; b [label=B]; start -> b -> exit }"
    mid = """digraph M { graph [tool_approval=shell]; start; exit; d [subgraph_file="deep.dot"]
        start -> d -> exit }"""
    (tmp_path / "deep.dot").write_text(deep)
    (tmp_path / "mid.dot").write_text(mid)
    text = """digraph O { graph [goal=g, tool_approval=all]; start; exit; r [subgraph_file="mid.dot"]
        start -> r -> exit }"""
    whole = prepare(text, path=str(tmp_path / "o.dot")).require_valid()
    assert wanted_approvals(whole.stages["r__d__b"], whole) == {"all", "shell", "write_file"}


def test_what_an_included_graph_says_about_its_work_applies_to_its_stages(tmp_path: Path) -> None:
    inner = 'tools=coding, "tool_hooks.pre"="./guard", in_doubt=fail, workdir="/srv/x", max_turns=7'
    found = included(tmp_path, ", tools=none, max_turns=9", "", inner).stages["r__a"]
    kept = {key: found.text(key) for key in ("tools", "tool_hooks.pre", "in_doubt", "cwd", "max_turns")}
    assert kept == {
        "tools": "coding", "tool_hooks.pre": "./guard", "in_doubt": "fail", "cwd": "/srv/x", "max_turns": "7",
    }  # fmt: skip
    found = included(tmp_path, "", ", tools=files, in_doubt=ask", "in_doubt=fail").stages["r__a"]
    assert (found.text("tools"), found.text("in_doubt")) == ("files", "fail")


# ---------------------------------------------------------------------- keys
KEY = "sk-ant-0123456789abcdefghij"


@pytest.mark.covers("CP2-L10")
@pytest.mark.parametrize("by", ["tool", "cli", "status"])
async def test_key_that_a_command_prints_is_hidden(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """A command can read the environment of the worker in /proc."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    logs = tmp_path / "logs"
    found = tmp_path / "found"
    found.write_text(f"the key is {KEY}\n")
    (tmp_path / "status.json").write_text(
        f'{{"outcome": "fail", "failure_reason": "{KEY}", "notes": "{KEY}"}}'
    )
    commands = {
        "tool": f"cat {found}; cat {found} >&2; exit 1",
        "status": f"cp {tmp_path}/status.json $ATTRACTOR_STAGE_DIR/",
    }
    stage = f'a [shape=parallelogram, tool_command="{commands[by]}"];' if by in commands else "a [label=A];"
    result = await run(hf, line(stage, "a"), logs, backend=CommandBackend(f"cat {found}"))
    texts = [written(path) for path in logs.rglob("*") if path.is_file()]
    assert any("***" in text for text in texts)
    assert not [text for text in texts if KEY in text]
    assert KEY not in str(result)
    records = (await (await hf.service()).events(result.run_id), result.context)
    assert KEY not in str(records)


# ---------------------------------------------------------------------- managers and subgraphs
def managed(tmp_path: Path, graph: str, stages: str, child: str, of_stage: str = "") -> Pipeline:
    """The child pipeline that is stored for managers m and n."""
    text = f"digraph C {{ graph [goal=g{child}]; start; exit; a [prompt=x{of_stage}]; start -> a -> exit }}"
    (tmp_path / "child.dot").write_text(text)
    text = f"""digraph M {{ graph [goal=g{graph}]; start; exit
        node [shape=house, stack.child_dotfile="child.dot"]
        {stages}; start -> m -> n -> exit; start [shape=Mdiamond]; exit [shape=Msquare] }}"""
    return prepare(text, path=str(tmp_path / "m.dot")).require_valid().children["child.dot"]


@pytest.mark.parametrize(
    ("graph", "stages", "child", "of_stage", "asked"),
    [
        ("", "m; n", "", "", set[str]()),
        (", tool_approval=all", "m; n", "", "", {"all"}),
        ("", "m [tool_approval=shell]; n", "", "", {"shell"}),
        ("", "m; n [tool_approval=shell]", ", tool_approval=write_file", "", {"shell", "write_file"}),
        (", tool_approval=all", "m [tool_approval=none]; n [tool_approval=none]", "", "", set[str]()),
        (", tool_approval=all", "m; n", "", ", tool_approval=none", set[str]()),
    ],
)
def test_child_pipeline_asks_about_what_its_managers_ask_about(
    tmp_path: Path, graph: str, stages: str, child: str, of_stage: str, asked: set[str]
) -> None:
    found = managed(tmp_path, graph, stages, child, of_stage)
    assert wanted_approvals(found.stages["a"], found) == asked


def test_child_of_a_child_asks_too(tmp_path: Path) -> None:
    last = "digraph L { graph [goal=g]; start; exit; b [prompt=x]; start -> b -> exit }"
    (tmp_path / "last.dot").write_text(last)
    manager = """digraph {0} {{ graph [goal=g{1}]; start; exit; m [shape=house, stack.child_dotfile="{2}"]
        start -> m -> exit }}"""
    (tmp_path / "mid.dot").write_text(manager.format("B", "", "last.dot"))
    text = manager.format("A", ", tool_approval=shell", "mid.dot")
    found = prepare(text, path=str(tmp_path / "a.dot")).require_valid()
    inner = found.children["mid.dot"].children["last.dot"]
    assert wanted_approvals(inner.stages["b"], inner) == {"shell"}


def test_child_that_is_read_late_asks_too(tmp_path: Path) -> None:
    child = tmp_path / "child.dot"
    child.write_text("digraph C { graph [goal=g]; start; exit; a [prompt=x]; start -> a -> exit }")
    found, _ = PipelineSetup(simulate=True).child(child, "", frozenset({"shell"}))
    assert wanted_approvals(found.stages["a"], found) == {"shell"}


@pytest.mark.parametrize(
    "text", ["graph [tool_approval=all]", "tool_approval=all", "fail_closed=true", "budget_usd=1"]
)
def test_limit_without_effect_in_a_subgraph_is_an_error(text: str) -> None:
    graph = f"digraph S {{ start; exit; subgraph x {{ {text}; a [prompt=x] }} start -> a -> exit }}"
    with pytest.raises(PipelineSyntaxError, match="has no effect in a subgraph"):
        prepare(graph)


@pytest.mark.parametrize(
    "budget",
    ['budget_usd="$5"', "budget_usd=nan", "budget_usd=-1", "budget_tokens=5m", "budget_time=soon",
     "budget_ask_at=80"],
)  # fmt: skip
def test_budget_that_cannot_be_kept_is_an_error(budget: str) -> None:
    text = f"digraph B {{ graph [goal=g, {budget}]; start; exit; a [prompt=x]; start -> a -> exit }}"
    with pytest.raises(PipelineInvalidError, match=r"\[budgets\]"):
        prepare(text).require_valid()
    of_stage = "digraph B { start; exit; a [prompt=x, budget_usd=1]; start -> a -> exit }"
    with pytest.raises(PipelineInvalidError, match=r"\[budgets\]"):
        prepare(of_stage).require_valid()


def test_budget_of_an_included_file_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "inner.dot").write_text(
        "digraph I { graph [budget_usd=1]; start; exit; a [prompt=x]; start -> a -> exit }"
    )
    text = 'digraph O {{ graph [goal=g{}]; start; exit; r [subgraph_file="inner.dot"]; start -> r -> exit }}'
    found = prepare(text.format(""), path=str(tmp_path / "o.dot"))
    assert "budget_usd of inner.dot has no effect" in str(found.diagnostics)
    found = prepare(text.format(", budget_usd=2"), path=str(tmp_path / "o.dot"))
    assert "has no effect" not in str(found.diagnostics)


@pytest.mark.parametrize("where", ["stage", "included"])
async def test_gate_is_closed_by_its_stage_or_its_own_file(hf: Holdfast, tmp_path: Path, where: str) -> None:
    if where == "stage":
        source: str | Path = line("a [goal_gate=true, fail_closed=true];", "a")
    else:
        inner = "digraph I { graph [fail_closed=true]; start; exit; a [goal_gate=true]; start -> a -> exit }"
        (tmp_path / "inner.dot").write_text(inner)
        source = tmp_path / "o.dot"
        source.write_text(line('r [subgraph_file="inner.dot"];', "r"))
    found = await Runner(hf, backend=lambda prompt: "prose", logs_root=tmp_path / "logs").run(source)
    assert found.status == "fail"
