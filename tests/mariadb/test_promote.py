"""A whole store moves from SQLite to MariaDB and back, and from PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

import pytest

from holdfast import Holdfast
from holdfast.checkpoint.keys import StaticKeys
from holdfast.errors import StoreMovedError
from holdfast.runs.transfer.promote import promote
from holdfast.store.copy import RULES
from tests.fleet.moved_store import SETTINGS, flows, portrait
from tests.fleet.test_promote import differing, furnished
from tests.services import mariadb, postgres
from tests.storage.canary import ring

pytestmark = [pytest.mark.anyio, pytest.mark.covers("MB-7")]


@pytest.fixture
def address() -> str:
    """A move makes triggers and sets counters: a database of its own."""
    return mariadb.fresh()


@pytest.mark.parametrize("keys", [None, ring()], ids=["plain", "encrypted"])
async def test_everything_is_seen_as_before_when_a_store_moves_to_mariadb_and_comes_back(
    tmp_path: Path, address: str, keys: StaticKeys | None
) -> None:
    source, back = f"sqlite:{tmp_path}/runs.db", f"sqlite:{tmp_path}/back.db"
    _, before = await furnished(source, tmp_path / "ledger", keys)
    there = await promote(source, address)
    assert {each.table for each in there.tables} == {rule.table for rule in RULES}
    async with Holdfast(address, settings=SETTINGS, keys=keys) as hf:
        assert differing(before, await portrait(hf)) == []
    here = await promote(address, back)
    assert [(t.table, t.rows, t.sha256) for t in here.tables] == [
        (t.table, t.rows, t.sha256) for t in there.tables
    ]
    async with Holdfast(back, settings=SETTINGS, keys=keys) as hf:
        assert differing(before, await portrait(hf)) == []
    async with Holdfast(address) as hf:
        with pytest.raises(StoreMovedError):
            await (await hf.service()).create(flows(tmp_path / "l")[0].program(), {"order": "1", "rest": 0})


@pytest.mark.soak
async def test_everything_is_seen_as_before_when_a_store_moves_from_postgresql(
    tmp_path: Path, address: str
) -> None:
    source = postgres.with_setting(postgres.database(), schema=f"t_{token_hex(4)}")
    _, before = await furnished(source, tmp_path / "ledger")
    await promote(source, address)
    async with Holdfast(address, settings=SETTINGS) as hf:
        assert differing(before, await portrait(hf)) == []


@pytest.mark.parametrize("way", ["there", "back"])
async def test_numbers_are_never_given_twice_when_a_store_moves(
    tmp_path: Path, address: str, way: str
) -> None:
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
