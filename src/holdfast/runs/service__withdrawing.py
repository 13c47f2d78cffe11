"""The questions of a run that is asked to stop: nobody answers them any more, though no worker has it yet."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.holds.actions.close import cancelled
from holdfast.runs.pending_holds import ALL
from holdfast.store.protocols import Store
from holdfast.types.ids import RunId
from holdfast.types.status import HoldStatus

REASON: Final = "the run was cancelled"


async def withdraw_holds(store: Store, run: RunId, *, by: str) -> None:
    """A decision that came after this would be taken and lost. The run needs no mail about it: what it reads
    first is that it has to stop, and that closes whatever changes meanwhile."""
    for row in await store.holds(run=run, status=HoldStatus.pending, limit=ALL):
        made = cancelled(row, by=by, reason=REASON, at=store.now())
        await store.change_hold(msgspec.structs.replace(made, mail=None))
