"""When a message to the outside (a notice, a webhook, a message for a broker) is sent again."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from holdfast.types.clock import MICROS

# Seconds; about three days in all, which spans a weekend.
WAITS: Final = (10, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
JITTER: Final = 0.25
LONGEST: Final = 86_400.0


def next_try(key: str, attempt: int, now: int, asked: float | None = None) -> int | None:
    """The time of the next attempt after attempt number `attempt` (from 1); None: it is given up. `asked`:
    the receiver's Retry-After, which counts if it is later. The delay varies with the message, so that
    messages that failed together are not retried together."""
    if attempt > len(WAITS):
        return None
    share = int.from_bytes(sha256(f"{key}/{attempt}".encode()).digest()[:4], "big") / 2**32
    wait = WAITS[attempt - 1] * (1 - JITTER + 2 * JITTER * share)
    return now + round(max(wait, min(asked or 0.0, LONGEST)) * MICROS)
