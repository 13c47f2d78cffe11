"""How long a notice waits: for its next attempt, and for a first channel."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from holdfast.holds.notify.settings import TOPICS
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import MICROS
from holdfast.types.outbox import OutboxState

# Seconds; about three days in all, which spans a weekend.
WAITS: Final = (10, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
JITTER: Final = 0.25
LONGEST: Final = 86_400.0
KEPT: Final = sum(WAITS) * MICROS
"""Without any channel a notice is kept as long as it would be retried."""
NO_CHANNEL: Final = "no channel was set up in time"
PAGE: Final = 100


def next_try(key: str, attempt: int, now: int, asked: float | None = None) -> int | None:
    """The time of the next attempt after attempt number `attempt` (from 1); None: it is given up. `asked`:
    the receiver's Retry-After, which counts if it is later. The delay varies with the message, so that
    messages that failed together are not retried together."""
    if attempt > len(WAITS):
        return None
    share = int.from_bytes(sha256(f"{key}/{attempt}".encode()).digest()[:4], "big") / 2**32
    wait = WAITS[attempt - 1] * (1 - JITTER + 2 * JITTER * share)
    return now + round(max(wait, min(asked or 0.0, LONGEST)) * MICROS)


async def skip_overdue(store: Store) -> int:
    """For an instance without channels: notices that are due for longer than `KEPT`. A worker with channels
    would have sent them long ago, so there is none in the fleet."""
    skipped, before = 0, store.now() - KEPT
    for topic in TOPICS:
        while messages := await store.list_outbox(
            state=OutboxState.waiting, topic=topic, due_before=before, limit=PAGE
        ):
            for each in messages:
                # Fenced by the attempt: one that is claimed meanwhile is sent.
                skipped += await store.finish_outbox(
                    each.id, attempt=each.attempts, state=OutboxState.skipped, error=NO_CHANNEL
                )
    if skipped:
        log.warning("%d notices were skipped: %s; HOLDFAST_NOTIFY names the channels", skipped, NO_CHANNEL)
    return skipped
