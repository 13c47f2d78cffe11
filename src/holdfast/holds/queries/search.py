"""Search queries for holds: `priority>=high due<2d flow:refund invoice`.

Words with a known name restrict the list; the rest is searched in the prompt and at the beginning of the id.
A word with an unknown name is refused: `text:` searches for it as it is.
AND across the names, OR within each (LI-1).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.errors import InputError
from holdfast.holds.permissions.actor import NO_PEOPLE
from holdfast.holds.permissions.assignees import parse_assignee, person_key
from holdfast.types.clock import micros, to_micros
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.hold import HoldFilter
from holdfast.types.status import HoldStatus
from holdfast.types.terms import PRIORITIES
from holdfast.types.text import require_text

SIGNS: Final = (">=", "<=", ">", "<", ":")
HAS: Final = ("comment",)
TEXT: Final = "text"
DAY: Final = micros(timedelta(days=1))
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NAME: Final = re.compile("[a-z_]{3,20}")
_ANY_NAME: Final = re.compile("[a-z_]{2,20}")
_PLAIN: Final = {"flow": "flow", "type": "type", "tag": "tags", "run": "run", "key": "instance_key"}
WORDS: Final = (
    "status: assignee:me group: role: flow: type: priority>=high due<2d age>1h decided_by:me decided<2d tag: "
    "has:comment text:"
)


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """`has`: conditions that the store cannot filter by, checked for each row. `chips`: the parsed
    conditions."""

    where: HoldFilter = HoldFilter()
    has: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()


def read_query(text: str, *, me: str, now: int) -> Query:
    """`me` replaces `assignee:me`. Raises InputError for an invalid value."""
    reading = _Reading(me, now)
    for word in split_words(require_text(text, "a search")):
        reading.take(word)
    return reading.query()


def split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        # A quote that is not closed yet, or an apostrophe, is taken literally.
        return text.split()


class _Reading:
    def __init__(self, me: str, now: int) -> None:
        self._me = me
        self._now = now
        self._lists: dict[str, list[Any]] = {}
        self._limits: dict[str, Any] = {}
        self._has: list[str] = []
        self._chips: list[str] = []
        self._free: list[str] = []
        self._decides = False

    def take(self, word: str) -> None:
        name, sign, value = parted(word)
        read = _READERS.get(name)
        if read is None or not value:
            require_known_name(word, (*_READERS, TEXT))
            self._free.append(text_of(word) if name == TEXT and value else word)
            return
        with named(word):
            for each in value.split(","):
                read(self, name, sign, each)
        self._chips.append(word)

    def query(self) -> Query:
        text = " ".join(self._free)
        if not self._lists.get("status") and (self._decides or "resolved_by" in self._lists):
            self.add("status", HoldStatus.resolved, HoldStatus.expired)
        fields: dict[str, Any] = {name: tuple(dict.fromkeys(values)) for name, values in self._lists.items()}
        where = HoldFilter(text=text or None, **fields, **self._limits)
        chips = [*self._chips, *([f'text "{text}"'] if text else [])]
        return Query(where=where, has=tuple(self._has), chips=tuple(chips))

    def add(self, field: str, *values: Any) -> None:
        self._lists.setdefault(field, []).extend(values)

    def plain(self, name: str, sign: str, value: str) -> None:
        require_colon(name, sign)
        self.add(_PLAIN[name], value)

    def status(self, name: str, sign: str, value: str) -> None:
        require_colon(name, sign)
        if value == "any":
            self.add("status", *HoldStatus)
            return
        if value not in tuple(HoldStatus):
            raise unknown_value(name, value, (*HoldStatus, "any"))
        self.add("status", HoldStatus(value))

    def assignee(self, name: str, sign: str, value: str) -> None:
        require_colon(name, sign)
        if name != "assignee":
            self.add("assignees", (name, value))
        elif value == "me":
            self.add("assignees", ("user", person_key(self._me)))
        else:
            found = parse_assignee(value)
            self.add("assignees", (found.type, found.value))

    def priority(self, name: str, sign: str, value: str) -> None:
        if value not in PRIORITIES:
            raise unknown_value(name, value, PRIORITIES)
        at = PRIORITIES.index(value)
        kept = {
            ">=": PRIORITIES[at:],
            ">": PRIORITIES[at + 1 :],
            "<=": PRIORITIES[: at + 1],
            "<": PRIORITIES[:at],
        }
        chosen = kept.get(sign, (value,))
        if not chosen:
            raise InputError(
                f"no priority is {sign}{value}.",
                hint=f"From low to high: {', '.join(PRIORITIES)}.",
                reason="none",
                known=PRIORITIES,
            )
        self.add("priority", *chosen)

    def due(self, name: str, sign: str, value: str) -> None:
        """`due<2d`: within two days, or overdue. `due:overdue`: the deadline has passed."""
        if sign == ":" and value == "overdue":
            self._limits["expires_to"] = self._now
            return
        at = self._now + length_of(name, sign, value)
        self._limits["expires_to" if sign.startswith("<") else "expires_from"] = at

    def age(self, name: str, sign: str, value: str) -> None:
        at = self._now - length_of(name, sign, value)
        self._limits["created_from" if sign.startswith("<") else "created_to"] = at

    def decided_by(self, name: str, sign: str, value: str) -> None:
        """A person, or by its id a service, an agent, a rule or Holdfast itself. Groups decide nothing."""
        require_colon(name, sign)
        if value == "me":
            self.add("resolved_by", self._me)
            return
        kind, colon, _ = value.partition(":")
        if colon and f"{kind}:" in NO_PEOPLE:
            self.add("resolved_by", value)
            return
        found = parse_assignee(value)
        if found.type != "user":
            raise InputError(
                f"{name}:{value} is not a person.", hint=f"Write {name}:me or {name}:NAME.", reason="value"
            )
        # An id may have an address as it was typed; searches ignore its case.
        self.add("resolved_by", f"user:{value.removeprefix('user:')}", f"user:{found.value}")

    def decided(self, name: str, sign: str, value: str) -> None:
        """`decided<2d`: in the last two days. `decided:2026-11-18`, `decided>=2026-11-01`: by day, in UTC."""
        self._decides = True
        if _DAY.fullmatch(value) is None:
            at = self._now - length_of(name, sign, value)
            self._limits["resolved_from" if sign.startswith("<") else "resolved_to"] = at
            return
        first = _day_start(name, value)
        if sign in (":", ">=", ">"):
            self._limits["resolved_from"] = first + (DAY if sign == ">" else 0)
        if sign in (":", "<=", "<"):
            self._limits["resolved_to"] = first + (0 if sign == "<" else DAY)

    def having(self, name: str, sign: str, value: str) -> None:
        require_colon(name, sign)
        if value not in HAS:
            raise unknown_value(name, value, HAS)
        self._has.append(value)


_READERS: Final[dict[str, Callable[[_Reading, str, str, str], None]]] = {
    **dict.fromkeys(_PLAIN, _Reading.plain),
    **dict.fromkeys(("assignee", "group", "role"), _Reading.assignee),
    "status": _Reading.status,
    "priority": _Reading.priority,
    "due": _Reading.due,
    "age": _Reading.age,
    "has": _Reading.having,
    "decided_by": _Reading.decided_by,
    "decided": _Reading.decided,
}


def parted(word: str) -> tuple[str, str, str]:
    """(name, sign, value) by the sign that comes first; a longer one wins at the same place."""
    places = [(word.find(sign), -len(sign), sign) for sign in SIGNS if sign in word]
    if not places:
        return "", "", ""
    at, _, sign = min(places)
    return word[:at].lower(), sign, word[at + len(sign) :]


def require_known_name(word: str, known: Sequence[str]) -> None:
    """A word with a name that no condition has is a mistake, and not a text to search for; an address is
    one. Raises InputError."""
    name, _, value = parted(word)
    if name in known or not value or value.startswith("//") or _ANY_NAME.fullmatch(name) is None:
        return
    near, names = near_names(name, known), tuple(sorted(known))
    as_text = f"Write {TEXT}:{word} to search for it as text."
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(names)}. {as_text}"
    raise InputError(
        f"{name} is not a search term.",
        hint=hint,
        reason="name" if near else "unknown",
        known=near or names,
        word=word,
    )


def text_of(word: str) -> str:
    """What `text:VALUE` searches for. Raises InputError for another sign."""
    name, sign, value = parted(word)
    with named(word):
        require_colon(name, sign)
    return value


def near_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The nearest of the known names; short ones must begin alike. Empty if none is near."""
    if _NAME.fullmatch(name) is None:
        return ()
    is_short = len(name) <= 4
    found = {each: _distance(name, each) for each in sorted(known) if not is_short or each[0] == name[0]}
    least = min(found.values(), default=3)
    return tuple(each for each, far in found.items() if far == least <= (1 if is_short else 2) and far > 0)


def _distance(one: str, other: str) -> int:
    """How many letters are wrong, missing, added or swapped with the next."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


@contextmanager
def named(word: str) -> Generator[None]:
    """An error says which word of the search is wrong (`word`) and in which way (`reason`)."""
    try:
        yield
    except InputError as error:
        error.facts = {"reason": "value", **error.facts, "word": word}
        raise


def require_colon(name: str, sign: str) -> None:
    if sign != ":":
        raise InputError(f"{name} cannot be compared.", hint=f"Write {name}:VALUE.", reason="compared")


def length_of(name: str, sign: str, value: str) -> int:
    if sign == ":":
        hint = f"Write {name}<2d or {name}>2d."
        raise InputError(f"{name}:{value} needs < or >.", hint=hint, reason="sign")
    hint = f"Write {name}{sign}2d, 4h or 30m."
    try:
        return micros(parse_duration(value))
    except DurationError as error:
        raise InputError(f"{name}: {error}.", hint=hint, reason="length") from None


def _day_start(name: str, value: str) -> int:
    try:
        return to_micros(datetime.fromisoformat(value).replace(tzinfo=UTC))
    except ValueError:
        raise InputError(
            f"{name}: {value} is not a day.", hint=f"Write {name}>=2026-11-18.", reason="value"
        ) from None


def unknown_value(name: str, value: str, known: tuple[str, ...]) -> InputError:
    return InputError(
        f"unknown {name} {value!r}.", hint=f"Known: {', '.join(known)}.", reason="value", known=known
    )
