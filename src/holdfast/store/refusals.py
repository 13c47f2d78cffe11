"""Errors for imported history, which can be read, listed and forked but not advanced (D-36), and for a reader
of the feed that asks for trimmed rows.
"""

from __future__ import annotations

from holdfast.errors import FeedTrimmedError, RunReadOnlyError
from holdfast.store.rows import RunRow


def require_live(row: RunRow) -> None:
    """Raises RunReadOnlyError for imported history."""
    if row.read_only:
        raise RunReadOnlyError(
            f"run {row.id} is imported history: it can be read and forked, not advanced.",
            hint="To continue from its last state, fork it or import it with as_new_run=True (--as-new-run).",
            run=row.id,
        )


def feed_trimmed(after: int, floor: int) -> FeedTrimmedError:
    return FeedTrimmedError(
        f"The feed was trimmed: position {after} is gone, it begins after {floor}.",
        hint="Read the runs themselves once (list_runs, events), then follow the feed from the floor; keep "
        "it for longer (RunSettings.feed_kept, HOLDFAST_FEED_KEPT) if readers may be away for longer.",
        after=after,
        floor=floor,
    )
