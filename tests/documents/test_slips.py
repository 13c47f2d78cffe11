"""Slips in a document that would lead a run around an approval."""

# ruff: noqa: E501  (a node of a document reads best on one line)

from __future__ import annotations

import pytest

from tests.documents.run import flow_text, problems

GIVEN = """\
input:
  type: object
  properties:
    amount: {type: number}
    tier: {enum: [gold, silver]}
    ids: {type: array, items: {type: integer}}
    customer: {type: object, properties: {level: {type: integer}}}
    either: {type: [string, number]}
    open: {anyOf: [{type: string}]}
variables:
  level: {type: string, default: '3'}
  kind: {schema: {type: string, enum: [small, large]}, default: large}
  log: {type: array, reducer: append}
"""
ASK = "{id: ask, type: checkpoint, config: {options: [approve, reject], timeout: 2d%s}%s}"
PAY = "{id: pay, type: python, config: {function: pay}}"
DECIDED = "ask:approve -> pay -> z\nask:reject -> z"
# The amount that is shown can be corrected, and the one that was shown is paid.
FILLED = (
    "{id: ask, type: hitl_review, config: {queue: desk, scope: s, timeout: 2d, on_timeout: cancel, sections: "
    "[{type: input, field: paid, kind: number, default: '{{amount}}'}, {type: decision, options: [approve, reject]}]}}"
)
PAYS = "{id: send, type: python, config: {function: pay, idempotency_key: 'r-%s'}}"
DECIDED_IN_FORM = "a -> ask\nask:approve -> send -> z\nask:reject -> z"


def pay() -> None: ...


def found(middle: str, edges: str, head: str = GIVEN) -> dict[str, str]:
    text = flow_text(f"{{id: a, type: start}}\n{middle}\n{{id: z, type: end}}", edges, head)
    return {each.rule: each.severity for each in problems(text, {"pay": pay})}


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize(
    ("when", "rule"),
    [
        ("amount == '500'", "type-mismatch"),
        ("input.amount != '500'", "type-mismatch"),
        ("amount in ['500', '600']", "type-mismatch"),
        ("tier == 'gld'", "unknown-value"),
        ("tier in ['gold', 'silber']", "unknown-value"),
        ("customer.level == 'three'", "type-mismatch"),
        ("ids.0 == '7'", "type-mismatch"),
        ("level == 3", "type-mismatch"),
        ("kind == 'larg'", "unknown-value"),
        ("written == 3", "type-mismatch"),
        ("filled == 3", "type-mismatch"),
        ("amount == 500", None),
        ("tier == 'gold'", None),
        ("customer.other == 'x'", None),
        ("level == '3' || level == null", None),
        ("either == 'x' || either == 3", None),
        ("open == 3", None),
        ("log == 3", None),
        ("copied == 'x'", None),
        ("given == 'x'", None),
    ],
)
def test_a_comparison_with_a_value_that_a_declared_name_never_has_is_an_error(
    when: str, rule: str | None
) -> None:
    values = "{written: '3', filled: 'no. {{amount}}', copied: '{{either}}'}"
    nodes = f"{{id: s, type: set, config: {{values: {values}}}}}\n{{id: given, type: python, config: {{function: pay}}}}"
    ways = f'a -> s -> given\n{{source: given, target: ask, when: "{when}"}}\n{{source: given, target: pay, otherwise: true}}'
    rules = found(f"{nodes}\n{ASK % ('', '')}\n{PAY}", f"{ways}\n{DECIDED}")
    wrong = {name: how for name, how in rules.items() if name in ("type-mismatch", "unknown-value")}
    assert wrong == ({} if rule is None else {rule: "error"})


THREE = "{id: ask, type: checkpoint, config: {options: [approve, reject, later]}}"
TEST = '{id: t, type: condition, config: {when: "%s"}}'
SHOWN = ", prompt: 'Pay {{amount}}?'"
APPROVED, REFUSED = "'approve'", "'reject'"
SET = "{id: s, type: set, config: {values: {checked: true}}}"
DETOURS = (
    f"{DECIDED}\nask:timeout -> s -> pay",
    f"{DECIDED}\nask:error -> s -> pay",
    "ask:approve -> pay -> z\nask:reject -> s -> pay",
)
TESTED = "a -> ask -> t\nt:true -> pay -> z\nt:false -> z"
LOOP = "{id: l, type: loop, config: {while: \"decision == 'reject'\", max_turns: 2, on_limit: %s}}"
MAP = "{id: l, type: map, config: {over: ids, into: results}}"


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("middle", "edges", "rule"),
    [
        # What acts is beside the question, and is joined with what follows an approval.
        (ASK % ("", ""), f"a -> ask\na -> pay\n{DECIDED}", "join-decision"),
        (
            ASK % ("", ""),
            f"{{source: a, target: ask, when: amount > 100}}\n{{source: a, target: pay, when: amount <= 101}}\n{DECIDED}",
            "join-decision",
        ),
        (
            ASK % ("", ""),
            f"{{source: a, target: ask, when: amount > 100}}\n{{source: a, target: pay, when: amount <= 100}}\n{DECIDED}",
            None,
        ),
        (ASK % ("", ""), "a -> ask\nask:approve -> pay -> z\nask:reject -> pay", "decision-unread"),
        (ASK % ("", ""), f"a -> ask\nask:timeout -> pay\n{DECIDED}", "approving-default"),
        (ASK % ("", ""), f"a -> ask\nask:error -> pay\n{DECIDED}", "approving-default"),
        (ASK % ("", ""), f"a -> ask\nask:timeout -> z\nask:error -> z\n{DECIDED}", None),
        (ASK % ("", ""), "a -> ask\nask:reject -> pay -> z\nask:approve -> z", "refusal-acts"),
        (ASK % (", decision_bind: tier", ""), f"a -> ask\n{DECIDED}", "hold-bind"),
        # Inside of a loop or map, what is not connected leads on.
        (f"{MAP}\n{ASK % ('', ', parent: l')}", "a -> l -> pay -> z", "decision-unread"),
        (f"{LOOP % 'continue'}\n{ASK % ('', ', parent: l')}", "a -> l -> pay -> z", "loop-limit"),
        (f"{LOOP % 'fail'}\n{ASK % ('', ', parent: l')}", "a -> l -> pay -> z", None),
        (
            f"{LOOP % 'continue'}\n{ASK % ('', ', parent: l')}\n{{id: t, type: condition, config: {{when: \"decision == 'approve'\"}}}}",
            "a -> l -> t\nt:true -> pay -> z\nt:false -> z",
            None,
        ),
        (f"{THREE}\n{TEST % ('decision != ' + REFUSED)}", TESTED, "other-option"),
        (f"{THREE}\n{TEST % ('decision | default(' + APPROVED + ') == ' + APPROVED)}", TESTED, "approving-default"),
        (f"{THREE}\n{TEST % ('decision == ' + APPROVED)}", TESTED, None),
        (f"{ASK % ('', '')}\n{TEST % ('decision == ' + APPROVED)}", "a -> ask -> t\nt:false -> pay -> z\nt:true -> z", "refusal-acts"),
        (f"{ASK % ('', '')}\n{TEST % ('decision == ' + REFUSED)}", TESTED, "refusal-acts"),
        (f"{ASK % ('', '')}\n{TEST % 'exists(decision)'}", TESTED, "refusal-passes"),
        (f"{ASK % ('', '')}\n{TEST % 'decision_result != null'}", TESTED, "refusal-passes"),
        (f"{ASK % ('', '')}\n{TEST % ('decision == ' + APPROVED + ' or amount < 100')}", TESTED, "refusal-passes"),
        (f"{ASK % ('', '')}\n{TEST % ('decision == ' + APPROVED + ' and amount < 100')}", TESTED, None),
        (f"{LOOP.replace('reject', 'approve') % 'fail'}\n{ASK % ('', ', parent: l')}", "a -> l -> pay -> z", "refusal-acts"),
        (f"{ASK % ('', '')}\n{SET.replace('checked: true', 'decision: approve')}\n{TEST % ('decision == ' + APPROVED)}", "a -> ask -> s -> t\nt:true -> pay -> z\nt:false -> z", "decision-unread"),
        (f"{ASK % ('', '')}\n{(ASK % ('', '')).replace('id: ask', 'id: second')}\n{TEST % ('decision == ' + APPROVED)}", "a -> ask -> second -> t\nt:true -> pay -> z\nt:false -> z", "decision-unread"),
        (f"{ASK % ('', '')}\n{SET.replace('checked: true', 'decision: ~{{decision}}~').replace('~', chr(39))}\n{TEST % ('decision == ' + APPROVED)}", "a -> ask -> s -> t\nt:true -> pay -> z\nt:false -> z", None),
        *((f"{ASK % ('', '')}\n{SET}", f"a -> ask\n{each}", "refusal-passes") for each in DETOURS),
        (f"{ASK % (', assignee: grp:finance', '')}", f"a -> ask\n{DECIDED}", "assignee"),
        (
            f"{ASK % (SHOWN, '')}\n{{id: fee, type: set, config: {{values: {{amount: 7}}}}}}",
            "a -> ask\nask:approve -> fee -> pay -> z\nask:reject -> z",
            "shown-changed",
        ),
        (f"{FILLED}\n{PAYS % '{{amount}}'}", DECIDED_IN_FORM, "form-unread"),
        (f"{FILLED}\n{PAYS % '{{ask.paid}}'}", DECIDED_IN_FORM, None),
    ],
)  # fmt: skip
def test_a_way_around_a_refusal_is_a_warning(middle: str, edges: str, rule: str | None) -> None:
    rules = found(f"{middle}\n{PAY}", edges)
    known = {
        "join-decision",
        "decision-unread",
        "approving-default",
        "loop-limit",
        "refusal-acts",
        "refusal-passes",
        "hold-bind",
        "other-option",
        "assignee",
        "shown-changed",
        "form-unread",
    }
    named = known & rules.keys()
    assert named == ({rule} if rule else set())
    assert "error" not in rules.values()
