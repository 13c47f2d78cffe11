"""History that came from elsewhere is read, listed and forked; who wants more of it is told how (D-36).

What a reader of the feed hears when it comes too late.
"""

from __future__ import annotations

from holdfast.errors import FeedTrimmedError, RunReadOnlyError
from holdfast.store.rows import RunRow


def require_live(row: RunRow) -> None:
    """Raises RunReadOnlyError for imported history."""
    if row.read_only:
        raise RunReadOnlyError(
            f"run {row.id} is imported history: it can be read and forked, not advanced.",
            hint="Fork it, or import it with as_new_run=True (--as-new-run), to go on from where it stood.",
            run=row.id,
        )


def feed_trimmed(after: int, floor: int) -> FeedTrimmedError:
    return FeedTrimmedError(
        f"The feed was trimmed: position {after} is gone, it begins after {floor}.",
        hint="Read the runs themselves once (list_runs, events), then follow the feed from the floor; keep "
        "it for longer (RunSettings.feed_kept, HOLDFAST_FEED_KEPT) if readers may be away for so long.",
        after=after,
        floor=floor,
    )
