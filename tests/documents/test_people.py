"""Questions to people in documents: ports, scope, breakpoints, timeouts."""

# ruff: noqa: E501  (a node of a document reads best on one line)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.app.flow import advance
from holdfast.errors import AnswerInvalidError
from holdfast.model.graph import HoldSpec
from holdfast.types.terms import operator
from tests.documents.rule_examples import DECISION, EXAMPLES, HEAD, consume, event, flow, hold, review
from tests.documents.run import answer, flow_text, graph, problems, rules, start


def spec_of(text: str, node: str = "m") -> HoldSpec:
    [found] = [each.hold for each in graph(text).nodes if each.id == node]
    assert found is not None
    return found


@pytest.mark.covers("CV-20")
def test_hold_has_a_port_for_each_option_and_timeout() -> None:
    [unknown] = [
        each
        for each in problems(hold("options: [ok, {id: no, label: Never}]", "a -> m\nm:yes -> z"))
        if each.rule == "port-unknown"
    ]
    assert unknown.fix == "its ports are out, ok, no, timeout, error"
    edges = {
        edge.id: edge
        for edge in graph(
            hold(
                "options: [ok, no], timeout: 1h, decision_bind: verdict",
                "a -> m\nm:ok -> z\nm:no -> z\nm:timeout -> z",
            )
        ).edges
    }
    assert edges["m:ok->z"].when == "verdict == 'ok'"
    assert edges["m:timeout->z"].kind == "chosen"
    assert rules(EXAMPLES["port-open"][0]) == ["port-open"]
    assert rules(EXAMPLES["edge-mixed"][0]) == ["edge-mixed"]
    assert rules(EXAMPLES["hold-form"][0]) == ["hold-form"]


PAY = "{id: m, type: checkpoint, config: {options: [approve, reject]}}\n{id: pay, type: python, config: {function: pay}}"
TEST = "{id: t, type: condition, config: {when: \"decision == 'approve'\"}}"


def paying(edges: str, more: str = "") -> str:
    return flow(f"{PAY}\n{more}" if more else PAY, edges)


def pay() -> str:
    return "paid"


@pytest.mark.covers("CV-20")
@pytest.mark.parametrize(
    ("edges", "fix"),
    [
        ("a -> m -> pay -> z\nm:reject -> z", "lead to 'pay' from 'approve' instead, once for each decision that is meant"),
        ("a -> m -> z\nm:approve -> pay -> z\nm:reject -> z", "lead to 'z' from 'approve' and 'reject' instead, once for each decision that is meant"),
        ("a -> m -> pay -> z\n{source: m, id: no, target: z, when: \"decision == 'reject'\"}", "write otherwise: true if it is for the other cases, else give it a when"),
    ],
)  # fmt: skip
def test_edge_for_every_decision_beside_those_for_some_is_refused(edges: str, fix: str) -> None:
    [found] = [each for each in problems(paying(edges), {"pay": pay}) if each.rule == "edge-mixed"]
    assert (found.severity, found.edge, found.fix) == ("error", found.edge, fix)
    assert found.edge in ("m:out->pay", "m:out->z")
    assert found.line


@pytest.mark.covers("CV-20")
@pytest.mark.parametrize(
    ("more", "edges", "named"),
    [
        ("", "a -> m -> pay -> z", True),
        ("{id: s, type: set, config: {values: {x: 1}}}", "a -> m -> s -> pay -> z", True),
        (TEST, "a -> m -> pay -> t\nt:true -> z\nt:false -> z", True),
        (TEST, "a -> m -> t\nt:true -> pay -> z\nt:false -> z", False),
        ("{id: s, type: set, config: {values: {x: '{{decision}}'}}}", "a -> m -> s -> pay -> z", False),
        ("{id: s, type: set, config: {values: {x: 1}}}", "a -> m -> s\n{source: s, id: y, target: pay, when: \"decision == 'approve'\"}\n{source: s, id: n, target: z, when: \"decision == 'reject'\"}\npay -> z", False),
        ("", "a -> m\nm:approve -> pay -> z\nm:reject -> z", False),
        ("{id: g, type: guardrail, config: {check: pay}}", "a -> m -> g -> pay -> z", False),
    ],
)  # fmt: skip
def test_decision_that_nothing_reads_before_an_act_is_a_warning(more: str, edges: str, named: bool) -> None:
    found = [each for each in problems(paying(edges, more), {"pay": pay}) if each.rule == "decision-unread"]
    assert [(each.severity, each.edge) for each in found] == (
        [("warning", f"m:out->{edges.split(' -> ')[2]}")] if named else []
    )
    if named:
        assert "'pay' runs whatever is decided at 'm'" in found[0].message


@pytest.mark.covers("CV-20")
@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        ("{id: m, type: checkpoint, parent: l, config: {options: [approve, reject]}}", False),
        ("{id: m, type: checkpoint, parent: l, config: {options: [approve, reject]}}\n{id: i, type: python, parent: l, config: {function: pay}}", True),
    ],
)  # fmt: skip
def test_decision_inside_of_a_loop_is_read_by_its_while(nodes: str, named: bool) -> None:
    loop = "{id: l, type: loop, config: {while: \"decision == 'reject'\", max_turns: 3}}"
    edges = "a -> l -> pay -> z" + ("\nm -> i" if named else "")
    text = flow(f"{loop}\n{nodes}\n{{id: pay, type: python, config: {{function: pay}}}}", edges)
    assert ("decision-unread" in rules(text, {"pay": pay}, severity="warning")) is named
    assert rules(text, {"pay": pay}) == []


@pytest.mark.covers("CV-20")
@pytest.mark.parametrize(
    ("behind", "named"), [(f"{{id: end, type: python, config: {{function: pay{each}}}}}", not each) for each in ("", ", args: {of: '{{results}}'}")]
)  # fmt: skip
def test_decisions_inside_of_a_map_are_read_as_its_results(behind: str, named: bool) -> None:
    each = "{id: e, type: map, config: {over: list, into: results}}\n{id: m, type: checkpoint, parent: e, config: {options: [yes, no]}}\n{id: s, type: set, parent: e, config: {values: {x: 1}}}"
    text = flow(f"{each}\n{behind}", "a -> e -> end -> z\nm -> s")
    found = rules(text, {"pay": lambda of=None: of}, severity="warning")
    assert ("decision-unread" in found) is named


def test_unconditional_edge_beside_one_that_tests_the_decision_is_refused() -> None:
    edges = "a -> m -> s -> pay -> z\n{source: s, id: n, target: z, when: \"decision == 'reject'\"}"
    text = paying(edges, "{id: s, type: set, config: {values: {x: '{{decision}}'}}}")
    [found] = [each for each in problems(text, {"pay": pay}) if each.rule == "edge-mixed"]
    assert (found.severity, found.edge) == ("error", "s:out->pay")


async def test_loop_of_one_turn_that_asks_for_another_fails_instead_of_paying(hf: Holdfast) -> None:
    loop = "{id: l, type: loop, config: {while: \"decision != 'approve'\", max_turns: 1}}\n{id: m, type: checkpoint, parent: l, config: {options: [approve, reject]}}"
    text = flow(f"{loop}\n{{id: pay, type: python, config: {{function: pay}}}}", "a -> l -> pay -> z")
    for decision, status in (("reject", "failed"), ("approve", "completed")):
        waiting = await start(hf, text, functions={"pay": pay})
        done = await answer(hf, waiting, decision)
        assert done.status == status
        if status == "failed":
            assert "has one turn, and would begin another" in str(done.error)


def test_hold_takes_the_terms_that_python_holds_have() -> None:
    given = "options: [approve, reject], assignee: 'role:cfo', strict_assignee: true, reminder: 1h, max_reminders: 2, approval: {mode: quorum, need: 2, of: ['user:a@x', 'user:b@x'], exclude: [initiator]}"
    found = spec_of(hold(given))
    flow_in_python = Flow("same")
    flow_in_python.hold(
        "m",
        prompt="",
        options=["approve", "reject"],
        assignee="role:cfo",
        strict_assignee=True,
        reminder="1h",
        max_reminders=2,
        approval={"mode": "quorum", "need": 2, "of": ["user:a@x", "user:b@x"], "exclude": ["initiator"]},
    )
    [same] = [each.hold for each in flow_in_python.compile().graph.spec.nodes]
    assert same is not None
    assert (found.terms, found.reminder) == (same.terms, same.reminder)
    assert found.terms.strict_assignee
    ladder = spec_of(
        hold(
            "options: [ok], timeout: 1h, on_timeout: 'escalate:role:boss', ladder: [{to: 'role:lead', after: 4h}], calendar: office"
        )
    )
    assert [rung.to for rung in ladder.terms.ladder] == ["role:boss", "role:lead"]
    assert ladder.terms.calendar == "office"


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ("reminder: soon", "reminder"),
        ("reminder: 5s", "reminder"),
        ("approval: {need: 0}", "approval.need"),
        ("approval: {exclude: [nobody]}", "approval"),
        ("timeout: 1h, ladder: [{to: 'role:lead', after: soon}]", "ladder"),
        ("strict_assignee: true", "strict_assignee"),
    ],
)  # fmt: skip
def test_terms_that_are_wrong_are_reported_at_their_field(config: str, field: str) -> None:
    found = [each for each in problems(hold(f"options: [ok], {config}")) if each.severity == "error"]
    assert [each.path for each in found] == ["/nodes/1/config/" + field.replace(".", "/")]


@pytest.mark.covers("CV-21")
@pytest.mark.parametrize(
    ("condition", "edges"),
    [
        ("{id: t, type: condition, config: {when: decision}}", "t:true -> pay -> z\nt:false -> z"),
        ("{id: t, type: condition, config: {when: 'n > 1 && !decision'}}", "t:true -> z\nt:false -> pay -> z"),
        ("{id: t, type: condition, config: {when: decision_result.decision}}", "t:true -> pay -> z\nt:false -> z"),
        ("{id: t, type: router, config: {cases: [{id: go, when: decision}]}}", "t:go -> pay -> z\nt:else -> z"),
        ("{id: t, type: set, config: {values: {x: 1}}}", "pay -> z\n{source: t, id: y, target: pay, when: decision}\n{source: t, id: n, target: z, when: '!decision'}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("options", ["options: [approve, reject]", "prompt: Go"])
def test_decision_is_never_asked_for_its_truth(condition: str, edges: str, options: str) -> None:
    """A text is true: a refusal would pay."""
    text = paying(f"a -> m -> t\n{edges}", condition).replace("options: [approve, reject]", options)
    found = [each for each in problems(text, {"pay": pay}) if each.rule == "decision-truth"]
    assert found
    assert {(each.severity, each.fix.endswith("== 'approve'")) for each in found} == {("error", True)}
    assert all(each.column for each in found)


@pytest.mark.covers("CV-21")
@pytest.mark.parametrize(
    ("node", "head", "named"),
    [
        ("", "variables: {x: {type: string, default: 'false'}}", True),
        ("", "variables: {x: {type: boolean, default: false}}", False),
        ("", "input: {type: object, properties: {x: {type: string}}}", True),
        ("", "input: {type: object, properties: {x: {type: boolean}}}", False),
        ("{id: s, type: set, config: {values: {x: 'no'}}}", "", True),
        ("{id: s, type: set, config: {values: {x: 'no {{run.id}}'}}}", "", True),
        ("{id: s, type: set, config: {values: {x: true}}}", "", False),
        ("{id: s, type: llm, config: {connection: gpt, prompt: 'Is it safe?', bind: x}}", "", True),
        ("{id: s, type: llm, config: {connection: gpt, prompt: 'Is it safe?', bind: x, schema: {type: boolean}}}", "", False),
        ("{id: s, type: python, config: {function: pay, bind: x}}", "", False),
    ],
)  # fmt: skip
def test_text_that_is_asked_for_its_truth_is_a_warning(node: str, head: str, named: bool) -> None:
    for when, said in (("x", named), ("x == 'yes'", False), ("exists(x) && !x", named)):
        test = f'{{id: t, type: condition, config: {{when: "{when}"}}}}'
        way = "a -> s -> t" if node else "a -> t"
        text = flow(f"{node}\n{test}" if node else test, f"{way}\nt:true -> z\nt:false -> z", head)
        found = [each for each in problems(text, {"pay": pay}) if each.rule == "text-truth"]
        assert [each.severity for each in found] == (["warning"] if said else [])


@pytest.mark.covers("CV-20", "CV-5")
@pytest.mark.parametrize(
    ("declared", "field"),
    [
        ("reducer: first", "variables.decision.reducer"),
        ("reducer: append", "variables.decision.reducer"),
        ("type: number", "variables.decision.type"),
        ("schema: {enum: [approve]}", "variables.decision.schema"),
        ("reducer: last", None),
        ("type: string, schema: {enum: [approve, reject]}", None),
    ],
)
def test_variable_of_a_decision_becomes_what_is_decided(declared: str, field: str | None) -> None:
    """The ports follow the variable: with the reducer `first` a second hold would pay after `reject`."""
    text = paying("a -> m\nm:approve -> pay -> z\nm:reject -> z")
    text = text.replace("\nnodes:", f"\nvariables: {{decision: {{{declared}}}}}\nnodes:")
    found = [(each.rule, each.field) for each in problems(text, {"pay": pay}) if each.severity == "error"]
    assert found == ([] if field is None else [("decision-variable", field)])
    listed = paying("a -> m -> z\na -> pay -> z").replace(
        "\nnodes:", "\nvariables: {decision: {reducer: append, default: []}}\nnodes:"
    )
    assert rules(listed, {"pay": pay}) == []


@pytest.mark.covers("CV-20", "CV-5")
@pytest.mark.parametrize(
    ("variable", "found"),
    [("decision_result", True), ("m", True), ("form", False), ("m: {type: object}", False)],
)
def test_variable_of_an_answer_takes_a_mapping(variable: str, found: bool) -> None:
    """Else the run would fail after a person has decided."""
    declared = variable if ":" in variable else f"{variable}: {{type: string, default: ''}}"
    text = review(f"queue: r, {DECISION}", "a -> m\nm:ok -> z").replace(
        "\nnodes:", f"\nvariables: {{{declared}}}\nnodes:"
    )
    fields = [each.field for each in problems(text) if each.rule == "decision-variable"]
    assert fields == ([f"variables.{variable}.type"] if found else [])


@pytest.mark.covers("CV-5", "QU-30")
@pytest.mark.parametrize("waits", [consume, event])
@pytest.mark.parametrize("variable", ["m", "m_outcome", "m_outcome_result"])
def test_variable_of_a_message_takes_it(waits: Callable[[str], str], variable: str) -> None:
    """Else the run would fail after it has taken the message, which nobody would work on."""
    text = waits("queue: q" if waits is consume else "event: paid").replace(
        "\nnodes:", f"\nvariables: {{{variable}: {{type: number, default: 0}}}}\nnodes:"
    )
    [found] = problems(text)
    assert (found.rule, found.field) == ("decision-variable", f"variables.{variable}.type")
    kind = "string" if variable == "m_outcome" else "object"
    assert f"declare it as {kind}" in (found.fix or "")
    assert rules(text.replace("type: number, default: 0", f"type: {kind}")) == []


@pytest.mark.covers("CV-5")
@pytest.mark.parametrize(
    ("value", "kind"), [("{}", "a mapping"), ("1.5", "a number"), ("true", "true or false"), ("[]", "a list")]
)
async def test_value_that_does_not_fit_its_variable_is_named_as_documents_name_it(
    hf: Holdfast, value: str, kind: str
) -> None:
    text = flow(
        f"{{id: m, type: set, config: {{values: {{x: {value}}}}}}}", head="variables: {x: {type: string}}"
    )
    failed = await start(hf, text, {})
    assert failed.error is not None
    assert failed.error.message == f"'x' does not fit: expected text, found {kind}"


@pytest.mark.covers("CV-20")
def test_review_whose_form_would_take_the_place_of_its_decision_is_refused() -> None:
    """A node named `decision` binds its form to its id: no edge of its options would be taken."""
    text = review(f"queue: r, {DECISION}", "a -> decision\ndecision:ok -> z").replace(
        "id: m,", "id: decision,"
    )
    (found,) = [each for each in problems(text) if each.severity == "error"]
    assert (found.rule, found.node, found.message) == (
        "hold-into",
        "decision",
        "its form is stored in 'decision', in place of its decision",
    )
    assert found.fix == "give the node another bind, or another decision_bind"
    assert rules(text.replace("queue: r,", "queue: r, decision_bind: verdict,")) == []


@pytest.mark.covers("CV-20")
def test_case_of_a_router_that_names_no_option_is_refused() -> None:
    router = "{id: t, type: router, config: {cases: [{id: go, when: \"decision == 'aprove'\"}]}}"
    text = paying("a -> m -> t\nt:go -> pay -> z\nt:else -> z", router)
    [found] = problems(text, {"pay": pay})
    assert (found.rule, found.severity, found.node) == ("unknown-option", "error", "t")
    assert "its case 'go'" in found.message


@pytest.mark.covers("SC-1", "SC-2", "SC-4")
@pytest.mark.parametrize(
    ("own", "scope"),
    [("", "support"), (", scope: null", "support"), (", scope: ' '", "support"), (", scope: own", "own")],
)
def test_scope_of_the_node_wins_and_the_flow_s_is_inherited(own: str, scope: str) -> None:
    target = spec_of(review(f"queue: r{own}")).target
    assert target
    assert (target.scope, target.queue) == (scope, "r")
    assert not spec_of(hold("prompt: Go")).target


@pytest.mark.covers("SC-3")
async def test_changed_scope_of_the_flow_leaves_a_paused_run_alone(hf: Holdfast) -> None:
    waiting = await start(hf, review("queue: r"))
    await start(hf, review("queue: r", head=HEAD.replace("support", "other")))
    [row] = await (await hf.service()).holds(waiting.run_id)
    assert row.terms.queue == "support/r"


@pytest.mark.covers("SC-5")
def test_missing_queue_and_scope_are_reported_together_with_node_field_and_fix() -> None:
    text = flow_text(
        "{id: a, type: start}\n{id: q, type: hitl_review, config: {}}\n{id: s, type: hitl_review, config: {queue: r}}\n{id: z, type: end}",
        "a -> q -> s -> z",
    )
    found = {each.rule: each for each in problems(text)}
    assert (found["required"].node, found["required"].field, found["required"].fix) == (
        "q",
        "queue",
        "add 'queue'",
    )
    assert (found["scope-missing"].node, found["scope-missing"].field) == ("s", "scope")
    assert "config.scaiqueue.scope" in (found["scope-missing"].fix or "")


@pytest.mark.covers("BP-1", "BP-6", "BP-7", "BP-9")
async def test_breakpoint_pauses_before_its_node_and_continues_with_nothing_bound(hf: Holdfast) -> None:
    text = flow("{id: m, type: set, config: {breakpoint: true, values: {x: 1}}}")
    waiting = await start(hf, text)
    [row] = await (await hf.service()).holds(waiting.run_id)
    assert (row.node, row.type, row.expires_at) == ("m__breakpoint", "debug_breakpoint", None)
    assert "x" not in waiting.state

    ended = await answer(hf, waiting, "continue")
    assert ended.status == "completed"
    assert ended.state == {"x": 1}


@pytest.mark.covers("BP-2")
@pytest.mark.parametrize(("given", "rule"), [("false", []), ('"true"', ["type"]), ("1", ["type"])])
def test_only_true_is_a_breakpoint(given: str, rule: list[str]) -> None:
    assert rules(flow(f"{{id: m, type: set, config: {{breakpoint: {given}, values: {{x: 1}}}}}}")) == rule


@pytest.mark.covers("BP-3")
async def test_breakpoint_pauses_in_each_turn_of_a_loop(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: l, type: loop, config: {while: "k < 2", max_turns: 5}}
        {id: w, type: python, parent: l, config: {breakpoint: true, function: add, bind: k, args: {of: "{{k}}"}}}
        {id: z, type: end}
        """,
        "a -> l -> z",
        "variables: {k: {default: 0}}",
    )
    run = await start(hf, text, None, {"add": lambda of: of + 1})
    for _ in range(2):
        assert [each.node for each in run.holds] == ["w__breakpoint"]
        run = await answer(hf, run, "continue")
    assert (run.status, run.state["k"]) == ("completed", 2)


@pytest.mark.covers("BP-4")
async def test_breakpoint_of_a_review_comes_before_the_review(hf: Holdfast) -> None:
    waiting = await start(hf, review("queue: r, breakpoint: true, options: [ok]", "a -> m -> z"))
    [first] = await (await hf.service()).holds(waiting.run_id)
    assert (first.type, first.terms.queue) == ("debug_breakpoint", None)
    later = await answer(hf, waiting, "continue")
    [second] = await (await hf.service()).holds(later.run_id)
    assert (second.node, second.terms.queue) == ("m", "support/r")


@pytest.mark.covers("BP-5", "CV-31")
def test_id_that_clashes_with_a_breakpoint_is_an_error() -> None:
    assert rules(EXAMPLES["breakpoint"][0]) == ["breakpoint"]
    assert rules(EXAMPLES["id-clash"][0]) == ["id-clash"]


@pytest.mark.covers("BP-10")
async def test_removed_breakpoint_frees_no_paused_run(hf: Holdfast) -> None:
    text = flow("{id: m, type: set, config: {breakpoint: true, values: {x: 1}}}")
    waiting = await start(hf, text)
    assert (await start(hf, text.replace("breakpoint: true, ", ""))).status == "completed"
    service = await hf.service()
    row = await service.get(waiting.run_id)
    program = await service.runtime.find_program(row.version, row.flow)
    assert (await advance(service, program, row.id)).status == "pending_input"


@pytest.mark.covers("TO-1")
@pytest.mark.parametrize(
    ("given", "seconds"),
    [("90", 90), ("30m", 1800), ("24h", 86_400), ("7d", 604_800), ("PT15M", 900), ("0.5", 0.5)],
)
def test_timeout_is_read_as_seconds_text_or_iso_duration(given: str, seconds: float) -> None:
    assert spec_of(hold(f"timeout: {given}, on_timeout: fail")).timeout == int(seconds * 1_000_000)


@pytest.mark.covers("TO-1")
@pytest.mark.parametrize("given", ["0", "-5", "soon", "'1 fortnight'", "P1Y"])
def test_timeout_that_is_none_is_an_error_at_its_field(given: str) -> None:
    [found] = [
        each for each in problems(hold(f"timeout: {given}, on_timeout: fail")) if each.rule == "duration"
    ]
    assert (found.node, found.field) == ("m", "timeout")


@pytest.mark.covers("TO-2")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("cancel", "cancel"), ("fail", "fail"), ("default_option", "default_option"), ("'escalate:role:cfo'", "escalate:role:cfo"),
        ("{action: escalate, target: role:cfo}", "escalate:role:cfo"), ("{action: cancel}", "cancel"), ("'branch:z'", "branch:z"),
        ("{action: branch, target: z}", "branch:z"),
    ],
)  # fmt: skip
def test_on_timeout_has_its_forms(given: str, expected: str) -> None:
    spec = spec_of(
        hold(f"timeout: 1h, on_timeout: {given}, options: [approve, {{id: reject, default: true}}]")
    )
    assert spec.on_timeout == expected


@pytest.mark.covers("TO-2", "CV-20")
@pytest.mark.parametrize(
    ("action", "edge"),
    [("", "m:timeout -> late -> z"), (", on_timeout: 'branch:late'", "late -> z"),
     (", on_timeout: {action: branch, target: late}", "late -> z")],
)  # fmt: skip
async def test_timeout_port_is_taken_when_nobody_answers(hf: Holdfast, action: str, edge: str) -> None:
    text = flow_text(
        f"""
        {{id: a, type: start}}
        {{id: m, type: checkpoint, config: {{prompt: Go?, options: [ok], timeout: 0.02{action}}}}}
        {{id: late, type: set, config: {{values: {{late: true}}}}}}
        {{id: z, type: end}}
        """,
        f"a -> m\nm:ok -> z\n{edge}",
    )
    import asyncio

    waiting = await start(hf, text)
    assert waiting.status == "pending_input"
    await asyncio.sleep(0.03)
    service = await hf.service()
    await service.people.sweep() if hasattr(service.people, "sweep") else await service.runtime.sweep_holds()
    row = await service.get(waiting.run_id)
    program = await service.runtime.find_program(row.version, row.flow)
    ended = await advance(service, program, row.id)
    assert (ended.status, ended.state.get("late")) == ("completed", True)


@pytest.mark.covers("TO-3")
def test_timeout_without_an_action_expires_and_an_action_without_a_timeout_is_a_warning() -> None:
    spec = spec_of(hold("timeout: 1h"))
    assert (spec.timeout, spec.on_timeout) == (3_600_000_000, None)
    assert rules(hold("on_timeout: cancel"), severity="warning") == ["no-timeout"]


@pytest.mark.covers("TO-3", "QU-30")
@pytest.mark.parametrize(
    "action", ["default", "default_option", "escalate:role:cfo", "{action: escalate, target: 'role:cfo'}"]
)
@pytest.mark.parametrize("waits", [consume, event])
def test_wait_for_a_machine_refuses_what_only_a_person_can_be_asked(
    waits: Callable[[str], str], action: str
) -> None:
    """An escalation of it would be repeated for ever, and a default answer would bind nothing."""
    what = "queue: q" if waits is consume else "event: paid"
    given = action if action.startswith("{") else f"'{action}'"
    [found] = problems(waits(f"{what}, timeout: 1h, on_timeout: {given}"))
    assert (found.rule, found.severity, found.field) == ("on-timeout", "error", "on_timeout")
    assert "no person answers it" in found.message
    for allowed in ("cancel", "fail", "'branch:z'"):
        assert rules(waits(f"{what}, timeout: 1h, on_timeout: {allowed}")) == []


@pytest.mark.covers("TO-4")
async def test_template_in_timeout_and_assignee_is_filled_when_the_run_asks(hf: Holdfast) -> None:
    text = hold('assignee: "user:{{n}}", timeout: "{{n}}h", on_timeout: fail')
    waiting = await start(hf, text, {"n": 3})
    [row] = await (await hf.service()).holds(waiting.run_id)
    assert row.assignee == "user:3"
    assert row.expires_at is not None
    assert row.expires_at - row.created_at == 3 * 3_600_000_000

    failed = await start(hf, text, {"n": -1})
    assert failed.status == "failed"
    assert failed.error is not None
    assert "{{n}}h" in failed.error.message


async def test_prompt_shows_the_facts_of_its_run(hf: Holdfast) -> None:
    waiting = await start(hf, hold('prompt: "{{run.flow}} {{run.id}} {{run.instance_key}}"'))
    assert waiting.holds[0].prompt == f"sample {waiting.run_id} "


@pytest.mark.covers("CV-22")
def test_name_that_nothing_sets_is_an_error_and_one_of_some_paths_a_warning() -> None:
    assert rules(EXAMPLES["variable-unknown"][0]) == ["variable-unknown"]
    assert rules(EXAMPLES["variable-maybe"][0], severity="warning") == ["variable-maybe"]
    later = flow_text(
        "{id: a, type: start}\n{id: b, type: set, config: {values: {x: '{{y}}'}}}\n{id: c, type: set, config: {values: {y: 1}}}\n{id: z, type: end}",
        "a -> b -> c -> z",
    )
    [found] = problems(later)
    assert "only by a later node" in found.message
    assert rules(hold('prompt: "{{input.anything}} {{n}} {{run.id}}"')) == []


@pytest.mark.covers("CV-22")
def test_name_that_both_branches_or_a_joined_one_set_is_no_warning() -> None:
    nodes = """
        {id: a, type: start}
        {id: c, type: %s}
        {id: x, type: set, config: {values: {v: 1, x: 1}}}
        {id: y, type: set, config: {values: {v: 2, y: 1}}}
        {id: z, type: end, config: {output: {v: "{{v}}", w: "{{%s}}"}}}
        """
    both = flow_text(
        nodes % ("condition, config: {when: 'n > 1'}", "v"),
        "a -> c\nc:true -> x -> z\nc:false -> y -> z",
        HEAD,
    )
    assert problems(both) == []
    one = flow_text(
        nodes % ("condition, config: {when: 'n > 1'}", "x"),
        "a -> c\nc:true -> x -> z\nc:false -> y -> z",
        HEAD,
    )
    assert rules(one, severity="warning") == ["variable-maybe"]
    joined = flow_text(
        (nodes % ("parallel", "x")).replace("v: 1, ", "").replace("v: 2, ", "").replace('v: "{{v}}", ', ""),
        "a -> c -> x -> z\nc -> y -> z",
        HEAD,
    )
    assert problems(joined) == []


@pytest.mark.covers("CV-33")
def test_problems_of_the_graph_are_mapped_back_to_the_document() -> None:
    assert rules(EXAMPLES["cycle"][0]) == ["cycle"]
    assert rules(EXAMPLES["no-way-to-end"][0]) == ["no-way-to-end"]
    assert rules(EXAMPLES["unreachable"][0], severity="warning") == ["unreachable"]
    assert "b" not in [node.id for node in graph(EXAMPLES["unreachable"][0]).nodes]
    [mapped] = [
        each for each in problems(hold("timeout: 1h, on_timeout: later")) if each.rule == "on-timeout"
    ]
    assert (mapped.path, mapped.node) == ("/nodes/1/config/on_timeout", "m")


@pytest.mark.covers("CV-5")
async def test_variables_have_types_defaults_reducers_and_secrets(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: p, type: parallel}
        {id: x, type: set, config: {values: {log: x}}}
        {id: y, type: set, config: {values: {log: y}}}
        {id: z, type: end}
        """,
        "a -> p -> x -> z\np -> y -> z",
        """
        variables:
          log: {type: array, reducer: append, default: []}
          key: {type: string, secret: true}
          k: {type: integer, default: 1}
        """,
    )
    ended = await start(hf, text, {"key": "hidden"})
    assert ended.state["log"] == ["x", "y"]
    assert "key" not in ended.artifacts
    assert graph(text).secrets == ("key",)
    wrong = flow("{id: m, type: set, config: {values: {k: text}}}", head="variables: {k: {type: integer}}")
    failed = await start(hf, wrong)
    assert failed.status == "failed"
    assert failed.error is not None
    assert "whole number" in failed.error.message


@pytest.mark.covers("CV-5")
async def test_output_that_does_not_fit_fails_the_run_with_its_code(hf: Holdfast) -> None:
    text = flow(
        head="output: {type: object, required: [id]}", end="{id: z, type: end, config: {output: {x: 1}}}"
    )
    failed = await start(hf, text)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error.code == "output_invalid"


def test_secret_of_any_kind_is_no_state() -> None:
    found: Any = problems(EXAMPLES["secret-literal"][0])
    assert [each.rule for each in found] == ["secret-literal"]


@pytest.mark.covers("CV-21", "PLATFORM-NODE-02")
async def test_conditions_are_expressions_and_other_texts_are_templates_with_filters(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: c, type: condition, config: {when: "n > 1 && exists(list)"}}
        {id: m, type: map, config: {over: "n > 1 ? list : empty", into: out}}
        {id: i, type: set, parent: m, config: {values: {shown: "{{item.name | default('none') | trim | upper | truncate(4)}}"}}}
        {id: l, type: loop, config: {while: "k < 2", max_turns: 5, on_limit: continue}}
        {id: w, type: set, parent: l, config: {values: {k: 2}}}
        {id: z, type: end, config: {output: {shown: "{{out}}", when: "n > 1", count: "{{list | length}}"}}}
        """,
        "a -> c\nc:true -> m -> l -> z\nc:false -> z",
        f"{HEAD}\nvariables: {{empty: {{default: []}}, k: {{default: 0}}, out: {{default: []}}}}",
    )
    ended = await start(hf, text, {"n": 2, "list": [{"name": " dana "}, {}]})
    assert ended.artifacts["shown"] == [{"shown": "DANA"}, {"shown": "NONE"}]
    # Only the fields that are said to be expressions are evaluated.
    assert (ended.artifacts["when"], ended.artifacts["count"]) == ("n > 1", 2)

    many = hold('prompt: "{{n | upper | lower | trim | json | upper}}"')
    [wrong] = [each for each in problems(many) if each.rule == "template"]
    assert wrong.field == "prompt"
    assert "template" in rules(hold('prompt: "{{n | shout}}"'))


@pytest.mark.covers("BP-8")
async def test_breakpoint_counts_in_no_inbox_and_no_metrics_and_is_listed_by_its_type(hf: Holdfast) -> None:
    waiting = await start(hf, flow("{id: m, type: set, config: {breakpoint: true, values: {x: 1}}}"))
    await start(hf, hold("prompt: Go?"))
    people, actor = await hf.holds(), operator()
    assert await people.count(actor, view="unassigned") == 1
    assert [each.type for each in (await people.list(actor, view="all")).rows] == ["approval"]
    assert [each.run for each in (await people.list(actor, view="breakpoints")).rows] == [waiting.run_id]
    assert (await people.metrics(actor)).holds == 1


# ------------------------------------------------------------------ branches, assignees, options of forms
LATE = "{id: late, type: set, config: {values: {x: 1}}}"


@pytest.mark.parametrize("action", ["'branch:late'", "{action: branch, target: late}"])
@pytest.mark.parametrize("kind", ["checkpoint, config: {prompt: Go", "queue_consume, config: {queue: q"])
def test_branch_of_a_timeout_is_a_way_to_its_node(action: str, kind: str) -> None:
    text = flow(
        f"{{id: m, type: {kind}, timeout: 1h, on_timeout: {action}}}}}\n{LATE}", "a -> m -> z\nlate -> z"
    )
    assert problems(text) == []
    by_edge = text.replace(f", on_timeout: {action}", "").replace(
        "edges:\n", "edges:\n  - {source: m, source_port: timeout, target: late}\n"
    )
    assert {edge.id for edge in graph(text).edges} == {edge.id for edge in graph(by_edge).edges}
    # Also what is wrong with it is seen.
    assert rules(text.replace("  - {source: late, target: z}\n", "")) == ["no-way-to-end"]
    assert "timeout-branch" in rules(text.replace(action, action.replace("late", "latte")))


@pytest.mark.parametrize(
    "assignee", ["user:", "'role: '", "'user:a,user:b'", "'user:a; group:b'", "'group:'"]
)
def test_assignee_that_names_nobody_or_several_is_refused(assignee: str) -> None:
    given = assignee if assignee.startswith("'") else f"'{assignee}'"
    assert rules(hold(f"prompt: Go, assignee: {given}")) == ["assignee"]
    assert rules(hold(f"prompt: Go, timeout: 1h, on_timeout: {{action: escalate, target: {given}}}")) == [
        "assignee"
    ]
    assert rules(hold("prompt: Go, assignee: 'user:cn=a,ou=b'")) == []


@pytest.mark.parametrize("value", [None, "", "  ", [], ["ann"], {"id": "ann"}, True, "a,user:b"])
@pytest.mark.parametrize("assignee", ["user:{{boss}}", "{{boss}}", "role:{{boss}}"])
async def test_hold_whose_assignee_has_no_value_fails_and_is_not_opened(
    hf: Holdfast, value: Any, assignee: str
) -> None:
    if (value, assignee) == ("a,user:b", "{{boss}}"):
        value = "user:a,user:b"

    def asking(more: str) -> str:
        node = f"{{id: m, type: checkpoint, config: {{prompt: Go, {more}}}}}"
        return flow(node, head="input: {properties: {boss: {}}}")

    for more in (f"assignee: '{assignee}'", f"timeout: 1h, on_timeout: 'escalate:{assignee}'"):
        ended = await start(hf, asking(more), {"boss": value})
        assert ended.status == "failed"
        assert "cannot be asked" in ended.error.message
        assert ended.holds == []
    assert (await start(hf, asking(f"assignee: '{assignee}'"), {"boss": 7})).status == "pending_input"


COMMENTED = review(
    "queue: r, sections: [{type: decision, options: [ok, {id: no, requires_comment: true, default: true}]}]"
)


async def test_option_of_a_form_that_requires_a_comment_is_not_taken_without_one(hf: Holdfast) -> None:
    waiting = await start(hf, COMMENTED, {"n": 1})
    service = await hf.service()
    [row] = await service.holds(waiting.run_id)
    assert [(each.id, each.requires_comment is True, each.default is True) for each in row.options or ()] == [
        ("ok", False, False), ("no", True, True),
    ]  # fmt: skip
    with pytest.raises(AnswerInvalidError, match="requires a comment"):
        await service.answer(row.id, "no")
    queues = await hf.queues()
    await queues.work()
    [claimed] = await queues.claim(operator(), "support", "r")
    with pytest.raises(AnswerInvalidError, match="requires a comment"):
        await queues.complete(operator(), "support", "r", claimed.id, claimed.claim_token, {"decision": "no"})
    await service.answer(row.id, "no", comment="too dear")
    assert (await service.holds(waiting.run_id)) == []


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ("{type: decision, options: [{id: no, require_comment: true}]}", "require_comment"),
        ("{type: decision, options: [{id: no, requires_comment: maybe}]}", "neither true nor false"),
        (
            "{type: decision, options: [ok]}, {type: decision, field: more, options: [{id: no, requires_comment: true}]}",
            "first decision",
        ),
        ("{type: input, field: x, kind: select, options: [{id: a, hint: b}]}", "hint"),
    ],
)
def test_option_of_a_form_has_no_other_keys(sections: str, named: str) -> None:
    [found] = [
        each for each in problems(review(f"queue: r, sections: [{sections}]")) if each.rule == "hold-form"
    ]
    assert named in f"{found}"


@pytest.mark.covers("TO-1")
@pytest.mark.parametrize(
    "node",
    [
        "{id: m, type: wait, config: {duration: 999999999d}}",
        "{id: m, type: checkpoint, config: {options: [a], timeout: 999999999d, on_timeout: cancel}}",
        "{id: m, type: queue_publish, config: {queue: q, payload: 1, expires: 999999999d}}",
        "{id: m, type: queue_publish, config: {queue: q, payload: 1, delay: 999999999d}}",
        "{id: m, type: queue_consume, config: {queue: q, timeout: 999999999d, on_timeout: fail}}",
        "{id: m, type: set, config: {values: {x: 1}, timeout: 999999999d}}",
        "{id: m, type: set, config: {values: {x: 1}, retry: {attempts: 3, delay: 999999999d}}}",
    ],
)
def test_duration_beyond_every_instant_is_refused(node: str) -> None:
    [found] = problems(flow(node))
    assert (found.rule, "longer than 1,000 years" in found.message) == ("duration", True)


async def test_timeout_from_the_input_beyond_every_instant_fails_the_run(hf: Holdfast) -> None:
    text = hold("options: [a], timeout: '{{n}}', on_timeout: cancel").replace("n: {type: number}", "n: {}")
    for given in ("999999999d", 10**12):
        ended = await start(hf, text, {"n": given})
        assert ended.status == "failed", given
        assert "longer than 1,000 years" in ended.error.message
