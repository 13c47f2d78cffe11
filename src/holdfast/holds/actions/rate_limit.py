"""Rate limits for actions on holds.

Counted per process, on the store's clock: several processes allow the limit several times.
"""

from __future__ import annotations

from typing import Final

from holdfast.errors import InputError, RateLimitedError
from holdfast.types.clock import MICROS
from holdfast.types.terms import Actor

MAX_KEYS: Final = 50_000
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
                "a pace must allow at least 1 action, in more than 0 seconds.", hint="Pace(actor=120)"
            )
        # For each key the time at which the next action would be due if they came evenly (GCRA).
        self._due: dict[Key, int] = {}

    def take(self, actor: Actor, hold: str, now: int, *, link: str | None = None) -> None:
        """Count an action. Raises RateLimitedError with the time to wait; a refused action does not count."""
        if actor.is_system and actor.channel == "system":
            return
        # By tenant: attempts of another tenant do not count.
        keys: list[Key] = [("actor", actor.tenant, actor.id), ("hold", actor.tenant, hold)]
        keys += [("link", link)] if link is not None else []
        due = {key: self._next(key, most, now) for key in keys if (most := self._most[key[0]]) is not None}
        self._due.update(due)
        if len(self._due) > MAX_KEYS:
            self._due = {key: at for key, at in self._due.items() if at > now}

    def _next(self, key: Key, most: int, now: int) -> int:
        due = max(self._due.get(key, 0), now) + self._window // most
        wait = due - now - self._window
        if wait > 0:
            seconds = -(-wait // MICROS)
            raise RateLimitedError(
                f"more than {most} actions in {self._window / MICROS:g} seconds {_WORDS[key[0]]}.",
                hint=f"Try again in {seconds} s.",
                retry_after=seconds,
                limit=key[0],
            )
        return due
