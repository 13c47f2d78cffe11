from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.types.duration import LONGEST, DurationError, format_duration, parse_duration


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (90, timedelta(seconds=90)),
        (0.25, timedelta(milliseconds=250)),
        ("90", timedelta(seconds=90)),
        ("1.5", timedelta(seconds=1.5)),
        (timedelta(hours=2), timedelta(hours=2)),
        ("250ms", timedelta(milliseconds=250)),
        ("45s", timedelta(seconds=45)),
        ("30m", timedelta(minutes=30)),
        ("24h", timedelta(hours=24)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
        ("1h30m", timedelta(minutes=90)),
        (" 1h 30m ", timedelta(minutes=90)),
        ("1d2h3m4s5ms", timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)),
        ("1.5h", timedelta(minutes=90)),
        ("0.1s", timedelta(milliseconds=100)),
        ("PT15M", timedelta(minutes=15)),
        ("P1DT2H", timedelta(days=1, hours=2)),
        ("P2W", timedelta(weeks=2)),
        ("PT0.5S", timedelta(milliseconds=500)),
        ("PT1,5H", timedelta(minutes=90)),
        ("P1D", timedelta(days=1)),
    ],
)
def test_duration_is_read_when_written_in_any_form(value, expected):
    assert parse_duration(value) == expected


@pytest.mark.parametrize(
    ("value", "column"),
    [
        ("", 1),
        ("soon", 1),
        ("30x", 1),
        ("5 minutes", 1),
        ("1h 30", 4),
        (" 1h x", 5),
        ("30M", 1),
        ("1h1h", 1),
        ("30m1h", 1),
        ("1.5h30m", 1),
        ("1 h,", 4),
        ("P", 1),
        ("PT", 1),
        ("P1DT", 1),
        ("P1H", 1),
        ("PT1.5H30M", 1),
        ("٣s", 1),
        (True, 1),
        (float("nan"), 1),
        (float("inf"), 1),
        (float("-inf"), 1),
        (1e30, 1),
        ("9999999999w", 1),
        ("999999999d", 1),
        (timedelta(days=365_000, microseconds=1), 1),
        ("1" * 200, 1),
    ],
)
def test_duration_is_refused_when_unreadable(value, column):
    with pytest.raises(DurationError) as caught:
        parse_duration(value)
    assert caught.value.column == column
    assert caught.value.text == str(value)
    assert "examples" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_duration_is_refused_when_integer_is_too_long_to_print():
    with pytest.raises(DurationError, match="longer than 1,000 years"):
        parse_duration(10**5000)


@pytest.mark.parametrize("value", ["P1Y", "P2M", "P1Y2M3DT4H"])
def test_duration_is_refused_when_length_depends_on_the_calendar(value):
    with pytest.raises(DurationError, match="years and months"):
        parse_duration(value)


@pytest.mark.parametrize("value", [-1, -0.5, "-5", "-30m", "- 1h", timedelta(seconds=-1)])
def test_duration_is_refused_when_negative(value):
    for allow_zero in (False, True):
        with pytest.raises(DurationError, match="negative"):
            parse_duration(value, allow_zero=allow_zero)


@pytest.mark.parametrize("value", [0, 0.0, "0", "0s", "0h0m", "PT0S", timedelta(0), "0.0000001s"])
def test_zero_is_refused_when_not_allowed(value):
    with pytest.raises(DurationError, match="zero"):
        parse_duration(value)
    assert parse_duration(value, allow_zero=True) == timedelta(0)


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(minutes=90), "1h 30m"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(microseconds=1), "0.001ms"),
        (timedelta(seconds=1, microseconds=1500), "1s 1.5ms"),
        (timedelta(weeks=2), "14d"),
        (timedelta(0), "0s"),
        (timedelta(minutes=-90), "-1h 30m"),
        (timedelta(days=1, seconds=5), "1d 5s"),
    ],
)
def test_duration_prints_short_form_when_formatted(duration, expected):
    assert format_duration(duration) == expected


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST))
def test_duration_reads_back_exactly_when_formatted(duration):
    assert parse_duration(format_duration(duration), allow_zero=True) == duration


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(1, 59))
def test_iso_form_equals_short_form_when_parts_are_the_same(days, hours, minutes, seconds):
    iso = parse_duration(f"P{days}DT{hours}H{minutes}M{seconds}S")
    assert iso == parse_duration(f"{days}d{hours}h{minutes}m{seconds}s")
    assert iso == timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


@given(st.text(st.sampled_from("0123456789.,wdhms PT-MHDW"), max_size=12) | st.text(max_size=12))
def test_parser_answers_cleanly_when_text_is_arbitrary(text):
    with contextlib.suppress(DurationError):
        assert parse_duration(text) > timedelta(0)
