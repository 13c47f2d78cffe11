"""What a store does for a fleet: limits, schedules, the workers that run and that died, figures, runs of
other engines.

The rules of `store.protocols` apply: each method is one transaction and may be called twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.store.rows import (
    Claim,
    ClaimRequest,
    RunMove,
    RunRow,
)
from holdfast.types.concurrency_limits import LimitRow
from holdfast.types.event import EventRow
from holdfast.types.fleet import (
    Death,
    EndedRun,
    FleetFigures,
    HoldTimes,
    RecentRows,
    WaitingRuns,
    WorkerRow,
)
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.schedule import ScheduleRow


class LimitRows(Protocol):
    """Claims respect limits, however a run is claimed: any run, one by id, or as it is created. At most
    `concurrency` runs of a limit have a lease at a time (an expired lease counts until it is reclaimed), and
    in any window of length `per` at most `rate` runs start. A run starts when it is claimed while it is
    pending."""

    async def put_limit(self, row: LimitRow) -> LimitRow:
        """Store a limit that a flow declares or that an operator fixed; the two are separate rows. Fixing the
        limit of a whole flow also assigns it to the flow's live runs that have no limit."""
        ...

    async def limits(
        self, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[tuple[LimitRow, int, int]]:
        """The effective limits in order of name, each with the number of its runs that have a lease and the
        number that are ready. Keys in use by runs are listed too, with `updated_at` 0 if they have no row."""
        ...

    async def drop_limit(self, name: str, *, fixed: bool = True) -> bool:
        """Remove the row that an operator fixed, so that what the flow declares applies again. Without
        `fixed`: remove the declared row, until the flow declares it again."""
        ...


class Schedules(Protocol):
    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        """Returns the row with its new revision. `expect`: replace only this revision (0: only create);
        returns None if the stored revision is another."""
        ...

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None: ...

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        """In order of tenant and name."""
        ...

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        """The schedules of these flows whose `next_at` has passed by the store's clock; the longest overdue
        first."""
        ...

    async def next_schedule(self, flows: tuple[str, ...]) -> int | None:
        """When the earliest of these flows' schedules is due."""
        ...

    async def drop_schedule(self, tenant: str, name: str) -> bool: ...


class Workers(Protocol):
    async def put_worker(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        """Register the worker, or renew its registration, for `ttl` from now. Returns None, or the live
        worker of another incarnation that has this name: then nothing is written."""
        ...

    async def workers(self) -> list[WorkerRow]:
        """In order of name, including those that stopped heartbeating within the last day."""
        ...

    async def drop_worker(self, name: str, incarnation: str) -> None:
        """Remove the row of a worker that has shut down."""
        ...

    async def deaths(self, run: RunId) -> list[Death]:
        """Oldest first. `reclaim` writes one for each lease that expired while its run was being advanced."""
        ...

    async def next_suspect(self, want: ClaimRequest, *, limited: bool = False) -> int | None:
        """Since when the first suspect that `want` serves has been ready; None: there is none. `limited`:
        also those with a limit, which may be the reason why they wait."""
        ...

    async def end_isolation(self, lease: Lease) -> bool:
        """The run made progress: it is no suspect any more, and its worker may claim others. False if the
        term is not current."""
        ...

    async def leases_ahead(self, beyond: int, *, limit: int) -> list[RunRow]:
        """Runs whose lease ends more than `beyond` from now: their workers have longer leases, or the clock
        was set back since."""
        ...

    async def expire_leases(self, rows: Sequence[RunRow]) -> int:
        """End these leases now, so that `reclaim` finds them; those that were extended or released since
        they were read are left out. Returns their number."""
        ...

    async def correct_ready_times(self) -> int:
        """After the clock was set back: runs, and messages of queues and of the outbox, that were written
        later than now, and are ready later than now, are ready as much earlier as the clock was set back; so
        do claims of messages end. Starts later than now count against no rate. Returns how many were
        corrected."""
        ...

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        """Claim the dead run `want.run` in order to end it: like a resume and a claim in one transaction,
        whatever its limit, so that no worker loads it in between. None if it is not a dead run (any more)."""
        ...


class UnservedRuns(Protocol):
    """Runs that wait for what no live worker has."""

    async def waiting_runs(self, versions: Sequence[str]) -> list[WaitingRuns]:
        """The runs of these versions that could be claimed, by lane, flow, version and what they were
        told."""
        ...

    async def tell_missing(
        self, of: WaitingRuns, missing: Sequence[str], *, limit: int, but: Sequence[RunId] = ()
    ) -> int:
        """Adds one event to each of these runs that was told something else: what it waits for, or that a
        worker has it. Returns how many there were; called again, it finds none of them. `but`: runs that are
        left out, because they wait for something else than others of their version."""
        ...

    async def tell_run(self, run: RunId, missing: Sequence[str]) -> int:
        """The same for one run that could be claimed."""
        ...

    async def tell_taken(self, *, limit: int) -> int:
        """The same for runs that a worker has claimed since they were told to wait."""
        ...


class FleetStatistics(Protocol):
    async def fleet_figures(self, *, ages: tuple[int, ...]) -> FleetFigures: ...

    async def ended_runs(self, tenant: str, *, since: int, limit: int) -> RecentRows[EndedRun]:
        """The `limit` runs of a tenant that ended last, since then."""
        ...

    async def hold_times(self, tenant: str, *, since: int, limit: int) -> RecentRows[HoldTimes]:
        """The holds of a tenant that were open since then, among its `limit` newest of each status.
        Those that no person is asked are left out."""
        ...


class Fleet(LimitRows, Schedules, Workers, UnservedRuns, FleetStatistics, Protocol):
    """Everything that a store does for a fleet: limits, schedules, workers, deaths, unserved runs,
    statistics."""


class EngineRuns(Protocol):
    """Runs that an engine drives instead of the built-in workers. It has their leases, under its name and
    without an end."""

    async def move_run(self, move: RunMove) -> RunRow | None:
        """Give the lease of a run to an engine, or take it from one: the term grows, so that the run has one
        owner at every moment. Without an engine the run is parked, and claimable if a message waits for it.
        With `resume`, a failed run is moved and runs again; otherwise one that waits. None if it is another
        one by now, or has another worker, term or last record than `move` names."""
        ...

    async def change_limit(self, lease: Lease, limit: str) -> bool:
        """The run counts against this limit from now on, while it keeps its lease; '' for none. False if the
        limit does not admit it, or the term is not current."""
        ...

    async def mark_dead(self, run: RunId, *, death: Death, event: EventRow) -> bool:
        """A run that failed because its workers were lost is a dead letter: the death is recorded. False if
        it has not failed in the term of the death, or is one already."""
        ...
