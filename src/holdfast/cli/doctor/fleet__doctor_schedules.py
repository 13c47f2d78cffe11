"""`doctor`: schedules and dead letters. Does somebody serve them, does somebody have to decide?"""

from __future__ import annotations

from collections.abc import AsyncIterator

from holdfast.cli.doctor.finding import OK, WARN, Finding, few
from holdfast.errors import StoreError
from holdfast.runs.schedules.plan import Schedule
from holdfast.runs.schedules.service import Schedules
from holdfast.runs.service import RunService
from holdfast.types.clock import MICROS
from holdfast.types.human_time import lasting

_LATE = 60 * MICROS


async def of_schedules(service: RunService) -> AsyncIterator[Finding]:
    """Nothing is said where there are no schedules and no dead runs."""
    for finding in (await _schedules(service), await _dead(service)):
        if finding is not None:
            yield finding


async def _schedules(service: RunService) -> Finding | None:
    try:
        found = await Schedules(service.store).list()
    except StoreError as error:
        return Finding("schedules", WARN, error.message, error.hint or "")
    if not found:
        return None
    now = service.store.now()
    live = [worker for worker in await service.store.workers() if worker.until > now]
    carried = {flow for worker in live for flow in worker.versions.values()}
    active = [each for each in found if not each.paused and not each.over]
    unserved = [each for each in active if each.flow not in carried]
    if unserved:
        flows = ", ".join(sorted({each.flow for each in unserved}))
        return Finding(
            "schedules",
            WARN,
            f"{len(unserved)} of {len(found)} schedules start a flow that no live worker carries: {flows}",
            "start a worker with their code: holdfast worker FILE; or holdfast schedules pause NAME",
            few([_named(each, now) for each in unserved]),
        )
    wrong = [each for each in active if each.standing.trouble or _is_late(each, now)]
    if wrong:
        said = f"{len(wrong)} of {len(found)} schedules are late, or their last instant started nothing"
        todo = "`holdfast schedules show NAME` tells why"
        return Finding("schedules", WARN, said, todo, few([_named(each, now) for each in wrong]))
    return Finding("schedules", OK, f"{len(found)} schedules, {len(found) - len(active)} paused or over")


def _is_late(each: Schedule, now: int) -> bool:
    return each.next_at is not None and not each.standing.asked and each.next_at < now - _LATE


def _named(each: Schedule, now: int) -> str:
    late = f", overdue for {lasting(now - (each.next_at or now))}" if _is_late(each, now) else ""
    trouble = f": {each.standing.trouble}" if each.standing.trouble else ""
    return f"{each.name} ({each.flow}){late}{trouble}"


async def _dead(service: RunService) -> Finding | None:
    rows = await service.dead(limit=1000)
    if not rows:
        return None
    many = "1,000 or more" if len(rows) == 1000 else f"{len(rows)}"
    return Finding(
        "dead letters",
        WARN,
        f"{many} runs were given up because their workers fell silent again and again",
        "`holdfast dead show RUN` tells where they stood; then `dead retry` or `dead discard`",
        few([f"{row.id[:8]} ({row.flow})" for row in rows]),
    )
