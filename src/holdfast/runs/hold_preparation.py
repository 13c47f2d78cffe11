"""Between the engine and the store: the holds that a record opens are prepared before it is written."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.holds.preparation import HoldPreparation
from holdfast.store.rows import NewRun, RunRow
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.outbox import OutboxMessage
from holdfast.types.record import Record, Side


class Preparer:
    def __init__(self, preparation: HoldPreparation | None = None) -> None:
        self.preparation = preparation or HoldPreparation()

    @property
    def has_policies(self) -> bool:
        """Whether a policy may bind a hold to certain people, whatever its flow says."""
        return self.preparation.has_policies

    def prepare_now(self, side: Side, facts: HoldFacts) -> bool:
        """Whether the side is ready to be stored; not where something has to be looked up first."""
        found = [self.preparation.prepare_now(hold, facts) for hold in side.holds]
        ready = [hold for hold in found if hold is not None]
        if len(ready) == len(found):
            _put(side, ready)
        return len(ready) == len(found)

    async def prepare(self, side: Side, facts: HoldFacts) -> None:
        _put(side, [await self.preparation.prepare(hold, facts) for hold in side.holds])

    async def prepare_all(self, records: Sequence[Record], facts: HoldFacts) -> None:
        for record in records:
            side = record.side
            if side is not None and side.holds and not self.prepare_now(side, facts):
                await self.prepare(side, facts)


def _put(side: Side, holds: list[NewHold]) -> None:
    side.holds = holds
    side.outbox += [_to_judge(hold) for hold in holds if hold.terms.auto is not None]


def _to_judge(hold: NewHold) -> OutboxMessage:
    """A policy may decide it: queued in the same write as its opening, so that no crash forgets it."""
    payload = msgspec.json.encode({"hold": hold.id, "epoch": 1, "policy": hold.terms.auto})
    return OutboxMessage("hold.judge", f"{hold.id}:hold.judge:1", payload, hold=hold.id)


def facts_of(run: RunRow | NewRun) -> HoldFacts:
    return HoldFacts(
        tenant=run.tenant,
        run=run.id,
        flow=run.flow,
        version=run.version,
        deployment=run.deployment,
        instance_key=run.instance_key,
        started_by=run.started_by,
        thread=run.thread,
    )
