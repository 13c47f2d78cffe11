"""External directories (LDAP, SCIM, an HR system): queried within a time limit, cached for seconds.

Write the five queries as coroutines, or as a class, and wrap them in `OutsideDirectory`. Memberships that it
does not return in time do not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar, cast

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.directory.base import Circle, Directory, Memberships, Person
from holdfast.model.user_code.boundary import call_alone
from holdfast.telemetry import log
from holdfast.types.clock import Clock, SystemClock

MAX_REMEMBERED: Final = 10_000
P = ParamSpec("P")
T = TypeVar("T")


class Lookups:
    """A directory made of coroutines. A query without a coroutine returns nothing."""

    def __init__(
        self,
        *,
        person: Callable[[str, str], Awaitable[Person | None]],
        group: Callable[[str, str], Awaitable[Circle | None]] | None = None,
        role: Callable[[str, str], Awaitable[Circle | None]] | None = None,
        memberships: Callable[[str, str], Awaitable[Memberships]] | None = None,
        stands_in_for: Callable[[str, str, int], Awaitable[Sequence[Person]]] | None = None,
    ) -> None:
        self.person = _contained(person)
        self.group = _contained(group or _nothing)
        self.role = _contained(role or _nothing)
        self.memberships = _contained(memberships or _no_memberships)
        self.stands_in_for = _contained(stands_in_for or _no_absences)


def _contained(ask: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await call_alone(ask, *args, **kwargs)

    return call


class OutsideDirectory:
    """Wraps a directory so that a slow or failing one does not block permission checks: each query has
    `time_limit` seconds; answers are cached for `ttl` seconds, and so is the fact that it is unreachable.

    Raises DirectoryUnavailableError if an answer does not arrive."""

    def __init__(
        self, source: Directory, *, time_limit: float = 2.0, ttl: float = 5.0, clock: Clock | None = None
    ) -> None:
        self._source = source
        self._time_limit = time_limit
        self._ttl = ttl
        self._clock = clock or SystemClock()
        self._known: dict[tuple[Any, ...], tuple[float, Any]] = {}
        self._down_until = 0.0

    async def person(self, tenant: str, ref: str) -> Person | None:
        return await self._ask("person", self._source.person, tenant, ref)

    async def group(self, tenant: str, key: str) -> Circle | None:
        return await self._ask("group", self._source.group, tenant, key)

    async def role(self, tenant: str, key: str) -> Circle | None:
        return await self._ask("role", self._source.role, tenant, key)

    async def memberships(self, tenant: str, ref: str) -> Memberships:
        return await self._ask("memberships", self._source.memberships, tenant, ref)

    async def stands_in_for(self, tenant: str, ref: str, now: int) -> Sequence[Person]:
        # `now` is not part of the cache key, because it changes all the time.
        async def ask(tenant: str, ref: str) -> Sequence[Person]:
            return await self._source.stands_in_for(tenant, ref, now)

        return await self._ask("stands_in_for", ask, tenant, ref)

    def forget(self) -> None:
        """Drop the cache, for example because a person left and must not decide for another few seconds."""
        self._known.clear()
        self._down_until = 0.0

    async def _ask(self, what: str, ask: Callable[[str, str], Awaitable[T]], tenant: str, ref: str) -> T:
        now = self._clock.monotonic()
        key = (what, tenant, ref)
        until, known = self._known.get(key, (0.0, None))
        if now < until:
            return cast("T", known)
        if now < self._down_until:
            raise _unreachable("it did not answer just now")
        try:
            async with asyncio.timeout(self._time_limit):
                found: T = await call_alone(ask, tenant, ref)
        except Exception as error:  # whatever it raises: without an answer no membership counts
            if isinstance(error, OSError):
                # Unreachable for all queries. An error of one query says nothing about the others.
                self._down_until = now + self._ttl
            log.error("the directory did not return %s of %s: %r", what, ref, error)
            raise _unreachable(
                f"the query for the {what} of {ref} failed with {type(error).__name__}"
            ) from error
        self._remember(key, found, now)
        return found

    def _remember(self, key: tuple[Any, ...], found: Any, now: float) -> None:
        # A bound on memory; entries are valid for seconds only, so nothing of value is lost.
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = (now + self._ttl, found)


def _unreachable(why: str) -> DirectoryUnavailableError:
    return DirectoryUnavailableError(
        f"the directory is unavailable: {why}.", hint="Until it answers, no membership counts."
    )


async def _nothing(tenant: str, key: str) -> None: ...


async def _no_memberships(tenant: str, ref: str) -> Memberships:
    return Memberships()


async def _no_absences(tenant: str, ref: str, now: int) -> Sequence[Person]:
    return ()
