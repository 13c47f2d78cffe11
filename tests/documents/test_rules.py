"""Every rule has an example that breaks it and one that does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import holdfast.frontends.document as package
from holdfast.agents.tools import as_tool
from holdfast.frontends.document.available_names import FoundFlow, UnusableFlow
from holdfast.frontends.document.node_types import subflow
from holdfast.frontends.document.problem import DocumentProblem
from holdfast.frontends.document.registry import node_types
from holdfast.model.diagnostics import Severity
from holdfast.model.graph import GraphSpec, Node
from tests.documents.rule_examples import EXAMPLES, GOOD, NOT_YAML, flow
from tests.documents.run import problems as found_problems


def known(a: int = 0) -> None: ...


FUNCTIONS = {"known": known}


def refuses_url(url: str) -> str:
    return "it is refused here" if "refused" in url else ""


def flows(name: str, _version: str) -> FoundFlow | UnusableFlow | None:
    if name.startswith("huge"):
        return FoundFlow(version="v", spec=nested(name, 10_000))
    return UnusableFlow(rule="subflow-invalid", why="it has an error") if name == "broken" else None


def nested(name: str, count: int) -> GraphSpec:
    """With half of its nodes in a sub-flow of its own."""
    nodes = [tuple(Node(id=f"{part}{i}") for i in range(count // 2)) for part in "ab"]
    inner = GraphSpec(name=f"{name}-inner", nodes=nodes[1], edges=())
    return GraphSpec(name=name, nodes=nodes[0], edges=(), subgraphs=(inner,))


def problems(text: str) -> list[DocumentProblem]:
    """Where one function, one tool, two connections and one secret are known."""
    return found_problems(
        text,
        FUNCTIONS,
        connections={"crm": "http", "gpt": "model"},
        secrets=frozenset({"key"}),
        tools={"search": as_tool(known)},
        refuses_url=refuses_url,
        flows=flows,
    )


def test_the_plain_example_has_no_problem() -> None:
    assert problems(GOOD) == []


@pytest.mark.covers("CV-51", "CV-50")
@pytest.mark.parametrize("rule", EXAMPLES)
def test_rule_is_reported_for_the_document_that_breaks_it_and_not_for_the_fixed_one(rule: str) -> None:
    broken, fixed = EXAMPLES[rule]

    found = [each for each in problems(broken) if each.rule == rule]
    assert found, [str(each) for each in problems(broken)]
    for each in found:
        assert each.message
        assert each.line is not None
        assert each.line >= 1
        assert each.column is not None
        assert each.column >= 1
    rest = problems(fixed)
    assert rule not in [each.rule for each in rest]
    assert [str(each) for each in rest if each.severity is Severity.error] == []


@pytest.mark.covers("CV-51")
def test_every_rule_of_the_code_has_an_example() -> None:
    """Rules are the texts with a dash, or alone, that reports are called with."""
    folder = Path(str(package.__file__)).parent
    called = re.compile(
        r'(?:\.(?:error|warn|hint)|_refuse|TextProblem|_wrong)\(\s*(?:[^"\n]|"[a-z_]+"[,)\]])*?"([a-z]+(?:-[a-z0-9]+)+)"'
    )
    written = {rule for path in folder.rglob("*.py") for rule in called.findall(path.read_text("utf-8"))}
    assert len(written) > 30
    assert written - set(EXAMPLES) - set(NOT_YAML) == set()


@pytest.mark.covers("CV-51")
@pytest.mark.parametrize("kind", sorted(node_types()))
def test_config_of_any_shape_gives_problems_and_no_failure(kind: str) -> None:
    shapes = ("", "1", "text", "[]", "[{secret: x}]", "{secret: x}", "{secret: x, prefix: y}", "{secret: 1}")
    for config in (
        *shapes,
        *(f"{{{field}: {each}}}" for field in ("body", "headers", "x") for each in shapes),
    ):
        found = problems(flow(f"{{id: m, type: {kind}, config: {config}}}"))
        if config == "{secret: x}":
            assert "secret-place" in [each.rule for each in found]


@pytest.mark.covers("CV-51")
def test_nodes_and_bytes_of_all_sub_flows_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    middle = "\n".join(f"{{id: m{i}, type: subflow, config: {{flow: part{i}}}}}" for i in range(4))
    text = flow(middle, "a -> m0 -> m1 -> m2 -> m3 -> z")

    def parts(name: str, _version: str) -> FoundFlow:
        return FoundFlow(version="v", spec=nested(name, 3_000))

    def sizes() -> list[str | None]:
        return [each.node for each in found_problems(text, flows=parts) if each.rule == "subflow-size"]

    assert sizes() == ["m3"]
    monkeypatch.setattr(subflow, "MAX_GRAPH_NODES", 12_006)
    assert sizes() == []
    monkeypatch.setattr(subflow, "MAX_GRAPH_BYTES", 1_000)
    assert sizes() == ["m0", "m1", "m2", "m3"]
