"""Limits: how many runs may be running at once, and how many may start in a period. The rows that a store
has, and what a flow declares."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.errors import SettingsError
from holdfast.types.duration import DurationError, parse_duration

_RATE = re.compile(r"\s*([0-9]+)\s*(?:/|per\s)\s*(.+?)\s*", re.IGNORECASE)
_UNITS = {
    "s": "1s", "sec": "1s", "second": "1s", "m": "1m", "min": "1m", "minute": "1m",
    "h": "1h", "hour": "1h", "d": "1d", "day": "1d",
}  # fmt: skip
_UNIT_NAMES = (("day", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000))
_MOST = 1_000_000_000
_EXAMPLES = 'Write "100/min", "5/s", "1000/h" or "20/30s".'
EACH_KEY = "*"
_LONGEST = 200
_ENTITY = "/entity/"  # in no other name: keys have their slashes escaped
_ESCAPES = str.maketrans({"%": "%25", "/": "%2F", "*": "%2A"})


class LimitRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run has at most one limit, and counts for that one and the one above it: names are paths, so that a
    run with the limit `flow:refund/acme` counts for `flow:refund` too. `flow:refund/*` applies to each key
    that has no limit itself.

    The limits that flows declare and those that an operator fixed are stored separately; the fixed ones
    win."""

    name: str
    concurrency: int | None = None  # maximum number of runs with a lease
    rate: int | None = None  # maximum number of runs that start within `per`
    per: int = 0  # microseconds
    fixed: bool = False  # by an operator: what flows declare does not change it
    updated_at: int = 0  # 0: no limit is set, there are only runs with this key

    @property
    def root(self) -> str:
        return root_of(self.name)


def flow_limit(flow: str) -> str:
    """The limit of all runs of a flow, in all tenants."""
    return f"flow:{flow.translate(_ESCAPES)}"


def flow_of(name: str) -> str | None:
    """The flow, if this is the limit of a whole flow."""
    if not name.startswith("flow:") or "/" in name:
        return None
    return _unescape(name[5:])


def _unescape(spelled: str) -> str:
    return spelled.replace("%2A", "*").replace("%2F", "/").replace("%25", "%")


def key_limit(flow: str, key: str) -> str:
    """The limit of the flow's runs with this key. A long key is replaced by its digest."""
    if len(key) > _LONGEST:
        key = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{flow_limit(flow)}/{key.translate(_ESCAPES)}"


def entity_limit(flow: str, deployment: str, instance_key: str) -> str:
    """The limit of the flow's runs of this entity: one of them is live at a time."""
    digest = sha256(f"{deployment}/{instance_key}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{flow_limit(flow)}{_ENTITY}{digest[:40]}"


def is_entity(name: str) -> bool:
    return _ENTITY in name


def normalized_name(name: str) -> str:
    """The stored name of a limit whose key was written unescaped, or too long."""
    if is_entity(name):
        return name
    root, _, key = name.partition("/")
    flow = flow_of(root)
    return name if flow is None or key in ("", EACH_KEY) else key_limit(flow, _unescape(key))


def root_of(name: str) -> str:
    return name.partition("/")[0]


def path_of(name: str) -> tuple[str, ...]:
    """The names of the limits that a run with this one counts for, itself included."""
    root = root_of(name)
    return (root,) if root == name else (root, name)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """At most `concurrency` runs of the flow are advanced at once, and at most `rate` start in any window of
    that length. `key` divides the runs, and `per_key` and `key_rate` hold for each key by itself:

        Flow("refund", limits=Limits(concurrency=20, rate="100/min"))
        Flow("refund", limits=Limits(key="{{customer}}", per_key=1))
        Flow("refund", limits=Limits(concurrency=50, key="{{tenant}}", per_key=5, key_rate="60/h"))

    The key is built from the run's input when it is created; `{{tenant}}`, `{{thread}}` and
    `{{instance_key}}` come from the run itself. A run counts while a worker has it: one that waits for a
    person or a timer does not count. Runs over the limit are queued; none is refused.
    """

    concurrency: int | None = None
    rate: str | None = None
    key: str | None = None
    per_key: int | None = None
    key_rate: str | None = None

    def __post_init__(self) -> None:
        for name in ("concurrency", "per_key"):
            _require_number(name, getattr(self, name))
        for name in ("rate", "key_rate"):
            if getattr(self, name) is not None:
                parse_rate(getattr(self, name), f"limits: {name}=")
        keyed = self.per_key is not None or self.key_rate is not None
        if keyed and self.key is None:
            raise SettingsError(
                "limits: per_key= and key_rate= need key=.",
                hint='Give the key by which runs are grouped: key="{{customer}}".',
            )
        if self.key is not None and (type(self.key) is not str or not self.key.strip()):  # pyright: ignore[reportUnnecessaryComparison]
            raise SettingsError(f"limits: key={self.key!r} is not text.", hint='Write key="{{customer}}".')
        if self.key is not None and not keyed:
            raise SettingsError(
                f"limits: key={self.key!r} has neither per_key= nor key_rate=.",
                hint="Give per_key= or key_rate=.",
            )
        if self.concurrency is None and self.rate is None and not keyed:
            raise SettingsError(
                "limits: none is given.", hint="Give concurrency=, rate=, or key= and per_key=."
            )

    def rows(self, flow: str) -> list[LimitRow]:
        """The rows that are declared for that flow: its limit, and the one of each key."""
        own = flow_limit(flow)
        found = [_limit_row(own, self.concurrency, self.rate)]
        if self.key is not None:
            found.append(_limit_row(f"{own}/{EACH_KEY}", self.per_key, self.key_rate))
        return found


def _limit_row(name: str, concurrency: int | None, rate: str | None) -> LimitRow:
    count, per = (None, 0) if rate is None else parse_rate(rate)
    return LimitRow(name=name, concurrency=concurrency, rate=count, per=per)


class ItemLimit(msgspec.Struct, frozen=True, kw_only=True):
    """What limits the starts of a map's items. With a key, `rate` and `concurrency` are those of all items of
    the tenant that have it."""

    rate: tuple[int, int] | None = None
    concurrency: int | None = None
    key: str | Callable[[Any], Any] | None = None

    @property
    def spacing(self) -> int:
        """Microseconds from one start to the next, so that no period has more than the rate."""
        if self.rate is None:
            return 0
        count, per = self.rate
        return -(-per // count)


class StartPace(msgspec.Struct):
    """Starts that are at least so far apart. An item gets an instant, waits, and asks again when it is
    there: it may be late, and the items before it may have been."""

    last_at: int | None = None
    # The end of the queue, and of those that had to wait once more.
    next_at: int = 0
    again_at: int = 0

    def ask(self, now: int, spacing: int, *, again: bool) -> int:
        """`now`: it starts. Otherwise the instant at which to ask again."""
        ready = now if self.last_at is None else self.last_at + spacing
        if now >= ready and (again or now >= self.next_at):
            self.last_at = now
            self.next_at = max(self.next_at, now + spacing)
            return now
        if again:
            at = max(now, ready, self.again_at)
            self.again_at = at + spacing
        else:
            at = max(now, ready, self.next_at)
            self.next_at = at + spacing
        return at


def item_limit(rate: Any, concurrency: int | None, key: Any) -> ItemLimit | None:
    """None: nothing limits the starts. `key`: a text, or a function of the item. Raises SettingsError."""
    if rate is None and key is None:
        return None
    if key is not None and not callable(key) and not (isinstance(key, str) and key.strip()):
        raise SettingsError(
            f"limit_key={key!r} is neither a text nor a function.", hint='Write limit_key="mail".'
        )
    if rate is None and concurrency is None:
        raise SettingsError(
            f"limit_key={key!r} has neither concurrency= nor rate=.", hint="Give what the items share."
        )
    return ItemLimit(
        rate=None if rate is None else parse_rate(rate, "rate="),
        concurrency=None if key is None else concurrency,
        key=key,
    )


def parse_rate(text: Any, what: str = "rate ") -> tuple[int, int]:
    """(how many, in how many microseconds). Raises SettingsError."""
    match = _RATE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise SettingsError(f"{what}{text!r} is not a rate.", hint=_EXAMPLES)
    count, unit = int(match[1]), match[2].lower()
    try:
        per = parse_duration(_UNITS.get(unit, unit))
    except DurationError as error:
        raise SettingsError(
            f"{what}{text!r} is not a rate: {match[2]!r} is not a duration.", hint=_EXAMPLES
        ) from error
    micros = int(per.total_seconds() * 1_000_000)
    if not 1 <= count <= _MOST or micros < 1000:
        raise SettingsError(
            f"{what}{text!r} is out of range: 1 to {_MOST:,} runs, in 1 ms or more.", hint=_EXAMPLES
        )
    return count, micros


def rate_text(rate: int | None, per: int) -> str:
    """As `parse_rate` reads it."""
    if rate is None:
        return ""
    for unit, micros in _UNIT_NAMES:
        if per % micros == 0:
            many = per // micros
            return f"{rate}/{unit}" if many == 1 else f"{rate}/{many}{unit[0]}"
    return f"{rate}/{per // 1000}ms"


def spacing_text(spacing: int) -> str:
    """The rate of starts that are so many microseconds apart."""
    if not spacing:
        return ""
    whole = next((per for _, per in reversed(_UNIT_NAMES) if per % spacing == 0), None)
    return rate_text(1, spacing) if whole is None else rate_text(whole // spacing, whole)


def _require_number(name: str, value: Any) -> None:
    if value is not None and (type(value) is not int or not 1 <= value <= _MOST):
        raise SettingsError(
            f"limits: {name}={value!r} is not a number of runs.",
            hint="Give 1 or more, or leave it out. `holdfast limits set NAME --concurrency 0` stops a flow.",
        )
