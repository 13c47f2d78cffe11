"""Lengths of business time, as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.types.duration import (
    BusinessDuration,
    DurationError,
    is_business,
    parse_business,
    parse_duration,
    parse_length,
)
from tests.holds.timing.places import HOUR, MINUTE


@pytest.mark.covers("HOLD-TIME-04")
@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("30bm", BusinessDuration(0, 30 * MINUTE)),
        ("4bh", BusinessDuration(0, 4 * HOUR)),
        ("1.5 bh", BusinessDuration(0, 90 * MINUTE)),
        ("2bd", BusinessDuration(2)),
        (" 1bd 4bh 30bm ", BusinessDuration(1, 4 * HOUR + 30 * MINUTE)),
    ],
)
def test_business_time_is_read(text: str, length: BusinessDuration) -> None:
    assert is_business(text)
    assert parse_business(text) == parse_length(text) == length


@pytest.mark.parametrize("text", ["2d", "90", "PT15M", 5, timedelta(days=2)])
def test_plain_time_stays_what_it_was(text: str | int | timedelta) -> None:
    assert parse_length(text) == parse_duration(text)
    assert not is_business(text)


@pytest.mark.covers("HOLD-BAD-02")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0bh", "it is zero"),
        ("1.5bd", "must be whole numbers"),
        ("1d 4bh", "no other unit"),
        ("4bh 1bd", "large to small"),
        ("1bd 1bd", "large to small"),
        ("4bx", "expected a number and one of bd, bh, bm"),
        ("-4bh", "expected a number"),
        ("9" * 60 + "bh", "1,000 years"),
        ("365001bd", "1,000 years"),
        ("8760001bh", "1,000 years"),
        ("4bh" + " " * 200, "more than 100 characters"),
    ],
)
def test_business_time_that_is_none_says_why(text: str, why: str) -> None:
    with pytest.raises(DurationError, match=why) as caught:
        parse_length(text)
    assert "1bd 4bh" in str(caught.value)


def test_business_time_where_only_plain_time_is_understood_says_so() -> None:
    with pytest.raises(DurationError, match="business time is not accepted here"):
        parse_duration("4bh")
