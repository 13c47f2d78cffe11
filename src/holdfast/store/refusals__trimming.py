"""What a reader of the feed hears when it comes too late."""

from __future__ import annotations

from holdfast.errors import FeedTrimmedError


def feed_trimmed(after: int, floor: int) -> FeedTrimmedError:
    return FeedTrimmedError(
        f"What the feed told after position {after} is gone: it begins after {floor}.",
        hint="Read the runs themselves once (list_runs, events), then follow the feed from the floor; keep "
        "it for longer (RunSettings.feed_kept, HOLDFAST_FEED_KEPT) if readers may be away for so long.",
        after=after,
        floor=floor,
    )
