"""Moving a whole store: what each table is copied by, how rows are compared, what both halves have to do.

A move has two halves, the source and the target. Rows travel in one form that both dialects agree on: flags
are 0 or 1, lists are lists, a blob carries its bytes wherever they lay. `runs/promoting.py` conducts it
(ADR 40).
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
"""Of a source: it gives no run to workers; it takes no write; it was moved. Of a target: not whole."""

BATCH: Final = 1000
BLOB_BYTES: Final = 8 << 20  # of blobs in one batch, though never fewer than one


class MoveMark(msgspec.Struct, frozen=True, kw_only=True):
    """What a half says of the move that it is part of. `token` names the move, `peer` the other half (without
    a password), `anew`: positions of the feed are given anew."""

    state: MovePhase
    token: str
    peer: str
    at: int
    anew: bool = False


class WorkerLeases(msgspec.Struct, frozen=True):
    """Runs that one worker has, and until when."""

    worker: str
    runs: int
    until: int


class CopyProgress(msgspec.Struct, frozen=True):
    """How far the copy of one table came."""

    after: Values | None = None
    rows: int = 0
    done: bool = False


class CopyRule(msgspec.Struct, frozen=True):
    """What becomes of a table."""

    table: str
    where: str = "true"
    checked: bool = False  # the target makes it of other tables; it must come out the same
    placed: bool = False  # it names positions of the feed, and stays behind where those are given anew


class TableShape(msgspec.Struct, frozen=True):
    """A table as its rows travel: by the primary key, in batches; the columns sorted."""

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
    # No run references a condemned blob, and its bytes may be gone.
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
    CopyRule("schedules"),
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
    "projected": "how far projections came, in positions of the store's own feed",
    "workers": "those of the source do not work on the target",
    "hold_shares": "SQLite makes it of the holds' terms",
    "moved": "the mark of a move",
    "moved_tables": "how far a move came",
}
"""Tables that do not travel, and why. A test finds those that are neither here nor in RULES."""

GENERATED_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "runs": frozenset({"urgency", "feed_pos"}),
    "holds": frozenset({"urgency", "due", "shared"}),
}
"""Columns that a store makes of the others, or for itself."""

JSON_LIST_COLUMNS: Final = {("holds", "tags")}
"""Columns with a list: JSON in SQLite, an array in PostgreSQL."""


class MoveEndpoint(Protocol):
    """One end of a move, on a connection of its own."""

    where: str

    async def exists(self) -> bool:
        """Whether there is a store; nothing is made."""
        ...

    async def prepare(self) -> None:
        """Create it or bring it to the newest schema, as every opening does. Raises as `open_store` does."""
        ...

    async def identity(self) -> str:
        """The same for two addresses of the same store."""
        ...

    async def mark(self) -> MoveMark | None: ...

    async def shapes(self) -> dict[str, TableShape]:
        """Of each table that may travel."""
        ...

    async def count(self, rule: CopyRule) -> int: ...

    async def rows(self, shape: TableShape, after: Values | None) -> list[Values]:
        """The next batch in the order of the key; none at the end."""
        ...

    async def now(self) -> int: ...

    async def close(self) -> None: ...


class MoveSource(MoveEndpoint, Protocol):
    async def leases(self) -> list[WorkerLeases]:
        """Who still works, by the store's own time."""
        ...

    async def stop_claims(self, mark: MoveMark) -> None:
        """From now on no worker gets a run; those that are under way may end."""
        ...

    async def seal(self, *, fence: bool) -> None:
        """From now on nothing is written. `fence`: runs that are leased are taken away under a new term."""
        ...

    async def settle(self) -> None:
        """Moved for good."""
        ...

    async def cancel_move(self) -> None:
        """As if no move had begun."""
        ...

    async def counters(self) -> dict[str, int]:
        """The last number that each counting table gave."""
        ...


class MoveTarget(MoveEndpoint, Protocol):
    async def feed_floor(self) -> int | None:
        """Positions of the feed below it can be kept; None: any."""
        ...

    async def begin(self, mark: MoveMark) -> None:
        """From now on no other process writes there."""
        ...

    async def reached(self) -> dict[str, CopyProgress]: ...

    async def put(
        self, shape: TableShape, batch: Sequence[Values], was: CopyProgress, now: CopyProgress
    ) -> bool:
        """The rows, and how far it came, in one transaction. False: another process was faster."""
        ...

    async def open_for_work(self, counters: Counters) -> None:
        """Numbers go on behind those of the source; the mark is gone."""
        ...

    async def clear(self) -> None:
        """An empty store again."""
        ...


class Movable(MoveSource, MoveTarget, Protocol):
    """Every store that can be moved can also be moved to: there is a way back."""


def select(shape: TableShape, table: str, *, begun: bool) -> str:
    """The statement of `rows`: after the key's values (if begun), the limit."""
    keys = ", ".join(shape.key)
    beyond = f"AND ({keys}) > ({', '.join('?' * len(shape.key))})" if begun else ""
    columns = ", ".join(shape.columns)
    return f"SELECT {columns} FROM {table} WHERE {shape.where} {beyond} ORDER BY {keys} LIMIT ?"


def batch_size(sizes: Iterable[int], room: int) -> int:
    """How many of them are read at once; one at least."""
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
    """Rows of one table, counted and hashed. The sum of all rows' SHA-256 does not depend on their order:
    a text with a NUL sorts differently in the two dialects."""

    def __init__(self, shape: TableShape, *, anew: bool) -> None:
        self.rows = 0
        self._sum = 0
        # Where positions are given anew, their order is what must be the same.
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
    """Asked in a transaction that changes a half. Raises StoreBusyError where another process changed it."""
    if (None if mark is None else mark.state) not in states:
        raise StoreBusyError(
            "Somebody else began, finished or took back a move of this store at the same moment.",
            hint="Look with `holdfast doctor`, then call it again.",
        )


# What the triggers of a half answer to a write. A driver's error carries it as it is.
_BARRIER_PREFIX: Final = "holdfast-move"


def barrier_message(state: MovePhase, peer: str) -> str:
    return f"{_BARRIER_PREFIX} {state} {peer}"


def barrier_error_for(message: str, where: str) -> StoreError | None:
    """What a driver's error means, if such a trigger spoke."""
    _, found, rest = message.partition(f"{_BARRIER_PREFIX} ")
    if not found:
        return None
    state, _, peer = rest.partition(" ")
    if state == "filling":
        return StoreFillingError(
            f"The store {where} is being filled from {peer}, and is not whole yet.",
            hint="Wait until `holdfast promote` is done; if it was interrupted, run it again.",
            peer=peer,
        )
    if state == "closing":
        return StoreMovedError(
            f"The store {where} is about to move to {peer}: it gives no run to a worker any more.",
            hint=f"Start workers on {peer} when `holdfast promote` is done.",
            peer=peer,
        )
    return StoreMovedError(
        f"The store {where} was moved to {peer}: here it can be read, nothing more.",
        hint=f"Use --store or HOLDFAST_STORE with {peer}.",
        peer=peer,
    )
