"""Runs whose worker fell silent: when they are taken up again, and what is kept as evidence.

A run may have killed its worker, and would kill the next one. So recoveries are counted while nothing gets
done between them, each waits longer than the one before, and over the bound the run is given up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.types.backoff import Backoff
from holdfast.types.clock import iso
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.record import Kind

# Records that say that something got done. An attempt or an intent only says that it was begun again.
PROGRESS: Final = (Kind.substep, Kind.asked, Kind.step)
MAX_DELAY_FACTOR: Final = 16
SHOWN: Final = 10


def recovery_delay(recoveries: int, backoff: int) -> int:
    """Before the run may be claimed for the `recoveries`-th time in a row: 0, 1, 2, 4 .. 16 x `backoff`."""
    bounded = Backoff(first=backoff, longest=backoff * MAX_DELAY_FACTOR)
    return 0 if recoveries < 2 else int(bounded.pause(recoveries - 1))


def death_event(death: Death, recoveries: int, ready_at: int | None) -> EventRow:
    """For the run's stream. `ready_at` None: it is given up."""
    data = {
        "worker": death.worker,
        "term": death.term,
        "head": death.head,
        "recoveries": recoveries,
        "lease_until": death.lease_until,
    }
    if ready_at is None:
        return EventRow(0, death.at, "run.given_up", msgspec.json.encode(data))
    return EventRow(0, death.at, "run.recovered", msgspec.json.encode({**data, "ready_at": ready_at}))


def death_summary(deaths: Sequence[Death], bound: int) -> str:
    """`deaths`: those in a row, the oldest first."""
    last = [f"{death.worker} at {iso(death.lease_until)} (record {death.head})" for death in deaths[-SHOWN:]]
    more = "" if len(deaths) <= SHOWN else f"{len(deaths) - SHOWN} earlier, "
    return (
        f"The run's worker fell silent {len(deaths)} times in a row and nothing got done between "
        f"(bound: {bound}): {more}{', '.join(last)}."
    )
