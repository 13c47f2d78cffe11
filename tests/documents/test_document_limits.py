"""What a document makes of itself is limited as what it is made of: edges through disabled nodes."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.documents.program import default_site
from holdfast.frontends.document import topology
from holdfast.frontends.document.compile import compile_document
from holdfast.frontends.document.read import read_data


def _fan(count: int, middle: str) -> dict[str, Any]:
    """`count` nodes lead to what is in the middle, and that leads to as many."""
    nodes = [{"id": "a", "type": "start"}, {"id": "z", "type": "end"}]
    edges: list[dict[str, Any]] = []
    for i in range(count):
        nodes += [
            {"id": f"{side}{i}", "type": "set", "config": {"values": {f"{side}v{i}": 1}}} for side in "xy"
        ]
        steps = [("a", f"x{i}"), (f"x{i}", middle), (middle, f"y{i}"), (f"y{i}", "z")]
        edges += [{"source": one, "target": other} for one, other in steps]
    hub = {"id": "hub", "type": "set", "disabled": True, "config": {"values": {"v": 1}}}
    return {"holdfast": "1.0", "name": "fan", "nodes": [*nodes, hub], "edges": edges}


@pytest.mark.covers("CV-6")
def test_edges_through_a_disabled_node_count(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    passing = topology._passing

    def counted(edge: Any, target: str) -> Any:
        made.append(target)
        return passing(edge, target)

    monkeypatch.setattr(topology, "_passing", counted)
    found = compile_document(read_data(_fan(300, "hub")), default_site())
    assert [(each.rule, each.node, str(each.path).endswith("disabled")) for each in found.problems] == [
        ("document-size", "hub", True)
    ]
    assert "more than 10,000" in found.problems[0].message
    assert found.spec is None
    assert len(made) <= 10_000
    few = compile_document(read_data(_fan(100, "hub")), default_site())
    assert few.spec is not None
    assert sum(edge.source.startswith("x") for edge in few.spec.edges) == 10_000


@pytest.mark.covers("CV-6")
def test_edges_between_disabled_nodes_are_not_followed_without_end() -> None:
    whole = _fan(300, "d0")
    off = [
        {"id": f"d{i}", "type": "set", "disabled": True, "config": {"values": {"v": 1}}} for i in range(90)
    ]
    ways = [(f"d{i}", f"d{j}") for i in range(90) for j in range(90) if i != j]
    for index, edge in enumerate(whole["edges"]):
        if edge["target"] == "d0":
            edge["target"] = f"d{index % 90}"
    whole["nodes"] += off
    whole["edges"] += [{"source": one, "target": other} for one, other in ways]
    found = compile_document(read_data(whole), default_site())
    assert next(each.rule for each in found.problems if each.severity == "error") == "document-size"
