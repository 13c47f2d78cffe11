"""When a notice is tried again: soon at first, then ever later, for about three days."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from holdfast.types.clock import MICROS

WAITS: Final = (10, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
JITTER: Final = 0.25
LONGEST: Final = 86_400.0


def next_try(key: str, attempt: int, now: int, asked: float | None = None) -> int | None:
    """When, after attempt number `attempt` (from 1); None: it is given up. `asked`: what the other side said
    (Retry-After), which counts where it is later. Spread by the message itself, so that all those that failed
    together do not come back together."""
    if attempt > len(WAITS):
        return None
    share = int.from_bytes(sha256(f"{key}/{attempt}".encode()).digest()[:4], "big") / 2**32
    wait = WAITS[attempt - 1] * (1 - JITTER + 2 * JITTER * share)
    return now + round(max(wait, min(asked or 0.0, LONGEST)) * MICROS)
