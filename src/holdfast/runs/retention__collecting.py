"""What no run needs any more: blobs that nobody refers to, lines of the feed that were told long ago."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.runs.service import RunService

GRACE = 24 * 3600.0
BATCH = 500
_EVER = 1 << 62


async def collect_blobs(service: RunService, *, grace: float = GRACE) -> int:
    """Delete blobs that no run refers to and that are older than the grace period (D-37). Answers how many.

    Condemned first, then the object, then the row: a settle that names one meanwhile puts it again.
    """
    from holdfast.holds.forms.attached_files import let_go_unused

    await let_go_unused(service.store)
    older_than = service.store.now() - int(grace * 1e6)
    objects = service.runtime.desk.objects
    collected = 0
    while digests := await service.store.condemn_blobs(older_than=older_than, limit=BATCH):
        if objects is not None:
            for digest in digests:
                await objects.delete(digest)
        await service.store.drop_blobs(digests)
        collected += len(digests)
    return collected


async def trim_feed(service: RunService, kept: float) -> int:
    """Let the feed forget what it told longer than so many seconds ago. Answers how many lines went; a few
    thousand in each transaction, so that nobody who settles waits."""
    store = service.store
    # For no time at all: whatever was told, also while we ask.
    before, total = store.now() - int(kept * 1e6) if kept else _EVER, 0
    while gone := await store.trim_feed(before=before):
        total += gone
    return total
