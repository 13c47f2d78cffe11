"""The journal: what a record is, and what else is written in the transaction that appends it.

A record has columns that can be read when its payload cannot, and a payload: the encoded body.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import msgspec

from holdfast.types.hold import HoldClosed, NewHold
from holdfast.types.ids import HoldId, RunId
from holdfast.types.lease import Lease
from holdfast.types.memory import Memory
from holdfast.types.outbox import OutboxMessage
from holdfast.types.status import RunStatus


class Kind(IntEnum):
    """The closed set of journal records."""

    created = 0
    intent = 1
    attempt = 2
    substep = 3
    asked = 4
    chunk = 5
    step = 6
    snapshot = 7
    end = 8


class NewTimer(msgspec.Struct, frozen=True):
    """Wakes the run: `token` names the wait that it belongs to."""

    token: str
    fire_at: int


class VersionChange(msgspec.Struct, frozen=True, kw_only=True):
    """From record `seq` on the run belongs to another version; its open holds get the node names of that
    version."""

    seq: int
    version: str
    code: str
    holds: tuple[tuple[HoldId, str, str], ...] = ()  # (hold, scope, node)


class Side(msgspec.Struct, kw_only=True):
    """What a record changes outside the journal, in the same transaction."""

    status: RunStatus | None = None
    error: str | None = None
    holds: list[NewHold] = []
    close_holds: list[HoldClosed] = []
    close_all_holds: str | None = None
    timers: list[NewTimer] = []
    close_timers: list[str] = []
    close_all_timers: bool = False
    inbox_done: list[int] = []
    outbox: list[OutboxMessage] = []
    blobs: list[bytes] = []
    memories: list[Memory] = []
    migrated: VersionChange | None = None
    resumed_holds: list[HoldId] = []  # whose outcome the run receives with this record


class Record(msgspec.Struct):
    """One journal row, as a store keeps it. Stores never look into `payload`."""

    seq: int
    kind: int
    at: int
    term: int
    node: str
    visit: int
    attempt: int
    scope: str
    effect: str
    outcome: str
    listed: bool
    events: int
    payload: bytes
    digest: bytes
    side: Side | None = None
    # Set by the store on the way out: the number of the record's first event (D-3).
    event_from: int = 0
    # Also set by the store on the way out: the payload's length, known without reading it.
    size: int = 0


class Park(msgspec.Struct, frozen=True):
    """Release the run with its last records, unless an inbox row arrived in the meantime."""

    status: RunStatus
    inbox_seen: int
    ready_at: int | None = None


class RunBatch(msgspec.Struct):
    """A contiguous range of one run's records, settled as one; then, if asked, the run is parked."""

    lease: Lease
    records: list[Record]
    park: Park | None = None

    @property
    def first(self) -> int:
        return self.records[0].seq

    @property
    def last(self) -> int:
        return self.records[-1].seq


class Refusal(IntEnum):
    """Why a range was not written. Everything but `put_blobs_again` means that another worker has the run."""

    fenced = 1
    head_moved = 2
    inbox_taken = 3
    put_blobs_again = 4


class SettleAnswer(msgspec.Struct, frozen=True):
    """Per run: written (refusal is None), with the number of the range's first event."""

    run: RunId
    refusal: Refusal | None = None
    event_from: int = 0
    parked: bool = False


class InboxRow(msgspec.Struct, frozen=True):
    """A message to a run: an answer, a timer that fired, a cancel, a request to resume."""

    id: int
    kind: str
    at: int
    payload: bytes


class Body(msgspec.Struct, array_like=True):
    """Base of the payloads. Values inside are frozen values; the codec makes them exact."""


TURN = "turn:"
"""The outcome of a sub-step that ends a turn of a loop inside a node: `turn:3`."""


def turn_of(record: Record) -> int | None:
    """The number of the turn that a checkpoint ends, if it ends one. Read from columns alone."""
    found = record.outcome.removeprefix(TURN)
    return int(found) if found != record.outcome and found.isdigit() else None


PRIVATE: Final = "private/"
"""The start of the key of a sub-step whose value is for the node alone: the journal has it, no client."""


def is_private(ordinal: str) -> bool:
    return f"={PRIVATE}" in ordinal


Op = tuple[str, str, str, Any]
"""(partition, key, operation, operand): `set`, `delete` or a reducer's name. The operand is stored."""

Move = tuple[str, str, int, int]
"""(what, scope, a, b): one elementary change of the position; see `model.moves`."""
