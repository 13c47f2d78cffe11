"""What cannot be moved says so in a sentence, and nothing is changed; a moved store can still be read."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Holdfast
from holdfast.errors import (
    BlobMissingError,
    CheckpointCorruptError,
    HoldfastError,
    InputError,
    SettingsError,
    StoreBusyError,
    StoreError,
    StoreFillingError,
    StoreMovedError,
    StoreUnavailableError,
)
from holdfast.runs.transfer.promote import promote
from holdfast.store.copy import NOT_COPIED, RULES
from holdfast.store.open import move_endpoint, open_store
from tests.cli.conftest import Cli, cli, logs
from tests.deadlines import HANG
from tests.fleet.conftest import schema_of
from tests.fleet.moved_store import nested
from tests.fleet.test_promote_resume import counting, filled, looked
from tests.services import postgres
from tests.upgrade.last_release import environment, unpack

__all__ = ["cli", "logs"]

NEW_SCHEMA = True
pytestmark = pytest.mark.anyio


@pytest.fixture
def source(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/runs.db"


def _execute(tmp_path: Path, sql: str, name: str = "runs.db") -> list[Any]:
    conn = apsw.Connection(str(tmp_path / name))
    try:
        return conn.execute(sql).fetchall()
    finally:
        conn.close()


@pytest.mark.covers("FLEET-PROM-01")
async def test_every_table_of_both_stores_has_a_rule(source: str, address: str) -> None:
    """Whoever adds a table says in store/copying.py whether it travels (RULES) or stays (LEFT)."""
    halves = [move_endpoint(source), move_endpoint(address)]
    try:
        found = []
        for half in halves:
            await half.prepare()
            found.append(await half.shapes())
    finally:
        for half in halves:
            await half.close()
    sqlite, postgresql = ({name: shape.columns for name, shape in each.items()} for each in found)
    assert sqlite == postgresql, "the same columns on both sides, but for those in OWN"
    assert set(sqlite) == {rule.table for rule in RULES}
    assert not set(NOT_COPIED) & set(sqlite)


@pytest.mark.covers("FLEET-PROM-01")
async def test_a_table_that_nobody_gave_a_rule_stops_the_move(
    tmp_path: Path, source: str, address: str
) -> None:
    await filled(source, 1)
    _execute(tmp_path, "CREATE TABLE extra (number INTEGER PRIMARY KEY, word TEXT)")
    with pytest.raises(StoreError, match="cannot be matched: extra"):
        await promote(source, address)
    async with Holdfast(source) as hf:
        await counting().run({"n": 1}, on=hf)


async def refused(source: str, target: str, error: type[HoldfastError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        await promote(source, target)
    assert type(caught.value) is error
    assert caught.value.hint


@pytest.mark.covers("FLEET-PROM-02")
async def test_a_move_is_refused_in_a_sentence_and_nothing_is_changed(
    tmp_path: Path, source: str, address: str
) -> None:
    before = await filled(source, 2)
    other = f"sqlite:{tmp_path}/other.db"
    await refused(other, source, StoreUnavailableError, "there is no store at sqlite:.*other.db")
    assert not (tmp_path / "other.db").exists(), "looking for it does not make it"
    await refused(address, other, StoreUnavailableError, "there is no store at postgresql:.*schema=t_")
    await refused(source, f"{tmp_path}/./runs.db", InputError, "are the same store")
    await refused(source, "memory:", SettingsError, "'memory:' is not a store that can be moved")
    await refused(source, "mysql://x", SettingsError, "is not a store that can be moved")
    await filled(other, 1)
    await refused(source, other, InputError, "other.db is not empty: the target of a move must be empty")
    await filled(address, 1)
    await refused(source, address, InputError, "is not empty")
    await refused(address, address, InputError, "are the same store")
    nowhere = "postgresql://postgres@127.0.0.1:1/none"
    await refused(source, nowhere, StoreUnavailableError, "cannot be reached")
    assert await looked(source) == before
    assert _execute(tmp_path, "SELECT name FROM sqlite_schema WHERE name GLOB 'moved*'") == []


@pytest.mark.covers("FLEET-PROM-02")
async def test_a_source_that_somebody_keeps_locked_is_left_as_it_was(
    tmp_path: Path, source: str, address: str
) -> None:
    before = await filled(source, 2)
    conn = apsw.Connection(str(tmp_path / "runs.db"))
    conn.execute("BEGIN IMMEDIATE")
    locked = f"{source}?busy_timeout=0.2"
    await refused(locked, address, StoreBusyError, "runs.db is locked by another process")
    half = move_endpoint(address)
    assert await half.mark() is None
    await half.close()
    conn.execute("ROLLBACK")
    conn.close()
    assert await looked(source) == before
    await promote(source, address)
    assert await looked(address) == before


@pytest.mark.covers("FLEET-PROM-02")
async def test_what_is_under_way_is_not_mixed_with_another_move(
    tmp_path: Path, source: str, address: str
) -> None:
    await filled(source, 2)

    def stop(_step: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await promote(source, address, on_progress=stop)
    third = f"sqlite:{tmp_path}/third.db"
    await refused(source, third, StoreMovedError, "was moved to postgresql:.*, or is being moved")
    await filled(third, 1)
    await refused(third, address, StoreFillingError, "is partly filled from sqlite:.*runs.db")
    await refused(address, f"sqlite:{tmp_path}/fourth.db", StoreFillingError, "is itself being filled from")
    await promote(source, address)
    await refused(third, source, StoreMovedError, "runs.db was itself moved to postgresql:")


@pytest.mark.covers("FLEET-PROM-02")
async def test_a_damaged_store_is_not_moved(tmp_path: Path, source: str, address: str) -> None:
    async with Holdfast(source) as hf:
        await nested().run({}, on=hf)
    _execute(tmp_path, "DELETE FROM blobs")
    await refused(source, address, BlobMissingError, "lacks 2 blobs that its runs refer to")
    whole = f"sqlite:{tmp_path}/audited.db"
    await filled(whole, 2)
    _execute(tmp_path, "DROP TRIGGER audit_updated; UPDATE audit SET actor = 'user:eve'", "audited.db")
    await refused(whole, address, CheckpointCorruptError, "the audit of tenant default in .* is not intact")


@pytest.mark.covers("FLEET-PROM-01", "FLEET-PROM-02")
async def test_a_moved_store_is_read_and_takes_nothing(source: str, address: str, tmp_path: Path) -> None:
    before = await filled(source, 2)
    run, (_, _, (hold,)) = next(iter(before.items()))
    with pytest.raises(StoreMovedError):
        await _try_all(source, run, hold.id, after=promote(source, address))
    assert await looked(source) == before
    back = f"sqlite:{tmp_path}/back.db"
    with pytest.raises(StoreMovedError):
        await _try_all(address, run, hold.id, after=promote(address, back))
    assert await looked(address) == before == await looked(back)


async def _try_all(address: str, run: str, hold: str, *, after: Any) -> None:
    """In stores that are open while it happens, all that writes is refused, and the new place named."""
    async with Holdfast(address) as hf:
        service = await hf.service()
        await after
        store = await open_store(address)
        tries = [
            lambda: service.create(counting().program(), {"n": 1}),
            lambda: service.answer(hold, "yes"),
            lambda: service.cancel(run),
            lambda: service.request_resume(run),
            lambda: store.delete_run(run),
            lambda: store.put_blob(b"x" * 32, 1, b"x"),
            lambda: counting().resume(run, on=hf),
        ]
        for attempt in tries:
            with pytest.raises(StoreMovedError, match=r"was moved to .*: it can only be read here"):
                await attempt()
        await store.close()
        raise StoreMovedError("all of them")


@pytest.mark.covers("FLEET-PROM-01", "FLEET-PROM-02", "FLEET-PROM-03")
def test_the_command_tells_what_it_does(
    cli: Cli, source: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.apart(filled(source, 3))
    secret = address.replace("postgres@", "postgres:s3cr3t@")
    dry = cli("promote", source, secret, "--dry-run")
    assert dry.code == 0
    assert "rows would move from sqlite:" in dry.out
    assert postgres.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema_of(address)}'") == []
    assert cli("promote", source, secret, "--wait", "soon").code == 2

    monkeypatch.setattr("holdfast.cli.commands.promote.PATIENCE", -1)  # as if it took long
    done = cli("promote", source, secret)
    assert done.code == 0, done.err
    assert "Copying journal: " in done.err
    assert "Compared audit, " in done.err
    assert "journal" in done.out
    assert "all compared" in done.out
    moved = json.loads(cli("promote", source, secret, "--json").out)
    assert moved["already"] is True
    listed = cli("runs", "--store", source, "--json")
    run = json.loads(listed.out)["items"][0]["id"]
    assert cli("show", run, "--store", source).code == 0
    late = cli("cancel", run, "--store", source)
    assert late.code == 4
    assert "was moved to postgresql://" in late.err
    assert cli("cancel", run, "--store", address).code == 0

    assert "Nothing to do" in cli("promote", source, secret).out
    back = json.loads(cli("promote", secret, f"sqlite:{tmp_path}/back.db", "--json").out)
    assert {each["table"] for each in back["tables"]} == {rule.table for rule in RULES}
    for moved, place in ((source, address.partition("?")[0]), (address, "back.db")):
        said = cli("doctor", "--store", moved)
        assert said.code == 0, "what keeps writers away is no drift"
        assert f"was moved to {place}" in said.out or f"{place} (started" in said.out
    undone = cli("promote", "--undo", secret, f"sqlite:{tmp_path}/back.db")
    assert undone.code == 4
    for said in (dry, done, listed, late, undone):
        assert "s3cr3t" not in said.out + said.err


STARTING = """
import asyncio, sys
from holdfast import Flow, Holdfast

async def start(address):
    flow = Flow("plain", effect="pure")
    flow.start(flow.hold("ask", prompt="Well?", options=["yes", "no"]))
    async with Holdfast(address) as hf:
        await (await hf.service()).create(flow.program(), {})

asyncio.run(start(sys.argv[1]))
"""


@pytest.mark.covers("FLEET-PROM-01")
async def test_code_of_the_last_release_is_kept_out_of_a_moved_store(tmp_path: Path, address: str) -> None:
    """It knows nothing of moves: what it meets is in the database."""
    env = environment(unpack(tmp_path / "last"))

    def start() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", STARTING, address]
        return subprocess.run(
            command, capture_output=True, timeout=HANG, check=False, env=env, cwd="/", text=True
        )

    assert (await asyncio.to_thread(start)).returncode == 0
    await promote(address, f"sqlite:{tmp_path}/back.db")
    late = await asyncio.to_thread(start)
    assert late.returncode == 1
    assert "holdfast-move" in late.stderr
    assert len(await looked(address)) == len(await looked(f"sqlite:{tmp_path}/back.db")) == 1
