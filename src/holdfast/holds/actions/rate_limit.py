"""How often somebody may act on holds: whoever is too fast waits.

Counted in this process alone, on the store's clock. Each process of a house allows as much again.
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
    """At most so many acts in `seconds`: by one actor, on one hold, by one link. All of them may come at
    once, and come back evenly. What is not given is not limited."""

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
            raise InputError("a pace is at least one act in a time above zero.", hint="Pace(actor=120)")
        # When each would have been due if they came evenly.
        self._due: dict[Key, int] = {}

    def take(self, actor: Actor, hold: str, now: int, *, link: str | None = None) -> None:
        """Counts an act. Raises RateLimitedError, which says how long to wait; that try does not count."""
        if actor.is_system and actor.channel == "system":
            return
        # By tenant: another one's tries use nothing up.
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
                f"that is more than {most} acts in {self._window / MICROS:g} seconds {_WORDS[key[0]]}.",
                hint=f"Try again in {seconds} s.",
                retry_after=seconds,
                limit=key[0],
            )
        return due
