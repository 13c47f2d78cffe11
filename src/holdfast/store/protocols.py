"""The protocols of every store. A store keeps columns and bytes; codec, compression and spill are done by
`runs`.

Every method is one transaction, may be called twice with the same arguments, and changes nothing if it fails.
All may raise StoreError (busy, full, unavailable). The time is the store's own clock unless a clock is
injected (D-33).

The protocols were checked against PostgreSQL and MariaDB before they were fixed. Nothing here needs UPDATE ..
RETURNING (MariaDB has none: lock the run row with SELECT .. FOR UPDATE, or use LAST_INSERT_ID), a connection
that is held between two calls, session state, or a statement whose text depends on the result of an earlier
one in the same batch.

Holds, queues, fleets, engines and threads of graphs have their own modules: `store.hold_protocols`,
`store.queue_protocols`, `store.fleet_protocols`, `store.graph_protocols`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.store.fleet_protocols import EngineRuns, Fleet
from holdfast.store.graph_protocols import GraphThreads
from holdfast.store.hold_protocols import Audit, Documents, Holds, Outbox
from holdfast.store.queue_protocols import Queues
from holdfast.store.rows import (
    Capability,
    Claim,
    ClaimRequest,
    FlowRow,
    NewRun,
    RunFilter,
    RunHistory,
    RunRow,
    StoreFacts,
    ThreadRow,
)
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ciphertext import StoredRow
from holdfast.types.durability import Durability
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.memory import Memory
from holdfast.types.record import InboxRow, Record, RunBatch, SettleAnswer
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.types.projection import Projection


class Runs(Protocol):
    """Runs, leases, and the only way to append to the journal."""

    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        """Write the run and its first records. Returns (row, True), or the earlier run of the same tenant,
        flow and idempotency key with False. With `supersedes`, the old run ends as cancelled in the same
        transaction (its term grows, its open holds and timers close, `superseded_by` is set). Raises
        RunBusyError if that is the run of an entity and a worker has it."""
        ...

    async def get_run(self, run: RunId) -> RunRow | None: ...

    async def find_runs(self, prefix: str) -> list[RunRow]:
        """Runs whose id begins with the prefix (at most 10). Checkpoint ids and short ids are resolved with
        it."""
        ...

    async def list_runs(self, where: RunFilter, *, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
        """Newest first; `after` is (created_at, key) of the last row seen."""
        ...

    async def count_runs(self, where: RunFilter) -> dict[RunStatus, int]:
        """How many runs the filter finds, by their status as it is shown at `where.shown_at`; none with 0."""
        ...

    async def list_threads(
        self, tenant: str, *, after: tuple[int, str] | None, limit: int
    ) -> list[ThreadRow]:
        """The one with the newest run first; `after` is (last_run_at, id) of the last row seen."""
        ...

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        """Claim runs that are ready (ready_at <= now, no live lease, not ended): term + 1, running. Order:
        priority (higher first), then fair between tenants (the one with the fewest running runs first, then
        round-robin), then ready_at. Suspects are claimed with `want.suspects` alone; a claim by id without
        it takes a suspect as any other run, and ends that it is one."""
        ...

    async def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """Returns True for each lease whose term is unchanged, even if it had expired (D-33)."""
        ...

    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        """Append each run's records, all in one commit; a refused run never makes the others fail (D-6, D-8).
        Checks the term and head = first - 1; records that are already stored with the same term and digests
        are accepted again. Ending a run (side.status ended) also ends its lease. With `park` the run is
        released in the same commit; if a message arrived meanwhile the records are kept and `parked` is
        False."""
        ...

    async def park(self, lease: Lease, *, status: RunStatus, inbox_seen: int, ready_at: int | None) -> bool:
        """Release the lease, if the term is current and no inbox row arrived meanwhile (D-29). `ready_at`
        None: the run becomes claimable only by a message or a timer; an instant: it is claimable from then
        on."""
        ...

    async def set_idle(self, lease: Lease, *, status: RunStatus) -> bool:
        """Store that the run only waits, while its worker keeps it in memory (D-31): the status changes, the
        lease stays. The next record sets it to `running` again. False if the term is not current."""
        ...

    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        """Take expired leases away: term + 1, status resumable, claimable, recoveries + 1 (1 if the run made
        progress since the last recovery), a row in `deaths` and the event `run.recovered`. From
        the second death in a row on the run is a suspect. Where other runs were on the same worker, a death
        of a run that was no suspect yet is not counted. A run over the limit fails and is `dead`, with the
        evidence in `error` and the event `run.given_up`. From the second recovery in a row on it is claimable
        only after `backoff`, doubled each time (`store.recovery`). A
        pending run stays pending (nothing was done), and a run that only waited keeps its status and its
        count: neither is a death."""
        ...

    async def lost_history(self, known: AcknowledgedState) -> RunRow | None:
        """Check that the store still has what it acknowledged as `known`: after a restore or a failover it
        may not. If something is missing the run stops, because the lost steps may have had effects: its term
        is raised above both, it has no lease, it is failed (a run that has ended keeps its status), the
        evidence is in `error`, and there is an event `run.history_lost` whose number no reader has seen yet.
        Returns None if nothing is missing, the run does not exist, or the loss was already reported."""
        ...

    async def delete_run(self, run: RunId, *, ended: bool = False) -> bool:
        """Delete the run and everything that belongs to it. Returns False (and deletes nothing) while a lease
        is live, and with `ended` for a run that has not ended (any more)."""
        ...


class Journal(Protocol):
    """Reading and pruning the journal."""

    async def read(
        self, run: RunId, *, first: int = 0, last: int | None = None, payloads: bool = True
    ) -> list[Record]:
        """Records by seq, without side; with payloads=False the payload is empty bytes."""
        ...

    async def checkpoint_records(
        self, run: RunId, *, node: str | None = None, before: int | None = None, limit: int = 0
    ) -> list[Record]:
        """Records that count as checkpoints, newest first, with an empty payload."""
        ...

    async def last_snapshot(self, run: RunId, at_most: int) -> int | None:
        """The seq of the newest snapshot or created record not after `at_most`."""
        ...

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Record | EventRow]:
        """In order of number, from the first whose last event number is > after. Records have event_from and
        events; a record's events are numbered event_from .. event_from + events - 1."""
        ...

    async def event_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        """The number of each run's last event; unknown runs are left out. For readers that follow many runs:
        unlike the feed it does not wait for other runs' transactions."""
        ...

    async def feed(self, *, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
        """Over all runs in commit order: (position, run, first event number, last event number). Raises
        FeedTrimmedError if rows after `after` were trimmed; its fact `floor` is the position to continue
        from."""
        ...

    async def trim_feed(self, *, before: int, limit: int = 5000) -> int:
        """Delete rows of the feed that are older than that instant, at most `limit` at a time; returns the
        number of deleted rows. The age of a row is known from the marks that this method leaves: a row is
        deleted if a call at or before that instant has seen it. So a first call deletes nothing, unless
        `before` is now or later."""
        ...

    async def free_space(self) -> None:
        """Make the space of deleted rows usable at once, if the store does not do that by itself; for a store
        that is full. Does not block other writers."""
        ...

    async def prune(
        self,
        run: RunId,
        *,
        horizon: int,
        replace: Record | None,
        later: Sequence[Record] = (),
        ended: bool = False,
        blobs: Sequence[bytes] | None = None,
    ) -> int:
        """Delete records before `horizon` (exclusive); `replace` rewrites the record at the horizon as a
        self-contained snapshot, `later` rewrites snapshots after it that named deleted records. Returns the
        number of deleted records; with `ended`, deletes none of a run that has not ended (any more). `blobs`:
        all that the run still refers to; its other references are deleted."""
        ...


class Inbox(Protocol):
    """Messages to a run. Each insert grows inbox_seq and makes a parked run claimable (D-29)."""

    async def send(
        self,
        run: RunId,
        kind: str,
        payload: bytes,
        *,
        dedupe: str | None = None,
        event: EventRow | None = None,
    ) -> bool:
        """False if a row with this dedupe key exists already, or the run has ended (a `resume` message to a
        failed run is accepted and sets it resumable, unless another run of its entity is live; so is a
        `cancel` to a dead one). `event` is stored with
        the next event number."""
        ...

    async def add_events(self, run: RunId, events: Sequence[EventRow]) -> None:
        """Store events without a message, with the next event numbers."""
        ...

    async def pending(self, run: RunId) -> tuple[int, list[InboxRow]]:
        """(inbox_seq, rows not yet consumed, oldest first)."""
        ...

    async def inbox_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        """The inbox_seq of each run; unknown runs are left out. For a process that watches many runs."""
        ...

    async def fire_timers(self, *, limit: int, run: RunId | None = None) -> int:
        """Turn due timers into inbox rows of kind `timer` (payload: the token), each in its own transaction
        or all in one; the timer row is deleted with it (D-30). With `run`, only those of that run."""
        ...

    async def next_timer(self) -> int | None:
        """When the earliest timer is due."""
        ...

    async def wake_times(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        """When the earliest timer of each of these runs is due; those without a timer are left out."""
        ...

    async def report_late(self, run: RunId, seq: int, payload: bytes) -> None:
        """Store evidence from a fenced worker beside the intent at `seq`. It is not fenced itself (D-17)."""
        ...

    async def late_reports(self, run: RunId) -> list[tuple[int, bytes]]: ...


class RunTransfer(Protocol):
    """Whole runs, copied from one store to another (D-36)."""

    async def history(self, run: RunId) -> RunHistory | None:
        """As of one moment; holds oldest first, blobs sorted."""
        ...

    async def adopt(self, history: RunHistory) -> tuple[RunRow, bool]:
        """Write the run as read-only history: the same status, numbers and instants, but no lease, never
        ready, no timers, no messages, no idempotency key, and nothing in the feed (it did not happen here).
        Returns (row, True), or the run that has this id already with False. Afterwards claim skips it, send
        returns False, its holds cannot be changed, and create with `supersedes` raises RunReadOnlyError.
        Raises BlobMissingError if a blob is not stored, ConflictError if a hold's id belongs to another run.
        """
        ...


class Flows(Protocol):
    async def put_flow(self, flow: FlowRow) -> None:
        """Idempotent by (name, version)."""
        ...

    async def flow(self, name: str, version: str) -> FlowRow | None: ...

    async def flows(self, since: int = 0, *, graphs: bool = True) -> list[FlowRow]:
        """By name, oldest first. `since`: only those stored at this instant or later. `graphs`: False leaves
        the graphs empty, so that nothing large is read."""
        ...

    async def put_code(self, digest: str, marks: bytes) -> None:
        """Store the digests of the parts of a flow's code. Written once for each digest (D-34)."""
        ...

    async def code(self, digest: str) -> bytes | None: ...


class BlobRows(Protocol):
    """Blobs have rows, so that a settle can name the ones it needs and the collector can find the unused ones
    (D-37).

    Small blobs (up to 1 MiB) may be stored in the row itself (`data`)."""

    async def put_blob(self, digest: bytes, size: int, data: bytes | None) -> None:
        """Call it before the record that names the blob is written. Revives a condemned row."""
        ...

    async def blob(self, digest: bytes) -> tuple[int, bytes | None] | None: ...

    async def keep_blob(self, run: RunId, digest: bytes) -> bool:
        """The run refers to this blob from now on, without a record that names it. False: it is not stored or
        condemned, and has to be put again."""
        ...

    async def condemn_blobs(self, *, older_than: int, limit: int) -> list[bytes]:
        """Mark and return unreferenced rows older than that instant; a settle that names one is refused with
        put_blobs_again until the blob is put again."""
        ...

    async def drop_blobs(self, digests: Sequence[bytes]) -> None:
        """Delete condemned rows, after their objects were deleted."""
        ...


class Memories(Protocol):
    """What nodes remember beyond one run (D-22). A settle may write some too (`Side.memories`)."""

    async def put_memory(self, memory: Memory) -> None:
        """Written once for each (tenant, id): putting it again changes nothing."""
        ...

    async def find_memories(
        self,
        *,
        tenant: str,
        scope: str,
        query: str,
        limit: int,
        types: Sequence[str] = (),
        min_strength: float | None = None,
    ) -> list[Memory]:
        """Memories that contain every word of the query, case-insensitive; strongest first, then newest.
        `types`: only of these types; `min_strength`: only as strong as this."""
        ...


class Projections(Protocol):
    """Folded checkpoints, for programs that query the database; Holdfast never reads them back."""

    async def projected_to(self) -> int:
        """The position of the feed up to which projections were written."""
        ...

    async def put_projections(self, rows: Sequence[Projection], *, upto: int) -> None:
        """Write the rows and the position up to which projections are complete. An existing row is not
        changed; one whose record is gone is skipped. The position never decreases."""
        ...

    async def projections(self, run: RunId) -> list[Projection]: ...

    async def blank_projections(self) -> None:
        """Delete their content; ids and the names of nodes stay."""
        ...


class Reencryption(Protocol):
    """Rows as they are stored, for encrypting them with a new key. Tables: journal, events, inbox, holds,
    hold_notes, hold_keys, late_reports, outbox, documents, schedules, queue_messages, runs, memories, blobs,
    graph_checkpoints, graph_values, graph_writes. The audit never changes."""

    async def stored_rows(self, table: str, *, after: int, limit: int) -> list[StoredRow]:
        """In order of their numbers, from the one after `after` on."""
        ...

    async def rewrite(self, table: str, changes: Sequence[tuple[StoredRow, dict[str, Any]]]) -> int:
        """Replace values of those rows that are unchanged since they were read. Returns their number."""
        ...

    async def blobs_of(self, run: RunId) -> list[bytes]: ...

    async def replace_blob_reference(self, run: RunId, old: bytes, new: bytes) -> None:
        """Make the run refer to the blob `new`, which is stored, instead of `old`."""
        ...

    async def replace_blob(self, digest: bytes, data: bytes) -> None:
        """Replace the bytes of a blob that is stored in its row."""
        ...


class Inspection(Protocol):
    async def examine(self, *, deep: bool) -> StoreFacts:
        """Changes nothing. `deep`: also checks the store's own structure and the place of each blob, which
        may take as long as reading all of it."""
        ...

    async def durability(self) -> Durability:
        """How safe acknowledged writes are. Cheap: each worker asks when it starts."""
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
    Queues,
    Fleet,
    EngineRuns,
    RunTransfer,
    Flows,
    BlobRows,
    Memories,
    GraphThreads,
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
        """With Capability.inline: like settle, at once in the caller's thread. None if another writer has the
        lock: then nothing was written, and the caller uses settle."""
        ...

    def extend_now(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """`extend` for a heartbeat thread, on a separate connection (D-11)."""
        ...

    def read_now(self, run: RunId, *, first: int, last: int) -> list[Record]:
        """With Capability.inline: `read` at once in the caller's thread."""
        ...

    async def wait_change(self, timeout: float) -> bool:
        """Wait until another process or thread has written something that could concern a worker (a run
        became ready, an inbox row arrived), or until the timeout. May return without a reason."""
        ...

    async def close(self) -> None: ...
