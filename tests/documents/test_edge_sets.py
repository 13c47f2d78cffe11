"""Edges from one port of which some have conditions: none leads around an approval by a slip."""

# ruff: noqa: E501  (a node of a document reads best on one line)

from __future__ import annotations

import pytest

from holdfast import Flow, Holdfast
from holdfast.documents.compare import compare_documents
from holdfast.frontends.document.dump import dump_document
from holdfast.frontends.document.read import read_text
from tests.documents.rule_examples import flow
from tests.documents.run import answer, graph, problems, rules, start

NODES = "{id: ask, type: checkpoint, config: {options: [approve, reject]}}\n{id: pay, type: set, config: {values: {paid: '{{n}}'}}}"
BEHIND = "ask:approve -> pay -> z\nask:reject -> z"
BIG = "{source: %s, target: ask, when: 'n > 100'}"
ELSE = "{source: a, target: pay, otherwise: true}"
CHOOSES = "{id: c, type: condition, config: {when: 'n > 100'}}"
ROUTES = "{id: c, type: router, config: {cases: [{id: big, when: 'n > 100'}]}}"
LOOPS = "{id: c, type: loop, config: {while: 'false', max_turns: 2}}\n{id: i, type: set, parent: c, config: {values: {x: 1}}}"


def paying(edges: str, more: str = "") -> str:
    return flow(f"{NODES}\n{more}" if more else NODES, f"{edges}\n{BEHIND}")


@pytest.mark.covers("CV-3")
@pytest.mark.parametrize(
    ("text", "rule", "edge"),
    [
        (paying(f"{BIG % 'a'}\na -> pay"), "edge-mixed", "a:out->pay"),
        (paying("a -> c\nc:true -> ask\nc -> pay", CHOOSES), "edge-mixed", "c:out->pay"),
        (paying("a -> c\nc:big -> ask\nc -> pay", ROUTES), "edge-mixed", "c:out->pay"),
        (paying(f"a -> c\nc:true -> z\nc:false -> pay\n{BIG % 'c'}", CHOOSES), "edge-mixed", "c:out->ask"),
        (paying("a -> c\nc:true -> ask\n{source: c, target: pay, otherwise: true}", CHOOSES), "edge-mixed", "c:out->pay"),
        (paying(f"a -> c\nc -> pay\n{BIG % 'c'}", "{id: c, type: set, disabled: true, config: {values: {x: 1}}}"), "disabled", "c:out->ask"),
        (paying(f"{BIG % 'a'}\na -> c -> ask", "{id: c, type: set, disabled: true, config: {values: {x: 1}}}"), "edge-mixed", "a:out->ask by c"),
        (paying(f"a -> c\n{BIG % 'c'}", LOOPS), "edge-when", "c:out->ask"),
        (paying("a -> c\n{source: c, target: ask, otherwise: true}", LOOPS), "edge-when", "c:out->ask"),
        (paying("{source: a, target: ask, when: 'n > 100', otherwise: true}\na -> pay"), "otherwise", "a:out->ask"),
        (paying("a -> ask\n{source: a, target: pay, otherwise: true}"), "otherwise", "a:out->pay"),
        (paying("a -> ask\n{source: a, source_port: error, target: pay, otherwise: true}"), "edge-when", "a:error->pay"),
    ],
)  # fmt: skip
def test_edge_that_leads_around_a_condition_is_refused(text: str, rule: str, edge: str) -> None:
    found = [each for each in problems(text) if each.severity == "error"]
    assert (rule, edge) in [(each.rule, each.edge) for each in found]
    assert all(each.line and each.fix for each in found)


@pytest.mark.covers("CV-3")
async def test_edge_with_otherwise_is_taken_only_if_no_condition_holds(hf: Holdfast) -> None:
    text = paying(f"{BIG % 'a'}\n{ELSE}")
    assert problems(text) == []
    small = await start(hf, text, {"n": 7})
    assert (small.status, small.state["paid"]) == ("completed", 7)
    refused = await answer(hf, await start(hf, text, {"n": 250}), "reject")
    assert (refused.status, "paid" in refused.state) == ("completed", False)


@pytest.mark.covers("CV-12")
def test_otherwise_is_kept_shown_and_part_of_the_version() -> None:
    text = paying(f"{BIG % 'a'}\n{ELSE}")
    [edge] = [each for each in graph(text).edges if each.id == "a:out->pay"]
    assert edge.kind == "otherwise"
    before, after = (
        read_text(each, "yaml").document for each in (text, text.replace("otherwise: true", "when: 'n < 1'"))
    )
    assert before is not None
    assert after is not None
    [changed] = compare_documents(before, after).edges
    assert (changed.before or {})["otherwise"] is True
    again = read_text(dump_document(before, "json"), "json").document
    assert again == before


def test_several_edges_without_conditions_and_optional_branches_of_a_parallel_stay_valid() -> None:
    sets = "\n".join(f"{{id: {name}, type: set, config: {{values: {{{name}: 1}}}}}}" for name in "bcd")
    branches = "b -> z\nc -> z\nd -> z"
    assert rules(flow(sets, f"a -> b\na -> c\na -> d\n{branches}")) == []
    some = f"a -> p -> b\np -> c\n{{source: p, target: d, when: 'n > 1'}}\n{branches}"
    assert rules(flow(f"{{id: p, type: parallel}}\n{sets}", some)) == []


def test_name_that_every_case_sets_is_known_behind_them() -> None:
    sets = "{id: b, type: set, config: {values: {x: 1}}}\n{id: c, type: set, config: {values: {x: 2}}}\n{id: s, type: set, config: {values: {y: '{{x}}'}}}"
    edges = (
        "{source: a, target: b, when: 'n > 1'}\n{source: a, target: c, otherwise: true}\nb -> s -> z\nc -> s"
    )
    assert problems(flow(sets, edges)) == []


@pytest.mark.parametrize(
    ("test", "is_read"), [("n > 1", False), ("decision == 'approve'", True)]
)  # fmt: skip
def test_condition_that_does_not_read_the_decision_is_named(test: str, is_read: bool) -> None:
    nodes = "{id: m, type: checkpoint, config: {options: [approve, reject]}}\n{id: pay, type: python, config: {function: pay}}"
    edges = f'a -> m\n{{source: m, target: pay, when: "{test}"}}\n{{source: m, target: z, otherwise: true}}\npay -> z'
    found = rules(flow(nodes, edges), {"pay": lambda: 1}, severity="warning")
    assert ("decision-unread" not in found) is is_read


def test_python_flow_is_warned_of_an_edge_beside_conditions() -> None:
    made = Flow("mixed")

    @made.node(effect="pure")
    def begin() -> dict[str, int]:
        return {"amount": 250}

    @made.node(effect="pure")
    def pay() -> None: ...

    made.hold("ask", prompt="Pay?", options=["approve", "reject"])
    made.edge(begin, "ask", when="amount > 100")
    made.edge(begin, pay)
    made.edge("ask", pay, when="decision == 'approve'")
    [found] = [each for each in made.problems() if each.rule == "edge-mixed"]
    assert (found.severity, found.edge) == ("warning", "begin->pay")
    assert "otherwise=True" in (found.fix or "")
