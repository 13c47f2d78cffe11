"""Outside directories (LDAP, SCIM, an HR system): asked within a time limit, remembered for seconds.

Write the five questions as coroutines, or a class of them, and wrap it in `OutsideDirectory`. What it cannot
say in time, nobody is a member of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar, cast

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.directory.base import Circle, Directory, Memberships, Person
from holdfast.telemetry import log
from holdfast.types.clock import Clock, SystemClock

MAX_REMEMBERED: Final = 10_000
T = TypeVar("T")


class Lookups:
    """A directory of bare coroutines. What is not given is answered with nobody."""

    def __init__(
        self,
        *,
        person: Callable[[str, str], Awaitable[Person | None]],
        group: Callable[[str, str], Awaitable[Circle | None]] | None = None,
        role: Callable[[str, str], Awaitable[Circle | None]] | None = None,
        memberships: Callable[[str, str], Awaitable[Memberships]] | None = None,
        stands_in_for: Callable[[str, str, int], Awaitable[Sequence[Person]]] | None = None,
    ) -> None:
        self.person = person
        self.group = group or _nothing
        self.role = role or _nothing
        self.memberships = memberships or _no_memberships
        self.stands_in_for = stands_in_for or _nobody_away


class OutsideDirectory:
    """Any directory, kept from holding up or misleading those who ask: each question has `time_limit`
    seconds; answers are good for `ttl` seconds, and so is the finding that it is out of reach.

    Raises DirectoryUnavailableError for an answer that did not come."""

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
        # `now` moves all the time: what is remembered is the answer for a few seconds of it.
        async def ask(tenant: str, ref: str) -> Sequence[Person]:
            return await self._source.stands_in_for(tenant, ref, now)

        return await self._ask("stands_in_for", ask, tenant, ref)

    def forget(self) -> None:
        """Ask anew from now on: somebody left, and must not decide for another few seconds."""
        self._known.clear()
        self._down_until = 0.0

    async def _ask(self, what: str, ask: Callable[[str, str], Awaitable[T]], tenant: str, ref: str) -> T:
        now = self._clock.monotonic()
        key = (what, tenant, ref)
        until, known = self._known.get(key, (0.0, None))
        if now < until:
            return cast("T", known)
        if now < self._down_until:
            raise _unreachable("it did not answer a moment ago")
        try:
            async with asyncio.timeout(self._time_limit):
                found = await ask(tenant, ref)
        except Exception as error:  # whatever the outside raises: no answer is no membership
            if isinstance(error, OSError):
                # Out of reach for everybody. A question that it stumbles over is that question's own trouble.
                self._down_until = now + self._ttl
            log.error("the directory did not say %s of %s: %r", what, ref, error)
            raise _unreachable(f"asked for the {what} of {ref}, it gave {type(error).__name__}") from error
        self._remember(key, found, now)
        return found

    def _remember(self, key: tuple[Any, ...], found: Any, now: float) -> None:
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = (now + self._ttl, found)


def _unreachable(why: str) -> DirectoryUnavailableError:
    return DirectoryUnavailableError(
        f"the directory cannot be asked: {why}.", hint="Until it answers, nobody is a member of anything."
    )


async def _nothing(tenant: str, key: str) -> None: ...


async def _no_memberships(tenant: str, ref: str) -> Memberships:
    return Memberships()


async def _nobody_away(tenant: str, ref: str, now: int) -> Sequence[Person]:
    return ()
