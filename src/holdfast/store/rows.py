"""The rows that a store takes and gives: runs, claims, flows, and what an inspection finds."""

from __future__ import annotations

from enum import Flag, auto

import msgspec

from holdfast.types.concurrency_limits import LimitRow
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.hold import (
    HoldRow,
)
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.outbox import OutboxMessage
from holdfast.types.record import NewTimer, Record
from holdfast.types.status import RunStatus


class Capability(Flag):
    """What a store can do beyond the protocols; the conformance suite checks what is declared."""

    durable = auto()  # survives the end of the process
    shared = auto()  # several processes at once
    inline = auto()  # settle_now: a commit in place, without waiting
    notifies = auto()  # wakes other processes at once, without polling


class NewRun(msgspec.Struct, kw_only=True):
    """A run to be created. Its record 0 is written with it, so that a checkpoint always exists (D-2)."""

    id: RunId
    tenant: str
    flow: str
    version: str
    code: str
    lane: str
    priority: int
    thread: str | None = None
    instance_key: str | None = None
    idempotency_key: str | None = None
    started_by: str | None = None
    deployment: str | None = None
    parent_run: RunId | None = None
    forked_from: str | None = None
    supersedes: RunId | None = None
    created_at: int
    ready_at: int | None
    first: list[Record]
    # Created and claimed in one transaction, by the process that will run it: term 1, running.
    claimed_by: str | None = None
    lease_until: int | None = None
    # The name of the limit that it counts for, '' for none. If that limit is reached the run is not claimed
    # at once: it is queued (pending). `limits` are those that its flow declares, written with the run. A run
    # without one gets the limit of its flow (`types.concurrency_limits.flow_limit`) if an operator fixed one.
    limit: str = ""
    limits: list[LimitRow] = []


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it is stored."""

    key: int
    id: RunId
    tenant: str
    flow: str
    version: str
    code: str
    status: RunStatus
    lane: str
    priority: int
    term: int
    worker: str | None
    lease_until: int | None
    head: int
    event_seq: int
    inbox_seq: int
    ready_at: int | None
    thread: str | None
    instance_key: str | None
    parent_run: RunId | None
    forked_from: str | None
    superseded_by: RunId | None
    created_at: int
    updated_at: int
    ended_at: int | None
    recoveries: int
    error: str | None
    horizon: int  # records below it were pruned; 0 for a whole journal
    # History from another store (D-36): read, listed and forked; never claimed, and takes no messages.
    read_only: bool = False
    started_by: str | None = None
    deployment: str | None = None
    migrated: int = 0  # the record at which it was migrated to its present version; 0: it was started on it
    # The name of the limit that it counts for. Stored as `gate`: that is its column and its key in exports.
    limit: str = msgspec.field(default="", name="gate")
    dead: bool = False  # given up by the reaper: its workers stopped heartbeating too often (see `deaths`)
    # Its worker died while it was under way, and it has made no progress since: it is claimed alone.
    suspect: bool = False


class RunHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its whole history, as it is copied from one store to another."""

    run: RunRow
    records: list[Record]  # contiguous from `run.horizon` on, each with its event_from
    events: list[EventRow]
    holds: list[HoldRow]
    late: list[tuple[int, bytes]]
    blobs: list[bytes]  # the digests that the run refers to
    deaths: list[Death] = []


class RunMove(msgspec.Struct, frozen=True, kw_only=True):
    """Who drives a run changes. `worker`, `term` and `head`: as they were read. `to`: the engine that has it
    from now on, until `lease_until`; None: the built-in workers. `timers`: of the store, instead of those
    that there are. `resume`: the content of a message `resume` that is sent with it, to a failed run."""

    run: RunId
    worker: str | None
    term: int
    head: int
    event: EventRow
    to: str | None = None
    lease_until: int | None = None
    limit: str = ""
    timers: list[NewTimer] = []
    outbox: list[OutboxMessage] = []
    resume: bytes | None = None


class Claim(msgspec.Struct, frozen=True):
    lease: Lease
    run: RunRow
    since: int | None = None  # when it became ready; None: it was not queued


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str | None = None
    status: tuple[RunStatus, ...] = ()
    flow: str | None = None
    thread: str | None = None
    version: str | None = None
    deployment: str | None = None
    created_after: int | None = None
    created_before: int | None = None
    dead: bool | None = None  # excludes imported runs: they cannot be retried or discarded here
    # The statuses as they are shown at this instant: a running run whose lease has expired is resumable.
    shown_at: int | None = None
    started_by: str | None = None
    instance_key: str | None = None
    # The run that it was forked from, and the one whose script has started it.
    forked_from: str | None = None
    parent_run: str | None = None
    # Part of the error that it ended with; encrypted stores cannot search in it.
    error: str | None = None
    # Part of its flow's name, or the beginning of its id.
    text: str | None = None
    # Microseconds from its creation to its end; until `shown_at` for a run that has not ended.
    took_over: int | None = None
    took_under: int | None = None
    # Waiting at a breakpoint.
    at_breakpoint: bool = False
    # With a lease, also one that has expired; and with one of this worker.
    leased: bool = False
    worker: str | None = None


class ThreadRow(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that belong together, summed up."""

    id: str
    runs: int
    open_runs: int  # that have not ended
    pending_input_runs: int
    created_at: int  # of the first run
    last_run_at: int  # when the newest run was created
    updated_at: int


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker can take. `versions` None: any; a version without a digest, such as `attractor`, also
    matches all that begin with it and a hyphen. `run`: exactly this one, whatever its lane.

    `suspects`: only runs that lost two workers in a row without progress. The worker promises that no other
    run is under way on it, until the run has left it or `end_isolation` was called."""

    worker: str
    ttl: int  # microseconds
    limit: int = 1
    lanes: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None
    run: RunId | None = None
    suspects: bool = False

    def serves(self, version: str) -> bool:
        wanted = self.versions
        return wanted is None or version in wanted or version.partition("-")[0] in wanted


class FlowRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    graph: bytes
    created_at: int


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """A difference between the store's structure and the one that Holdfast creates. Not `grave`: an object
    that was added, or a setting."""

    what: str
    todo: str
    grave: bool


class StoreFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a store, for `holdfast doctor`."""

    schema: int  # the number of its newest migration
    size: int  # bytes on disk, as far as the store knows
    problems: list[str]  # damage in its own structure
    lapsed: list[RunId]  # runs whose lease expired and that were not reclaimed yet
    blobs: int
    unreferenced: int  # blobs that no run refers to: garbage until a prune collects them
    condemned: int
    missing: list[bytes]  # blobs that runs refer to and that do not exist: lost values
    outside: list[
        bytes
    ] = []  # blobs whose bytes are stored outside the store; without `deep` one that a run uses
    drift: list[Drift] = []
    unfinished: list[int] = []  # migrations whose second half has not run
    went_back: str = ""  # what the store had acknowledged and does not have any more
