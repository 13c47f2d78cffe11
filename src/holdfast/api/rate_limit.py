"""How fast a credential may ask. Counted in this process: each server of a house allows as much again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from starlette.requests import Request

from holdfast.api.auth.principal import Principal
from holdfast.api.settings import ApiSettings
from holdfast.errors import RateLimitedError

MAX_KEYS: Final = 50_000


class TokenBuckets:
    """Each key may ask `pace` times a second, and as much as comes in `burst` seconds at once."""

    def __init__(
        self, pace: float, burst: float, whose: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._gap = 1 / pace if pace else 0.0
        self._burst = burst
        self._whose = whose
        self._now = now
        # When each would have been due if they came evenly.
        self._due: dict[str, float] = {}

    def take(self, key: str) -> None:
        """Raises RateLimitedError, which says how long to wait; a request that is refused does not count."""
        if not self._gap:
            return
        now = self._now()
        due = max(self._due.get(key, 0.0), now) + self._gap
        wait = due - now - max(self._burst, self._gap)
        if wait > 0:
            raise RateLimitedError(
                f"That is more than {1 / self._gap:g} requests a second {self._whose}.",
                hint="Wait as long as Retry-After says, then ask again.",
                retry_after=max(1, round(wait + 0.5)),
            )
        self._due[key] = due
        if len(self._due) > MAX_KEYS:
            self._due = {each: at for each, at in self._due.items() if at > now}


class RateLimiter:
    """Of credentials, and of addresses that show none or a wrong one."""

    def __init__(self, settings: ApiSettings) -> None:
        self._known = TokenBuckets(settings.pace, settings.burst, "by one credential")
        self._strangers = TokenBuckets(settings.anonymous_pace, settings.burst, "without a good credential")

    def take(self, request: Request, principal: Principal | None) -> None:
        if principal is None:
            self.stranger(request)
        else:
            self._known.take(principal.credential or f"{principal.tenant}/{principal.actor.id}")

    def stranger(self, request: Request) -> None:
        self._strangers.take(request.client.host if request.client else "")
