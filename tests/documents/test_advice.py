"""What a problem advises for the mistakes that are made most often."""

from __future__ import annotations

import pytest

from tests.documents.rule_examples import GOOD, flow, hold, review
from tests.documents.run import problems

REDUCER = flow(head="variables:\n  k: {reducer: often}")


@pytest.mark.covers("CV-12")
@pytest.mark.parametrize(
    ("text", "rule", "advice"),
    [
        (GOOD.replace("name: sample", "name: {{sample}}"), "key-text", "quote a placeholder"),
        (GOOD.replace("name: sample", "name: sample\ndescription: Pay: now"), "yaml", "quote a text"),
        (GOOD.replace("name: sample", "name: sample\n\tdescription: x"), "yaml", "spaces"),
        (GOOD.replace("name: sample", "name: sample\n description: x"), "yaml", "indentation"),
        (GOOD.replace("name: sample", "name: sample\ndescription: @x"), "yaml", "quote a text"),
        (flow("{id: m, type: SET, config: {values: {x: 1}}}"), "type-unknown", "did you mean 'set'?"),
        (hold("assignee: gruop:support"), "assignee", "did you mean 'group'?"),
        (hold("assignee: squad:support"), "assignee", "write group:support"),
    ],
)
def test_advice_says_what_to_change(text: str, rule: str, advice: str) -> None:
    [found] = [each for each in problems(text) if each.rule == rule]
    assert advice in found.fix


def test_problem_of_a_variable_stands_at_the_variable() -> None:
    [found] = problems(REDUCER)
    assert (found.rule, found.field) == ("reducer", "variables.k.reducer")
    assert REDUCER.splitlines()[(found.line or 0) - 1].strip() == "k: {reducer: often}"


def test_key_that_no_section_has_is_named() -> None:
    sections = "sections: [{type: context, fields: x}, {type: decision, options: [ok]}]"
    [found] = problems(review(f"queue: q, {sections}"))
    assert found.message == "'fields' is not part of a section of type context"
