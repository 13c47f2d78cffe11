"""When a schedule fires: time zones and their changes, anchors, jitter. What means nothing is refused."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from holdfast.errors import InputError
from holdfast.runs.schedules.cron import fires_at, local, newest, upcoming
from holdfast.runs.schedules.parse_schedule import make_plan, require_name
from holdfast.runs.schedules.schedule import SchedulePlan
from holdfast.types.clock import MICROS, to_micros

pytestmark = pytest.mark.covers("FLEET-WORK-10")

BERLIN = "Europe/Berlin"
HOUR = 3600 * MICROS


def at(text: str, zone: str = BERLIN, *, fold: int = 0) -> int:
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold))


NOW = at("2026-01-01T00:00")


def shown(plan: SchedulePlan, after: int, count: int) -> list[str]:
    return [f"{local(instant, plan.zone):%d. %H:%M %z}" for instant in upcoming(plan, after, count)]


def cron(text: str, zone: str = BERLIN, **more: Any) -> SchedulePlan:
    return make_plan(NOW, cron=text, zone=zone, **more)


def test_fixed_hour_fires_once_on_the_day_the_clocks_go_back() -> None:
    plan = cron("30 2 * * *")
    assert shown(plan, at("2026-10-24T12:00"), 3) == ["25. 02:30 +0200", "26. 02:30 +0100", "27. 02:30 +0100"]
    # Also for whoever begins to look between the two half past twos, or just after the first.
    for after in (at("2026-10-25T02:30"), at("2026-10-25T02:10", fold=1), at("2026-10-25T02:40")):
        assert shown(plan, after, 1) == ["26. 02:30 +0100"]


def test_fixed_hour_that_the_clocks_leap_over_fires_right_after_the_gap() -> None:
    assert shown(cron("30 2 * * *"), at("2026-03-28T12:00"), 2) == ["29. 03:00 +0200", "30. 02:30 +0200"]
    assert shown(cron("0,30 2,3 * * *"), at("2026-03-28T12:00"), 3) == [
        "29. 03:00 +0200",
        "29. 03:30 +0200",
        "30. 02:00 +0200",
    ]


def test_what_fires_all_day_long_follows_the_time_that_passes() -> None:
    assert shown(cron("0 * * * *"), at("2026-10-25T01:30"), 3) == [
        "25. 02:00 +0200",
        "25. 02:00 +0100",
        "25. 03:00 +0100",
    ]
    every = make_plan(NOW, every="1h", zone=BERLIN)
    found = upcoming(every, at("2026-10-24T12:00"), 30)
    assert {b - a for a, b in pairwise(found)} == {HOUR}


def test_weekday_morning_is_one_of_its_zone() -> None:
    plan = cron("0 9 * * mon-fri", "America/New_York")
    assert shown(plan, at("2026-03-06T12:00"), 3) == ["06. 09:00 -0500", "09. 09:00 -0400", "10. 09:00 -0400"]


@pytest.mark.parametrize(("alias", "fields"), [("@daily", "0 0 * * *"), ("@HOURLY", "0 * * * *")])
def test_usual_names_of_cron_are_known(alias: str, fields: str) -> None:
    assert cron(alias) == cron(fields)


def test_interval_falls_on_its_anchor() -> None:
    plan = make_plan(NOW, every="7h", anchor="2026-01-05T03:00", zone=BERLIN)
    assert at("2026-01-05T03:00") in upcoming(plan, NOW, 30)
    assert make_plan(NOW, every="every 15m").every == HOUR // 4


def test_jitter_is_the_same_for_every_worker_and_differs_between_instants() -> None:
    plan = make_plan(NOW, every="1h", jitter="10m")
    late = [fires_at(plan, "default", "poll", i) - i for i in upcoming(plan, NOW, 50)]
    assert late == [fires_at(plan, "default", "poll", i) - i for i in upcoming(plan, NOW, 50)]
    assert all(0 <= each <= 600 * MICROS for each in late)
    assert len(set(late)) > 40
    first = upcoming(plan, NOW, 1)[0]
    assert fires_at(plan, "default", "other", first) != fires_at(plan, "default", "poll", first)


def test_newest_of_very_many_is_found_at_once() -> None:
    plan = cron("* * * * *")
    last = at("2026-01-01T12:00")
    assert newest(plan, at("2001-01-01T00:00"), last) == [last]
    assert newest(plan, at("2001-01-01T00:00"), last, 1000)[0] == last - 999 * 60 * MICROS
    yearly = cron("0 0 29 2 *")
    assert newest(yearly, at("1999-01-01T00:00"), last) == [at("2024-02-29T00:00")]
    assert newest(yearly, at("2024-03-01T00:00"), last) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "a schedule has one of cron, every and at, and no time is given"),
        ({"cron": "@daily", "every": "1h"}, "and cron and every are given"),
        ({"cron": "* * * *"}, "does not have five fields: minute, hour, day of the month, month"),
        ({"cron": "0 * * * * *"}, "does not have five fields"),
        ({"cron": "@never"}, "does not have five fields"),
        ({"cron": "61 * * * *"}, "'61' is not a valid minute"),
        ({"cron": "0 24 * * *"}, "'24' is not a valid hour"),
        ({"cron": "0 0 0 * *"}, "'0' is not a valid day of the month"),
        ({"cron": "0 0 * foo *"}, "'foo' is not a valid month"),
        ({"cron": "0 0 * * fri-mon"}, "'fri-mon' is not a valid day of the week"),
        ({"cron": "*/0 * * * *"}, "'\\*/0' is not a valid minute"),
        ({"cron": "0 0 30 2 *"}, "never fires: its months have no such day"),
        ({"cron": 5}, "cron must be text, not int"),
        (
            {"cron": "@daily", "zone": "Europe/Berlim"},
            "'Europe/Berlim' is not a time zone",
        ),
        ({"cron": "@daily", "zone": "../../etc/passwd"}, "is not a time zone that is known here"),
        ({"every": "soon"}, "every: 'soon' is not a duration"),
        ({"every": "500ms"}, "every 500ms is too short: the shortest interval is one second"),
        ({"every": "-5m"}, "is not a duration"),
        ({"at": "tomorrow"}, "at 'tomorrow' is not a moment"),
        ({"at": "2020-01-01"}, "never fires: .* The time has passed"),
        ({"every": "1h", "start": "2027-01-02", "end": "2027-01-01"}, "the end, .* is before the start"),
        ({"every": "1h", "end": "2025-01-01"}, "never fires: .* Its end has passed"),
        ({"cron": "@yearly", "start": "2027-02-01", "end": "2027-03-01"}, "would be 2028-01-01 00:00 UTC"),
        ({"every": "5m", "jitter": "5m"}, "the jitter is as long as the time between two instants"),
        ({"cron": "@daily", "anchor": "2026-01-01"}, "anchor is for every"),
        ({"every": "1h", "missed": "some"}, "missed 'some' is not one of skip, last, all"),
        ({"every": "1h", "overlap": "maybe"}, "overlap 'maybe' is not one of allow, skip, wait, cancel"),
        ({"every": "1h", "missed": "all", "overlap": "skip"}, "missed all and overlap skip contradict"),
        ({"every": "1h", "colour": "red"}, "a schedule has no colour"),
        ({"every": "1h", "priority": "high"}, "priority 'high' is not a whole number"),
        ({"every": "1h", "mode": "fast"}, "mode 'fast' is not one of"),
        ({"every": "1h", "lane": ""}, "lane is empty"),
    ],
)
def test_what_means_nothing_is_refused_in_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make_plan(NOW, **given)


@pytest.mark.parametrize("name", ["", "two words", "-x", "user:dana", "dana@acme", "a" * 101, "naïve"])
def test_name_that_could_be_taken_for_something_else_is_refused(name: str) -> None:
    """A run says `schedule:NAME` of who started it: nobody may be meant by that."""
    with pytest.raises(InputError, match="is not a valid name for a schedule"):
        require_name(name)
