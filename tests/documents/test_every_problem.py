"""Every problem of a document at once: one problem hides no other, and none is followed by its consequences."""

# ruff: noqa: E501  (a node of a document reads best on one line)

from __future__ import annotations

import pytest

from holdfast.frontends.document.problem import DocumentProblem
from tests.documents.rule_examples import EXAMPLES, flow, hold, review
from tests.documents.test_rules import problems

SECOND = (
    "\n  - {id: second, type: set, config: {vallues: 1, breakpoint: 3, values: {q: '{{nowhere}}', input: 1}}}"
)
MORE_EDGES = "\n  - {source: a, target: second}\n  - {source: second, source_port: up, target: z}\n  - {source: second, target: gone}"
UNREADABLE = {"yaml", "document", "document-newer", "document-depth", "document-size"}
"""After these, nothing of the document is known: no text, no format that this version reads, too much of it, or too deep.
(A config that is too large hides only itself; the example of that rule is one.)"""


def brief(found: list[DocumentProblem]) -> set[tuple[str, str | None]]:
    return {(each.rule, each.node) for each in found}


@pytest.mark.covers("PLATFORM-DOC-02", "CV-50")
@pytest.mark.parametrize("rule", sorted(EXAMPLES.keys() - UNREADABLE))
def test_problem_hides_none_of_another_node_and_is_hidden_by_none(rule: str) -> None:
    broken = EXAMPLES[rule][0]
    both = broken.replace("\nnodes:", "\nnodes:" + SECOND, 1).replace("\nedges:", "\nedges:" + MORE_EDGES, 1)
    assert both != broken
    found = problems(both)
    expected = {
        ("key-unknown", "second"), ("type", "second"), ("variable-unknown", "second"),
        ("variable-name", "second"), ("port-unknown", None), ("edge-unknown", None),
    }  # fmt: skip
    assert expected <= brief(found), [str(each) for each in found]
    assert rule in {each.rule for each in found}


@pytest.mark.covers("PLATFORM-DOC-02")
@pytest.mark.parametrize("rule", EXAMPLES)
def test_each_problem_has_place_path_and_fix(rule: str) -> None:
    for each in problems(EXAMPLES[rule][0]):
        assert each.fix, str(each)
        assert (each.line or 0) >= 1
        assert (each.column or 0) >= 1
        if each.node is not None:
            assert each.path.startswith("/nodes/")


ONE_MISTAKE = {
    "a misspelt key": (review("quue: r"), ["required", "key-unknown"]),
    "a misspelt key whose values others read": (
        flow("{id: m, type: set, config: {valuez: {x: 1}}}", end="{id: z, type: end, config: {output: {x: '{{x}}'}}}"),
        ["required", "key-unknown"],
    ),
    "an unknown type whose output others read": (
        flow("{id: m, type: pyton, config: {function: known}}", end="{id: z, type: end, config: {output: {x: '{{m}}'}}}"),
        ["type-unknown"],
    ),
    "options of which one is wrong, with edges from them": (hold("options: [ok, {di: no}]", "a -> m\nm:ok -> z\nm:no -> z"), ["type"]),
    "a missing condition": (flow("{id: m, type: condition}", "a -> m\nm:true -> z\nm:false -> z"), ["required"]),
    "a case without a condition": (flow("{id: m, type: router, config: {cases: [{id: big}]}}", "a -> m\nm:big -> z\nm:else -> z"), ["required"]),
    "no case": (flow("{id: m, type: router, config: {cases: []}}", "a -> m\nm:big -> z"), ["type"]),
    "a duration of another kind": (flow("{id: m, type: wait, config: {duration: [1]}}"), ["type"]),
    "a missing function": (flow("{id: m, type: python}"), ["required"]),
    "a method that there is not": (flow("{id: m, type: http, config: {url: 'https://example.org', method: SEND, body: 1}}"), ["type"]),
    "an id of other characters": (flow("{id: 'm m', type: wait, config: {duration: 1h}}", "{source: a, target: 'm m'}\n{source: 'm m', target: z}"), ["type", "type", "type"]),
    "a position that is none": (flow("{id: m, type: wait, position: here, config: {duration: 1h}}"), ["type"]),
    "a config that is a list": (flow("{id: m, type: wait, config: []}"), ["type"]),
    "a node without a type": (flow("{id: m}"), ["required"]),
    "a condition of an edge that is a number": (flow(edges="a -> m\n{source: m, target: z, when: 3}"), ["type"]),
    "one wrong variable, and others that are read": (
        flow("{id: m, type: set, config: {values: {x: '{{k}}'}}}", head="variables: {k: {type: number}, j: {type: numbr}}"),
        ["type"],
    ),
    "a number as the version": (EXAMPLES["document-version"][0], ["document-version"]),
    "two tags": (flow("{id: m, type: !!str set, config: {values: {x: !int 1}}}"), ["tag", "tag"]),
    "a key twice": (flow("{id: m, type: set, config: {values: {x: 1, x: 2}}}"), ["duplicate-key"]),
    "a loop without its condition": (
        flow("{id: m, type: loop, config: {max_turns: 2}}\n{id: i, type: set, parent: m, config: {values: {y: 1}}}"),
        ["required"],
    ),
    "a map without its list": (
        flow("{id: m, type: map, config: {into: out}}\n{id: i, type: set, parent: m, config: {values: {y: '{{item}}'}}}"),
        ["required"],
    ),
    "an unknown type around others": (
        flow("{id: m, type: mapp, config: {item: it, into: out}}\n{id: i, type: set, parent: m, config: {values: {y: '{{it}}'}}}"),
        ["type-unknown"],
    ),
}  # fmt: skip


@pytest.mark.covers("PLATFORM-DOC-02")
@pytest.mark.parametrize("mistake", ONE_MISTAKE)
def test_mistake_is_reported_without_its_consequences(mistake: str) -> None:
    text, rules = ONE_MISTAKE[mistake]
    assert [each.rule for each in problems(text)] == rules, [str(each) for each in problems(text)]


@pytest.mark.covers("PLATFORM-DOC-02")
def test_problems_of_the_text_and_of_what_it_says_are_reported_together() -> None:
    text = flow("{id: m, type: !!str sett, config: {values: {x: .nan, x: 1}}}", "a -> m -> zz", head="")
    found = [each.rule for each in problems(text)]
    assert sorted(found) == [
        "duplicate-key",
        "edge-unknown",
        "no-way-to-end",
        "no-way-to-end",
        "number",
        "tag",
        "type-unknown",
        "unreachable",
    ]
    unfinished = [each.rule for each in problems(text + "more: [")]
    assert unfinished == ["tag", "number", "duplicate-key", "yaml"]
