"""Rows: claims skip what is locked, text and bytes as they are, values larger than a packet, the feed."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from random import Random

import pytest

from holdfast.errors import StoreError
from holdfast.store.rows import ClaimRequest
from holdfast.store.sql.mariadb import MariadbStore
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.document import Document
from tests.deadlines import HANG
from tests.services import mariadb

pytestmark = pytest.mark.anyio

TTL = 60_000_000
TEXT = """
SELECT table_name, column_name, collation_name FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = database() AND collation_name IS NOT NULL AND table_type = 'BASE TABLE'"""


@pytest.mark.covers("MB-4")
async def test_claim_takes_another_run_when_one_is_locked(store: MariadbStore, address: str) -> None:
    kit = StoreKit(None)  # type: ignore[arg-type]
    kit.store = store
    now = store.now()
    first = await kit.created(ready_at=now - 2)
    second = await kit.created(ready_at=now - 1)
    gate, done = asyncio.Event(), asyncio.Event()

    async def hold_it(conn: object) -> None:
        await conn.rows("SELECT * FROM runs WHERE id = ? FOR UPDATE", first.id)  # type: ignore[attr-defined]
        gate.set()
        await done.wait()

    task = asyncio.create_task(store._pools.write(hold_it))
    await gate.wait()
    async with asyncio.timeout(HANG):  # a lock is not waited for: it is freed only afterwards
        claims = await store.claim(ClaimRequest(worker="w", limit=5, ttl=TTL, lanes=None, versions=None))
    assert [one.run.id for one in claims] == [second.id]
    done.set()
    await task
    claims = await store.claim(ClaimRequest(worker="w", limit=5, ttl=TTL, lanes=None, versions=None))
    assert [(one.run.id, one.run.term) for one in claims] == [(first.id, 1)]
    assert await store.get_run(first.id) == claims[0].run, "the claim says what the row says"


@pytest.mark.covers("MB-5")
async def test_text_compares_byte_by_byte_in_every_column(store: MariadbStore, address: str) -> None:
    found = mariadb.execute(TEXT, address)
    assert {row[2] for row in found} == {"utf8mb4_nopad_bin"}
    for name in ("a", "a ", "A", "á"):
        given = Document(tenant="t", kind="k", name=name, body=name.encode(), revision=0, updated_at=0)
        assert await store.put_document(given, expect=0) is not None
    found_ = [one.body.decode() for one in await store.documents("t", "k")]
    assert found_ == ["A", "a", "a ", "á"]


@pytest.mark.covers("MB-5")
async def test_instants_are_whole_microseconds(store: MariadbStore, address: str) -> None:
    kinds = mariadb.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = database()"
        " AND (column_name LIKE '%\\_at' OR column_name IN ('at', 'until', 'lease_until', 'due'))"
        " AND table_name NOT LIKE 'mod\\_%'",
        address,
    )
    assert {kind for _, kind in kinds} == {"bigint"}


@pytest.mark.covers("MB-5")
async def test_blob_larger_than_a_packet_comes_back(store: MariadbStore, address: str) -> None:
    ((packet,),) = mariadb.execute("SELECT @@max_allowed_packet", address)
    data = Random(1).randbytes(1 << 16) * (packet // (1 << 16) + 2)
    digest = sha256(data).digest()
    await store.put_blob(digest, len(data), data)
    assert await store.blob(digest) == (len(data), data)
    await store.put_blob(digest, len(data), data)
    await store.replace_blob(digest, b"short")
    assert await store.blob(digest) == (5, b"short")
    await store.condemn_blobs(older_than=store.now() + 1, limit=9)
    await store.drop_blobs([digest])
    assert await store.blob(digest) is None
    assert mariadb.execute("SELECT count(*) FROM blob_parts", address) == [(0,)]


@pytest.mark.covers("MB-5")
async def test_value_that_no_packet_carries_is_refused_and_says_so(store: MariadbStore, address: str) -> None:
    ((packet,),) = mariadb.execute("SELECT @@max_allowed_packet", address)
    given = Document(tenant="t", kind="k", name="n", body=bytes(packet), revision=0, updated_at=0)
    with pytest.raises(StoreError, match="max_allowed_packet") as caught:
        await store.put_document(given)
    assert not caught.value.facts.get("away"), "trying again would not help"
    assert await store.document("t", "k", "n") is None


@pytest.mark.covers("MB-5")
async def test_name_that_is_too_long_is_refused_and_nothing_is_cut_off(store: MariadbStore) -> None:
    given = Document(tenant="t", kind="k", name="n" * 441, body=b"", revision=0, updated_at=0)
    with pytest.raises(StoreError, match="too long"):
        await store.put_document(given)
    assert await store.documents("t", "k") == []


@pytest.mark.covers("MB-7", "D-3")
async def test_feed_has_no_gap_and_no_position_behind_a_reader_when_writers_race(store: MariadbStore) -> None:
    kit = StoreKit(None)  # type: ignore[arg-type]
    kit.store = store
    runs = [await kit.created() for _ in range(6)]
    seen: list[int] = []
    done = False

    async def read() -> None:
        after = 0
        while not done or await store.feed(after=after, limit=7):
            for pos, *_ in await store.feed(after=after, limit=7):
                seen.append(pos)
                after = pos

    reader = asyncio.create_task(read())
    sends = [store.send(run.id, "note", b"", event=kit.event("e")) for run in runs for _ in range(5)]
    assert all(await asyncio.gather(*sends))
    done = True
    await reader
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    assert len(seen) >= 30
