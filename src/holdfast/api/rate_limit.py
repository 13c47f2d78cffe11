"""Rate limits of requests, per credential. Counted per server process."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.requests import Request

from holdfast.api.auth.principal import Principal
from holdfast.api.settings import ApiSettings
from holdfast.errors import RateLimitedError
from holdfast.types.rate_limit import KeyedRateLimit


class TokenBuckets:
    """Each key may send `pace` requests per second, and those of `burst` seconds at once."""

    def __init__(
        self, pace: float, burst: float, whose: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._gap = 1 / pace if pace else 0.0
        self._burst = burst
        self._whose = whose
        self._now = now
        self._limit = KeyedRateLimit()

    def take(self, key: str) -> None:
        """Raises RateLimitedError with the time to wait; a refused request does not count."""
        if not self._gap:
            return
        now = self._now()
        wait = self._limit.wait(key, now, self._gap, self._burst)
        if wait > 0:
            raise RateLimitedError(
                f"more than {1 / self._gap:g} requests per second {self._whose}.",
                hint="Wait for the time in Retry-After, then try again.",
                retry_after=max(1, round(wait + 0.5)),
            )
        # Counted only when allowed: a client that retries too early would otherwise never get through.
        self._limit.count([(key, self._gap)], now)


class RateLimiter:
    """Limits requests by their credential; those without a valid one by address."""

    def __init__(self, settings: ApiSettings) -> None:
        self._known = TokenBuckets(settings.pace, settings.burst, "by one credential")
        self._anonymous = TokenBuckets(settings.anonymous_pace, settings.burst, "without a valid credential")

    def take(self, request: Request, principal: Principal | None) -> None:
        if principal is None:
            self.count_failure(request)
        else:
            # By credential and not by address: many clients may share the address of one proxy.
            self._known.take(principal.credential or f"{principal.tenant}/{principal.actor.id}")

    def count_failure(self, request: Request) -> None:
        self._anonymous.take(request.client.host if request.client else "")
