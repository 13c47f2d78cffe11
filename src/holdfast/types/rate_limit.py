"""Rate limits by key, counted in this process: the generic cell rate algorithm (GCRA).

One number per key is enough: when its next event would be due if all events were evenly spaced.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

MAX_KEYS: Final = 50_000


class KeyedRateLimit:
    """A key may have one event per `gap` on average; the events of a time span `burst` may come at once. The
    caller chooses the unit of time. An event that has to wait is not counted."""

    def __init__(self) -> None:
        self._due: dict[Hashable, float] = {}

    def wait(self, key: Hashable, now: float, gap: float, burst: float) -> float:
        """How long an event of this key would have to wait; 0 or less: it may come now."""
        return self._next(key, now, gap) - now - max(burst, gap)

    def count(self, events: Iterable[tuple[Hashable, float]], now: float) -> None:
        """An event for each (key, gap)."""
        for key, gap in events:
            self._due[key] = self._next(key, now, gap)
        if len(self._due) > MAX_KEYS:
            # A key whose due time has passed behaves like a new key, so it need not be stored.
            self._due = {key: at for key, at in self._due.items() if at > now}

    def _next(self, key: Hashable, now: float, gap: float) -> float:
        return max(self._due.get(key, 0), now) + gap
