"""The connection that SQLite provides to the shared modules. None of it waits: see `run_now`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from holdfast.store.limit_admission import Admission, CountedStart
from holdfast.store.rows import NewRun, RunRow
from holdfast.store.sql.sqlite import concurrency_limits
from holdfast.store.sql.sqlite.connect import Cursor, Row, statement
from holdfast.types.concurrency_limits import flow_limit
from holdfast.types.record import Record

_INSERT = """
INSERT INTO runs (id, tenant, flow, version, code, lane, priority, thread, instance_key, idempotency_key,
                  started_by, deployment, parent_run, forked_from, created_at, updated_at, ready_at, head,
                  event_seq, status, term, worker, lease_until, gate)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
WHERE ? OR NOT EXISTS (SELECT 1 FROM gates WHERE root = ? AND name = ? AND fixed)
ON CONFLICT DO NOTHING RETURNING key"""
_NUMBER = "UPDATE @runs SET {also}event_seq = event_seq + ? WHERE key = ? RETURNING event_seq"


class SqliteConn:
    """A cursor, inside a transaction or not."""

    __slots__ = ("cur",)

    keeps_shared = False
    locks_rows = False

    def __init__(self, cur: Cursor) -> None:
        self.cur = cur

    async def rows(self, text: str, *args: Any) -> list[Row]:
        return self.cur.execute(statement(text), args).fetchall()

    async def row(self, text: str, *args: Any) -> Row | None:
        # All rows are fetched, so that the statement is finished and a commit can follow.
        found = self.cur.execute(statement(text), args).fetchall()
        return found[0] if found else None

    async def run(self, text: str, *args: Any) -> int:
        self.cur.execute(statement(text), args)
        return self.cur.connection.changes()

    async def many(self, text: str, each: Iterable[Sequence[Any]]) -> None:
        self.cur.executemany(statement(text), each)

    async def notify(self) -> None:
        """Nothing to do: other processes see that the file changed."""

    async def insert_run(self, new: NewRun, row: RunRow) -> int | None:
        cur, limit = self.cur, flow_limit(new.flow)
        given = (*_values(new, row), bool(new.limit), limit, limit)
        inserted = cur.execute(_INSERT, given).fetchall()
        if not inserted:
            return None
        key: int = inserted[0][0]
        if new.first:
            append(cur, key, new.first, 0)
        return key

    async def number_events(
        self, key: int, count: int, nth: int, also: str = "", given: Sequence[Any] = ()
    ) -> int:
        sql = statement(_NUMBER.format(also=also))
        ((last,),) = self.cur.execute(sql, (*given, count, key)).fetchall()
        first = last - count + 1
        self.cur.execute(ANNOUNCE, (key, first, last))
        return first

    async def load_admission(self, now: int | None, roots: Iterable[str], *, lock: bool) -> Admission:
        assert now is not None
        return concurrency_limits.load_admission(self.cur, now)

    async def write_starts(self, starts: Sequence[tuple[int, CountedStart]]) -> None:
        concurrency_limits.write_starts(self.cur, starts)


def _values(new: NewRun, run: RunRow) -> Row:
    return (
        run.id, run.tenant, run.flow, run.version, run.code, run.lane, run.priority, run.thread,
        run.instance_key, new.idempotency_key, run.started_by, run.deployment, run.parent_run,
        run.forked_from, run.created_at, run.updated_at, run.ready_at, run.head, run.event_seq,
        run.status, run.term, run.worker, run.lease_until, run.limit,
    )  # fmt: skip


_COLUMNS = (
    "kind", "at", "term", "node", "visit", "attempt", "scope", "effect", "outcome", "listed", "events",
    "digest", "payload",
)  # fmt: skip
_column_values = attrgetter(*_COLUMNS)
_APPEND = f"""
INSERT INTO journal (key, event_from, {", ".join(_COLUMNS)})
VALUES (?, ?, {", ".join("?" * len(_COLUMNS))})"""

ANNOUNCE = "INSERT INTO feed (run_key, first, last) VALUES (?, ?, ?)"


def append(cur: Cursor, key: int, records: Sequence[Record], last: int) -> int:
    """Writes journal rows and their row in the feed. Events are numbered after `last`; returns the new last
    number."""
    base = key << 32
    first = number = last + 1
    # One by one: the statement is compiled once, and most commits have a few records.
    for record in records:
        cur.execute(_APPEND, (base | record.seq, number, *_column_values(record)))
        number += record.events
    if number > first:
        cur.execute(ANNOUNCE, (key, first, number - 1))
    return number - 1
