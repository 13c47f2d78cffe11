"""Workers, how they ended, and how much work waits."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

WORKER_ROW_RETENTION: Final = 24 * 3600 * 1_000_000
"""Microseconds for which a worker that stopped heartbeating is still listed."""

T = TypeVar("T")


class BlockedEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity that stays taken (ADR 94): code of its run was stopped and goes on. `nodes`: where the run
    was then. `since`: when it was stopped."""

    entity: str
    run: str
    flow: str
    nodes: str
    since: int


HOLD_RULES: Final = "holds:"
"""Before what a worker knows of policies and people, among its `offers`."""


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as of its last heartbeat. `incarnation` distinguishes two processes that use one name."""

    name: str
    incarnation: str
    host: str
    pid: int
    release: str  # the version of Holdfast
    started_at: int
    seen_at: int = 0
    until: int = 0  # counts as alive until then, by the store's clock
    lanes: tuple[str, ...] | None = None
    versions: dict[str, str] = {}  # the flow of each version that it serves
    concurrency: int = 0
    busy: int = 0
    hot: int = 0
    draining: bool = False
    place: str = ""  # the machine or container that `pid` belongs to; '': not known
    skew: int = 0  # microseconds that its machine's clock is ahead of the store's
    records: int = 0  # written since it started
    ended: int = 0  # runs that ended on it since it started
    records_per_second: float = 0.0  # recently
    ended_per_second: float = 0.0
    offers: tuple[str, ...] = ()  # what documents may name: `function:score`, `check:pii`, `tool:grep`
    lacking: tuple[str, ...] = ()  # versions of documents that name what it does not have
    blocked: tuple[BlockedEntity, ...] = ()  # entities that its code keeps taken
    unstored: dict[str, str] = {}  # why a large value of a run cannot be stored now; the run waits
    unserved: dict[str, tuple[str, ...]] = {}  # what runs and versions need that it found it does not have

    def is_alive(self, now: int) -> bool:
        """A row from the future is of before the clock was set back: a live worker renews its own soon."""
        length = self.until - self.seen_at
        return self.seen_at - length < now < self.until


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that expired while its run was running: what is known of the worker's end."""

    term: int
    worker: str
    at: int
    lease_until: int
    head: int
    status: str
    alone: bool = True  # no other run was under way on that worker; only such a death is counted


class EndedRun(msgspec.Struct, frozen=True):
    at: int
    status: str


class HoldTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When a hold was opened and ended, and its deadline. `ended_by`: a person, a policy or the system."""

    status: str
    created_at: int
    ended_at: int | None
    ended_by: str | None
    expires_at: int | None
    original_timeout: int | None
    escalations: int


class RecentRows(msgspec.Struct, Generic[T], frozen=True):
    """The newest rows, as many as are read at most. `since`: older ones exist, and were not read."""

    rows: list[T]
    since: int | None = None


class LaneFigures(msgspec.Struct, frozen=True, kw_only=True):
    lane: str
    ready: int  # could be claimed now
    oldest: int  # microseconds that the oldest has been ready
    running: int  # with a lease, and not waiting
    in_line: int = 0  # ready, but a limit is reached: another worker would not help


class VersionBacklog(msgspec.Struct, frozen=True, kw_only=True):
    """Ready runs of one version in one lane, limits or not."""

    lane: str
    flow: str
    version: str
    ready: int
    oldest: int  # microseconds that the oldest has been ready


class WaitingRuns(msgspec.Struct, frozen=True):
    """Runs of one lane, flow and version that could be claimed. `mark`: of what they were last said to
    wait for, '' for nothing (`store.unserved`)."""

    lane: str
    flow: str
    version: str
    mark: str
    runs: int = 0


class ScheduledFlow(msgspec.Struct, frozen=True, kw_only=True):
    """Schedules of one flow that will fire."""

    flow: str
    schedules: int
    next_at: int


class FleetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Counts at one moment. They are read from indexes, so the cost does not grow with the history."""

    at: int
    lanes: list[LaneFigures]
    statuses: dict[str, int]  # live runs only, without imported ones
    dead: int  # dead letters: runs given up because their workers died too often
    holds: list[tuple[int, int]]  # (age below, in microseconds; 0: older than all), how many are pending
    oldest_hold: int
    timer_lag: int  # microseconds that the earliest timer has been due; 0: none is
    hold_lag: int  # the same for deadlines and reminders of holds
    schedule_lag: int
    outbox_waiting: int
    outbox_dead: int
    versions: list[VersionBacklog] = []  # the largest ones, if there are very many
    scheduled: list[ScheduledFlow] = []
    timers: int = 0  # waits for a time: sleeping runs, and those in memory
    next_timer: int | None = None  # microseconds until the first of them ends; 0: it is due
    suspects: int = 0  # runs that lost two workers in a row without progress
