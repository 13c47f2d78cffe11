"""How a run stood before somebody claimed it who cannot serve it: so it is given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.runs.encryption.store import vaulted_within
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import RunRow, Store


async def status_before(store: Store, row: RunRow) -> RunStatus:
    """From columns that need neither the run's code nor its key: a claim leaves no trace of the old status.

    Mail that nobody has read tells what a parked run waited for. One that was interrupted while it also
    waited for a person is told as waiting for that person; it can be claimed all the same. One that nobody
    had begun is resumable: no run is pending again once it was claimed.
    """
    vaulted = vaulted_within(store)
    plain = store if vaulted is None else vaulted.inner
    _, mail = await plain.pending(row.id)
    told = {message.kind for message in mail}
    if told & {"answer", "lapse"} or await plain.holds(run=row.id, status=HoldStatus.pending, limit=1):
        return RunStatus.pending_input
    return RunStatus.waiting if "timer" in told else RunStatus.resumable
