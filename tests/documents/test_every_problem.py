"""Every problem of a document at once: one problem hides no other, and none is followed by its consequences."""

# ruff: noqa: E501  (a node of a document reads best on one line)

from __future__ import annotations

import pytest

from holdfast.frontends.document.problem import DocumentProblem
from tests.documents.rule_examples import EXAMPLES, event, flow, hold, review
from tests.documents.run import flow_text
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
    "a timeout that is no duration": (hold("options: [ok], timeout: 5x, on_timeout: {action: fail}"), ["duration"]),
    "an edge to a node that there is not": (hold("options: [x, y]", "a -> m\nm:x -> z\nm:y -> nowhere"), ["edge-unknown"]),
    "an edge from a port that there is not": (hold("options: [x, y]", "a -> m\nm:x -> z\nm:why -> z"), ["port-unknown"]),
    "a branch to a node that there is not": (
        flow("{id: m, type: parallel}\n{id: b, type: wait, config: {duration: 1h}}", "a -> m -> b -> z\nm -> nowhere"), ["edge-unknown"],
    ),
    "an unknown type around others": (
        flow("{id: m, type: mapp, config: {item: it, into: out}}\n{id: i, type: set, parent: m, config: {values: {y: '{{it}}'}}}"),
        ["type-unknown"],
    ),
    "an end whose type is misspelled": (flow(edges="a -> m -> z").replace("type: end", "type: ennd"), ["type-unknown"]),
    "a start whose type is misspelled": (flow(edges="a -> m -> z").replace("type: start", "type: strat"), ["type-unknown"]),
    "an event without a name": (event("timeout: 1h"), ["required"]),
    "an event with an empty name": (event("event: ''"), ["type"]),
    "a map without into": (flow("{id: m, type: map, config: {over: n}}\n{id: i, type: set, parent: m, config: {values: {y: 1}}}"), ["required"]),
    "a map into what is no name": (flow("{id: m, type: map, config: {over: n, into: bad name}}\n{id: i, type: set, parent: m, config: {values: {y: 1}}}"), ["type"]),
    "a guardrail that leads nowhere": (flow("{id: m, type: guardrail, config: {check: known, on_violation: reroute}}"), ["violation-edges"]),
}  # fmt: skip


@pytest.mark.covers("PLATFORM-DOC-02")
@pytest.mark.parametrize("mistake", ONE_MISTAKE)
def test_mistake_is_reported_without_its_consequences(mistake: str) -> None:
    text, rules = ONE_MISTAKE[mistake]
    assert [each.rule for each in problems(text)] == rules, [str(each) for each in problems(text)]


SEVERAL = {
    "the second node of an id": (
        flow("{id: m, type: set, config: {values: {x: 1}}}\n{id: m, type: set, config: {values: {y: '{{nowhere}}'}}}"),
        [("node-duplicate", "id"), ("variable-unknown", "values.y")],
    ),
    "the second node of an id, which has options": (
        flow("{id: m, type: set, config: {values: {x: 1}}}\n{id: m, type: checkpoint, config: {options: [a, b], timeout: 5x}}"),
        [("node-duplicate", "id"), ("duration", "timeout")],
    ),
    "a map with a wrong number": (
        flow("{id: m, type: map, config: {over: orders, into: out, concurrency: 0}}\n{id: i, type: set, parent: m, config: {values: {y: '{{item}}'}}}"),
        [("variable-unknown", "over"), ("type", "concurrency")],
    ),
    "sections of a form": (
        review("queue: r, sections: [{type: inpt, field: a}, {type: input, field: b, kind: zzz}, {type: input}, {type: input, field: c, visible_if: a}]"),
        [("hold-form", "sections[0].type"), ("field-kind", "sections[1].kind"), ("hold-form", "sections[2].field")],
    ),
}  # fmt: skip


@pytest.mark.covers("PLATFORM-DOC-02")
@pytest.mark.parametrize("case", SEVERAL)
def test_problem_of_a_node_hides_none_of_the_same_node(case: str) -> None:
    text, expected = SEVERAL[case]
    assert [(each.rule, each.field) for each in problems(text)] == expected, [
        str(each) for each in problems(text)
    ]


@pytest.mark.covers("PLATFORM-DOC-02")
def test_missing_field_of_a_form_is_told_as_missing() -> None:
    (found,) = problems(review("queue: r, sections: [{type: input}]"))
    assert found.message == "it has no field; name what gets the answer"


FIXES = {
    "an action": (hold("options: [ok], timeout: 1h, on_timeout: {action: zap}"), "use one of cancel, default, default_option, fail, escalate, branch"),
    "a list for a mapping": (flow("{id: m, type: python, config: {function: known, args: [1]}}"), "write a mapping"),
    "a number that is too small": (flow("{id: m, type: join, config: {wait: 0}}"), "use one of all, any, or write a whole number >= 1"),
}  # fmt: skip


@pytest.mark.covers("PLATFORM-DOC-02")
@pytest.mark.parametrize("case", FIXES)
def test_fix_fits_what_is_wrong(case: str) -> None:
    text, fix = FIXES[case]
    assert [each.fix for each in problems(text) if each.rule == "type"] == [fix]


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


@pytest.mark.covers("CV-50")
def test_second_node_with_an_id_and_one_that_no_way_leads_to_hide_nothing() -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: x, type: strat}
        {id: x, type: set, config: {vals: {k: 1}}}
        {id: x, type: sett}
        {id: alone, type: set, config: {values: {k: "{{nowhere}} {{set_later}} {{input.n}}"}}}
        {id: later, type: set, config: {values: {set_later: 1}}}
        {id: z, type: end}
        """,
        "a -> z",
    )
    found = [(each.rule, each.line) for each in problems(text) if each.severity == "error"]
    assert found.count(("node-duplicate", 7)) == found.count(("node-duplicate", 8)) == 1, found
    assert {("type-unknown", 6), ("key-unknown", 7), ("type-unknown", 8)} <= set(found)
    unknown = [each for each in problems(text) if each.rule == "variable-unknown"]
    assert [(each.line, "nowhere" in each.message) for each in unknown] == [(9, True)]
