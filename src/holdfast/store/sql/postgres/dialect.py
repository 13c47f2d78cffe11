"""The connection that PostgreSQL provides to the shared modules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.store.limit_admission import Admission, CountedStart
from holdfast.store.rows import NewRun, RunRow
from holdfast.store.sql.hold_lists import HoldListDialect
from holdfast.store.sql.hold_rows import Condition
from holdfast.store.sql.postgres import concurrency_limits, listen, settle_full
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.postgres.settle import INTO_JOURNAL, JOURNAL, RECORDS, record_values
from holdfast.types.concurrency_limits import flow_limit
from holdfast.types.hold import HoldFilter
from holdfast.types.lease import Lease
from holdfast.types.record import Park, Record
from holdfast.types.status import HoldStatus

_GIVEN = (
    "id", "tenant", "flow", "version", "code", "lane", "priority", "thread", "instance_key",
    "idempotency_key", "started_by", "deployment", "parent_run", "forked_from", "created_at", "updated_at",
    "ready_at", "head", "event_seq", "status", "term", "worker", "lease_until",
)  # fmt: skip
_INSERT = f"""
INSERT INTO @runs ({", ".join(_GIVEN)}, gate, feed_pos)
SELECT {", ".join("?" * len(_GIVEN))}, ?, CASE WHEN ?::boolean THEN @place(0, 0) ELSE 0 END
WHERE NOT EXISTS (SELECT 1 FROM @gates AS gates WHERE gates.root = ? AND gates.name = ? AND gates.fixed)
ON CONFLICT DO NOTHING RETURNING key, event_seq, feed_pos"""
_ANNOUNCE = """
INSERT INTO @feed (pos, run_key, first, last)
SELECT feed_pos, key, 1, event_seq FROM made WHERE feed_pos > 0"""
# The run, its first records and its row in the feed in one statement: one round trip.
_CREATE = f"""
WITH made AS ({_INSERT}), written AS (
    {INTO_JOURNAL}
    SELECT made.key << 32 | r.seq, r.events_before + 1, {", ".join(f"r.{name}" for name in JOURNAL)}
    FROM {RECORDS} CROSS JOIN made
), announced AS ({_ANNOUNCE})
SELECT key FROM made"""
_CREATE_BARE = f"WITH made AS ({_INSERT}), announced AS ({_ANNOUNCE}) SELECT key FROM made"
_NUMBER = """
WITH moved AS (
    UPDATE @runs SET {also}event_seq = event_seq + ?::bigint, feed_pos = @place(?, feed_pos) WHERE key = ?
    RETURNING key, event_seq, feed_pos, event_seq - ?::bigint + 1 AS first
), announced AS (
    INSERT INTO @feed (pos, run_key, first, last) SELECT feed_pos, key, first, event_seq FROM moved)
SELECT first FROM moved"""


class PostgresConn(PostgresConnection):
    """A connection of the pool, usually inside a transaction."""

    __slots__ = ()

    keeps_shared = True
    locks_rows = True

    async def notify(self) -> None:
        await listen.notify(self)

    async def insert_run(self, new: NewRun, row: RunRow) -> int | None:
        values = [new.idempotency_key if name == "idempotency_key" else getattr(row, name) for name in _GIVEN]
        # A run that names a limit does not get that of its flow.
        fixed = "" if new.limit else flow_limit(new.flow)
        values += [row.limit, row.event_seq > 0, fixed, fixed]
        if new.first:
            columns = [list(column) for column in zip(*record_values(0, new.first), strict=True)]
            made = await self.row(_CREATE, *values, *columns)
        else:
            made = await self.row(_CREATE_BARE, *values)
        return None if made is None else made[0]

    async def number_events(
        self, key: int, count: int, nth: int, also: str = "", given: Sequence[Any] = ()
    ) -> int:
        found = await self.row(_NUMBER.format(also=also), *given, count, nth, key, count)
        assert found is not None
        return found[0]

    async def load_admission(self, now: int | None, roots: Iterable[str], *, lock: bool) -> Admission:
        return await concurrency_limits.load_admission(self, now, roots, lock=lock)

    async def write_starts(self, starts: Sequence[tuple[int, CountedStart]]) -> None:
        await concurrency_limits.write_starts(self, starts)

    async def append(self, now: int, nth: int, key: int, records: Sequence[Record], last: int) -> None:
        await settle_full.append(self, now, nth, key, records, last)

    async def park(self, now: int, lease: Lease, how: Park) -> bool:
        return await settle_full.park(self, now, lease, how)


_SHARED = "holds.shared && ?::text[]"
# As an array, which is made first: the server takes one hold in two hundred to be shared with any person, and
# would look for the first page of them among all holds of the tenant, in the order of the list.
_SHARED_PENDING = """holds.number = ANY (ARRAY(
    SELECT number FROM @holds
    WHERE shared && ?::text[] AND status = 'pending' AND NOT read_only{of_tenant}))"""
_NOT_OWN = "holds.assignee_type || ':' || holds.assignee_value <> ALL (?::text[])"


def _shared(where: HoldFilter, status: HoldStatus, own: list[str]) -> list[Condition]:
    # The index has the live pending ones only.
    if status is not HoldStatus.pending or not where.live:
        return [(_SHARED, (own,)), (_NOT_OWN, (own,))]
    of_tenant, tenant = ("", list[Any]()) if where.tenant is None else (" AND tenant = ?", [where.tenant])
    return [(_SHARED_PENDING.format(of_tenant=of_tenant), (own, *tenant)), (_NOT_OWN, (own,))]


LISTS = HoldListDialect("holds.tags && ?::text[]", _shared)
