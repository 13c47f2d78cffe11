"""Business calendars: opening hours, and durations in open time.

Pure. Instants are microseconds since the epoch; hours are local times of the calendar's zone, so that a
change to or from daylight saving time moves no closing time and loses no open minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo

import msgspec

from holdfast.errors import SettingsError
from holdfast.types.clock import to_datetime, to_micros
from holdfast.types.duration import BusinessDuration

MAX_DAYS = 3_660
"""How far ahead open time is searched. A calendar with less open time is a mistake."""

Spans = tuple[tuple[int, int], ...]
"""Parts of a day, as minutes since its midnight: (540, 1020) is nine to five."""

_DAY = timedelta(days=1)


class Calendar(msgspec.Struct, frozen=True, kw_only=True):
    """Opening hours. An exception takes precedence over a holiday, a holiday over the week."""

    name: str
    zone: str
    week: tuple[Spans, ...]  # seven, from Monday
    holidays: frozenset[date] = frozenset()
    yearly: frozenset[tuple[int, int]] = frozenset()  # (month, day)
    exceptions: dict[date, Spans] = {}
    quiet: Spans = ()  # without reminders; a span may cross midnight
    quiet_when_closed: bool = False

    def add(self, start: int, length: BusinessDuration) -> int:
        """The instant after this much open time. Days come first: the same time of day that many open days
        later, at the latest when that day closes. Raises SettingsError if the calendar has too little open
        time."""
        at = self._days_on(self.next_open(start), length.days) if length.days else start
        left = length.micros
        for begin, end in self._open_from(at) if left else ():
            if end - begin >= left:
                return begin + left
            left -= end - begin
        return at

    def between(self, start: int, end: int) -> int:
        """Microseconds of open time between two instants; negative if the end comes first."""
        if end < start:
            return -self.between(end, start)
        total, day, last = 0, self._local(start).date(), self._local(end).date()
        while day <= last:
            total += sum(max(0, min(b, end) - max(a, start)) for a, b in self.open_on(day))
            day += _DAY
        return total

    def is_open(self, at: int) -> bool:
        return any(begin <= at < end for begin, end in self.open_on(self._local(at).date()))

    def next_open(self, at: int) -> int:
        """The next open instant; `at` itself if it is open."""
        return next(self._open_from(at))[0]

    def next_after_quiet(self, at: int) -> int:
        """The first instant from `at` on outside of quiet hours."""
        if self.quiet_when_closed:
            return self.next_open(at)
        for _ in self.quiet:
            at = self._end_of_quiet(at)
        return at

    def open_on(self, day: date) -> list[tuple[int, int]]:
        """The open spans of that day as instants. Local times that are skipped do not count."""
        midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - as the clocks there show it
        zone = zone_of(self.zone)
        found = [
            tuple(instant(midnight + timedelta(minutes=minute), zone) for minute in span)
            for span in self._hours(day)
        ]
        return [(begin, end) for begin, end in found if begin < end]

    def _hours(self, day: date) -> Spans:
        if day in self.exceptions:
            return self.exceptions[day]
        if day in self.holidays or (day.month, day.day) in self.yearly:
            return ()
        return self.week[day.weekday()]

    def _open_from(self, at: int) -> Iterator[tuple[int, int]]:
        """Open spans from `at` on."""
        first = self._local(at).date()
        for ahead in range(MAX_DAYS):
            for begin, end in self.open_on(first + ahead * _DAY):
                if end > at:
                    yield max(begin, at), end
        raise SettingsError(
            f"calendar {self.name!r} has too little open time in the ten years from {first}.",
            hint="Add weekly hours, or use a shorter duration.",
        )

    def _days_on(self, at: int, days: int) -> int:
        """From an open moment."""
        wall, left = self._local(at), days
        for begin, _ in self._open_from(at):
            day = self._local(begin).date()
            if day <= wall.date():
                continue
            left, wall = left - 1, datetime.combine(day, wall.time())
            if not left:
                break
        hours = self.open_on(wall.date())
        return max(hours[0][0], min(instant(wall, zone_of(self.zone)), hours[-1][1]))

    def _end_of_quiet(self, at: int) -> int:
        wall = self._local(at)
        midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
        minute = wall.hour * 60 + wall.minute
        for begin, end in self.quiet:
            within = begin <= minute < end if begin < end else not end <= minute < begin
            if within:
                until = midnight + timedelta(minutes=end) + (_DAY if end <= minute else timedelta())
                return max(at, instant(until, zone_of(self.zone)))
        return at

    def _local(self, at: int) -> datetime:
        """The local time there, as a naive datetime."""
        return _shown(at, zone_of(self.zone))


def zone_of(name: str) -> tzinfo:
    """Raises SettingsError for a name that is not in this machine's time zone data."""
    if name == "UTC":
        return UTC
    # Imported here because it takes milliseconds, and most programs have no calendar.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SettingsError(
            f"unknown time zone {name!r}.",
            hint="Write it as Europe/Amsterdam. If the machine has no time zone data: pip install tzdata.",
        ) from error


def instant(wall: datetime, zone: tzinfo) -> int:
    """The first instant with this local time; if that is skipped, the instant of the clock change.

    Later local times never give earlier instants, so that the spans of a day do not overlap."""
    at = to_micros(wall.replace(tzinfo=zone, fold=0))
    if _shown(at, zone) == wall:
        return at
    before = to_micros(wall.replace(tzinfo=zone, fold=1))
    while at - before > 1:
        middle = (before + at) // 2
        if _shown(middle, zone) < wall:
            before = middle
        else:
            at = middle
    return at


def _shown(at: int, zone: tzinfo) -> datetime:
    return to_datetime(at).astimezone(zone).replace(tzinfo=None)
