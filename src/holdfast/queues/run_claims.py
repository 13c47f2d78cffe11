"""Messages that a run keeps until it ends: `queue_consume` with `complete: run_end` (QU-30).

The claim of such a message does not lapse: whether its run lives is known from the store, not from a time.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.queues.completions import queue_actor
from holdfast.queues.relay import QueueRelay
from holdfast.store.protocols import Store
from holdfast.types.ids import RunId
from holdfast.types.queue_message import LONGEST_CLAIM, MessageAct, MessageChange, MessageFilter, MessageRow
from holdfast.types.status import ENDED, RunStatus

RUN_END: Final = "run_end"
KEPT_FOR: Final = 100 * LONGEST_CLAIM
"""How long the claim of a run lasts, if nothing ends it."""
_CLAIMER: Final = "run:"
_PAGE: Final = 200


def claimer_of(run: str) -> str:
    return f"{_CLAIMER}{run}"


class RunClaims:
    def __init__(self, store: Store, relay: QueueRelay) -> None:
        self.store = store
        self.relay = relay

    async def settle(self) -> int:
        """Complete the messages of runs that are completed, release those of runs that ended otherwise.
        Returns how many."""
        where = MessageFilter(claimed_beyond=self.store.now() + LONGEST_CLAIM)
        settled, after = 0, None
        while page := await self.store.list_messages(where, after=after, limit=_PAGE):
            for row in page:
                settled += await self._settle_one(row)
            after = page[-1].number
        return settled

    async def _settle_one(self, row: MessageRow) -> bool:
        name = (row.claimed_by or "").removeprefix(_CLAIMER)
        run = await self.store.get_run(RunId(name))
        if run is not None and run.status not in ENDED:
            return False
        change = MessageChange(tenant=row.tenant, id=row.id, act=MessageAct.release, token=row.claim_token)
        if run is not None and run.status is RunStatus.completed:
            by, result = queue_actor(row.tenant, None).id, msgspec.json.encode({"run": name})
            change = msgspec.structs.replace(change, act=MessageAct.complete, by=by, result=result)
        else:
            ended = "was deleted" if run is None else f"ended as {run.status}"
            change = msgspec.structs.replace(change, error=f"the run {name} {ended}")
        notice = self.relay.notice(row.id, row.scope, row.queue, f"{change.act}:{row.claim_token}")
        done = await self.store.change_message(change, outbox=notice)
        return isinstance(done, MessageRow)
