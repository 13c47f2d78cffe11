"""What a store must do. Stores keep columns and bytes; codec, compression and spill happen one floor up.

Checked against PostgreSQL and MariaDB before it was fixed: nothing here needs UPDATE .. RETURNING
(MariaDB has none: lock the run row with SELECT .. FOR UPDATE, or use LAST_INSERT_ID), a held
connection between two calls, session state, or a second statement whose text depends on the answer
of the first within a batch. Time is the store's own clock unless a clock is injected (D-33).

Every method is one transaction, may be called twice with the same arguments, and on failure has
changed nothing. All may raise StoreError (busy, full, unavailable).

What a store does for a fleet: gates, schedules, who works, who died, figures.

The rules of `store.base` hold here too: each method is one transaction and may be called twice.

What a store does for holds: rows changed by one compare-and-set, notes, the audit, the outbox, documents.

The rules of `store.base` hold here too: each method is one transaction and may be called twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Flag, auto
from typing import Any, Protocol

import msgspec

from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.audit import AuditRow, NewAudit
from holdfast.types.ciphertext import StoredRow
from holdfast.types.document import Document
from holdfast.types.durability import Durability
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death, FleetFigures, WorkerRow
from holdfast.types.hold import (
    ChangeRefusal,
    Due,
    HoldChange,
    HoldFilter,
    HoldKey,
    HoldOrder,
    HoldRow,
    Note,
)
from holdfast.types.ids import HoldId, RunId
from holdfast.types.limit_rows import LimitRow
from holdfast.types.memory import Memory
from holdfast.types.outbox import OutboxRow, OutboxState
from holdfast.types.projection import Projection
from holdfast.types.record import InboxRow, Lease, Record, RunBatch, SettleAnswer
from holdfast.types.schedule import ScheduleRow
from holdfast.types.status import HoldStatus, RunStatus


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


class Holds(Protocol):
    async def hold(self, hold: HoldId) -> HoldRow | None: ...

    async def holds(
        self,
        *,
        run: RunId | None = None,
        status: HoldStatus | None = None,
        tenant: str | None = None,
        limit: int = 100,
    ) -> list[HoldRow]:
        """Oldest first."""
        ...

    async def list_holds(
        self,
        where: HoldFilter,
        *,
        order: HoldOrder = HoldOrder.oldest,
        after: Sequence[Any] | None = None,
        limit: int = 50,
    ) -> list[tuple[HoldRow, tuple[Any, ...]]]:
        """Each with its place: JSON values that `after` takes, stable while rows come and go (LI-2)."""
        ...

    async def count_holds(self, where: HoldFilter, *, limit: int = 10_000) -> int:
        """How many there are; counting ends at the limit."""
        ...

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        """All of it or nothing. The row as it is afterwards. Audit rows join their tenant's chain."""
        ...

    async def due_holds(self, due: Due, *, now: int, limit: int) -> list[HoldRow]:
        """By how long they have been due; none of imported history."""
        ...

    async def next_due_hold(self) -> int | None:
        """The earliest instant at which an expiry, a reminder or a placed decision falls due."""
        ...

    async def hold_key(self, hold: HoldId, actor: str, key: str) -> HoldKey | None: ...

    async def hold_notes(self, hold: HoldId, *, kinds: Sequence[str] = ()) -> list[Note]:
        """In the order in which they were first written."""
        ...


class Audit(Protocol):
    async def append_audit(self, tenant: str, entries: Sequence[NewAudit]) -> list[AuditRow]: ...

    async def audit(
        self, tenant: str, *, after: int = 0, limit: int = 1000, hold: str | None = None
    ) -> list[AuditRow]:
        """In order; the database refuses every change and every removal of a row."""
        ...

    async def audit_head(self, tenant: str) -> tuple[int, bytes]:
        """(seq, hash) of the last row, kept apart from the rows; (0, GENESIS) where there is none."""
        ...

    async def audit_tenants(self) -> list[str]: ...


class Outbox(Protocol):
    """Messages are claimed for a while, told, and finished. A key that was done is never handed out again."""

    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        """Waiting, due, not claimed (or the claim has lapsed). Claimed for `lease` microseconds; attempts
        grow by one."""
        ...

    async def finish_outbox(
        self, message: int, *, attempt: int, state: OutboxState, error: str | None = None, due_at: int = 0
    ) -> bool:
        """After attempt number `attempt`: done, skipped, dead, or waiting again until `due_at`. False where
        another claim came since."""
        ...

    async def list_outbox(
        self,
        *,
        tenant: str | None = None,
        state: OutboxState | None = None,
        hold: str | None = None,
        limit: int = 100,
    ) -> list[OutboxRow]:
        """As they were written; what waits, by topic and by how long it has been due."""
        ...

    async def replay_outbox(self, message: int) -> bool:
        """A dead message waits again, with no attempts. False where it is not dead."""
        ...


class Documents(Protocol):
    async def put_document(self, document: Document, *, expect: int | None = None) -> Document | None:
        """The document with its new revision. `expect`: only over this revision (0: only if it is new);
        None where it is another."""
        ...

    async def document(self, tenant: str, kind: str, name: str) -> Document | None: ...

    async def documents(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[Document]:
        """By name."""
        ...

    async def drop_document(self, tenant: str, kind: str, name: str) -> bool: ...


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


class Runs(Protocol):
    """Runs, leases and the journal's one way in."""

    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        """Write the run and its first records. (row, True), or the earlier run of the same tenant, flow and
        idempotency key with False. With `supersedes`, the old run ends as cancelled in the same transaction
        (its term grows, its open holds and timers close, `superseded_by` is set)."""
        ...

    async def get_run(self, run: RunId) -> RunRow | None: ...

    async def find_runs(self, prefix: str) -> list[RunRow]:
        """Runs whose id begins so (at most 10): checkpoint ids and short ids lead here."""
        ...

    async def list_runs(self, where: RunFilter, *, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
        """Newest first; `after` is (created_at, key) of the last row seen."""
        ...

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        """Take runs that are ready (ready_at <= now, no live lease, status not ended): term + 1, running.
        Order: priority (higher first), then fair between tenants (the tenant with fewest running runs
        first, then round-robin), then ready_at."""
        ...

    async def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """True where the term is unchanged, even after expiry (D-33)."""
        ...

    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        """Append each run's range, all in one commit; a refused run never fails the others (D-6, D-8).
        Checks term and head = first - 1; a range that is already there with the same term and digests
        is accepted again. Ending a run (side.status ended) also ends its lease. With `park` the run is let go
        in the same commit; where mail came meanwhile the records stand and `parked` is False."""
        ...

    async def park(self, lease: Lease, *, status: RunStatus, inbox_seen: int, ready_at: int | None) -> bool:
        """Give the lease back, where the term is ours and no inbox row came meanwhile (D-29). `ready_at`
        None: claimable only by the inbox or a timer; a moment: claimable from then on."""
        ...

    async def rest(self, lease: Lease, *, status: RunStatus) -> bool:
        """Say that the run only waits, while its holder keeps it (D-31): the status changes, the lease stays.
        The record with which it goes on says `running`. False: the term is not ours."""
        ...

    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        """Lapsed leases: term + 1, status resumable, claimable, recoveries + 1 (1 where something got done
        since the last), a row in `deaths` and the event `run.recovered`; a run over the bound fails, is
        `dead`, with the evidence in `error` and the event `run.given_up`. From the second recovery in a row
        on it is claimable only after `backoff`, twice as late each time (`store.dying`). A run whose status
        is pending stays pending (nothing was done), and one that only waited keeps its status and its count:
        that is no death."""
        ...

    async def lost_history(self, known: AcknowledgedState) -> RunRow | None:
        """Somebody was told that the run had come to `known`, and the store may not have it any more: it was
        put back, or lost its last commits in a failover. Where that is so the run stops, since what is
        missing may have had effects: a term above both, no lease, failed (one that has ended keeps its
        status), the evidence in `error`, an event `run.history_lost` whose number no reader has seen yet.
        None where the store has it all, the run is not there, or this was said since."""
        ...

    async def delete_run(self, run: RunId, *, ended: bool = False) -> bool:
        """The run with everything that belongs to it. Refused (False) while a lease is alive, and with
        `ended` for a run that has not ended (any more)."""
        ...


class Journal(Protocol):
    """Reading what was written."""

    async def read(
        self, run: RunId, *, first: int = 0, last: int | None = None, payloads: bool = True
    ) -> list[Record]:
        """Records by seq, without side; with payloads=False the payload is empty bytes."""
        ...

    async def listed(
        self, run: RunId, *, node: str | None = None, before: int | None = None, limit: int = 0
    ) -> list[Record]:
        """Records that count as checkpoints, newest first, with an empty payload."""
        ...

    async def last_snapshot(self, run: RunId, at_most: int) -> int | None:
        """The seq of the newest snapshot or created record not after `at_most`."""
        ...

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Record | EventRow]:
        """In order of number, from the first whose last event number is > after. Records carry event_from
        and events; a record's events are numbered event_from .. event_from + events - 1."""
        ...

    async def event_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        """The number of each run's last event; a run that is not there is left out. For whoever follows many
        runs: unlike the feed it waits for no other run's transaction."""
        ...

    async def feed(self, *, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
        """Over all runs in commit order: (position, run, first event number, last event number). Raises
        FeedTrimmedError where rows after `after` were trimmed; its fact `floor` says where to begin."""
        ...

    async def trim_feed(self, *, before: int, limit: int = 5000) -> int:
        """Forget what was told before that instant, at most `limit` rows at a time; answers how many went.
        How old a row is shows at the marks that this very call leaves: a row goes when a call at or before
        that instant has seen it, so a first call forgets nothing that was told before it, unless `before` is
        now or later."""
        ...

    async def free_room(self) -> None:
        """What was deleted makes room for new rows now, where that is not so by itself: for a store that is
        full. Others go on meanwhile."""
        ...

    async def prune(
        self,
        run: RunId,
        *,
        horizon: int,
        replace: Record | None,
        ended: bool = False,
        blobs: Sequence[bytes] | None = None,
    ) -> int:
        """Delete records before `horizon` (exclusive); `replace` rewrites the record at the horizon as a
        self-contained snapshot. Answers how many were deleted; with `ended`, none of a run that has not
        ended (any more). `blobs`: all that the run still refers to; its other references go."""
        ...


class Inbox(Protocol):
    """What others tell a run. Each insert grows inbox_seq and makes a parked run claimable (D-29)."""

    async def send(
        self,
        run: RunId,
        kind: str,
        payload: bytes,
        *,
        dedupe: str | None = None,
        event: EventRow | None = None,
    ) -> bool:
        """False where a row with this dedupe key exists already, or the run has ended (a `resume` message
        to a failed run is accepted and sets it resumable, and so does a `cancel` to a dead one). `event` is
        stored with the next event number."""
        ...

    async def pending(self, run: RunId) -> tuple[int, list[InboxRow]]:
        """(inbox_seq, rows not yet consumed, oldest first)."""
        ...

    async def inbox_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        """The inbox_seq of each; a run that is not there is left out. For whoever looks after many."""
        ...

    async def fire_timers(self, *, limit: int, run: RunId | None = None) -> int:
        """Due timers become inbox rows of kind `timer` (payload: the token), each in its own transaction
        or all in one; the timer row is gone with it (D-30). With `run`, only that run's."""
        ...

    async def next_timer(self) -> int | None:
        """When the earliest timer is due."""
        ...

    async def report_late(self, run: RunId, seq: int, payload: bytes) -> None:
        """Evidence from a worker that was fenced, kept beside the intent at `seq`, unfenced (D-17)."""
        ...

    async def late_reports(self, run: RunId) -> list[tuple[int, bytes]]: ...


class RunTransfer(Protocol):
    """Whole runs, on their way from one store to another (D-36)."""

    async def history(self, run: RunId) -> RunHistory | None:
        """All of it as of one moment; holds oldest first, blobs sorted."""
        ...

    async def adopt(self, history: RunHistory) -> tuple[RunRow, bool]:
        """Write it as read-only history: the same status, numbers and instants, no lease, never ready, no
        timers, no mail, no idempotency key, nothing in the feed (it did not happen here). (row, True), or the
        run that has this id already with False. Afterwards claim passes it over, send answers False, a hold
        takes no change, and create with `supersedes` raises RunReadOnlyError. Raises BlobMissingError where a
        blob is not stored, ConflictError where a hold's id belongs to another run."""
        ...


class FlowRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    graph: bytes
    created_at: int


class Flows(Protocol):
    async def put_flow(self, flow: FlowRow) -> None:
        """Idempotent by (name, version)."""
        ...

    async def flow(self, name: str, version: str) -> FlowRow | None: ...

    async def flows(self) -> list[FlowRow]: ...

    async def put_code(self, digest: str, marks: bytes) -> None:
        """What the code of a flow consists of, part by part. Once by digest (D-34)."""
        ...

    async def code(self, digest: str) -> bytes | None: ...


class BlobRows(Protocol):
    """Blobs have rows, so that a settle can say what it names and the collector what is free (D-37).

    Small blobs (up to 1 MiB) may live in the row itself (`data`)."""

    async def put_blob(self, digest: bytes, size: int, data: bytes | None) -> None:
        """Before the record that names it. Revives a condemned row."""
        ...

    async def blob(self, digest: bytes) -> tuple[int, bytes | None] | None: ...

    async def condemn_blobs(self, *, older_than: int, limit: int) -> list[bytes]:
        """Unreferenced rows older than that instant are marked and returned; a settle that names one is then
        refused with put_blobs_again until it is put again."""
        ...

    async def drop_blobs(self, digests: Sequence[bytes]) -> None:
        """Condemned rows only, after their objects were deleted."""
        ...


class Memories(Protocol):
    """What nodes remember beyond one run (D-22). A settle may put some too (`Side.memories`)."""

    async def put_memory(self, memory: Memory) -> None:
        """Once by (tenant, id): putting it again changes nothing."""
        ...

    async def find_memories(self, *, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        """Those whose content has every word of the query, in any case; strongest first, then newest."""
        ...


class Projections(Protocol):
    """What checkpoints fold to, for programs that query the database; Holdfast never reads it back."""

    async def projected_to(self) -> int:
        """The position of the feed up to which it was written."""
        ...

    async def put_projections(self, rows: Sequence[Projection], *, upto: int) -> None:
        """Those rows, and that everything up to that position is written now. A row that is there stays as it
        is; one whose record is gone is passed over. The position never goes back."""
        ...

    async def projections(self, run: RunId) -> list[Projection]: ...

    async def blank_projections(self) -> None:
        """Their content goes; ids and the names of nodes stay."""
        ...


class Reencryption(Protocol):
    """Rows as they lie, for whoever encrypts them anew. Tables: journal, events, inbox, holds, hold_notes,
    hold_keys, late_reports, outbox, documents, schedules, runs, memories, blobs. The audit never changes."""

    async def kept(self, table: str, *, after: int, limit: int) -> list[StoredRow]:
        """By their numbers, from the one after `after` on."""
        ...

    async def rewrite(self, table: str, changes: Sequence[tuple[StoredRow, dict[str, Any]]]) -> int:
        """Other values for those rows that are still as they were read. Answers for how many."""
        ...

    async def blobs_of(self, run: RunId) -> list[bytes]: ...

    async def replace_blob_reference(self, run: RunId, old: bytes, new: bytes) -> None:
        """The run refers to the blob `new`, which is stored, in place of `old`."""
        ...

    async def replace_blob(self, digest: bytes, data: bytes) -> None:
        """Other bytes for a blob that the store itself keeps."""
        ...


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


class Inspection(Protocol):
    async def examine(self, *, deep: bool) -> StoreFacts:
        """Changes nothing. `deep`: the store's own structure and each blob's place are looked at too, which
        may take as long as reading all of it."""
        ...

    async def durability(self) -> Durability:
        """How safe what is acknowledged is. Cheap: each worker asks when it begins."""
        ...


class Store(
    Inspection,
    Runs,
    Journal,
    Inbox,
    Holds,
    Audit,
    Outbox,
    Documents,
    Fleet,
    RunTransfer,
    Flows,
    BlobRows,
    Memories,
    Projections,
    Reencryption,
    Protocol,
):
    """A whole store, opened by `store.open`."""

    capabilities: Capability

    def now(self) -> int:
        """The store's clock, microseconds."""
        ...

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        """Where Capability.inline: like settle, at once in the caller's thread; None when somebody else has
        the lock (nothing was written; go through settle)."""
        ...

    def extend_now(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """`extend` for a heartbeat thread, on a connection of its own (D-11)."""
        ...

    def read_now(self, run: RunId, *, first: int, last: int) -> list[Record]:
        """Where Capability.inline: `read` at once in the caller's thread."""
        ...

    async def wait_change(self, timeout: float) -> bool:
        """Until another process or thread wrote something that could concern a worker (a run became ready, an
        inbox row came), or the time is over. May wake for nothing."""
        ...

    async def close(self) -> None: ...
