"""A whole store moves from SQLite to PostgreSQL and back: nothing differs, and everything goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from secrets import token_hex
from typing import Any

import apsw
import pytest

from holdfast import Holdfast, Worker
from holdfast.api.projector import Projector
from holdfast.checkpoint.keys import StaticKeys
from holdfast.errors import StoreMovedError
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links.open import Links
from holdfast.runs.transfer.promote import promote
from holdfast.store.copy import RULES
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.store.rows import RunFilter
from holdfast.types.clock import MICROS
from holdfast.types.outbox import OutboxState
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.fleet.moved_store import SETTINGS, Home, flows, furnish, portrait
from tests.flows.test_long_lists import LONG, growing
from tests.services import pgbouncer, postgres
from tests.storage.canary import ring
from tests.storage.test_hold_encryption import asking

NEW_SCHEMA = True
pytestmark = pytest.mark.anyio


def differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [what for what in {*before, *after} if before.get(what) != after.get(what)]


async def furnished(
    address: str, ledger: Path, keys: StaticKeys | None = None
) -> tuple[Home, dict[str, Any]]:
    async with Holdfast(address, settings=SETTINGS, keys=keys) as hf:
        home = await furnish(hf, ledger)
        projector = Projector(await hf.service())
        while await projector.sweep():
            pass
        return home, await portrait(hf)


@pytest.mark.covers("FLEET-PROM-01", "FLEET-PROM-02", "FLEET-PROM-03", "D-36-promote")
@pytest.mark.parametrize("keys", [None, ring()], ids=["plain", "encrypted"])
async def test_everything_is_seen_as_before_when_a_store_moves_and_comes_back(
    tmp_path: Path, address: str, keys: StaticKeys | None
) -> None:
    source, back = f"sqlite:{tmp_path}/runs.db", f"sqlite:{tmp_path}/back.db"
    _, before = await furnished(source, tmp_path / "ledger", keys)

    there = await promote(source, address)
    assert {each.table: each.rows for each in there.tables if not each.rows} == {}, "each table has rows"
    assert {each.table for each in there.tables} == {rule.table for rule in RULES}
    async with Holdfast(address, settings=SETTINGS, keys=keys) as hf:
        assert differing(before, await portrait(hf)) == []

    here = await promote(address, back)
    assert [(t.table, t.rows, t.sha256) for t in here.tables] == [
        (t.table, t.rows, t.sha256) for t in there.tables
    ]
    async with Holdfast(back, settings=SETTINGS, keys=keys) as hf:
        assert differing(before, await portrait(hf)) == []
    assert _files(tmp_path / "back.db-blobs") == _files(tmp_path / "runs.db-blobs") != []


def _files(folder: Path) -> list[str]:
    """Large blobs are files again."""
    return sorted(file.name for file in folder.rglob("*") if file.is_file())


@pytest.mark.covers("FLEET-PROM-01")
async def test_runs_go_on_where_they_stood_when_workers_start_on_the_new_store(
    tmp_path: Path, address: str
) -> None:
    source, ledger = f"sqlite:{tmp_path}/runs.db", tmp_path / "ledger"
    home, _ = await furnished(source, ledger)
    await promote(source, address)
    async with Holdfast(address, settings=SETTINGS) as hf:
        service = await hf.service()
        # A link that went out before the move, and an answer by hand.
        await Links(service.people.ctx).decide(home.link, Submission(decision="yes"))
        await service.answer(home.grown_hold, "yes")
        async with Worker(*flows(ledger), on=hf, poll=0.1), asyncio.timeout(HANG):
            # All but the one whose placed decision is from nobody who may decide: that one lapses.
            while len(await _in(service, RunStatus.completed)) < 11:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        grown = await growing().resume(home.grown, on=hf)
        assert grown.state.lines == [f"line {n}" for n in range(LONG)], "also what lay in the journal alone"
        # Still as they were: an hour's timer, an open question, what failed and what was given up.
        left = {row.status for row in await service.store.list_runs(RunFilter(), after=None, limit=99)}
        assert left == {"completed", "waiting", "pending_input", "failed", "cancelled"}
        assert sorted(ledger.read_text().split()) == ["at-once", "lapsed", "pending", "soon"], "each once"


async def _in(service: Any, status: RunStatus) -> list[Any]:
    return await service.store.list_runs(RunFilter(status=(status,)), after=None, limit=99)


@pytest.mark.covers("FLEET-PROM-01")
@pytest.mark.parametrize("way", ["there", "back"])
async def test_numbers_are_never_given_twice_when_their_rows_went_before_the_move(
    tmp_path: Path, address: str, way: str
) -> None:
    """An old lease on a deleted run must find nothing, on whichever store."""
    file = f"sqlite:{tmp_path}/runs.db"
    source, target = (file, address) if way == "there" else (address, file)
    flow = flows(tmp_path / "ledger")[0].program()
    async with Holdfast(source) as hf:
        service = await hf.service()
        rows = [(await service.create(flow, {"order": str(n), "rest": 0}))[0] for n in range(3)]
        for row in rows:
            await service.store.delete_run(row.id)
    await promote(source, target)
    async with Holdfast(target) as hf:
        fresh, _ = await (await hf.service()).create(flow, {"order": "new", "rest": 0})
        assert fresh.key > max(row.key for row in rows)


async def _fed(address: str, *, after: int = 0, atleast: int = 3) -> list[Any]:
    """Some things happen, and somebody reads on from where he was."""
    async with Holdfast(address) as hf:
        for _ in range(3):
            await asking().run({"text": "x"}, on=hf)
        return await _feed((await hf.service()).store, after, atleast)


async def _feed(store: Store, after: int, atleast: int) -> list[Any]:
    """Transactions of others on the same server may hold it back for a while."""
    async with asyncio.timeout(HANG):
        while len(found := await store.feed(after=after, limit=1000)) < atleast:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return found


@pytest.mark.covers("FLEET-PROM-01")
async def test_readers_of_the_feed_go_on_from_their_position_when_the_store_moved(
    tmp_path: Path, address: str
) -> None:
    source, back = f"sqlite:{tmp_path}/runs.db", f"sqlite:{tmp_path}/back.db"
    result = await _fed(source)
    for old, new in ((source, address), (address, back)):
        assert not (await promote(old, new)).anew
        more = await _fed(new, after=result[2][0], atleast=len(result) - 3 + 3)
        assert more[: len(result) - 3] == result[3:], "nothing is missed, nothing comes twice"
        result = [*result[:3], *more]  # and what happened there came after it


@pytest.mark.covers("FLEET-PROM-02")
async def test_the_feed_is_placed_anew_when_the_server_is_behind_its_positions(
    tmp_path: Path, address: str
) -> None:
    """A store that grew on an old server moves to a young one, which has not counted as many transactions."""
    source = f"sqlite:{tmp_path}/runs.db"
    before = await _fed(source)
    conn = apsw.Connection(str(tmp_path / "runs.db"))
    conn.execute("UPDATE feed SET pos = pos + (1 << 60); DELETE FROM feed_marks")
    conn.close()
    moved = await promote(source, address)
    assert moved.anew
    async with Holdfast(address) as hf:
        store = (await hf.service()).store
        feed = await _feed(store, 0, len(before))
        assert [row[1:] for row in feed] == [row[1:] for row in before]
        assert (await store.examine(deep=True)).problems == []


@pytest.mark.covers("FLEET-PROM-01")
async def test_messages_that_wait_go_out_from_the_new_store_alone(tmp_path: Path, address: str) -> None:
    source = f"sqlite:{tmp_path}/runs.db"
    await _fed(source)
    old = await open_store(source)
    (sent, *_) = await old.claim_outbox(limit=1, lease=60 * MICROS)
    assert await old.finish_outbox(sent.id, attempt=1, state=OutboxState.done)
    waiting = {row.key for row in await old.list_outbox(state=OutboxState.waiting)}
    assert len(waiting) == 2
    await promote(source, address)
    with pytest.raises(StoreMovedError):
        await old.claim_outbox(limit=9, lease=MICROS)
    await old.close()
    new = await open_store(address)
    assert {row.key for row in await new.claim_outbox(limit=9, lease=60 * MICROS)} == waiting
    assert await new.claim_outbox(limit=9, lease=60 * MICROS) == []
    await new.close()


@pytest.mark.covers("FLEET-PROM-01", "FLEET-PROM-03")
async def test_a_store_moves_through_a_pooler(tmp_path: Path) -> None:
    source, back = f"sqlite:{tmp_path}/runs.db", f"sqlite:{tmp_path}/back.db"
    result = await _fed(source)
    with pgbouncer.pooler() as pooled:
        target = postgres.with_setting(pooled, schema=f"t_{token_hex(4)}")
        await promote(source, target)
        await promote(target, back)
    async with Holdfast(back) as hf:
        assert await _feed((await hf.service()).store, 0, 3) == result
