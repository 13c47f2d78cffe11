"""Values side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checkpoint.value_diff import changes, is_same, limit_changes, show, show_text, text_lines

pytestmark = pytest.mark.covers("TOOL-TIME-01")


def told(before: Any, after: Any) -> list[tuple[str, str]]:
    return [(change.path, change.kind) for change in changes(before, after)]


def test_diff_names_each_place_that_was_added_removed_or_changed() -> None:
    before = {"a": 1, "b": {"c": [1, 2], "d": "x"}, "odd key": 0, 7: "seven"}
    after = {"a": 2, "b": {"c": [1, 3], "e": "y"}, "odd key": 1}
    assert told(before, after) == [
        ("a", "changed"),
        ("b.c[1]", "changed"),
        ("b.d", "removed"),
        ("b.e", "added"),
        ('["odd key"]', "changed"),
        ("[7]", "removed"),
    ]


def test_diff_of_long_lists_tells_only_what_lies_between_their_common_ends() -> None:
    before = list(range(1000))
    assert told(before, [*before, "new"]) == [("[1000]", "added")]
    assert told(before, ["new", *before]) == [("[0]", "added")]
    assert told(before, [*before[:500], *before[501:]]) == [("[500]", "removed")]
    assert told([1, {"a": 1}, 3], [1, {"a": 2}, 3]) == [("[1].a", "changed")]
    assert told([0, 0], [0, 0, 0]) == [("[2]", "added")]


@dataclass
class Money:
    cents: int
    currency: str = "EUR"


def test_diff_looks_into_records_and_tells_types_apart() -> None:
    assert told({"m": Money(1)}, {"m": Money(2)}) == [("m.cents", "changed")]
    for one, other in ((1, True), (1, 1.0), ("1", 1), ([], {}), (None, 0), ({"a": 1}, "a")):
        assert told(one, other) == [("", "changed")]
    assert told(float("nan"), float("nan")) == []
    assert told((1, 2), [1, 2]) == []


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(values, values)
def test_diff_is_empty_for_a_value_and_itself_and_turns_round_when_its_sides_do(one: Any, other: Any) -> None:
    assert is_same(one, one)
    turned = {"added": "removed", "removed": "added", "changed": "changed"}
    forth, back = told(one, other), told(other, one)
    assert sorted(forth) == sorted((path, turned[kind]) for path, kind in back)


def test_large_values_are_reported_by_size_and_digest() -> None:
    large = show("x" * 5000)
    assert large["large"] == "text"
    assert large["length"] == 5000
    assert show("x" * 4999 + "y")["sha256"] != large["sha256"]
    assert show({"a": [1, b"\x01"]}) == {"a": [1, "AQ=="]}
    assert show_text("x" * 5000).startswith("<text of 5,000 characters, 5,002 bytes, ")
    assert show_text(["x" * 200]).endswith("…")


def test_changes_beyond_the_limit_are_counted() -> None:
    found = limit_changes(changes({}, {str(i): i for i in range(30)}), 10)
    assert (len(found.shown), found.left_out) == (10, 20)
    assert limit_changes(changes({}, {"a": 1}), 0).left_out == 0


def test_numbers_beyond_json_are_shown_all_the_same() -> None:
    huge = 7**9000
    assert show([huge])["large"] == "list"
    assert show(2**70) == 2**70
    assert show([huge], large=10_000) == [hex(huge)]
    assert told({"n": huge}, {"n": huge + 1}) == [("n", "changed")]


def test_texts_are_compared_by_line_within_limits() -> None:
    (change,) = changes("Dear Ann,\nyes\nBye", "Dear Ann,\nno\nBye")
    assert text_lines(change) == ["@@ -1,3 +1,3 @@", " Dear Ann,", "-yes", "+no", " Bye"]
    assert text_lines(change, 2)[-1] == "… and 3 lines more"
    (short,) = changes("yes", "no")
    (huge,) = changes("a\n" * 6_000, "b\n" * 6_000)
    (other,) = changes({"a": "x\ny"}, {"a": 1})
    assert [text_lines(each) for each in (short, huge, other)] == [[], [], []]
