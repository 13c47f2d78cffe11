"""Moving a whole store: how each table is copied, how rows are compared, and what both stores have to do.

A move has two ends, the source and the target. Rows are copied in one form that both dialects agree on: flags
are 0 or 1, lists are lists, a blob carries its bytes wherever they were stored. `runs/transfer/promote.py`
runs the move (ADR 40).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, Protocol

import msgspec

from holdfast.errors import StoreBusyError, StoreError, StoreFillingError, StoreMovedError

Values = tuple[Any, ...]
Counters = Mapping[str, int]

MovePhase = Literal["closing", "sealed", "moved", "filling"]
"""Of a source: it gives no run to workers; it accepts no write; it was moved. Of a target: it is not
complete."""

BATCH: Final = 1000
BLOB_BYTES: Final = 8 << 20  # of blobs in one batch, but at least one blob


class MoveMark(msgspec.Struct, frozen=True, kw_only=True):
    """What a store records about the move that it is part of. `token` identifies the move, `peer` is the
    other end (without a password), `anew`: positions of the feed are assigned again."""

    state: MovePhase
    token: str
    peer: str
    at: int
    anew: bool = False


class WorkerLeases(msgspec.Struct, frozen=True):
    """Number of runs that one worker has leased, and until when."""

    worker: str
    runs: int
    until: int


class CopyProgress(msgspec.Struct, frozen=True):
    """How much of one table is copied."""

    after: Values | None = None
    rows: int = 0
    done: bool = False


class CopyRule(msgspec.Struct, frozen=True):
    """How a table is copied."""

    table: str
    where: str = "true"
    checked: bool = False  # the target derives it from other tables; the result must be the same
    placed: bool = False  # it refers to positions of the feed, and is not copied if those are assigned again


class TableShape(msgspec.Struct, frozen=True):
    """A table as its rows are copied: by the primary key, in batches; the columns sorted."""

    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    where: str = "true"

    def key_of(self, row: Values) -> Values:
        return tuple(row[self.columns.index(name)] for name in self.key)


RULES: Final = (
    CopyRule("flows"),
    CopyRule("codes"),
    CopyRule("documents"),
    # No run refers to a condemned blob, and its bytes may be gone.
    CopyRule("blobs", where="NOT condemned"),
    CopyRule("runs"),
    CopyRule("journal"),
    CopyRule("events"),
    CopyRule("blob_refs"),
    CopyRule("inbox"),
    CopyRule("timers"),
    CopyRule("late_reports"),
    CopyRule("deaths"),
    CopyRule("holds"),
    CopyRule("hold_notes"),
    CopyRule("hold_keys"),
    CopyRule("hold_links"),
    CopyRule("outbox"),
    CopyRule("audit"),
    CopyRule("audit_heads", checked=True),
    CopyRule("memories"),
    CopyRule("graph_threads"),
    CopyRule("graph_checkpoints"),
    CopyRule("graph_values"),
    CopyRule("graph_writes"),
    CopyRule("schedules"),
    CopyRule("queue_messages"),
    CopyRule("gates"),
    CopyRule("gate_starts"),
    CopyRule("turns"),
    CopyRule("projections"),
    CopyRule("feed"),
    CopyRule("feed_marks", placed=True),
)

NOT_COPIED: Final = {
    "migrations": "each store has its own",
    "halves": "likewise",
    "timelines": "which servers PostgreSQL was found on",
    "primaries": "which server MariaDB was found on",
    "projected": "how far projections came, in positions of the store's own feed",
    "workers": "those of the source do not work on the target",
    "hold_shares": "SQLite and MariaDB make it of the holds' terms",
    "feed_head": "the last position of MariaDB's feed",
    "blob_parts": "the bytes of MariaDB's large blobs, which are copied with them",
    "moved": "the mark of a move",
    "moved_tables": "how far a move came",
}
"""Tables that are not copied, and why. A test finds tables that are neither here nor in RULES."""

GENERATED_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "runs": frozenset({"urgency", "feed_pos"}),
    "holds": frozenset({"urgency", "due", "shared"}),
}
"""Columns that a store derives from the others, or keeps for itself."""

JSON_LIST_COLUMNS: Final = {("holds", "tags")}
"""Columns with a list: an array in PostgreSQL, JSON elsewhere."""


class MoveEndpoint(Protocol):
    """One end of a move, on a separate connection."""

    where: str

    async def exists(self) -> bool:
        """Whether there is a store; nothing is created."""
        ...

    async def prepare(self) -> None:
        """Create the store or migrate it to the newest schema, as opening it does. Raises as `open_store`
        does."""
        ...

    async def identity(self) -> str:
        """The same for two addresses of the same store."""
        ...

    async def mark(self) -> MoveMark | None: ...

    async def shapes(self) -> dict[str, TableShape]:
        """Of each table that may be copied."""
        ...

    async def count(self, rule: CopyRule) -> int: ...

    async def rows(self, shape: TableShape, after: Values | None) -> list[Values]:
        """The next batch in the order of the key; empty at the end."""
        ...

    async def now(self) -> int: ...

    async def close(self) -> None: ...


class MoveSource(MoveEndpoint, Protocol):
    async def leases(self) -> list[WorkerLeases]:
        """The workers that still have leases, by the store's clock."""
        ...

    async def stop_claims(self, mark: MoveMark) -> None:
        """From now on no worker can claim a run; those that are running may end."""
        ...

    async def block_writes(self, *, fence: bool) -> None:
        """From now on nothing is written. `fence`: leased runs are taken away under a new term."""
        ...

    async def settle(self) -> None:
        """The move is final."""
        ...

    async def cancel_move(self) -> None:
        """Undo: as if no move had begun."""
        ...

    async def counters(self) -> dict[str, int]:
        """The last number assigned in each table that counts."""
        ...


class MoveTarget(MoveEndpoint, Protocol):
    async def feed_floor(self) -> int | None:
        """Positions of the feed below it can be kept; None: any position."""
        ...

    async def begin(self, mark: MoveMark) -> None:
        """From now on no other process writes there."""
        ...

    async def reached(self) -> dict[str, CopyProgress]: ...

    async def put(
        self, shape: TableShape, batch: Sequence[Values], was: CopyProgress, now: CopyProgress
    ) -> bool:
        """Write the rows and the progress in one transaction. False if another process has written them."""
        ...

    async def open_for_work(self, counters: Counters) -> None:
        """New numbers continue after those of the source; the mark is removed."""
        ...

    async def clear(self) -> None:
        """Make it an empty store again."""
        ...


class Movable(MoveSource, MoveTarget, Protocol):
    """Every store that can be moved can also be a target, so a move can be reversed."""


def select(shape: TableShape, table: str, *, begun: bool) -> str:
    """The statement of `rows`: its arguments are the key's values (unless it is the first batch) and the
    limit."""
    keys = ", ".join(shape.key)
    beyond = f"AND ({keys}) > ({', '.join('?' * len(shape.key))})" if begun else ""
    columns = ", ".join(shape.columns)
    return f"SELECT {columns} FROM {table} WHERE {shape.where} {beyond} ORDER BY {keys} LIMIT ?"


def batch_size(sizes: Iterable[int], room: int) -> int:
    """The number of rows read at once, at least one."""
    count = 0
    for size in sizes:
        room -= size
        if room < 0 and count:
            break
        count += 1
    return max(count, 1)


def copy_progress(after: bytes | None, rows: int, done: object) -> CopyProgress:
    key = None if after is None else tuple(msgspec.msgpack.decode(after, type=list[Any]))
    return CopyProgress(key, rows, bool(done))


class TableDigest:
    """Rows of one table, counted and hashed. The sum of the rows' SHA-256 does not depend on their order: a
    text with a NUL sorts differently in the two dialects."""

    def __init__(self, shape: TableShape, *, anew: bool) -> None:
        self.rows = 0
        self._sum = 0
        # If positions are assigned again, only their order must be the same.
        self._place = shape.columns.index("pos") if anew and shape.table == "feed" else None

    def add(self, batch: Iterable[Values]) -> None:
        for row in batch:
            self.rows += 1
            if self._place is not None:
                row = (*row[: self._place], self.rows, *row[self._place + 1 :])
            self._sum += int.from_bytes(sha256(_encoder.encode(row)).digest(), "big")

    @property
    def digest(self) -> str:
        return f"{self._sum % (1 << 256):064x}"


_encoder = msgspec.msgpack.Encoder()


def require_state(mark: MoveMark | None, *states: MovePhase | None) -> None:
    """Called in a transaction that changes an end of the move. Raises StoreBusyError if another process
    changed it."""
    if (None if mark is None else mark.state) not in states:
        raise StoreBusyError(
            "another process began, finished or cancelled a move of this store at the same moment.",
            hint="Check with `holdfast doctor`, then try again.",
        )


# The texts that the triggers of a blocked store raise. A driver's error contains them unchanged.
_BARRIER_PREFIX: Final = "holdfast-move"


def barrier_message(state: MovePhase, peer: str) -> str:
    return f"{_BARRIER_PREFIX} {state} {peer}"


def barrier_error_for(message: str, where: str) -> StoreError | None:
    """The error for a driver's error that such a trigger caused."""
    _, found, rest = message.partition(f"{_BARRIER_PREFIX} ")
    if not found:
        return None
    state, _, peer = rest.partition(" ")
    if state == "filling":
        return StoreFillingError(
            f"the store {where} is being filled from {peer}, and is not complete yet.",
            hint="Wait until `holdfast promote` is done; if it was interrupted, run it again.",
            peer=peer,
        )
    if state == "closing":
        return StoreMovedError(
            f"the store {where} is about to move to {peer}: workers cannot claim runs from it any more.",
            hint=f"Start workers on {peer} when `holdfast promote` is done.",
            peer=peer,
        )
    return StoreMovedError(
        f"the store {where} was moved to {peer}: it can only be read here.",
        hint=f"Use --store or HOLDFAST_STORE with {peer}.",
        peer=peer,
    )
