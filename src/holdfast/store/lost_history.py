"""A store that lost acknowledged writes: by a failover to a standby that did not have the last commits, or by
restoring a backup. The lost steps may have had effects outside, so an affected run stops until a person
decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.errors import HistoryLostError
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.clock import iso
from holdfast.types.event import EventRow
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.rows import RunRow

LOST_EVENT: Final = "run.history_lost"
_PREFIX: Final = "History lost: "


def is_lost(error: str | None) -> bool:
    """Whether `loss_message` made it."""
    return error is not None and error.startswith(_PREFIX)


def require_whole(row: RunRow) -> None:
    """Raises HistoryLostError for a run that was stopped because of a loss."""
    if row.status is RunStatus.failed and is_lost(row.error):
        raise HistoryLostError(
            f"run {row.id} stopped because the store lost part of its history. {row.error}",
            hint="Find out what its lost steps did outside. Then `holdfast resume RUN --accept-loss` resumes "
            "it after its last stored record and repeats them. `holdfast fork RUN` tries it on a copy.",
            run=row.id,
        )


def loss_message(known: AcknowledgedState, head: int) -> str:
    """The run's `error`: the evidence, and what it means."""
    if known.hold is not None:
        what = f"version {known.version} of hold {known.hold}"
    elif known.mail:
        what = f"message {known.mail} to the run"
    else:
        what = f"record {known.head}"
    return (
        f"{_PREFIX}{what} was acknowledged to {known.worker or 'a process'} at {iso(known.at)}, and the "
        f"store does not have it; its newest record is {head}. What was lost may have had effects outside."
    )


def loss_event(known: AcknowledgedState, head: int, at: int) -> EventRow:
    data = {
        "acknowledged": known.head,
        "head": head,
        "worker": known.worker,
        "acknowledged_at": known.at,
        "hold": known.hold,
    }
    return EventRow(0, at, LOST_EVENT, msgspec.json.encode(data))
