"""How long a notice waits for a first channel."""

from __future__ import annotations

from typing import Final

from holdfast.holds.notify.settings import TOPICS
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import MICROS
from holdfast.types.delivery_retry import WAITS
from holdfast.types.outbox import OutboxState

KEPT: Final = sum(WAITS) * MICROS
"""Without any channel a notice is kept as long as it would be retried."""
NO_CHANNEL: Final = "no channel was set up in time"
PAGE: Final = 100


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
