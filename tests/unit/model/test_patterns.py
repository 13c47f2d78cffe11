from __future__ import annotations

import re
import time

import pytest

from holdfast.holds.forms.json_schema import problems_in
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.checks.regex_safety import is_explosive, longest_text

EXPLOSIVE = [
    r"(a+)+$",
    r"^(\w+\s?)*$",
    r"(a|aa)+$",
    r"^\w+([.-]?\w+)*@\w+([.-]?\w+)*(\.\w{2,3})+$",
    r"(.*)*x",
    r"(x+x+)+y",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(?:a?){30}b",
    r"(a+){30}b",
    r"(a{1,3}){1,9}b",
    r"((ab)*)*c",
    r"(?i)(ax|XA|AXB)*d",
    r"(?=(a+)+$)b",
    r"(\d-|[0-9]-7)+x",
    r"(?:\w-|é-é)*!",
    r"(a|a)*b",
    r"^(ab|ab)*c",
    r"^(a(|))*b$",
    r"^(a(b?|c?))*d$",
    r"^(x(a?)*)*y$",
    r"^(a|a){30}b",
    "^" + "a?" * 30 + "a" * 30 + "$",
    "^" + "(a|a)" * 30 + "b",
    "^" + "a{0,9}" * 12 + "b",
    "^" + "(?:ab?|ac?)" * 25 + "$",
]
HARMLESS = [
    r"",
    r"^[a-z0-9]+(-[a-z0-9]+)*$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"^(\d{1,3}\.){3}\d{1,3}$",
    r"([0-9]{2}){3}",
    r"^.*foo.*bar$",
    r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$",
    r"^(foo|bar)+$",
    r"^([a-z]+,)*[a-z]+$",
    r"^(?:[A-Z]{2}\d+;)*$",
    r'^"(?:[^"\\]|\\.)*"$',
    r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    r"^(?P<x>a+)-(?P=x)$",
    r"(a)?(?(1)b|c)",
    r"^https?://\S+$",
    r"^(?:\s*\w+;)*$",
    r"^(a?)*b$",
    r"^(a(?:b|)(?:c|))*d",
    r"^\d{1,3}(,\d{3})*(\.\d{1,2})?$",
    r"^\+?\d{1,3}[- ]?\(?\d{1,4}\)?[- ]?\d{1,4}[- ]?\d{1,9}$",
    r"^([01]?\d|2[0-3]):([0-5]\d)(:([0-5]\d))?$",
    r"^(Mr|Mrs|Ms)\.? [A-Z][a-z]+$",
    r"^(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$",
]


@pytest.mark.parametrize("pattern", EXPLOSIVE)
def test_pattern_that_could_take_for_ever_is_a_fault_of_the_schema(pattern: str) -> None:
    re.compile(pattern)
    assert is_explosive(pattern)
    (fault,) = schema_faults({"type": "object", "properties": {"name": {"pattern": pattern}}})
    assert fault.startswith("schema.properties.name.pattern: ")
    assert "more than one way" in fault
    assert problems_in({"name": "a"}, {"properties": {"name": {"pattern": pattern}}}), (
        "nothing passes unchecked"
    )


@pytest.mark.parametrize("pattern", HARMLESS)
def test_ordinary_pattern_is_fine_and_quick_on_the_longest_text(pattern: str) -> None:
    assert not is_explosive(pattern)
    assert schema_faults({"pattern": pattern}) == []
    longest = longest_text(pattern)
    begun = time.perf_counter()
    for part in ("a", "a-", "1", "1.", "foo", "AB1;", 'x\\"', "a b;"):
        problems_in((part * longest)[: longest - 1] + "!", {"pattern": pattern})
    assert time.perf_counter() - begun < 2


@pytest.mark.covers("HOLD-SEC-15")
@pytest.mark.parametrize(
    ("pattern", "longest"),
    [("^a*$", 1_000), ("a*", 1_000), (".*x.*", 200), ("^.*x.*y.*$", 200), (".*x.*y.*", 60)],
)
def test_text_may_be_shorter_the_more_its_pattern_costs(pattern: str, longest: int) -> None:
    assert longest_text(pattern) == longest
    schema = {"pattern": pattern}
    assert "has at most" in problems_in("x" * (longest + 1), schema)[0]
    begun = time.perf_counter()
    problems_in("x" * longest, schema)
    problems_in("y" * longest, schema)
    assert time.perf_counter() - begun < 1


@pytest.mark.covers("HOLD-SEC-15", "HOLD-BAD-02")
def test_pattern_is_a_fault_of_the_schema_when_no_text_is_short_enough() -> None:
    (fault,) = schema_faults({"pattern": ".*a.*b.*c.*d.*"})
    assert "could share one text" in fault
    (fault,) = schema_faults({"pattern": "a" * 501})
    assert "a pattern has at most 500" in fault
