"""Where problems are reported, how often, and what their fix says."""

# ruff: noqa: E501  (a node of a document reads best on one line)

from __future__ import annotations

import pytest

from holdfast.documents.functions import document_tool
from holdfast.errors import InputError
from tests.documents.rule_examples import flow
from tests.documents.run import problems

ASK = "{id: m, type: checkpoint, config: {options: [approve, reject]}}"


@pytest.mark.covers("CV-50")
@pytest.mark.parametrize(
    ("nodes", "edges", "path"),
    [
        ("{id: c, type: condition, config: {when: \"decision == 'aproved'\"}}", "a -> m -> c\nc:true -> z\nc:false -> z", "/nodes/2/config/when"),
        ("{id: c, type: condition, config: {when: \"decision == 'aproved'\"}}", "a -> m -> c\nc:false -> z", "/nodes/2/config/when"),
        ("{id: c, type: loop, config: {max_turns: 3, while: \"decision == 'aproved'\"}}\n{id: i, type: set, parent: c, config: {values: {x: 1}}}", "a -> m -> c -> z", "/nodes/2/config/while"),
    ],
)  # fmt: skip
def test_option_that_does_not_exist_is_reported_where_it_is_written(
    nodes: str, edges: str, path: str
) -> None:
    found = [each for each in problems(flow(f"{ASK}\n{nodes}", edges)) if each.rule == "unknown-option"]
    assert [(each.path, each.node, each.edge) for each in found] == [(path, "c", None)]


@pytest.mark.covers("CV-50")
def test_wrong_default_is_reported_once_where_it_is_written() -> None:
    nodes = "\n".join(f"{{id: n{at}, type: python, config: {{function: f}}}}" for at in range(3))
    head = "config: {defaults: {timeout: fast, in_doubt: aks, retry: {delay: soon}}}"
    found = problems(flow(nodes, "a -> n0 -> n1 -> n2 -> z", head=head), {"f": lambda: 1})
    assert [each.path for each in found] == [
        "/config/defaults/timeout",
        "/config/defaults/in_doubt",
        "/config/defaults/retry/delay",
    ]


@pytest.mark.covers("CV-11")
@pytest.mark.parametrize(
    "node",
    [
        "{id: m, type: set, config: {values: {x: {{n}}}}}",
        "{id: m, type: checkpoint, config: {prompt: {{n}}, options: [ok]}}",
    ],
)
def test_placeholder_without_quotes_hides_no_other_problem(node: str) -> None:
    wrong = "{id: w, type: wait, config: {duration: later}}"
    found = [each.rule for each in problems(flow(f"{node}\n{wrong}", "a -> m -> w -> z"))]
    assert found == ["key-text", "duration"]
    assert "key-text" in [
        each.rule for each in problems(flow("{id: m, type: set, config: {values: {[a]: 1}}}"))
    ]


@pytest.mark.parametrize(
    ("config", "fix"),
    [
        ("in_doubt: aks", "use one of ask, retry, fail"),
        ("timeout: [1]", "write seconds, or text such as 30s, 2d, PT15M"),
        ("breakpoint: 'true'", "write true or false"),
        ("bind: a-b", "write letters, digits and _, not a digit first"),
    ],
)  # fmt: skip
def test_fix_says_what_to_write_and_not_what_the_field_is_for(config: str, fix: str) -> None:
    [found] = problems(flow(f"{{id: m, type: python, config: {{function: f, {config}}}}}"), {"f": lambda: 1})
    assert found.fix == fix
    assert "enum" not in found.message


def test_reading_the_error_of_a_failed_node_is_answered_with_a_sentence() -> None:
    text = flow(
        "{id: m, type: set, config: {values: {x: 1}}}\n{id: s, type: set, config: {values: {y: '{{m_error}}'}}}",
        "a -> m -> s -> z",
    )
    [found] = problems(text)
    assert "the error of a node is in NODE_error, if its port 'error' leads on" in found.message


def test_function_becomes_a_tool_of_documents_and_other_things_are_refused() -> None:
    def look_up(query: str) -> str:
        """Look a customer up."""
        return query

    assert document_tool(look_up).name == "look_up"
    with pytest.raises(InputError, match="is not a tool"):
        document_tool("look_up")
