"""Who works, who died, and how much there is to do."""

from __future__ import annotations

from typing import Final

import msgspec

WORKER_ROW_RETENTION: Final = 24 * 3600 * 1_000_000
"""Microseconds for which a worker that fell silent is still told of."""


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it last said of itself. `incarnation` tells apart two processes that use one name."""

    name: str
    incarnation: str
    host: str
    pid: int
    release: str  # the version of Holdfast
    started_at: int
    seen_at: int = 0
    until: int = 0  # said to be alive until then, by the store's time
    lanes: tuple[str, ...] | None = None
    versions: dict[str, str] = {}  # which flow each version that it carries belongs to
    concurrency: int = 0
    busy: int = 0
    hot: int = 0
    draining: bool = False
    place: str = ""  # whose process numbers `pid` is one of; '': not known
    skew: int = 0  # microseconds that its machine's clock is ahead of the store's
    records: int = 0  # that became durable since it started
    ended: int = 0  # runs that it brought to their end since then
    records_per_second: float = 0.0  # of late
    ended_per_second: float = 0.0


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that lapsed while its run was under way: what is known of the worker's end."""

    term: int
    worker: str
    at: int
    lease_until: int
    head: int
    status: str


class LaneFigures(msgspec.Struct, frozen=True, kw_only=True):
    lane: str
    ready: int  # could be claimed now
    oldest: int  # microseconds that the longest has been ready
    running: int  # have a lease
    in_line: int = 0  # ready too, but a limit lets no more of them pass: another worker would not help them


class FleetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """As of one moment. Read from indexes: asking for it costs little however long the history is."""

    at: int
    lanes: list[LaneFigures]
    statuses: dict[str, int]  # live runs only, and none that was imported to be read
    dead: int  # runs given up because they killed their workers
    holds: list[tuple[int, int]]  # (age below, in microseconds; 0: older than all), how many are pending
    oldest_hold: int
    timer_lag: int  # microseconds that the earliest timer has been due; 0: none is
    hold_lag: int  # the same for what sweeps of holds do
    schedule_lag: int
    outbox_waiting: int
    outbox_dead: int
