"""Stores with very many waiting runs: one run is really parked, its rows are then copied under other ids.

A copy is what the product would have written for such a run: its hold's id is derived from its own id, its
records have their digests, the audit is one unbroken chain. So a copy can be answered, fired and resumed, and
the indexes are filled as they would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any

import apsw
import msgspec

from holdfast import Flow, Holdfast
from holdfast.checkpoint import record_digest
from holdfast.store.open import open_store
from holdfast.store.sql.mariadb import MariadbStore
from holdfast.types.audit import AuditRow, NewAudit, next_row
from holdfast.types.clock import iso
from holdfast.types.ids import RunId, derived_id

TENANT = "acme"
PERSON = "ada@example.com"
DAY = 24 * 3600 * 1_000_000
# The tables with rows of one run. Tables that all runs share are not copied.
OWN = ("runs", "journal", "holds", "timers", "audit", "outbox", "feed", "events", "inbox", "projections")
SHARED = frozenset({
    "audit_heads", "codes", "feed_head", "feed_marks", "flows", "halves", "migrations", "primaries",
    "projected", "timelines", "turn_numbers", "turns",
})  # fmt: skip
BATCH = 5_000

Row = list[Any]
Tables = dict[str, tuple[list[str], list[Row]]]
"""Table -> its columns without the generated ones, and its rows."""
Cell = Callable[["Copy"], Any]


def refund(resumed: Callable[[], object] = lambda: None) -> Flow[Any]:
    """A run of it waits for a person and, in another branch, for a day in the far future. `resumed` is called
    as the step after either begins."""
    flow = Flow[Any]("refund", effect="pure")

    async def fetch() -> dict[str, Any]:
        return {"amount": 120, "customer": "c-1"}

    async def pay() -> dict[str, Any]:
        resumed()
        return {"paid": True}

    async def remind() -> dict[str, Any]:
        resumed()
        return {"reminded": True}

    for each in (fetch, pay, remind):
        flow.node(id=each.__name__)(each)
    flow.hold(
        "approve", prompt="Refund 120?", options=["yes", "no"], assignee=f"user:{PERSON}", timeout="60d"
    )
    flow.timer("a_month", "30d")
    flow.chain("fetch", "approve", "pay")
    flow.chain("fetch", "a_month", "remind")
    flow.compile()
    return flow


class Copy:
    """The ids and the shift in time of one copy. `nth` counts from 1; the parked run is 0."""

    def __init__(self, parked: Parked, nth: int) -> None:
        self.nth = nth
        self.shift = nth * 1_000
        self.key = parked.key + nth
        self.run = derived_id("waiting run", nth)
        self.hold = parked.hold_id(self.run)
        # The same for text and for bytes.
        self.texts = [(parked.run, self.run), (parked.hold, self.hold)]
        self.texts += [(str(at), str(at + self.shift)) for at in parked.times]
        facts = parked.facts.replace(iso(parked.asked_at), iso(parked.asked_at + self.shift))
        self.texts.append((parked.facts_digest, sha256(facts.encode()).hexdigest()))
        self.bytes = [(old.encode(), new.encode()) for old, new in self.texts]
        self.bytes += [(_packed(at), _packed(at + self.shift)) for at in parked.times]


def _packed(at: int) -> bytes:
    return at.to_bytes(8, "big")


class Parked:
    """The rows of the one run that was really parked."""

    def __init__(self, tables: Tables) -> None:
        extra = [name for name, (_, rows) in tables.items() if rows and name not in (*OWN, *SHARED)]
        assert not extra, f"a waiting run also has rows in {extra}: copy them too"
        self.tables = {name: tables[name] for name in OWN if tables.get(name, ([], []))[1]}
        run, hold = self._only("runs"), self._only("holds")
        self.key, self.run, self.hold = run["key"], RunId(run["id"]), hold["id"]
        self.asked_at = hold["created_at"]
        self._asked = (hold["scope"], hold["node"], hold["visit"], "node:", hold["ordinal"])
        assert self.hold_id(self.run) == self.hold
        self.facts = msgspec.json.encode(
            {
                "block_index": hold["block"],
                "created_at": iso(self.asked_at),
                "priority": hold["priority"],
                "terms": msgspec.json.decode(hold["terms"]),
            },
            order="deterministic",
        ).decode()
        self.facts_digest = sha256(self.facts.encode()).hexdigest()
        assert self.facts_digest.encode() in self._only("audit")["data"]
        self.times = sorted({cell for cell in self._cells() if self._is_time(cell)})
        self._rows = [
            (name, columns, row, self._changes(name, columns, row))
            for name, (columns, rows) in self.tables.items()
            for row in rows
        ]

    def hold_id(self, run: str) -> str:
        return derived_id(run, *self._asked)

    def _only(self, table: str) -> dict[str, Any]:
        columns, (row,) = self.tables[table]
        return dict(zip(columns, row, strict=True))

    def _cells(self) -> Iterator[Any]:
        return (cell for _, rows in self.tables.values() for row in rows for cell in row)

    def _is_time(self, cell: Any) -> bool:
        return isinstance(cell, int) and abs(cell - self.asked_at) <= 100 * DAY

    def copies(self, count: int) -> Iterator[dict[str, list[Row]]]:
        """Batches of rows by table. The audit's chain goes on from the parked run's."""
        numbers = iter(range(1, count + 1))
        before = self._audit_row(self.tables["audit"][1][0])
        while batch := list(islice(numbers, BATCH)):
            found: dict[str, list[Row]] = {name: [] for name in self.tables}
            for nth in batch:
                copy = Copy(self, nth)
                for name, columns, row, changes in self._rows:
                    made = row.copy()
                    for place, cell in changes:
                        made[place] = cell(copy)
                    if name == "journal":
                        _seal(columns, made)
                    elif name == "audit":
                        before = self._chained(made, before)
                    found[name].append(made)
            yield found

    def _chained(self, made: Row, before: AuditRow) -> AuditRow:
        """Bind it to the row before."""
        columns = self.tables["audit"][0]
        named = dict(zip(columns, made, strict=True))
        entry = NewAudit(**{name: named[name] for name in NewAudit.__struct_fields__})
        row = next_row(TENANT, before.seq + 1, before.hash, entry)
        made[:] = [getattr(row, name) for name in columns]
        return row

    def _audit_row(self, row: Row) -> AuditRow:
        return AuditRow(**dict(zip(self.tables["audit"][0], row, strict=True)))

    # ------------------------------------------------------------------ which cells differ

    def _changes(self, table: str, columns: Sequence[str], row: Row) -> list[tuple[int, Cell]]:
        found = [(place, self._change(table, columns[place], cell)) for place, cell in enumerate(row)]
        return [(place, cell) for place, cell in found if cell is not None]

    def _change(self, table: str, column: str, cell: Any) -> Cell | None:
        if column == "run_key" or (table, column) == ("runs", "key"):
            return lambda copy: copy.key
        if (table, column) in (("journal", "key"), ("events", "key"), ("projections", "key")):
            return lambda copy: copy.key << 32 | cell & 0xFFFF_FFFF
        if (table, column) in (("holds", "number"), ("outbox", "id"), ("inbox", "id")):
            each = len(self.tables[table][1])
            return lambda copy: cell + each * copy.nth
        if column in ("pos", "feed_pos") and cell:
            return self._position(cell)
        if isinstance(cell, int) and self._is_time(cell):
            return lambda copy: cell + copy.shift
        if isinstance(cell, str):
            return self._replaced(cell, lambda copy: copy.texts)
        if isinstance(cell, bytes):
            return self._replaced(cell, lambda copy: copy.bytes)
        return None

    def _position(self, cell: int) -> Cell:
        """Positions of the feed. PostgreSQL's are made of the number of the transaction: those of copies are
        before it, so that they count as committed. SQLite's are counted."""
        columns, rows = self.tables["feed"]
        each, nth = len(rows), [row[columns.index("pos")] for row in rows].index(cell)
        if cell < 1 << 20:
            return lambda copy: cell + each * copy.nth
        return lambda copy: cell - ((each * copy.nth + nth) << 6)

    def _replaced(self, cell: Any, of: Callable[[Copy], list[tuple[Any, Any]]]) -> Cell | None:
        occurring = [place for place, (old, _) in enumerate(of(Copy(self, 0))) if old in cell]
        if not occurring:
            return None

        def replaced(copy: Copy) -> Any:
            given, made = of(copy), cell
            for place in occurring:
                made = made.replace(*given[place])
            return made

        return replaced


def _seal(columns: Sequence[str], record: Row) -> None:
    named = dict(zip(columns, record, strict=True))
    names = ("kind", "at", "node", "scope", "visit", "outcome", "payload")
    record[columns.index("digest")] = record_digest(*(named[name] for name in names))


async def park(address: str, flow: Flow[Any]) -> str:
    """The id of a run that waits."""
    async with Holdfast(address) as hf:
        result = await flow.run({"order": "o-1"}, on=hf, tenant=TENANT)
        assert len(result.holds) == 1
        return result.run_id


# ---------------------------------------------------------------------- SQLite


async def fill_sqlite(file: str, count: int, flow: Flow[Any]) -> Parked:
    """`count` waiting runs in a new file."""
    await park(f"sqlite:{file}", flow)
    db = apsw.Connection(file)
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    parked = Parked({name: _sqlite_rows(db, name) for name in names if not name.startswith("sqlite_")})
    # Not safe against a crash while it is filled.
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA cache_size = -500000")
    for batch in parked.copies(count - 1):
        with db:
            for name, rows in batch.items():
                columns = parked.tables[name][0]
                marks = ", ".join("?" * len(columns))
                db.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", rows)
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    return parked


def _sqlite_rows(db: apsw.Connection, table: str) -> tuple[list[str], list[Row]]:
    # The last column says that it is generated.
    columns = [str(row[1]) for row in db.execute(f"PRAGMA table_xinfo({table})") if not row[-1]]
    return columns, [list(row) for row in db.execute(f"SELECT {', '.join(columns)} FROM {table}")]


# ---------------------------------------------------------------------- PostgreSQL

_COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND is_generated = 'NEVER' AND table_name IN (
    SELECT tablename FROM pg_tables WHERE schemaname = current_schema())
ORDER BY table_name, ordinal_position"""
_COUNTED = (("runs", "key"), ("holds", "number"), ("outbox", "id"))


async def fill_postgres(address: str, schema: str, count: int, flow: Flow[Any]) -> Parked:
    """`count` waiting runs in a new schema."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    await park(f"{address}?schema={schema}", flow)
    driver: Any = asyncpg
    conn = await driver.connect(address, server_settings={"search_path": schema})
    try:
        columns: dict[str, list[str]] = {}
        for table, column in await conn.fetch(_COLUMNS):
            columns.setdefault(table, []).append(column)
        tables = {name: (of, await _postgres_rows(conn, name, of)) for name, of in columns.items()}
        parked = Parked(tables)
        # Its trigger would write the chain's head a million times; the chain is made here.
        await conn.execute("ALTER TABLE audit DISABLE TRIGGER USER")
        await conn.execute("SET synchronous_commit = off")
        last: Row = []
        for batch in parked.copies(count - 1):
            for name, rows in batch.items():
                await conn.copy_records_to_table(
                    name, schema_name=schema, columns=columns[name], records=rows
                )
            last = batch["audit"][-1]
        if last:
            head = dict(zip(columns["audit"], last, strict=True))
            await conn.execute("UPDATE audit_heads SET seq = $1, hash = $2", head["seq"], head["hash"])
        await conn.execute("ALTER TABLE audit ENABLE TRIGGER USER")
        for table, column in _COUNTED:
            sequence = f"pg_get_serial_sequence('{schema}.{table}', '{column}')"
            await conn.execute(f"SELECT setval({sequence}, (SELECT max({column}) FROM {table}))")
        # As autovacuum does it soon after.
        await conn.execute("VACUUM ANALYZE")
        return parked
    finally:
        await conn.close()


async def _postgres_rows(conn: Any, table: str, columns: list[str]) -> list[Row]:
    return [list(row) for row in await conn.fetch(f"SELECT {', '.join(columns)} FROM {table}")]


# ---------------------------------------------------------------------- MariaDB

_MARIADB_COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = database() AND coalesce(generation_expression, '') = '' AND table_name IN (
    SELECT table_name FROM information_schema.tables
    WHERE table_schema = database() AND table_type = 'BASE TABLE')
ORDER BY table_name, ordinal_position"""


async def fill_mariadb(address: str, count: int, flow: Flow[Any]) -> Parked:
    """`count` waiting runs in an empty database; some thousands, for statements are sent one by one."""
    await park(address, flow)
    store = await open_store(address)
    assert isinstance(store, MariadbStore)

    async def filled(conn: Any) -> Parked:
        columns: dict[str, list[str]] = {}
        for table, column in await conn.rows(_MARIADB_COLUMNS):
            columns.setdefault(table, []).append(column)
        parked = Parked({name: (of, await _mariadb_rows(conn, name, of)) for name, of in columns.items()})
        for batch in parked.copies(count - 1):
            for name, rows in batch.items():
                marks = ", ".join("?" * len(columns[name]))
                await conn.many(f"INSERT INTO {name} ({_quoted(columns[name])}) VALUES ({marks})", rows)
        await conn.run("UPDATE feed_head SET pos = (SELECT max(pos) FROM feed)")
        return parked

    async def analysed(conn: Any) -> None:
        for table in OWN:
            await conn.send_rows(f"ANALYZE TABLE {table}")

    try:
        parked = await store._pools.write(filled)  # pyright: ignore[reportPrivateUsage]
        await store._pools.write(analysed)  # pyright: ignore[reportPrivateUsage]
        return parked
    finally:
        await store.close()


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in columns)


async def _mariadb_rows(conn: Any, table: str, columns: list[str]) -> list[Row]:
    return [list(row) for row in await conn.rows(f"SELECT {_quoted(columns)} FROM `{table}`")]
