"""The condition language of edges: what it means, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ExpressionError
from holdfast.model.expressions import partition_resolver
from holdfast.model.pipeline_conditions import Clause, Clauses, compile_clauses, problems_of


def holds(text: str, outcome: str = "success", label: str = "", **context: Any) -> bool:
    """Keys of the context are flat: `tests__passed` here is `tests.passed` there."""
    scratch = {key.replace("__", "."): value for key, value in context.items()}
    resolve = partition_resolver({"scratch": {**scratch, "outcome": outcome, "preferred_label": label}})
    return compile_clauses(text).evaluate(resolve)


def only_problem(text: str, *, extended: bool = False) -> tuple[str, int]:
    (problem,) = problems_of(text, extended=extended)
    return problem


@pytest.mark.covers("AT-77", "AT-81")
def test_equals_compares_the_outcome() -> None:
    assert holds("outcome=success")
    assert not holds("outcome=success", outcome="fail")


@pytest.mark.covers("AT-78")
def test_not_equals_is_the_opposite() -> None:
    assert holds("outcome!=success", outcome="fail")
    assert not holds("outcome!=success")


@pytest.mark.covers("AT-79")
def test_all_clauses_must_hold() -> None:
    assert holds("outcome=success && context.tests_passed=true", tests_passed="true")
    assert not holds("outcome=success && context.tests_passed=true", tests_passed="false")
    assert not holds("outcome=fail && context.tests_passed=true", tests_passed="true")


@pytest.mark.covers("AT-79")
def test_clauses_are_looked_at_from_left_to_right_until_one_is_false() -> None:
    asked: list[tuple[str, ...]] = []

    def resolve(path: tuple[str, ...]) -> object:
        asked.append(path)
        return {("outcome",): "success", ("scratch", "a"): "no"}.get(path)

    assert not compile_clauses("outcome=success && a=yes && b=never").evaluate(resolve)
    assert asked == [("outcome",), ("scratch", "a")]


@pytest.mark.covers("AT-80")
def test_text_is_compared_exactly() -> None:
    assert not holds("context.state=Ready", state="ready")
    assert not holds("preferred_label=fix", label="Fix")


@pytest.mark.covers("AT-82")
def test_the_preferred_label_is_read() -> None:
    assert holds("preferred_label=Fix", label="Fix")
    assert holds("preferred_label!=Fix")


@pytest.mark.covers("AT-83", "AT-84", "AT-A19")
def test_a_context_key_is_looked_up_with_its_prefix_and_then_without() -> None:
    assert holds("context.human.gate.selected=A", human__gate__selected="A")
    assert holds("context.x=whole", context__x="whole", x="bare")
    assert holds("context.x=bare", x="bare")
    assert holds("context.x=bare", context__x=None, x="bare")


@pytest.mark.covers("AT-85", "AT-A20")
def test_a_missing_key_is_the_empty_text() -> None:
    assert not holds("context.gone=x")
    assert holds("context.gone!=x")
    assert holds('context.gone=""')


@pytest.mark.covers("AT-86", "AT-87")
@pytest.mark.parametrize("text", ["", "  ", "&&", "outcome=success && ", " && outcome=success"])
def test_empty_conditions_and_clauses_say_nothing(text: str) -> None:
    assert holds(text)
    assert problems_of(text) == []


@pytest.mark.covers("AT-88")
def test_a_quoted_literal_is_unescaped() -> None:
    assert holds(r'context.said="a \"b\"\n\\c"', said='a "b"\n\\c')
    assert holds('context.said="a && b"', said="a && b")
    assert holds('context.said="x || y"', said="x || y")
    assert problems_of('context.said="x || y > z"') == []


@pytest.mark.covers("AT-89")
def test_spaces_around_operators_are_nothing() -> None:
    assert holds("  outcome  =  success&&context.x !=  1 ", x="2")


@pytest.mark.covers("AT-90", "AT-A19")
@pytest.mark.parametrize(
    ("value", "expected"),
    [("yes", True), (True, True), (3, True), ("", False), (None, False), (False, False), ("false", False),
     (0, False), ("0", False)],
)  # fmt: skip
def test_a_bare_key_asks_whether_there_is_something(value: object, expected: bool) -> None:
    assert holds("context.flag", flag=value) is expected
    assert holds("flag", flag=value) is expected


@pytest.mark.covers("AT-91")
def test_numbers_and_booleans_are_compared_as_text() -> None:
    assert holds("context.n=3", n=3)
    assert holds("context.n=3", n="3")
    assert not holds("context.n=3.0", n=3)
    assert holds("context.ok=true", ok=True)
    assert not holds("context.ok=True", ok=True)
    assert holds('context.list="[1, 2]"', list=[1, 2])


@pytest.mark.covers("AT-92", "AT-A19")
def test_a_key_without_prefix_is_looked_up_in_the_context() -> None:
    assert holds("tool_stdout=done", tool_stdout="done")
    assert not holds("tool_stdout=done")


@pytest.mark.covers("AT-A20")
def test_the_first_operator_splits_and_the_literal_keeps_the_rest() -> None:
    assert holds("context.url=http://h/?a=b", url="http://h/?a=b")
    assert holds("context.x=a!=b", x="a!=b")
    assert holds("context.x!=a=b", x="a")


@pytest.mark.covers("AT-A16")
def test_an_outcome_that_no_dialect_knows_is_compared_raw() -> None:
    assert holds("outcome=needs_dod", outcome="needs_dod")
    assert holds("outcome=skip", outcome="skip")
    assert not holds("outcome=Needs_Dod", outcome="needs_dod")
    assert not holds("outcome=success", outcome="needs_dod")


@pytest.mark.covers("AT-A17")
@pytest.mark.parametrize(
    ("written", "status"),
    [("SUCCESS", "success"), ("succeeded", "success"), ("Failed", "fail"), ("FAIL", "fail"),
     ("partially_succeeded", "partial_success"), ("PARTIAL_SUCCESS", "partial_success"), ("Retry", "retry")],
)  # fmt: skip
def test_outcomes_of_other_dialects_are_aliases(written: str, status: str) -> None:
    assert holds(f"outcome={written}", outcome=status)
    assert holds(f"context.outcome={written}", outcome=status)
    assert not holds(f"outcome!={written}", outcome=status)
    assert not holds(f"context.word={written}", word=status)


@pytest.mark.covers("AT-45", "AT-93")
@pytest.mark.parametrize(
    ("text", "operator", "column"),
    [
        ("outcome=success || outcome=fail", "||", 17),
        ("context.n > 3", ">", 11),
        ("context.n<=3", "<=", 10),
        ("context.log contains error", "contains", 13),
        ("outcome==success", "==", 8),
        ("context.log matches x", "matches", 13),
        ("outcome=fail && !context.x", "!", 17),
        ("outcome=success and context.x=1", "and", 17),
        ("outcome=a & context.x=1", "&", 11),
        ("(outcome=a)", "(", 1),
        ("context.x=a>b", ">", 12),
    ],
)
def test_an_operator_that_conditions_do_not_know_is_named_with_its_column(
    text: str, operator: str, column: int
) -> None:
    message, where = only_problem(text)
    assert operator in message
    assert where == column


@pytest.mark.covers("AT-45")
@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ("=success", "key is missing", 1),
        ("outcome=", "literal is missing", 9),
        ("outcome=fail && context.x!= ", "literal is missing", 28),
        ('context.x="open', "not closed", 11),
        ('context.x="a" b', "unexpected text after the literal: b", 14),
        ("preferred_label='Fix'", "quotes", 17),
        ("con$text=1", "is not a key", 1),
        ("outcome=" + "x" * 20_000, "the maximum is", 10_001),
    ],
)
def test_what_is_missing_is_said_with_its_column(text: str, says: str, column: int) -> None:
    message, where = only_problem(text)
    assert says in message
    assert where == column
    with pytest.raises(ExpressionError, match=f"column {column}"):
        compile_clauses(text)


@pytest.mark.covers("AT-93")
def test_extended_conditions_know_alternatives_numbers_and_contains() -> None:
    text = "outcome=fail || context.n > 2 && context.log contains err"
    assert problems_of(text, extended=True) == []
    assert holds(text, outcome="fail")
    assert holds(text, n="3", log="an error")
    assert not holds(text, n="2", log="an error")
    assert not holds("context.n < 5", n="many")
    assert holds("context.tags contains b", tags=["a", "b"])
    assert not holds("context.tags contains b", tags=["bb"])
    assert only_problem("outcome=fail ||", extended=True)[1] == 16
    assert only_problem("|| outcome=fail", extended=True)[1] == 1


@given(st.text(alphabet="ab.=!&|<> \"\\'()", max_size=30))
def test_any_text_is_a_condition_or_has_a_problem_within_it(text: str) -> None:
    problems = problems_of(text, extended=True)
    assert all(1 <= problem.column <= len(text) + 1 for problem in problems)
    if problems:
        with pytest.raises(ExpressionError):
            compile_clauses(text)
    else:
        assert compile_clauses(str(compile_clauses(text))) == compile_clauses(text)


KEYS = st.from_regex(r"[a-z_]{1,5}(\.[a-z]{1,4}){0,2}", fullmatch=True)


@given(st.lists(st.tuples(KEYS, st.sampled_from(["=", "!="]), st.text(max_size=12)), min_size=1, max_size=4))
def test_a_condition_that_is_written_out_is_read_as_the_same(clauses: list[tuple[str, str, str]]) -> None:
    made = Clauses("", (tuple(Clause(*each) for each in clauses),))
    assert compile_clauses(str(made)) == made
