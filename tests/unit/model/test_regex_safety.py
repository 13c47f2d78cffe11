from __future__ import annotations

import time

import pytest

from holdfast.holds.forms.json_schema import problems_in
from holdfast.model.checks import regex_safety
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.checks.regex_safety import MAX_TEXT

# Seconds of processor time: a match that is not given up takes hours.
ENOUGH = 30

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
# The engine of `regex` is quick on the others.
FOUND_WHEN_WRITTEN = [
    r"(a+)+$",
    r"(a|aa)+$",
    r"(x+x+)+y",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(a+){30}b",
    r"(a{1,3}){1,9}b",
    r"^(a|a){30}b",
    "^" + "(a|a)" * 30 + "b",
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
def test_pattern_that_could_take_for_ever_is_given_up_or_quick_on_the_longest_text(pattern: str) -> None:
    begun = time.process_time()
    for part in ("a", "aa", "ab", "x", "a-", "1-", "é-", "Aa"):
        problems_in((part * 1_000)[:999] + "!", {"pattern": pattern})
    assert time.process_time() - begun < ENOUGH


@pytest.mark.parametrize("pattern", FOUND_WHEN_WRITTEN)
@pytest.mark.covers("PLAIN-LIB-02")
def test_pattern_that_takes_too_long_is_a_fault_of_the_schema(pattern: str) -> None:
    (fault,) = schema_faults({"type": "object", "properties": {"name": {"pattern": pattern}}})
    assert fault.startswith("schema.properties.name.pattern: ")
    assert "takes too long on a text such as" in fault
    assert problems_in({"name": "a"}, {"properties": {"name": {"pattern": pattern}}}), (
        "nothing passes unchecked"
    )


@pytest.mark.parametrize("pattern", HARMLESS)
def test_ordinary_pattern_is_fine_and_quick_on_the_longest_text(pattern: str) -> None:
    assert schema_faults({"pattern": pattern}) == []
    begun = time.process_time()
    for part in ("a", "a-", "1", "1.", "foo", "AB1;", 'x\\"', "a b;"):
        problems_in((part * MAX_TEXT)[: MAX_TEXT - 1] + "!", {"pattern": pattern})
    assert time.process_time() - begun < ENOUGH


@pytest.mark.covers("HOLD-SEC-15")
@pytest.mark.parametrize("pattern", ["^a*$", "a*", ".*x.*", "^.*x.*y.*$", ".*x.*y.*z.*", ".*a.*b.*c.*d.*"])
def test_text_with_a_pattern_has_a_limit_and_so_has_the_time_of_its_check(pattern: str) -> None:
    schema = {"pattern": pattern}
    assert "has at most 1000" in problems_in("x" * (MAX_TEXT + 1), schema)[0]
    begun = time.process_time()
    problems_in("x" * MAX_TEXT, schema)
    problems_in("y" * MAX_TEXT, schema)
    assert time.process_time() - begun < ENOUGH


@pytest.mark.covers("HOLD-SEC-15")
def test_answer_is_refused_when_its_check_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the texts of the definition did not find."""
    monkeypatch.setattr(regex_safety, "_probes", lambda _pattern: iter(()))
    regex_safety._problem.cache_clear()
    (problem,) = problems_in("a" * 100 + "!", {"pattern": r"^(a|a){90}b"})
    regex_safety._problem.cache_clear()
    assert "cannot be checked: the pattern ^(a|a){90}b takes too long on it" in problem


@pytest.mark.covers("HOLD-SEC-15", "HOLD-BAD-02")
def test_pattern_is_a_fault_of_the_schema_when_it_is_too_long() -> None:
    (fault,) = schema_faults({"pattern": "a" * 501})
    assert "a pattern has at most 500" in fault


@pytest.mark.covers("HOLD-SEC-15")
@pytest.mark.parametrize(
    "pattern",
    [
        "(a{1000000}){1000000}",
        "a{1000000}",
        "a{10001}",
        "a{1,10001}",
        "a{10001,}",
        "a{,10001}",
        "(a{101}){100}",
        "(?:(?:(?:a{10}){10}){10}){11}",
        "(?:x|(?:a{101})){100}",
        r"([(]{101}\)){100}",
        "([]a(]{101}){100}",
        "(a{101})?{100}",
        "a{99999999999999999999}",
        "(?x)(a{1 0 1}) {100}",
        "(?i-x:a{3})",
        "(?V1)(a{101}[[b](]){100}",
        "(a{101})(?#c){100}",
        "a{5001}b{5001}",
        "(a{101}{100}",
    ],
)
def test_pattern_that_repeats_too_much_is_refused_before_it_is_compiled(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    monkeypatch.setattr("regex.compile", compiled.append)
    (fault,) = schema_faults({"pattern": pattern})
    assert "repeat" in fault
    assert not compiled


@pytest.mark.parametrize(
    "pattern",
    ["a{10000}", "(a{100}){100}", r"\{1000000}", "[{1000000}]", "{}", "a{,}", "(?:a{5000}b{4000}){1}"],
)
def test_pattern_within_the_limit_of_repeats_is_fine(pattern: str) -> None:
    assert schema_faults({"pattern": pattern}) == []


def test_patterns_that_were_checked_are_kept_up_to_a_limit() -> None:
    for cache in (regex_safety._problem, regex_safety._compiled):
        assert cache.cache_info().maxsize == 500
