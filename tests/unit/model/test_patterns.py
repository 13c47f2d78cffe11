from __future__ import annotations

import re
import time

import pytest

from holdfast.holds.schema import MAX_MATCHED, problems_in
from holdfast.model.checks.patterns import is_explosive
from holdfast.model.checks.schemas import schema_faults

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
    begun = time.perf_counter()
    for part in ("a", "a-", "1", "1.", "foo", "AB1;", 'x\\"', "a b;"):
        problems_in((part * MAX_MATCHED)[: MAX_MATCHED - 1] + "!", {"pattern": pattern})
    assert time.perf_counter() - begun < 2
