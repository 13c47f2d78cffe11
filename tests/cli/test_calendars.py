"""`holdfast calendars`: written, shown, and tried out before that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_bad_input import complains

OFFICE = """
zone = "Europe/Amsterdam"
holidays = [2026-04-06, "12-25"]
quiet = "20:00-08:00"

[hours]
mon-fri = ["09:00-12:30", "13:00-17:00"]

[exceptions]
"2026-12-24" = "09:00-12:00"
"""


@pytest.fixture
def calendar_file(cli: Cli) -> str:
    Path("office.toml").write_text(OFFICE)
    return "office.toml"


@pytest.mark.covers("HOLD-TIME-04")
def test_a_calendar_is_tried_out_without_a_store(cli: Cli, calendar_file: str) -> None:
    said = cli("calendars", "check", calendar_file, "--add", "4bh", "--from", "2026-04-03T15:00+02:00")

    assert said.code == 0
    assert "2026-04-07T09:00:00Z (Tue 2026-04-07 11:00 there)" in said.out
    assert "37.5 hours a week" in cli("calendars", "check", calendar_file).out
    local = cli(
        "calendars", "check", calendar_file, "--add", "2bd", "--from", "2026-04-03T15:00", "--json"
    ).json
    assert (local["from"], local["until"]) == ("2026-04-03T13:00:00Z", "2026-04-08T13:00:00Z")


def test_a_calendar_is_set_listed_and_shown(cli: Cli, calendar_file: str) -> None:
    assert "Calendar default is set" in cli("calendars", "set", "default", calendar_file).out
    assert [row["name"] for row in cli("calendars", "list", "--json").items] == ["default"]
    assert "Europe/Amsterdam" in cli("calendars", "list").out
    shown = cli("calendars", "show", "default", "--days", "14", "--json").json
    assert shown["rules"]["holidays"] == ["2026-04-06", "12-25"]
    assert len(shown["days"]) == 14
    assert "09:00-12:30, 13:00-17:00" in cli("calendars", "show", "default", "--days", "14").out
    assert cli("calendars", "list", "--tenant", "acme", "--json").items == []


@pytest.mark.covers("HOLD-BAD-02")
def test_a_calendar_that_makes_no_sense_is_refused_with_every_slip(cli: Cli, calendar_file: str) -> None:
    Path("bad.toml").write_text('zone = "Nowhere"\n[hours]\nmoonday = "9-5"\n')
    complains(cli("calendars", "check", "bad.toml"), 2, "zone: unknown time zone 'Nowhere'", "hours.moonday")
    complains(cli("calendars", "set", "default", "bad.toml"), 2, "hours.moonday")
    Path("worse.toml").write_text("zone = ")
    complains(cli("calendars", "check", "worse.toml"), 2, "neither TOML nor JSON")
    complains(cli("calendars", "check", "none.toml"), 2, "none.toml cannot be read")
    complains(cli("calendars", "check", calendar_file, "--add", "4xh"), 2, "is not a duration")
    complains(cli("calendars", "check", calendar_file, "--add", "4bh", "--from", "noon"), 2, "is not a time")


def test_a_calendar_that_is_not_there_is_named(cli: Cli, calendar_file: str) -> None:
    cli("calendars", "set", "default", calendar_file)
    complains(cli("calendars", "show", "night"), 2, "no calendar 'night'", "calendars list")
