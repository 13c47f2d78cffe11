"""What a store does for a fleet: limits, schedules, the workers that run and that died, figures.

The rules of `store.protocols` apply: each method is one transaction and may be called twice."""

from __future__ import annotations

from typing import Protocol

from holdfast.store.rows import (
    Claim,
    ClaimRequest,
)
from holdfast.types.concurrency_limits import LimitRow
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death, FleetFigures, WorkerRow
from holdfast.types.ids import RunId
from holdfast.types.schedule import ScheduleRow


class LimitRows(Protocol):
    """Claims respect gates, however a run is claimed: any, by name, or as it is created. More runs than the
    gate's `concurrency` never have a lease (one that lapsed counts until it is reclaimed), and in no span of
    `per` do more than `rate` runs start, which is: are claimed while they are pending."""

    async def put_limit(self, gate: LimitRow) -> LimitRow:
        """What a flow declares, or what an operator fixed; the two do not change each other. With a fixed
        gate of a whole flow its live runs that stand at none come to it."""
        ...

    async def gates(
        self, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[tuple[LimitRow, int, int]]:
        """By name, as they hold, each with how many of its runs have a lease and how many are ready. With the
        keys that runs stand at just now, though they have no gate of their own (`updated_at` 0)."""
        ...

    async def drop_limit(self, name: str, *, fixed: bool = True) -> bool:
        """What an operator fixed, so that what the flow declares holds again; not `fixed`: that, until
        it is declared again."""
        ...


class Schedules(Protocol):
    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        """The row with its new revision. `expect`: only over this revision (0: only if it is new); None where
        it is another."""
        ...

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None: ...

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        """By tenant and name."""
        ...

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        """Of these flows, whose `next_at` has come by the store's time; the longest due first."""
        ...

    async def next_schedule(self, flows: tuple[str, ...]) -> int | None:
        """When the earliest of these flows' schedules is due."""
        ...

    async def drop_schedule(self, tenant: str, name: str) -> bool: ...


class Workers(Protocol):
    async def announce(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        """Alive for `ttl` from now. None, or the live worker of another incarnation that has this name: then
        nothing is written."""
        ...

    async def workers(self) -> list[WorkerRow]:
        """By name, also those that have fallen silent within the last day."""
        ...

    async def dismiss(self, name: str, incarnation: str) -> None:
        """It has ended properly: its row goes."""
        ...

    async def deaths(self, run: RunId) -> list[Death]:
        """The oldest first. Written by `reclaim` for leases that lapsed while their run was under way."""
        ...

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        """The dead run `want.run` for whoever ends it: as if it were asked to go on and claimed at once, past
        its gate, so that no worker loads it between. None where it is no dead run (any more)."""
        ...


class FleetStatistics(Protocol):
    async def figures(self, *, ages: tuple[int, ...]) -> FleetFigures: ...


class Fleet(LimitRows, Schedules, Workers, FleetStatistics, Protocol):
    """All of it."""
