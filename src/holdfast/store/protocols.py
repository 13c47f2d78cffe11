"""What a store must do. Stores keep columns and bytes; codec, compression and spill happen one floor up.

Checked against PostgreSQL and MariaDB before it was fixed: nothing here needs UPDATE .. RETURNING
(MariaDB has none: lock the run row with SELECT .. FOR UPDATE, or use LAST_INSERT_ID), a held
connection between two calls, session state, or a second statement whose text depends on the answer
of the first within a batch. Time is the store's own clock unless a clock is injected (D-33).

Every method is one transaction, may be called twice with the same arguments, and on failure has
changed nothing. All may raise StoreError (busy, full, unavailable).

Holds and fleets have their own modules: `store.hold_protocols`, `store.fleet_protocols`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from holdfast.store.fleet_protocols import Fleet
from holdfast.store.hold_protocols import Audit, Documents, Holds, Outbox
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
)
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ciphertext import StoredRow
from holdfast.types.durability import Durability
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.memory import Memory
from holdfast.types.projection import Projection
from holdfast.types.record import InboxRow, Record, RunBatch, SettleAnswer
from holdfast.types.status import RunStatus


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
