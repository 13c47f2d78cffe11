"""A follower: a position in a log, and the entries after it as they are committed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.api.live.channel import RETRY_SECONDS
from holdfast.api.schemas.events import EncodedEvent, HoldEventWire, hold_event_wire
from holdfast.errors import FeedTrimmedError, StoreError
from holdfast.runs.run_view import RunWire, run_wire, shown_runs
from holdfast.types.ids import HoldId, RunId

if TYPE_CHECKING:
    from holdfast.api.live.hub import Hub
    from holdfast.holds.actions.context import HoldContext
    from holdfast.holds.permissions.actor import ActorMemberships
    from holdfast.holds.service import HoldService
    from holdfast.runs.service import RunService
    from holdfast.store.protocols import Store
    from holdfast.store.rows import RunRow
    from holdfast.types.audit import AuditRow
    from holdfast.types.hold import HoldRow
    from holdfast.types.terms import Actor

PAGE: Final = 100
HIDDEN_ACTIONS: Final = frozenset(
    {"access_refused", "exported", "file_read", "link_made", "link_opened", "links_revoked", "refused"}
)
"""Actions in the audit that do not change the hold for its followers."""


class StreamTimeouts(msgspec.Struct, frozen=True):
    """Seconds: the interval of keep-alive comments, and the maximum duration of a stream, after which a
    client reconnects and its credential is checked again."""

    beat: float = 15.0
    life: float = 3600.0


async def follow_run(
    hub: Hub, service: RunService, row: RunRow, after: int, patience: StreamTimeouts
) -> AsyncGenerator[Sequence[EncodedEvent]]:
    """Events with a number above `after`, in order, each once. An empty batch: nothing for a while. Ends
    after the last event of an ended run; a run that waits for input is still followed."""
    # Before the first read: an event committed in between would otherwise be missed.
    channel = hub.join(service, row)
    until = time.monotonic() + patience.life
    try:
        while not hub.closing and time.monotonic() < until:
            try:
                batch = await channel.after(after)
            except StoreError:
                # The stream survives an unavailable store: a browser does not reconnect after an error.
                await asyncio.sleep(RETRY_SECONDS)
                yield ()
                continue
            if batch:
                after = batch[-1].number
                yield batch
            elif channel.gone or (channel.over is not None and after >= channel.over):
                # Only when everything was read: an ended run may
                # still have events that this follower has not sent.
                return
            elif not await channel.signal.wait(patience.beat):
                # A run may end without an event: when it is superseded.
                channel.schedule_read()
                yield ()
    finally:
        hub.leave(channel)


async def follow_holds(
    hub: Hub, people: HoldService, actor: Actor, after: int, patience: StreamTimeouts
) -> AsyncGenerator[Sequence[HoldEventWire]]:
    """Changes of the holds that the actor may see, from the tenant's audit: it is numbered without gaps in
    the order of commits, and is never trimmed."""
    signal = hub.join_tenant(actor.tenant)
    until = time.monotonic() + patience.life
    try:
        while not hub.closing and time.monotonic() < until:
            try:
                rows = await people.store.audit(actor.tenant, after=after, limit=PAGE)
                seen = await _visible(people, actor, rows)
            except StoreError:
                await asyncio.sleep(RETRY_SECONDS)
                yield ()
                continue
            if seen:
                yield seen
            if rows:
                # Also if none of them was visible: otherwise the
                # same rows would be read and checked for ever.
                after = rows[-1].seq
            elif not await signal.wait(patience.beat):
                yield ()
    finally:
        hub.leave_tenant(actor.tenant)


FEED_WAIT: Final = 5.0
"""Seconds after which a follower of all runs reads the feed although the hub has seen nothing new in it."""


async def feed_end(store: Store) -> int:
    """The position of the last row that the feed shows. Searched with the feed itself: rows of transactions
    that are still open come later, although their positions may be lower."""
    low, step = 0, 1
    try:
        await store.feed(after=0, limit=1)
    except FeedTrimmedError as error:
        low = int(str(error.facts["floor"]))
    while await store.feed(after=low + step, limit=1):
        step *= 2
    high = low + step
    while low < high:
        middle = (low + high) // 2
        if await store.feed(after=middle, limit=1):
            low = middle + 1
        else:
            high = middle
    return low


async def known_position(store: Store, after: int) -> int:
    """That position, or the end of the feed if it is not there yet: of a store that was restored since."""
    try:
        if after == 0 or await store.feed(after=after - 1, limit=1):
            return after
    except FeedTrimmedError:
        return after  # the follower says so
    return min(after, await feed_end(store))


async def follow_runs(
    hub: Hub, service: RunService, tenant: str, after: int, patience: StreamTimeouts
) -> AsyncGenerator[list[tuple[int, RunWire]]]:
    """The tenant's runs that changed, as they are now, each with its last position in the feed: once in a
    batch, however often it changed. Raises FeedTrimmedError for a position that is gone."""
    until = time.monotonic() + patience.life
    while not hub.closing and time.monotonic() < until:
        try:
            rows = await service.store.feed(after=after, limit=PAGE)
            batch = await _changed_runs(service, tenant, {run: position for position, run, *_ in rows})
        except StoreError:
            await asyncio.sleep(RETRY_SECONDS)
            continue
        if rows:
            after = rows[-1][0]
        if batch:
            yield batch
        if len(rows) < PAGE:
            await hub.wait_for_feed(after, FEED_WAIT)


async def _changed_runs(
    service: RunService, tenant: str, positions: dict[RunId, int]
) -> list[tuple[int, RunWire]]:
    found = [await service.store.get_run(run) for run in positions]
    mine = [run for run in found if run is not None and run.tenant == tenant]
    shown = [run_wire(each) for each in await shown_runs(service.store, mine)]
    return sorted(((positions[RunId(run.id)], run) for run in shown), key=lambda each: each[0])


async def _visible(people: HoldService, actor: Actor, rows: Sequence[AuditRow]) -> list[HoldEventWire]:
    """Filtered by the same rule as `list`, checked once for each hold."""
    ctx = people.ctx
    now = ctx.now()
    # Read for each page: a person who lost a membership must
    # not see further changes for the life of the stream.
    standing = await ctx.standing(actor, now)
    known: dict[str, HoldRow | None] = {}
    found: list[HoldEventWire] = []
    for row in rows:
        if row.hold is None or row.action in HIDDEN_ACTIONS:
            continue
        if row.hold not in known:
            known[row.hold] = await _visible_hold(ctx, standing, row.hold, now)
        if (hold := known[row.hold]) is not None:
            found.append(hold_event_wire(row, hold))
    return found


async def _visible_hold(ctx: HoldContext, standing: ActorMemberships, hold: str, now: int) -> HoldRow | None:
    if standing.barred is not None:
        return None
    row = await ctx.store.hold(HoldId(hold))
    return row if row is not None and await ctx.may(standing, "view", row, now) else None
