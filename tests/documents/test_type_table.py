"""Every node type of the registry: config schema, page, example, ports, its own problems, its lowering."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

import holdfast.frontends.document.node_types as package
from holdfast.agents.tools import as_tool
from holdfast.frontends.document.available_names import FoundFlow
from holdfast.frontends.document.json_schema import flow_schema
from holdfast.frontends.document.node_type import NodeConfig
from holdfast.frontends.document.registry import node_types
from tests.documents.rule_examples import END, GOOD, HEAD, OF_TYPES, START
from tests.documents.run import flow_text, graph
from tests.documents.test_rules import problems

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/node-types.md").read_text("utf-8")
LOWERS = {
    "start": ("task", "pure"), "end": ("task", "pure"), "python": ("task", "external"),
    "llm": ("task", "read"), "agent": ("task", "read"), "http": ("task", "read"),
    "tool": ("task", "external"), "set": ("task", "pure"), "condition": ("task", "pure"),
    "router": ("task", "pure"), "parallel": ("task", "pure"), "join": ("task", "pure"),
    "map": ("map", "pure"), "loop": ("task", "pure"), "subflow": ("subflow", "pure"),
    "wait": ("timer", "pure"), "guardrail": ("guardrail", "pure"), "checkpoint": ("hold", "human"),
    "hitl_decision": ("hold", "human"), "hitl_review": ("hold", "human"),
    "queue_publish": ("task", "write"), "queue_consume": ("hold", "human"),
    "queue_escalation": ("task", "write"), "event": ("hold", "human"), "callback": ("task", "read"),
}  # fmt: skip
"""Kind and effect of the node that a type becomes."""
NAMES = ("pay", "customer", "text", "word", "amount", "risk", "orders", "tries", "order", "id")
INSIDE = "{id: inner, type: wait, parent: m, config: {duration: 1h}}"
ASK = "{id: ask, type: hitl_review, config: {queue: reviews}}"

types = pytest.mark.parametrize("name", list(node_types()))


def test_there_are_the_25_types_of_the_page() -> None:
    assert len(node_types()) == 25
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == ["Every node", *node_types()]
    assert OF_TYPES.keys() == node_types().keys()


@pytest.mark.covers("CV-25", "PLATFORM-NODE-01")
@types
def test_type_has_config_schema_page_example_and_ports(name: str) -> None:
    kind = node_types()[name]
    page = PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert kind.summary.endswith(".")
    assert kind.summary in page
    assert f"Example: `{json.dumps(kind.example)}`" in page
    assert "Ports: " in page
    for field in msgspec.structs.fields(kind.config):
        if field.name not in NodeConfig.__struct_fields__:
            assert f"`{field.encode_name}`" in page
    for rule in kind.rules:
        assert f"`{rule}`" in page

    validator = jsonschema_rs.validator_for(flow_schema())

    def fits(config: dict[str, Any]) -> bool:
        node = {"id": "m", "type": name, "config": config}
        return validator.is_valid({"holdfast": "1.0", "name": "n", "nodes": [node]})

    assert fits(kind.example)
    assert not fits({**kind.example, "no_such_field": 1})
    for field in msgspec.structs.fields(kind.config):
        if field.required:
            assert not fits({key: each for key, each in kind.example.items() if key != field.encode_name})


@pytest.mark.covers("CV-25")
@pytest.mark.parametrize(
    ("name", "rule"), [(name, rule) for name, kind in node_types().items() for rule in kind.rules]
)
def test_type_reports_each_of_its_own_problems(name: str, rule: str) -> None:
    text = OF_TYPES[name][rule]
    assert f"type: {name}" in text
    found = [each for each in problems(text) if each.rule == rule]
    assert found, [str(each) for each in problems(text)]
    assert all(each.fix for each in found)


@pytest.mark.covers("CV-25")
def test_type_lists_each_problem_that_its_module_reports() -> None:
    called = re.compile(r'found\.(?:error|warn)\(\s*\([^)]*\),\s*"([a-z-]+)"')
    listed: dict[str, set[str]] = {}
    for kind in node_types().values():
        listed.setdefault(type(kind).__module__, set()).update(kind.rules)
    folder = Path(str(package.__file__)).parent
    for module, rules in listed.items():
        text = (folder / f"{module.rpartition('.')[2]}.py").read_text("utf-8")
        assert set(called.findall(text)) <= rules, module


@pytest.mark.covers("CV-25")
@types
def test_example_of_the_type_compiles_to_its_node(name: str) -> None:
    kind = node_types()[name]
    own = f"{{id: m, type: {name}, config: {json.dumps(kind.example)}}}"
    inside = INSIDE if kind.is_parent else ""
    ends = {"start": (END, "m -> ask -> z"), "end": ("", "a -> ask -> m")}
    end, edges = ends.get(name, (END, "a -> ask -> m -> z"))
    start = "" if name == "start" else START
    head = f"{HEAD}\nvariables: {{{', '.join(f'{each}: {{}}' for each in NAMES)}}}"
    spec = graph(
        flow_text(f"{start}\n{ASK}\n{own}\n{inside}\n{end}", edges, head),
        {"score": lambda customer: customer, "pii": lambda s: None},
        connections={"crm": "http", "gpt": "model"},
        tools={each: as_tool(named(each)) for each in ("grep", "search")},
        flows=lambda _name, _version: FoundFlow(version="canvas-1", spec=graph(GOOD)),
    )
    [node] = [each for each in spec.nodes if each.id == "m"]
    assert (node.kind, node.effect) == LOWERS[name]


def named(name: str) -> Any:
    def fn(pattern: str = "") -> str:
        """Find a text."""
        return pattern

    fn.__name__ = name
    return fn
