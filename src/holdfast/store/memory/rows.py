"""What the memory store keeps. Callers see rows built from these and never hold the stored ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from holdfast.store.protocols import RunRow
from holdfast.types.record import Record
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.store.protocols import NewRun
    from holdfast.types.event import EventRow
    from holdfast.types.fleet import Death
    from holdfast.types.ids import HoldId, RunId
    from holdfast.types.projection import Projection
    from holdfast.types.record import InboxRow


# Called for each record written and read: the generic copy.copy() costs four times as much.
copy_record = cast("Callable[[Record], Record]", Record.__copy__)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]


@dataclass(slots=True, eq=False)
class MemoryRun:
    """A run and all that belongs to it."""

    key: int
    new: NewRun
    id: RunId
    tenant: str
    status: RunStatus = RunStatus.pending
    term: int = 0
    worker: str | None = None
    lease_until: int | None = None
    head: int = -1
    event_seq: int = 0
    inbox_seq: int = 0
    ready_at: int | None = None
    superseded_by: RunId | None = None
    updated_at: int = 0
    ended_at: int | None = None
    recoveries: int = 0
    error: str | None = None
    read_only: bool = False
    migrated: int = 0
    dead: bool = False
    gate: str = ""
    # Contiguous by seq: the record with seq s is records[s - records[0].seq].
    records: list[Record] = field(default_factory=list[Record])
    events: list[EventRow] = field(default_factory=list["EventRow"])
    inbox: dict[int, InboxRow] = field(default_factory=dict[int, "InboxRow"])
    dedupe: set[str] = field(default_factory=set[str])
    projections: dict[int, Projection] = field(default_factory=dict[int, "Projection"])
    timers: dict[str, int] = field(default_factory=dict[str, int])
    holds: list[HoldId] = field(default_factory=list["HoldId"])
    blobs: set[bytes] = field(default_factory=set[bytes])
    late: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    deaths: list[Death] = field(default_factory=list["Death"])

    @property
    def horizon(self) -> int:
        return self.records[0].seq if self.records else 0

    def row(self) -> RunRow:
        new = self.new
        return RunRow(
            key=self.key,
            id=self.id,
            tenant=self.tenant,
            flow=new.flow,
            version=new.version,
            code=new.code,
            status=self.status,
            lane=new.lane,
            priority=new.priority,
            term=self.term,
            worker=self.worker,
            lease_until=self.lease_until,
            head=self.head,
            event_seq=self.event_seq,
            inbox_seq=self.inbox_seq,
            ready_at=self.ready_at,
            thread=new.thread,
            instance_key=new.instance_key,
            parent_run=new.parent_run,
            forked_from=new.forked_from,
            superseded_by=self.superseded_by,
            created_at=new.created_at,
            updated_at=self.updated_at,
            ended_at=self.ended_at,
            recoveries=self.recoveries,
            error=self.error,
            horizon=self.horizon,
            read_only=self.read_only,
            migrated=self.migrated,
            started_by=new.started_by,
            deployment=new.deployment,
            gate=self.gate,
            dead=self.dead,
        )


@dataclass(slots=True)
class MemoryBlob:
    size: int
    data: bytes | None
    put_at: int
    condemned: bool = False
    runs: set[int] = field(default_factory=set[int])
