"""What happens at an instant if the previous run of the schedule has not ended."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from holdfast.errors import RunEndedError
from holdfast.runs.schedules.schedule import Schedule
from holdfast.types.clock import MICROS
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED

if TYPE_CHECKING:
    from holdfast.runs.service import RunService

LOOK_AGAIN: Final = 2 * MICROS  # with `overlap wait`; less often the longer the previous run takes, up to
SELDOM: Final = 60 * MICROS


class OverlapDecision(msgspec.Struct, frozen=True):
    """`run`: the previous one. `look_at`: when to look again, if the instant waits."""

    action: Literal["start", "wait", "skip"]
    run: RunId | None = None
    look_at: int = 0


async def decide_overlap(service: RunService, schedule: Schedule) -> OverlapDecision:
    """Cancels the previous run if the schedule says so."""
    store, plan, before = service.store, schedule.plan, schedule.last_run
    row = None if plan.overlap == "allow" or before is None else await store.get_run(RunId(before))
    if row is None or row.status in ENDED:
        return OverlapDecision("start")
    if plan.overlap == "cancel":
        reason = f"the next instant of schedule {schedule.name} has come"
        with suppress(RunEndedError):  # automatically, meanwhile
            await service.cancel(row.id, reason=reason, by=f"schedule:{schedule.name}")
        return OverlapDecision("start")
    if plan.overlap == "wait":
        now = store.now()
        pause = min(max(LOOK_AGAIN, (now - row.created_at) // 20), SELDOM)
        return OverlapDecision("wait", row.id, now + pause)
    return OverlapDecision("skip", row.id)
