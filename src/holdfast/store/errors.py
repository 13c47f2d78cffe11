"""Errors that all stores raise alike: for imported history, which can be read and forked but not advanced
(D-36), a trimmed feed, a prune of wrong records, and invalid settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.errors import FeedTrimmedError, RunBusyError, RunReadOnlyError, SettingsError, StoreError
from holdfast.store.rows import RunRow
from holdfast.types.concurrency_limits import is_entity
from holdfast.types.ids import RunId
from holdfast.types.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    import msgspec

_UNKNOWN = re.compile(r"Object contains unknown field (`[^`]*`)")


def require_live(row: RunRow) -> None:
    """Raises RunReadOnlyError for imported history."""
    if row.read_only:
        raise RunReadOnlyError(
            f"run {row.id} is imported history: it can be read and forked, not advanced.",
            hint="To continue from its last state, fork it or import it with as_new_run=True (--as-new-run).",
            run=row.id,
        )


def require_idle_entity(run: RunId, limit: str, lease_until: int | None, now: int) -> None:
    """Before a run is superseded. Raises RunBusyError for one of an entity that a worker has: its code may
    still run when the next run of the entity starts."""
    if is_entity(limit) and lease_until is not None and lease_until > now:
        raise RunBusyError(
            f"run {run} of an entity is being advanced by a worker, so no other run can take its place yet.",
            hint=f"Wait until it waits or has ended, or cancel it first: holdfast cancel {run}.",
            run=run,
        )


def feed_trimmed(after: int, floor: int) -> FeedTrimmedError:
    return FeedTrimmedError(
        f"the feed was trimmed: position {after} is gone, it begins after {floor}.",
        hint="Read the runs themselves once (list_runs, events), then follow the feed from the floor; keep "
        "it for longer (RunSettings.feed_kept, HOLDFAST_FEED_KEPT) if readers may be away for longer.",
        after=after,
        floor=floor,
    )


def require_places(horizon: int, replace: Record | None, later: Sequence[Record]) -> None:
    """Raises StoreError unless `replace` is the record at the horizon and `later` are records after it."""
    if replace is not None and replace.seq != horizon:
        raise StoreError(f"the record that replaces {horizon} has seq {replace.seq}.")
    early = [record.seq for record in later if record.seq <= horizon]
    if early:
        raise StoreError(f"record {early[0]} is not after the horizon {horizon}.")


def settings_error(
    error: msgspec.ValidationError, where: str, known: Iterable[str], hint: str
) -> SettingsError:
    unknown = _UNKNOWN.match(str(error))
    if unknown is None:
        problem, _, name = str(error).partition(" - at `$.")
        why = f"{name.rstrip('`')}: " * bool(name) + problem[:1].lower() + problem[1:]
        return SettingsError(f"invalid setting for {where}: {why}.", hint=hint)
    names = ", ".join(known)
    return SettingsError(f"unknown setting {unknown[1]} for {where}. Known: {names}.", hint=hint)
