"""Retention: ended runs and their old records are deleted, with blobs that no run refers to and old rows of
the feed.

A sweep deletes ended runs as the retention of their flow says, and blobs that are not referred to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import HoldfastError, RunBusyError, StoreError
from holdfast.holds.permissions.starters import RunStarters
from holdfast.runs.collect_blobs import collect_blobs
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.runs.hold_states import delete_states, state_keys
from holdfast.runs.prune_run import horizon_for, prune, require_ended
from holdfast.store.rows import RunFilter
from holdfast.telemetry import log
from holdfast.types.ids import RunId
from holdfast.types.retention import KEEP, Retention
from holdfast.types.status import ENDED, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow


BATCH = 500


class RetentionItem(msgspec.Struct, frozen=True, kw_only=True):
    """What retention deletes of one run: all of it (`whole`), or its records before `horizon`."""

    run: RunId
    flow: str
    status: RunStatus
    whole: bool
    horizon: int
    records: int
    bytes: int


class CleanupResult(msgspec.Struct):
    """What a clean-up did. `skipped`: runs that could not be read and were not changed; `why`: the last
    error."""

    runs: int = 0
    records: int = 0
    skipped: int = 0
    why: str = ""
    feed: int = 0  # rows of the feed


# ---------------------------------------------------------------------- many runs


async def plan(
    service: RunAccess,
    retention: Retention,
    *,
    flow: str | None = None,
    runs: tuple[str, ...] = (),
    since: int | None = None,
    measured: bool = True,
) -> AsyncIterator[RetentionItem]:
    """What that retention would delete of the ended runs (of one flow; or of these). Changes nothing.
    `since`: runs that have not changed since that instant were handled then; only their age is checked. Not
    `measured`: sizes are not counted, because that needs reading the records."""
    async for row in _ended(service, flow, runs):
        if since is not None and row.updated_at < since and not _is_old(service, row, retention):
            continue
        share = await share_of(service, row, retention, measured=measured)
        if share is not None:
            yield share


async def _ended(service: RunAccess, flow: str | None, runs: tuple[str, ...]) -> AsyncIterator[RunRow]:
    for run in runs:
        row = await service.get(run)
        require_ended(row)
        yield row
    if runs:
        return
    where = RunFilter(status=tuple(ENDED), flow=flow)
    after: tuple[int, int] | None = None
    while rows := await service.store.list_runs(where, after=after, limit=BATCH):
        after = (rows[-1].created_at, rows[-1].key)
        for row in rows:
            yield row


async def share_of(
    service: RunAccess, row: RunRow, retention: Retention, *, measured: bool = True
) -> RetentionItem | None:
    """None if nothing of the run is to be deleted."""
    whole = _is_old(service, row, retention)
    if not whole and retention.keep is None:
        return None
    horizon = row.head + 1 if whole else await horizon_for(service, row, retention.keep or 1)
    if horizon is None or horizon <= row.horizon:
        return None
    records = await service.store.read(row.id, last=horizon - 1, payloads=False) if measured else []
    return RetentionItem(
        run=row.id,
        flow=row.flow,
        status=row.status,
        whole=whole,
        horizon=horizon,
        records=len(records),
        bytes=sum(record.size for record in records),
    )


def _is_old(service: RunAccess, row: RunRow, retention: Retention) -> bool:
    age = retention.seconds
    if age is None:
        return False
    return (row.ended_at or row.updated_at) < service.store.now() - int(age * 1e6)


async def apply_item(
    service: RunAccess, share: RetentionItem, retention: Retention, done: CleanupResult
) -> None:
    """Carry out the plan; a run that was resumed meanwhile is skipped, and so is one that another worker
    handled."""
    if share.whole:
        row = await service.store.get_run(share.run)
        states = await state_keys(service, share.run)
        deleted = await service.store.delete_run(share.run, ended=True)
        done.runs += deleted
        if deleted and row is not None:
            await delete_states(service, row.tenant, states)
            await RunStarters(service.store).delete(row.tenant, row.id)
            from holdfast.holds.policies.shadow import delete_shadows

            await delete_shadows(service.store, row.tenant, row.id)
            from holdfast.runs.steer_messages import SteerMessages

            await SteerMessages(service.store, row.tenant, row.id).remove_all()
        return
    try:
        done.records += await prune(service, share.run, keep=retention.keep or KEEP)
    except HoldfastError as error:
        # An outage ends the sweep. Any other error concerns this run only, and must not keep the others from
        # being cleaned.
        if isinstance(error, StoreError) and error.retryable:
            raise
        if not isinstance(error, RunBusyError):
            done.skipped += 1
            done.why = str(error)


async def clean(
    service: RunAccess,
    *,
    keep: int | None = KEEP,
    older_than: float | None = None,
    flow: str | None = None,
) -> CleanupResult:
    """Retention by count and by age, over the ended runs (of one flow).

    Those that ended more than `older_than` seconds ago are deleted, the others keep their last `keep`
    checkpoints. A run that has not ended is not changed.
    """
    days = None if older_than is None else older_than / 86_400
    return await apply(service, Retention(keep, days), flow=flow)


async def apply(
    service: RunAccess, retention: Retention, *, flow: str | None = None, since: int | None = None
) -> CleanupResult:
    done = CleanupResult()
    async for share in plan(service, retention, flow=flow, since=since, measured=False):
        await apply_item(service, share, retention, done)
    return done


def declared_retention(service: RunAccess, override: Retention | None = None) -> dict[str, Retention]:
    """By flow, for the flows that this process serves. Of several versions the one loaded last counts."""
    programs = service.runtime.programs.values()
    return {program.graph.name: override or program.retention for program in programs}


async def make_room(
    service: RunAccess, override: Retention | None = None, since: int | None = None
) -> CleanupResult:
    """Apply the retention of every flow that this process serves (R-42)."""
    total = CleanupResult()
    rule = override or service.runtime.settings.retention
    for flow, retention in declared_retention(service, rule).items():
        done = await apply(service, retention, flow=flow, since=since)
        total.runs += done.runs
        total.records += done.records
        total.skipped += done.skipped
    return total


async def make_room_at_once(service: RunAccess) -> CleanupResult:
    """For a store that is full: the space is free at once. A sweep leaves that to the store."""
    done = await make_room(service)
    if done.runs or done.records:
        await service.store.free_space()
    return done


_EVER = 1 << 62


async def trim_feed(service: RunAccess, kept: float) -> int:
    """Delete rows of the feed that are older than `kept` seconds. Returns their number; a few thousand in
    each transaction, so that no settle waits."""
    store = service.store
    # 0 seconds: everything, also what is written during the call.
    before, total = store.now() - int(kept * 1e6) if kept else _EVER, 0
    while gone := await store.trim_feed(before=before):
        total += gone
    return total


EVERY = 3600.0
FIRST = 60.0


class RetentionSweep:
    """Applies the retention of the flows that its process serves; `retention` overrides them all.

    Any number of workers may do this at once: each run is pruned in one transaction that checks again whether
    it has ended and whether another worker has pruned it.
    """

    def __init__(
        self, service: RunAccess, *, retention: Retention | None = None, every: float = EVERY
    ) -> None:
        self.service = service
        self.retention = retention
        self.every = every
        # When the last sweep began; runs that have not changed since were handled then.
        self._swept: int | None = None

    async def sweep(self) -> CleanupResult:
        began = self.service.store.now()
        total = await make_room(self.service, self.retention, self._swept)
        # Set only after success, to the start of the sweep: runs that changed meanwhile are looked at again.
        self._swept = began
        total.feed = await trim_feed(self.service, self.service.runtime.settings.feed_kept)
        # After the runs: deleting them removes the last references to their blobs.
        await collect_blobs(self.service)
        for clean in self.service.runtime.cleanups:
            await clean()
        if self.service.runtime.settings.reencrypt:
            await reencrypt(self.service)
        if total.runs or total.records:
            log.info("retention: deleted %d runs and %d records of other runs", total.runs, total.records)
        return total

    async def serve(self) -> None:
        """Until cancelled. The first sweep is delayed: a worker that starts has other work first."""
        clock = self.service.runtime.clock
        pause = min(self.every, FIRST)
        while True:
            await clock.sleep(pause)
            pause = self.every
            try:
                await self.sweep()
            except HoldfastError as error:
                log.warning("retention could not be applied, trying again later: %s", error)
