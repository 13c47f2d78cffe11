"""Converts the request of a person or a program to a plan. Each error is one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from cronsim import CronSim, CronSimError

from holdfast.errors import InputError
from holdfast.runs.create import check_options
from holdfast.runs.schedules.cron import instants, upcoming, zone_info
from holdfast.runs.schedules.schedule import MISSED, OVERLAP, SchedulePlan
from holdfast.types.clock import MICROS, micros, require_moment, to_datetime
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.text import clean_text, require_text

Length = str | int | float | timedelta
Moment = str | datetime

SHORTEST: Final = MICROS
LONGEST_NAME: Final = 100
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS: Final = ("minute", "hour", "day of the month", "month", "day of the week")
_ANY: Final = ["*"] * 5
_RUN_OPTIONS: Final = ("lane", "priority", "thread", "instance_key", "deployment", "mode")
_EXAMPLES: Final = 'Examples: "0 9 * * mon-fri", "*/15 * * * *", "0 0 1 * *", @daily.'


def require_name(name: Any) -> str:
    text = require_text(name, "a schedule's name")
    if not _NAME.fullmatch(text) or len(text) > LONGEST_NAME:
        raise InputError(
            f"{clean_text(repr(text), 120)} is not a valid name for a schedule.",
            hint=f"It has letters, digits and . _ / -, begins with one of the first two, and has at most "
            f"{LONGEST_NAME} characters.",
        )
    return text


def make_plan(
    now: int,
    *,
    cron: str | None = None,
    every: Length | None = None,
    at: Moment | None = None,
    zone: str = "UTC",
    anchor: Moment | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    jitter: Length | None = None,
    missed: str = "last",
    grace: Length = "1m",
    overlap: str | None = None,
    input: Any = None,  # noqa: A002
    stamp: str | None = None,
    **options: Any,
) -> SchedulePlan:
    """Raises InputError. `overlap` None: `wait` if all missed instants are caught up, else `skip`."""
    _one_of(cron, every, at)
    zone_info(require_text(zone, "zone"))
    plan = SchedulePlan(
        cron="" if cron is None else _cron(cron),
        every=0 if every is None else _every(every),
        at=None if at is None else moment_for(at, "at", zone),
        zone=zone,
        anchor=0 if anchor is None else moment_for(anchor, "anchor", zone),
        start=None if start is None else moment_for(start, "start", zone),
        end=None if end is None else moment_for(end, "end", zone),
        jitter=0 if jitter is None else _length(jitter, "jitter"),
        missed=_word(missed, "missed", MISSED),
        grace=_length(grace, "grace"),
        overlap=_overlap(overlap, missed),
        input=input,
        stamp=stamp or "",
        options=_options(options),
    )
    _require_sense(plan, now, anchored=anchor is not None)
    return plan


def _one_of(cron: Any, every: Any, at: Any) -> None:
    given = [name for name, value in (("cron", cron), ("every", every), ("at", at)) if value is not None]
    if len(given) != 1:
        what = " and ".join(given) + " are given" if given else "no time is given"
        raise InputError(
            f"a schedule has one of cron, every and at, and {what}.",
            hint='Examples: cron "0 9 * * mon-fri", every 15m, at 2027-01-01T09:00.',
        )


def _cron(text: Any) -> str:
    whole = require_text(text, "cron").strip()
    whole = _ALIASES.get(whole.lower(), whole)
    parts = whole.split()
    if len(parts) != len(_FIELDS):
        raise InputError(
            f"cron {clean_text(repr(whole), 120)} does not have five fields: {', '.join(_FIELDS)}.",
            hint=f"{_EXAMPLES} Names such as {', '.join(list(_ALIASES)[:3])} work too.",
        )
    for place, (name, part) in enumerate(zip(_FIELDS, parts, strict=True)):
        if not _reads([*_ANY[:place], part, *_ANY[place + 1 :]]):
            raise InputError(
                f"cron {clean_text(repr(whole), 120)}: {clean_text(repr(part), 60)} is not a valid {name}.",
                hint=_EXAMPLES,
            )
    if not _reads(parts):
        raise InputError(
            f"cron {clean_text(repr(whole), 120)} never fires: its months have no such day.",
            hint=_EXAMPLES,
        )
    return whole


def _reads(parts: list[str]) -> bool:
    try:
        CronSim(" ".join(parts), datetime(2026, 1, 1))  # noqa: DTZ001
    except (CronSimError, ValueError, AssertionError):
        return False
    return True


def _every(given: Length) -> int:
    text = given.strip().removeprefix("every ") if isinstance(given, str) else given
    found = _length(text, "every")
    if found < SHORTEST:
        raise InputError(
            f"every {clean_text(given, 60)} is too short: the shortest interval is one second.",
            hint="For continuous work use one run with a loop.",
        )
    return found


def _length(given: Length, what: str) -> int:
    try:
        return micros(parse_duration(given, allow_zero=True))
    except DurationError as error:
        raise InputError(f"{what}: {error.message}.", hint=error.hint) from None


def moment_for(given: Moment, what: str, zone: str) -> int:
    """A time without an offset is in the schedule's zone."""
    try:
        found = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        raise InputError(
            f"{what} {clean_text(repr(given), 60)} is not a moment.", hint="Write it as 2027-01-31T09:00."
        ) from None
    info = zone_info(zone)
    moment = require_moment(found.replace(tzinfo=info) if found.tzinfo is None else found, what)
    try:
        # The times of a schedule are computed in its zone.
        to_datetime(moment).astimezone(info)
    except OverflowError:
        raise InputError(f"{what} is not in the years 1 to 9999 in {zone}.") from None
    return moment


def _word(given: Any, what: str, words: tuple[str, ...]) -> str:
    if given not in words:
        raise InputError(f"{what} {clean_text(repr(given), 60)} is not one of {', '.join(words)}.")
    return given


def _overlap(given: str | None, missed: str) -> str:
    if given is None:
        return "wait" if missed == "all" else "skip"
    if given == "skip" and missed == "all":
        raise InputError(
            "missed all and overlap skip contradict each other: of all that was missed, the first would run "
            "and the others would be skipped.",
            hint="Take overlap wait (one after the other) or allow (at once).",
        )
    return _word(given, "overlap", OVERLAP)


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(given.keys() - set(_RUN_OPTIONS))
    if unknown:
        raise InputError(
            f"a schedule has no {', '.join(unknown)}.",
            hint=f"Options of a run: {', '.join(_RUN_OPTIONS)}.",
        )
    options = {name: value for name, value in given.items() if value is not None}
    names = {name: options.get(name) for name in ("lane", "thread", "instance_key", "deployment")}
    check_options({**names, "run_id": None}, options.get("priority"), options.get("mode"))
    return options


def _require_sense(plan: SchedulePlan, now: int, *, anchored: bool) -> None:
    if anchored and not plan.every:
        raise InputError("anchor is for every: cron and at determine their instants themselves.")
    if plan.start is not None and plan.end is not None and plan.end < plan.start:
        raise InputError(
            f"the end, {_shown(plan.end)}, is before the start, {_shown(plan.start)}.",
            hint="Change one of the two.",
        )
    ahead = upcoming(plan, now, 5)
    if not ahead:
        raise InputError(
            f"this schedule never fires: it has no instant after {_shown(now)}.", hint=_why(plan, now)
        )
    gap = min((b - a for a, b in pairwise(ahead)), default=None)
    if gap is not None and plan.jitter >= gap:
        raise InputError(
            f"the jitter is as long as the time between two instants ({timedelta(microseconds=gap)}).",
            hint="Take a shorter one.",
        )


def _why(plan: SchedulePlan, now: int) -> str:
    if plan.at is not None:
        return "The time has passed: give a later one."
    if plan.end is not None and plan.end <= now:
        return "Its end has passed: give a later one."
    bare = SchedulePlan(cron=plan.cron, every=plan.every, zone=plan.zone, anchor=plan.anchor)
    first = next(instants(bare, now if plan.start is None else plan.start - 1), None)
    if first is None:
        return "Such a day does not exist."
    return f"Its first instant would be {_shown(first)}, after its end."


def _shown(instant: int) -> str:
    return to_datetime(instant).strftime("%Y-%m-%d %H:%M UTC")
