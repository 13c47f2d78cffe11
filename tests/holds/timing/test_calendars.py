"""Open time is counted on the clocks of a zone, over weekends, holidays and changes to daylight saving."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import SettingsError
from holdfast.holds.timing.calendars import Calendar, zone_of
from holdfast.holds.timing.parse_calendar import calendar_from
from holdfast.types.clock import to_datetime, to_micros
from holdfast.types.duration import BusinessDuration
from tests.holds.timing.places import DAY, HOUR, MINUTE, NINE_TO_FIVE, at, day, days, hours, office_hours

# A zone for each way in which clocks change: north, south, by half an hour, at midnight, never.
ZONES = (
    "Europe/Amsterdam", "America/New_York", "Australia/Sydney", "Australia/Lord_Howe",
    "America/Santiago", "Asia/Kathmandu", "UTC",
)  # fmt: skip


@pytest.mark.covers("HOLD-TIME-04")
@pytest.mark.parametrize(
    ("start", "length", "end"),
    [
        ("2026-01-05T09:00+01:00", hours(4), "2026-01-05T13:00+01:00"),  # Monday morning
        ("2026-01-05T15:00+01:00", hours(4), "2026-01-06T11:00+01:00"),  # over night
        ("2026-01-09T15:00+01:00", hours(4), "2026-01-12T11:00+01:00"),  # over the weekend
        ("2026-01-09T16:00+01:00", hours(1), "2026-01-09T17:00+01:00"),  # closing time is still that day
        ("2026-01-10T03:00+01:00", hours(0.5), "2026-01-12T09:30+01:00"),  # asked on a Saturday night
        ("2026-01-09T15:00+01:00", days(1), "2026-01-12T15:00+01:00"),
        ("2026-01-10T15:00+01:00", days(1), "2026-01-13T09:00+01:00"),
        ("2026-01-09T15:00+01:00", BusinessDuration(1, 3 * HOUR), "2026-01-13T10:00+01:00"),
        ("2026-01-05T15:00+01:00", days(10), "2026-01-19T15:00+01:00"),
    ],
)
def test_a_calendar_counts_open_time_only(start: str, length: BusinessDuration, end: str) -> None:
    assert office_hours().add(at(start), length) == at(end)


@pytest.mark.covers("HOLD-TIME-04")
def test_a_calendar_skips_holidays_and_keeps_exceptions() -> None:
    closed = office_hours(holidays=["2026-12-24", "12-25"], exceptions={"2026-12-28": "10:00-12:00"})

    assert closed.add(at("2026-12-23T16:00+01:00"), hours(2)) == at("2026-12-28T11:00+01:00")
    assert closed.add(at("2027-12-24T16:00+01:00"), hours(2)) == at("2027-12-27T10:00+01:00")
    assert closed.open_on(day("2027-12-25")) == closed.open_on(day("2026-12-24")) == []


@pytest.mark.covers("HOLD-TIME-04")
def test_an_exception_opens_a_holiday_and_a_sunday() -> None:
    calendar = office_hours(
        holidays=["12-25"], exceptions={"2026-12-25": ["09:00-10:00"], "2026-12-27": "10:00-11:00"}
    )

    assert calendar.is_open(at("2026-12-25T09:30+01:00"))
    assert calendar.next_open(at("2026-12-25T10:00+01:00")) == at("2026-12-27T10:00+01:00")


def test_a_day_of_work_ends_with_a_shorter_day() -> None:
    calendar = office_hours(exceptions={"2026-01-12": "10:00-12:00"})

    assert calendar.add(at("2026-01-09T16:00+01:00"), days(1)) == at("2026-01-12T12:00+01:00")
    assert calendar.add(at("2026-01-09T09:00+01:00"), days(1)) == at("2026-01-12T10:00+01:00")


def test_hours_with_a_break_are_counted_around_it() -> None:
    calendar = office_hours(hours={"mon-fri": ["13:00-17:00", "09:00-12:30"]})

    assert calendar.add(at("2026-01-05T12:00+01:00"), hours(1)) == at("2026-01-05T13:30+01:00")
    assert not calendar.is_open(at("2026-01-05T12:30+01:00"))
    assert calendar.is_open(at("2026-01-05T13:00+01:00"))


@pytest.mark.covers("EX-12", "HOLD-TIME-06", "HOLD-PROOF-06")
@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-03-27T16:00+01:00", "2026-03-30T10:00+02:00"),  # clocks go forward on the 29th
        ("2026-10-23T16:00+02:00", "2026-10-26T10:00+01:00"),  # and back on 25 October
    ],
)
def test_a_deadline_is_at_the_same_hour_over_a_change_of_clocks(start: str, end: str) -> None:
    assert office_hours().add(at(start), hours(2)) == at(end)


@pytest.mark.covers("EX-12", "HOLD-TIME-06", "HOLD-PROOF-06")
@pytest.mark.parametrize(
    ("zone", "date", "length"),
    [
        ("Europe/Amsterdam", "2026-03-29", 23 * HOUR),
        ("Europe/Amsterdam", "2026-10-25", 25 * HOUR),
        ("America/New_York", "2026-03-08", 23 * HOUR),
        ("America/New_York", "2026-11-01", 25 * HOUR),
        ("Australia/Lord_Howe", "2026-04-05", 24 * HOUR + 30 * MINUTE),
        ("Australia/Lord_Howe", "2026-10-04", 23 * HOUR + 30 * MINUTE),
        ("America/Santiago", "2026-09-06", 23 * HOUR),  # midnight itself is skipped
        ("Pacific/Apia", "2011-12-30", 0),  # a day that never was
        ("Asia/Kathmandu", "2026-03-29", 24 * HOUR),
    ],
)
def test_a_day_is_as_long_as_its_clocks_make_it(zone: str, date: str, length: int) -> None:
    always = calendar_from("always", {"zone": zone, "hours": {"mon-sun": "00:00-24:00"}})

    assert sum(end - begin for begin, end in always.open_on(day(date))) == length


@pytest.mark.covers("HOLD-PROOF-06")
def test_hours_that_clocks_skip_are_no_time_and_never_negative() -> None:
    night = office_hours(hours={"sun": ["02:00-02:30", "02:30-03:15"]})

    assert night.open_on(day("2026-03-29")) == [(at("2026-03-29T03:00+02:00"), at("2026-03-29T03:15+02:00"))]
    opened = night.open_on(day("2026-10-25"))
    assert opened[0][1] == opened[1][0] == at("2026-10-25T02:30+02:00")


def an_instant() -> st.SearchStrategy[int]:
    first, last = (to_micros(datetime(year, 1, 1, tzinfo=UTC)) for year in (2024, 2031))
    return st.integers(first, last)


@st.composite
def a_calendar(draw: st.DrawFn) -> Calendar:
    marks = st.lists(st.integers(0, 95), min_size=2, max_size=6, unique=True).map(sorted)
    hours: dict[str, Any] = {}
    for name in draw(st.sets(st.sampled_from(("mon", "tue", "wed", "thu", "fri", "sat", "sun")), min_size=1)):
        quarters = draw(marks)
        pairs = zip(quarters[::2], quarters[1::2], strict=False)
        hours[name] = [f"{a // 4:02}:{a % 4 * 15:02}-{b // 4:02}:{b % 4 * 15:02}" for a, b in pairs]
    return calendar_from(
        "drawn", {"zone": draw(st.sampled_from(ZONES)), "hours": hours, "holidays": ["12-25"]}
    )


@pytest.mark.covers("HOLD-TIME-04", "HOLD-PROOF-06")
@given(a_calendar(), an_instant(), st.integers(1, 60 * HOUR))
def test_between_takes_back_what_add_gave(calendar: Calendar, start: int, length: int) -> None:
    end = calendar.add(start, BusinessDuration(micros=length))

    assert calendar.between(start, end) == length
    assert calendar.between(end, start) == -length
    assert calendar.is_open(end - 1)


@given(a_calendar(), an_instant(), st.integers(0, 20 * DAY), st.integers(1, 20 * HOUR))
def test_who_begins_later_ends_no_earlier(calendar: Calendar, start: int, later: int, length: int) -> None:
    spent = BusinessDuration(micros=length)

    assert calendar.add(start, spent) <= calendar.add(start + later, spent)


@pytest.mark.covers("HOLD-TIME-04")
@given(a_calendar(), an_instant(), st.integers(1, 12))
def test_so_many_days_of_work_end_on_the_open_day_that_is_so_many_on(
    calendar: Calendar, start: int, count: int
) -> None:
    def day_of(moment: int) -> date:
        return to_datetime(moment).astimezone(zone_of(calendar.zone)).date()

    end = calendar.add(start, BusinessDuration(days=count))

    first, last = day_of(calendar.next_open(start)), day_of(end)
    between = [first + timedelta(days=ahead + 1) for ahead in range((last - first).days)]
    assert sum(bool(calendar.open_on(each)) for each in between) == count
    assert calendar.open_on(last)[0][0] <= end <= calendar.open_on(last)[-1][1]


@given(a_calendar(), an_instant())
def test_the_next_opening_is_open_and_nothing_before_it(calendar: Calendar, start: int) -> None:
    opening = calendar.next_open(start)

    assert calendar.is_open(opening)
    assert opening == start or calendar.between(start, opening) == 0


@pytest.mark.covers("RE-4")
@pytest.mark.parametrize(
    ("quiet", "moment", "loud"),
    [
        ("22:00-07:00", "2026-01-05T23:30+01:00", "2026-01-06T07:00+01:00"),
        ("22:00-07:00", "2026-01-06T06:59+01:00", "2026-01-06T07:00+01:00"),
        ("22:00-07:00", "2026-01-06T07:00+01:00", "2026-01-06T07:00+01:00"),
        (["12:00-13:00", "13:00-14:00"], "2026-01-06T12:10+01:00", "2026-01-06T14:00+01:00"),
        ("closed", "2026-01-09T17:00+01:00", "2026-01-12T09:00+01:00"),
        ("22:00-07:00", "2026-03-28T23:30+01:00", "2026-03-29T07:00+02:00"),
    ],
)
def test_quiet_hours_end_when_the_clock_says_so(quiet: Any, moment: str, loud: str) -> None:
    assert office_hours(quiet=quiet).next_after_quiet(at(moment)) == at(loud)


@pytest.mark.covers("HOLD-TIME-04")
@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"zone": "Mars/Olympus"}, "zone: unknown time zone 'Mars/Olympus'"),
        ({"zone": "../etc/passwd"}, "unknown time zone '../etc/passwd'"),
        ({"zone": None}, "zone: is missing"),
        ({"hours": None}, "hours: is missing"),
        ({"hours": {"mon": []}}, "hours: no day is ever open"),
        ({"hours": {"moonday": "09:00-17:00"}}, "hours.moonday: not a day"),
        ({"hours": {"fri-mon": "09:00-17:00"}}, "goes backwards"),
        ({"hours": {"mon-fri": "09:00-17:00", "fri": "09:00-12:00"}}, "hours.fri: fri has hours already"),
        ({"hours": {"mon": "9-5"}}, "hours.mon: '9-5' is not a span of hours"),
        ({"hours": {"mon": "22:00-06:00"}}, "ends before it starts"),
        ({"hours": {"mon": "09:00-25:00"}}, "is not a span of hours"),
        ({"hours": {"mon": ["09:00-12:00", "11:00-13:00"]}}, "two spans overlap at 11:00"),
        ({"hours": {"mon": 9}}, "hours.mon: must be text or a list of texts, not a int"),
        ({"hours": [1]}, "hours: must be a table"),
        ({"holidays": ["02-30"]}, "holidays: '02-30' is not a date"),
        ({"holidays": [7]}, "holidays: must be a list of texts"),
        ({"exceptions": {"someday": []}}, "exceptions: 'someday' is not a date"),
        ({"open": "always"}, "open: unknown; known: zone"),
    ],
)
def test_rules_that_make_no_sense_are_named_with_their_place(rules: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        calendar_from("office", {**NINE_TO_FIVE, **rules})

    assert said in str(caught.value)
    assert "calendar 'office'" in str(caught.value)


def test_all_slips_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        calendar_from("office", {"zone": "Nowhere", "hours": {"mon": "x"}, "holidays": ["y"]})

    assert len(caught.value.facts["problems"]) == 3


def test_a_calendar_that_is_never_open_again_says_so() -> None:
    with pytest.raises(SettingsError, match="too little open time"):
        office_hours().add(at("2026-01-05T09:00+01:00"), days(10**30))
