"""Recovery of runs whose worker stopped heartbeating: when they can be claimed again, and the evidence.

A run may have killed its worker, and would kill the next one. So recoveries without progress in between are
counted, each waits longer than the last, and over the limit the run is given up. A death beside other runs
counts for none of them. Most workers die for another reason, so that after a first death all of them continue
at once; from the second one in a row on, each is a suspect, claimed alone until it makes progress (ADR 140).
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

# Records of progress. An attempt or an intent only shows that something was begun again.
PROGRESS: Final = (Kind.substep, Kind.asked, Kind.step)
MAX_DELAY_FACTOR: Final = 16
SHOWN: Final = 10


def recovery_delay(recoveries: int, backoff: int) -> int:
    """The delay before the run may be claimed for the `recoveries`-th time in a row: 0, 1, 2, 4 .. 16 x
    `backoff`."""
    bounded = Backoff(first=backoff, longest=backoff * MAX_DELAY_FACTOR)
    return 0 if recoveries < 2 else int(bounded.pause(recoveries - 1))


def recoveries_after(before: int, *, progressed: bool, alone: bool) -> int:
    """How many deaths in a row count against the run."""
    return (0 if progressed else before) + alone


def death_event(death: Death, recoveries: int, ready_at: int | None) -> EventRow:
    """For the run's stream of events. `ready_at` None: the run is given up."""
    data = {
        "worker": death.worker,
        "term": death.term,
        "head": death.head,
        "recoveries": recoveries,
        "lease_until": death.lease_until,
        "alone": death.alone,
    }
    if ready_at is None:
        return EventRow(0, death.at, "run.given_up", msgspec.json.encode(data))
    return EventRow(0, death.at, "run.recovered", msgspec.json.encode({**data, "ready_at": ready_at}))


def death_summary(deaths: Sequence[Death], bound: int) -> str:
    """`deaths`: consecutive ones, the oldest first."""
    last = [f"{death.worker} at {iso(death.lease_until)} (record {death.head})" for death in deaths[-SHOWN:]]
    count = "1 time" if len(deaths) == 1 else f"{len(deaths)} times"
    more = "" if len(deaths) <= SHOWN else f"{len(deaths) - SHOWN} earlier, "
    return (
        f"The run's worker stopped heartbeating {count} in a row without progress "
        f"(limit: {bound}): {more}{', '.join(last)}."
    )
