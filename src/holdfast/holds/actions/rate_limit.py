"""Rate limits for actions on holds.

Counted per process, on the store's clock: several processes allow the limit several times.
"""

from __future__ import annotations

from typing import Final

from holdfast.errors import InputError, RateLimitedError
from holdfast.types.clock import MICROS
from holdfast.types.rate_limit import KeyedRateLimit
from holdfast.types.terms import Actor

QUEUE: Final = "queue"
"""How the queue itself is known: no credential of a caller is."""
_WORDS: Final = {"actor": "by one actor", "hold": "on one hold", "link": "by one link"}

Key = tuple[str, ...]


class Pace:
    """Maximum number of actions in `seconds`: by one actor, on one hold, by one link. They may all come at
    once; the allowance refills evenly. None: not limited."""

    def __init__(
        self,
        *,
        actor: int | None = None,
        hold: int | None = None,
        link: int | None = None,
        seconds: float = 60.0,
    ) -> None:
        self._most = {"actor": actor, "hold": hold, "link": link}
        self._window = int(seconds * MICROS)
        if self._window <= 0 or any(most is not None and most < 1 for most in self._most.values()):
            raise InputError(
                "a rate limit must allow at least 1 action, in more than 0 seconds.", hint="Pace(actor=120)"
            )
        self._limit = KeyedRateLimit()

    def take(self, actor: Actor, hold: str, now: int, *, link: str | None = None) -> None:
        """Count an action. Raises RateLimitedError with the time to wait; a refused action does not count."""
        # Not limited: sweeps, and runs that get a message, which would be given up after a few attempts.
        if actor.is_system and (actor.channel == "system" or actor.auth_method == QUEUE):
            return
        # By tenant: attempts of another tenant do not count.
        keys: list[Key] = [("actor", actor.tenant, actor.id), ("hold", actor.tenant, hold)]
        keys += [("link", link)] if link is not None else []
        limited = [(key, most) for key in keys if (most := self._most[key[0]]) is not None]
        # All are checked before any is counted: a refused action must not use up the other allowances.
        for key, most in limited:
            self._require_room(key, most, now)
        self._limit.count([(key, self._window // most) for key, most in limited], now)

    def _require_room(self, key: Key, most: int, now: int) -> None:
        wait = self._limit.wait(key, now, self._window // most, self._window)
        if wait > 0:
            seconds = int(-(-wait // MICROS))
            raise RateLimitedError(
                f"more than {most} actions in {self._window / MICROS:g} seconds {_WORDS[key[0]]}.",
                hint=f"Try again in {seconds} s.",
                retry_after=seconds,
                limit=key[0],
            )
