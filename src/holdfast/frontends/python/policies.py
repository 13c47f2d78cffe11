"""Policies as an author writes them. They are read when the flow is compiled, so that a mistake is reported
together with all others and does not raise at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias, TypeVar

from holdfast.model.diagnostics import GraphProblem
from holdfast.model.graph import JoinKind, JoinPolicy, RetryPolicy
from holdfast.types.backoff import BackoffKind
from holdfast.types.duration import DurationError, parse_duration

Duration: TypeAlias = str | int | float | timedelta

_MICROSECOND = timedelta(microseconds=1)
_DURATION = 'write seconds, or text such as "30s", "2d" or "PT15M"'
CLASS = "class:"
"""Prefix in a policy's `retry_on`: the name of an error class, which the handler has, not a text to find."""


@dataclass(frozen=True)
class Retry:
    """`attempts` counts the first one too. `retry_on`: error classes, or texts that the message contains."""

    attempts: int = 3
    backoff: str = "exponential"
    delay: Duration = "1s"
    cap: Duration | None = "60s"
    jitter: float = 0.0
    retry_on: Sequence[type[BaseException] | str] = ()


@dataclass(frozen=True)
class Join:
    kind: str = "all"
    count: int = 1
    timeout: Duration | None = None
    cancel_losers: bool = False


def all_of(*, timeout: Duration | None = None) -> Join:
    """Wait for every live branch, at most for `timeout`."""
    return Join("all", timeout=timeout)


def any_of(*, timeout: Duration | None = None, cancel_losers: bool = False) -> Join:
    """Continue with the first branch that arrives."""
    return Join("any", timeout=timeout, cancel_losers=cancel_losers)


def quorum(count: int, timeout: Duration | None = None, cancel_losers: bool = False) -> Join:
    """Continue when `count` branches have arrived."""
    return Join("quorum", count, timeout, cancel_losers)


_E = TypeVar("_E", bound=StrEnum)


class DeclarationReader:
    """Reads what one node or edge declares, and reports what is wrong with it."""

    def __init__(self, report: Callable[[GraphProblem], None], *, node: str | None = None) -> None:
        self._report = report
        self._node = node

    def wrong(self, rule: str, message: str, fix: str | None = None) -> None:
        self._report(GraphProblem(rule=rule, message=message, node=self._node, fix=fix))

    def duration(self, value: Duration | None, what: str, *, zero: bool = False) -> int | None:
        """Microseconds."""
        if value is None:
            return None
        try:
            return parse_duration(value, allow_zero=zero) // _MICROSECOND
        except DurationError as error:
            self.wrong("duration", f"{what}: {error}", _DURATION)
        except (TypeError, ValueError):
            self.wrong("duration", f"{what}: {value!r} is not a duration", _DURATION)
        return None

    def flag(self, value: bool, what: str) -> bool:
        if isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            return value
        self.wrong(what, f"{what} {value!r} is neither True nor False", f"write {what}=True")
        return False

    def choice(self, kind: type[_E], value: _E | str, what: str, default: _E) -> _E:
        """A member of an enum by its name."""
        try:
            return kind(value)
        except ValueError:
            names = ", ".join(kind)
            self.wrong(
                what.replace(" ", "-"), f"{what} {value!r} is not one of {names}", f"use one of {names}"
            )
            return default

    def retry(self, given: Retry | int | None) -> RetryPolicy:
        if given is None:
            return RetryPolicy()
        policy = Retry(given) if isinstance(given, int) else given
        delay = self.duration(policy.delay, "retry delay", zero=True)
        return RetryPolicy(
            attempts=policy.attempts,
            backoff=self.choice(BackoffKind, policy.backoff, "back-off", BackoffKind.exponential),
            delay=1_000_000 if delay is None else delay,
            cap=self.duration(policy.cap, "retry cap"),
            jitter=float(policy.jitter),
            retry_on=tuple(on if isinstance(on, str) else CLASS + on.__qualname__ for on in policy.retry_on),
        )

    def join(self, given: Join | str) -> JoinPolicy:
        policy = Join(given) if isinstance(given, str) else given
        return JoinPolicy(
            kind=self.choice(JoinKind, policy.kind, "join", JoinKind.all),
            count=policy.count,
            timeout=self.duration(policy.timeout, "join timeout"),
            cancel_losers=policy.cancel_losers,
        )


def retry_classes(given: Retry | int | None) -> tuple[type[BaseException], ...]:
    if not isinstance(given, Retry):
        return ()
    return tuple(on for on in given.retry_on if not isinstance(on, str))
