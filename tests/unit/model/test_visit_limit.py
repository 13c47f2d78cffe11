"""The limit of values that the expressions and templates of one node visit."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import NotComparableError
from holdfast.model.expressions import Resolve, compile_expr, partition_resolver, visit_limit
from holdfast.model.expressions.visit_limit import MAX_VISITS, counted, visit
from holdfast.model.template import TemplateRenderError, compile_template

MANY = 50_000


def reading(**values: Any) -> Resolve:
    return partition_resolver({"scratch": values})


class Item:
    """Counts how often one of its kind is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Item.compared += 1
        return self is other

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "text",
    [
        " && ".join(["x == y"] * 200),
        " || ".join(["x != y"] * 200),
        " || ".join(["z in x"] * 200),
        " && ".join(["z not in x"] * 200),
        " && ".join(["x === y"] * 200),
        "z in [" + ", ".join(["x"] * 200) + "] || x in [" + ", ".join(["w"] * 200) + "]",
        " && ".join(["nested == copy"] * 200),
        " && ".join(["{0} == {0}".format("mapping")] * 200),
    ],
)
def test_condition_ends_when_it_has_compared_too_many_values(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit_limit, "MAX_VISITS", 100_000)
    item, many = Item(), 5_000
    values: dict[str, Any] = {
        "x": [item] * many,
        "y": [item] * many,
        "w": [*[item] * (many - 1), Item()],
        "z": Item(),
        "nested": [[item] * 500] * 10,
        "copy": [[item] * 500] * 10,
        "mapping": {str(i): item for i in range(many)},
    }
    Item.compared = 0
    with pytest.raises(NotComparableError, match="compare more than 100,000 values"):
        compile_expr(text).evaluate(reading(**values))
    assert Item.compared <= 101_000


def test_values_are_counted_over_all_conditions_of_a_node_and_from_the_start_for_the_next() -> None:
    same = compile_expr("x == y")
    for _ in range(2):
        resolve = reading(x=[0] * MANY, y=[0] * MANY)
        for _ in range(MAX_VISITS // MANY):
            assert same.evaluate(resolve) is True
        with pytest.raises(NotComparableError):
            same.evaluate(resolve)
    visit(10 * MAX_VISITS)  # outside of a condition there is no limit


def test_only_what_is_visited_is_counted() -> None:
    """Lists that differ at their beginning or in length, and what is passed on as it is."""
    resolve = reading(x=[1, *[0] * MANY], y=[2, *[0] * MANY], short=[0], n=5)
    text = " || ".join(["x == y", "x == short", "exists(z)", "n > 7", "2 in y && n > 7"] * 100)
    assert compile_expr(text).evaluate(resolve) is False
    template = compile_template("{{x | length}}{{x | first}}" * 1_000)
    assert len(str(template.render(resolve).value)) == 6_000


def test_long_text_that_is_searched_counts() -> None:
    resolve = reading(text="a" * 1_000_000)
    with pytest.raises(NotComparableError):
        compile_expr(" || ".join(["'ab' in text"] * 100)).evaluate(resolve)


@pytest.mark.parametrize(
    "filters", ["join('')|length", "json|length", "upper|length", "truncate(1)", "trim|first"]
)
def test_template_ends_when_it_has_read_too_many_values(filters: str) -> None:
    resolve = reading(x=["a"] * MANY)
    template = compile_template(f"{{{{x|{filters}}}}} " * 30)
    assert template.render(resolve)
    with pytest.raises(TemplateRenderError, match="read more than 2,000,000 values"):
        template.render(resolve)


def test_long_texts_of_a_node_count_together() -> None:
    resolve = reading(x="a" * 1_000_000)
    assert compile_template("{{x}}" * 40).render(resolve)
    with pytest.raises(TemplateRenderError, match="read more than 2,000,000 values"):
        compile_template("{{x}} " * 40).render(resolve)


def test_relation_that_fails_leaves_no_limit_behind() -> None:
    def failing(_left: object, _right: object) -> bool:
        raise KeyError

    with pytest.raises(KeyError):
        counted(failing, 1, 2, reading())
    visit(10 * MAX_VISITS)


NESTED = {"x": [[[1] * MANY]], "m": {"a": {"b": ["text"] * MANY}}}


@pytest.mark.parametrize(
    "text",
    [
        "{{x | json | length}}",
        "{{m | json | length}}",
        "{{x | truncate(1)}}",
        "{{x | upper | first}}",
        "{{m | trim | last}}",
        "{{x | join | length}}",
        "{{x | first | json | first}}",
    ],
)
def test_values_inside_of_others_count_when_a_filter_reads_them(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of the text does not say how much was read for it."""
    monkeypatch.setattr("holdfast.model.expressions.visit_limit.MAX_VISITS", 20_000)
    resolve = reading(**NESTED)
    compile_template(text).render(resolve)
    often = compile_template(text * 20)
    with pytest.raises(TemplateRenderError, match="the texts of the node read more than"):
        often.render(resolve)


def test_long_texts_between_many_items_are_refused_before_they_are_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.model.expressions.visit_limit.MAX_VISITS", 100_000)
    monkeypatch.setattr("holdfast.model.template_filters.as_text", lambda _: pytest.fail("it is joined"))
    template = compile_template(f"{{{{x | join('{'-' * 99}') | length}}}}")
    with pytest.raises(TemplateRenderError, match="the texts of the node read more than"):
        template.render(reading(x=[None] * MANY))


def test_filters_that_read_nothing_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.model.expressions.visit_limit.MAX_VISITS", 0)
    assert compile_template("{{x | first | first | length}}").render(reading(**NESTED)).value == MANY
