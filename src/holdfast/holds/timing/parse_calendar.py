"""Parses a calendar in TOML or JSON; reports every problem with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from itertools import pairwise
from typing import Any, cast

import msgspec

from holdfast.errors import SettingsError
from holdfast.holds.timing.calendars import Calendar, Spans, zone_of

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WHEN_CLOSED = "closed"

_KEYS = ("zone", "hours", "holidays", "exceptions", "quiet")
_SPAN = re.compile(r"([0-2][0-9]):([0-5][0-9])\s*-\s*([0-2][0-9]):([0-5][0-9])")
_YEARLY = re.compile(r"([01][0-9])-([0-3][0-9])")
_END_OF_DAY = 24 * 60
_EXAMPLE = 'Write: zone = "Europe/Amsterdam" and [hours] mon-fri = "09:00-17:00".'


def calendar_from(name: str, rules: Any) -> Calendar:
    """Raises SettingsError that lists every problem with its place."""
    reading = _Reading()
    found = reading.calendar(name, rules)
    if reading.problems:
        listed = "".join(f"\n  - {problem}" for problem in reading.problems)
        raise SettingsError(
            f"calendar {name!r} cannot be used:{listed}", hint=_EXAMPLE, problems=reading.problems
        )
    return found


def read_rules(text: bytes, *, name: str) -> Any:
    """The content of a file: JSON if it begins with a brace, else TOML. Raises SettingsError."""
    import tomllib

    try:
        if text.lstrip().startswith(b"{"):
            return msgspec.json.decode(text)
        return tomllib.loads(text.decode())
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"calendar {name!r} is neither TOML nor JSON: {error}.", hint=_EXAMPLE) from error


class _Reading:
    """Continues after a problem, so that all are reported at once."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def calendar(self, name: str, rules: Any) -> Calendar:
        given = self._table(rules, "the calendar")
        self._unknown(given, _KEYS, "")
        quiet = given.get("quiet", ())
        closed = quiet == WHEN_CLOSED
        holidays, yearly = self._holidays(given.get("holidays", ()))
        return Calendar(
            name=name,
            zone=self._zone(given.get("zone")),
            week=self._week(given.get("hours")),
            holidays=holidays,
            yearly=yearly,
            exceptions=self._exceptions(given.get("exceptions", {})),
            quiet=() if closed else self._spans(quiet, "quiet", overnight=True),
            quiet_when_closed=closed,
        )

    def _add_problem(self, problem: str) -> None:
        self.problems.append(problem)

    def _table(self, value: Any, where: str) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            return cast("Mapping[str, Any]", value)
        self._add_problem(f"{where}: must be a table, not {_kind(value)}")
        return {}

    def _unknown(self, given: Iterable[str], known: Iterable[str], where: str) -> None:
        for key in given:
            if key not in known:
                self._add_problem(f"{where}{key}: unknown; known: {', '.join(known)}")

    def _zone(self, value: Any) -> str:
        if not isinstance(value, str):
            self._add_problem(
                "zone: is missing" if value is None else f"zone: must be text, not {_kind(value)}"
            )
            return "UTC"
        try:
            zone_of(value)
        except SettingsError as error:
            self._add_problem(f"zone: {error}")
        return value

    def _week(self, value: Any) -> tuple[Spans, ...]:
        if value is None:
            self._add_problem("hours: is missing")
            return ((),) * 7
        week: list[Spans | None] = [None] * 7
        for key, spans in self._table(value, "hours").items():
            for day in self._days(key):
                if week[day] is not None:
                    self._add_problem(f"hours.{key}: {DAYS[day]} has hours already")
                week[day] = self._spans(spans, f"hours.{key}")
        if not any(week) and not self.problems:
            self._add_problem("hours: no day is ever open")
        return tuple(spans or () for spans in week)

    def _days(self, key: str) -> range:
        first, dash, last = key.lower().partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            self._add_problem(f"hours.{key}: not a day; write mon or mon-fri")
            return range(0)
        begin = DAYS.index(first)
        end = DAYS.index(last) if dash else begin
        if end < begin:
            self._add_problem(f"hours.{key}: goes backwards; the week starts with mon")
        return range(begin, end + 1)

    def _spans(self, value: Any, where: str, *, overnight: bool = False) -> Spans:
        found = sorted(self._span(each, where, overnight) for each in self._texts(value, where))
        for (_, end), (begin, _) in pairwise(found):
            if begin < end:
                self._add_problem(f"{where}: two spans overlap at {begin // 60:02}:{begin % 60:02}")
        return tuple(found)

    def _span(self, text: str, where: str, overnight: bool) -> tuple[int, int]:
        match = _SPAN.fullmatch(text.strip())
        begin, end = (_minutes(match[1], match[2]), _minutes(match[3], match[4])) if match else (0, -1)
        if match is None or max(begin, end) > _END_OF_DAY:
            self._add_problem(
                f"{where}: {text!r} is not a span of hours; write 09:00-17:00, at the latest 24:00"
            )
        elif begin == end or (end < begin and not overnight):
            self._add_problem(
                f"{where}: {text!r} ends before it starts; write 22:00-24:00, and the rest on the next day"
            )
        return begin, end

    def _holidays(self, value: Any) -> tuple[frozenset[date], frozenset[tuple[int, int]]]:
        days: set[date] = set()
        yearly: set[tuple[int, int]] = set()
        for text in self._texts(value, "holidays"):
            month_and_day = _yearly(text)
            if month_and_day is not None:
                yearly.add(month_and_day)
            else:
                days |= self._date(text, "holidays")
        return frozenset(days), frozenset(yearly)

    def _exceptions(self, value: Any) -> dict[date, Spans]:
        found: dict[date, Spans] = {}
        for key, spans in self._table(value, "exceptions").items():
            for day in self._date(key, "exceptions"):
                found[day] = self._spans(spans, f"exceptions.{key}")
        return found

    def _date(self, text: str, where: str) -> set[date]:
        try:
            return {date.fromisoformat(text)}
        except ValueError:
            self._add_problem(f"{where}: {text!r} is not a date; write 2026-12-25, or 12-25 for every year")
            return set()

    def _texts(self, value: Any, where: str) -> list[str]:
        """One text, or a list of them; TOML dates are converted to text."""
        given: list[Any] = [value] if isinstance(value, (str, date)) else value
        if not isinstance(value, (str, date, list, tuple)):
            self._add_problem(f"{where}: must be text or a list of texts, not {_kind(value)}")
            return []
        wrong = [each for each in given if not isinstance(each, (str, date))]
        for each in wrong:
            self._add_problem(f"{where}: must be a list of texts, and has {_kind(each)}")
        return [str(each) for each in given if each not in wrong]


def _minutes(hours: str, minutes: str) -> int:
    return int(hours) * 60 + int(minutes)


def _yearly(text: str) -> tuple[int, int] | None:
    match = _YEARLY.fullmatch(text)
    if match is None:
        return None
    month, day = int(match[1]), int(match[2])
    try:
        date(2024, month, day)  # a leap year: 02-29 is a day
    except ValueError:
        return None
    return month, day


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
