"""What the shared modules use of a database connection, whatever the dialect."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from holdfast.store.limit_admission import Admission, CountedStart
from holdfast.store.rows import NewRun, RunRow

T = TypeVar("T")

Row = tuple[Any, ...]


class Conn(Protocol):
    """A connection, usually inside a transaction.

    Statements are written once, in this notation, and each dialect translates it:

    - `@runs` is a table of the store; `@runs[runs_ready]` names the index for dialects that need a hint;
    - `?` are the arguments in their order; `?::bigint` is an argument whose type PostgreSQL cannot infer;
    - `x = ANY(?::text[])` and `x <> ALL(?::bytea[])` take one list as their argument;
    - `@now(?::bigint)` is the store's time: the argument, or the server's clock if it is NULL;
    - `greatest`, `least`, `strpos`, and `FOR UPDATE` and similar, are written as in PostgreSQL.

    The first four methods send statements. The others need different statements in each dialect.
    """

    @property
    def keeps_shared(self) -> bool:
        """Whether the table of holds has the column `shared` (otherwise a trigger reads it from `terms`)."""
        ...

    @property
    def locks_rows(self) -> bool:
        """Whether writers lock single rows (otherwise one transaction writes at a time)."""
        ...

    async def rows(self, text: str, *args: Any) -> list[Row]: ...

    async def row(self, text: str, *args: Any) -> Row | None:
        """The first row, or None."""
        ...

    async def run(self, text: str, *args: Any) -> int:
        """Returns the number of affected rows."""
        ...

    async def many(self, text: str, each: Iterable[Sequence[Any]]) -> None:
        """Sends the same statement for each, together."""
        ...

    async def notify(self) -> None:
        """Wakes the workers of other processes after the commit, if the database can do that."""
        ...

    async def insert_run(self, new: NewRun, row: RunRow) -> int | None:
        """Inserts the run's row, its first records and their place in the feed; returns its key. None if
        there is such a run already, or if the run names no limit and an operator set one for its flow."""
        ...

    async def number_events(
        self, key: int, count: int, nth: int, also: str = "", given: Sequence[Any] = ()
    ) -> int:
        """Assigns numbers to that many events of a run and announces them in the feed; returns the first
        number. `nth`: counts, from 0, the runs that this transaction adds events to. `also`: more assignments
        to the run's row in the same statement (`"x = ?, "`), with their arguments."""
        ...

    async def load_admission(self, now: int | None, roots: Iterable[str], *, lock: bool) -> Admission:
        """The limits below these roots and what they have admitted. With `lock`, nothing else is admitted by
        them until the transaction ends."""
        ...

    async def write_starts(self, starts: Sequence[tuple[int, CountedStart]]) -> None:
        """Starts that count against a rate, with the keys of their runs."""
        ...


Query = Callable[[Conn], Coroutine[Any, Any, T]]
"""Reads."""
Work = Callable[[Conn, int], Coroutine[Any, Any, T]]
"""Writes inside a transaction; the second argument is the store's time. May be called again after a rollback,
so it keeps no state between calls."""
