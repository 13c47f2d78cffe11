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
from holdfast.types.record import Record
from holdfast.types.status import RunStatus


class Capability(Flag):
    """What a store can do beyond the common ground; the conformance suite asks for these."""

    durable = auto()  # survives the end of the process
    shared = auto()  # several processes at once
    inline = auto()  # settle_now: a commit in place, without waiting
    notifies = auto()  # tells other processes at once, not by polling


class NewRun(msgspec.Struct, kw_only=True):
    """A run about to exist. Its record 0 is written with it, so that a checkpoint always exists (D-2)."""

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
    # The gate that it stands at, '' for none; where that is shut the run is not claimed at once: it waits in
    # line, pending. `gates` are what its flow declares, written with the run. A run at no gate comes to that
    # of its flow (`types.gate.flow_gate`) where an operator fixed one.
    gate: str = ""
    gates: list[LimitRow] = []


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it stands."""

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
    migrated: int = 0  # the record at which it went over to its present version; 0: it was started on it
    gate: str = ""  # the gate that it stands at
    dead: bool = False  # given up by the reaper: its worker fell silent too often (see `deaths`)


class RunHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A run with all that tells its history, as one store hands it to another."""

    run: RunRow
    records: list[Record]  # contiguous from `run.horizon` on, each with its event_from
    events: list[EventRow]
    holds: list[HoldRow]
    late: list[tuple[int, bytes]]
    blobs: list[bytes]  # the digests that the run refers to
    deaths: list[Death] = []


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
    created_after: int | None = None
    created_before: int | None = None
    dead: bool | None = None  # and not imported: nobody can deal with those here


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker can take on. `versions` None: any; one without a digest, such as `attractor`, stands for
    all that begin with it and a hyphen. `run`: exactly this one, whatever its lane."""

    worker: str
    ttl: int  # microseconds
    limit: int = 1
    lanes: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None
    run: RunId | None = None

    def serves(self, version: str) -> bool:
        wanted = self.versions
        return wanted is None or version in wanted or version.partition("-")[0] in wanted


class FlowRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    graph: bytes
    created_at: int


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Where the structure of a store is not what Holdfast made. Not `grave`: somebody's own, or a setting."""

    what: str
    todo: str
    grave: bool


class StoreFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a store, for `holdfast doctor`."""

    schema: int  # the number of its newest migration
    size: int  # bytes on disk, as far as the store knows
    problems: list[str]  # what is broken in its own structure
    lapsed: list[RunId]  # runs whose lease expired and that were not reclaimed yet
    blobs: int
    unreferenced: int  # blobs that no run names: garbage until a prune collects them
    condemned: int
    missing: list[bytes]  # blobs that runs name and that are not there: lost values
    outside: list[bytes] = []  # `deep`: blobs whose bytes are kept elsewhere
    drift: list[Drift] = []
    unfinished: list[int] = []  # migrations whose second half is still to come
