"""A move that dies anywhere goes on when it is called again; what differs is found; it can be undone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import (
    CheckpointCorruptError,
    InputError,
    StoreBusyError,
    StoreFillingError,
    StoreMovedError,
)
from holdfast.runs.transfer import promote as promoting
from holdfast.runs.transfer.promote import promote, undo
from holdfast.store.rows import RunFilter
from holdfast.store.sql.postgres import copy
from holdfast.store.sql.postgres.copy import PostgresCopyConnection, PostgresMoveEndpoint
from holdfast.store.sql.sqlite import copy as sqlite_copying
from holdfast.store.sql.sqlite.copy import SqliteMoveEndpoint
from tests.fleet.conftest import schema_of
from tests.services import postgres

NEW_SCHEMA = True
pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


class Died(BaseException):
    """Not an Exception: what mends errors must not mend this."""


def counting() -> Flow:
    flow = Flow("counting", effect="pure")

    @flow.node
    async def count(s: dict[str, Any]) -> dict[str, Any]:
        return {"n": s["n"] + 1}

    flow.edge(count, flow.hold("ask", prompt="{{n}}?", options=["yes", "no"]))
    return flow


async def filled(address: str, runs: int = 12) -> dict[str, Any]:
    async with Holdfast(address) as hf:
        for n in range(runs):
            await counting().run({"n": n}, on=hf)
        return await seen(hf)


async def seen(hf: Holdfast) -> dict[str, Any]:
    store = (await hf.service()).store
    rows = await store.list_runs(RunFilter(), after=None, limit=9999)
    return {row.id: (row, await store.read(row.id), await store.holds(run=row.id)) for row in rows}


async def looked(address: str) -> dict[str, Any]:
    async with Holdfast(address) as hf:
        return await seen(hf)


class Death:
    """Dies at a write of each call, before its commit and after it in turns. With a stride of 1 it is the
    first: then it dies at every place between two of a move's transactions, and inside of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stride: int) -> None:
        self.deaths = 0
        self._stride = self._left = stride
        self._inside = True
        self._transact = sqlite_copying.transact
        monkeypatch.setattr(sqlite_copying, "transact", self._sqlite)
        self._write, self._alone = PostgresCopyConnection.write, PostgresCopyConnection.alone
        monkeypatch.setattr(PostgresCopyConnection, "write", self._postgres(PostgresCopyConnection.write))
        monkeypatch.setattr(PostgresCopyConnection, "alone", self._postgres(PostgresCopyConnection.alone))
        monkeypatch.setattr(sqlite_copying, "BATCH", 5)
        monkeypatch.setattr(copy, "BATCH", 5)

    def _die(self, *, inside: bool) -> None:
        if inside != self._inside:
            return
        self._left -= 1
        if not self._left:
            self.deaths += 1
            self._inside = not self._inside
            self._left = self._stride
            raise Died

    def _sqlite(self, cur: Any, work: Callable[..., Any], now: Callable[[], int]) -> Any:
        def and_die(cur: Any, at: int) -> Any:
            done = work(cur, at)
            self._die(inside=True)
            return done

        done = self._transact(cur, and_die, now)
        self._die(inside=False)
        return done

    def _postgres(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def writing(line: PostgresCopyConnection, work: Callable[[Any], Awaitable[Any]]) -> Any:
            async def and_die(conn: Any) -> Any:
                done = await work(conn)
                self._die(inside=True)
                return done

            done = await write(line, and_die)
            self._die(inside=False)
            return done

        return writing


async def persist(move: Callable[[], Awaitable[Any]]) -> Any:
    while True:
        try:
            return await move()
        except Died:
            continue


@pytest.mark.covers("FLEET-PROM-02", "FLEET-PROM-03", "D-36-promote")
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=(pytest.mark.soak, pytest.mark.timeout(300)))])
async def test_a_move_ends_whole_when_it_dies_in_and_after_each_of_its_transactions(
    tmp_path: Path, address: str, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, back = f"sqlite:{tmp_path}/runs.db", f"sqlite:{tmp_path}/back.db"
    before = await filled(source, 6)
    death = Death(monkeypatch, stride)
    for old, new in ((source, address), (address, back)):
        death.deaths = 0
        moved = await persist(lambda old=old, new=new: promote(old, new))
        # Each table takes a transaction or more, and so do the marks at both ends.
        assert death.deaths > 30 // stride
        assert moved.already or all(each.same for each in moved.tables)
        assert await looked(new) == before


MOVING = """
import asyncio, sys
from holdfast.runs.transfer.promote import promote
from holdfast.store.sql.postgres import copy as postgres
from holdfast.store.sql.sqlite import copy as sqlite
postgres.BATCH = sqlite.BATCH = 20
asyncio.run(promote(*sys.argv[1:], on_progress=lambda step: print(step.phase, step.table, flush=True)))
print("done")
"""


def moved_by_a_process(source: str, target: str, *, steps: int) -> bool:
    """Killed after so many steps, between two or in the middle of the next. True: it was done before."""
    command = [sys.executable, "-c", MOVING, source, target]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline().strip() for _ in range(steps)]  # nothing more at its end
    process.kill()
    process.communicate()
    return "done" in lines


@pytest.mark.covers("FLEET-PROM-02")
async def test_a_move_goes_on_when_its_process_is_killed_again_and_again(
    tmp_path: Path, address: str
) -> None:
    source = f"sqlite:{tmp_path}/runs.db"
    before = await filled(source, runs=40)
    done = [
        await asyncio.to_thread(moved_by_a_process, source, address, steps=steps) for steps in (3, 8, 30, 999)
    ]
    assert done == [False, False, False, True]
    assert await looked(address) == before


@pytest.mark.covers("FLEET-PROM-02")
@pytest.mark.parametrize("way", ["there", pytest.param("back", marks=pytest.mark.soak)])
async def test_the_target_stays_closed_when_what_arrived_is_not_what_left(
    tmp_path: Path, address: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = f"sqlite:{tmp_path}/runs.db"
    source, target = (file, address) if way == "there" else (address, file)
    before = await filled(source)

    def tamper(step: Any) -> None:
        if step.phase != "copying" or step.table != "feed":
            return
        alter = "UPDATE {0}moved SET busy = {1}; UPDATE {0}holds SET prompt = 'other' WHERE number = 2; "
        alter += "UPDATE {0}moved SET busy = {2}"
        if way == "there":
            postgres.execute(f"BEGIN; {alter.format(f'{schema_of(address)}.', 'true', 'false')}; COMMIT")
        else:
            _execute(tmp_path / "runs.db", alter.format("", 1, 0))

    with pytest.raises(CheckpointCorruptError, match="holds are different") as caught:
        await promote(source, target, on_progress=tamper)
    wrong = [each for each in caught.value.facts["tables"] if not each.same]  # type: ignore[attr-defined]
    assert [(each.table, each.rows, each.arrived) for each in wrong] == [("holds", 12, 12)]
    async with Holdfast(target) as hf:
        with pytest.raises(StoreFillingError, match="is being filled from"):
            await counting().run({"n": 1}, on=hf)
    async with Holdfast(source) as hf:
        with pytest.raises(StoreMovedError):
            await counting().run({"n": 1}, on=hf)

    await undo(source, target)
    assert await looked(target) == {}
    async with Holdfast(source) as hf:
        assert await seen(hf) == before
        await counting().run({"n": 99}, on=hf)
    assert len((await promote(source, target)).tables) > 20
    assert len(await looked(target)) == 13


def _execute(file: Path, sql: str) -> None:
    conn = apsw.Connection(str(file))
    conn.set_busy_timeout(5000)
    conn.execute(f"BEGIN IMMEDIATE; {sql}; COMMIT")
    conn.close()


@pytest.mark.covers("FLEET-PROM-02")
async def test_a_move_is_undone_or_done_when_it_died_before_the_target_opened(
    tmp_path: Path, address: str
) -> None:
    """The source is marked as moved by then, and the target is still closed: neither takes a write."""
    source = f"sqlite:{tmp_path}/runs.db"
    before = await filled(source, 2)

    def die(step: Any) -> None:
        if step.phase == "opening":
            raise Died

    for undone in (True, False):
        with pytest.raises(Died):
            await promote(source, address, on_progress=die)
        for place, error in ((source, StoreMovedError), (address, StoreFillingError)):
            async with Holdfast(place) as hf:
                with pytest.raises(error):
                    await counting().run({"n": 1}, on=hf)
        if undone:
            servers = f"SELECT system, timeline FROM {schema_of(address)}.timelines"
            known = postgres.execute(servers)
            await undo(source, address)
            assert postgres.execute(servers) == known != [], "what the schema knows of itself stays"
            assert (await looked(source), await looked(address)) == (before, {})
        else:
            await promote(source, address)
            assert await looked(address) == before


@pytest.mark.covers("FLEET-PROM-02")
async def test_a_move_that_is_done_is_not_undone(tmp_path: Path, address: str) -> None:
    source = f"sqlite:{tmp_path}/runs.db"
    await filled(source, 2)
    with pytest.raises(InputError, match="no move"):
        await undo(source, address)
    await promote(source, address)
    with pytest.raises(StoreMovedError, match="complete and may be in use"):
        await undo(source, address)
    assert (await promote(source, address)).already


@pytest.mark.covers("FLEET-PROM-02")
async def test_two_that_move_the_same_store_do_not_harm_it(tmp_path: Path, address: str) -> None:
    source = f"sqlite:{tmp_path}/runs.db"
    before = await filled(source, 40)
    ends = await asyncio.gather(*(promote(source, address) for _ in range(2)), return_exceptions=True)
    for end in ends:
        assert not isinstance(end, BaseException) or isinstance(end, (StoreBusyError, StoreFillingError)), end
    await promote(source, address)
    assert await looked(address) == before


@pytest.mark.covers("FLEET-PROM-02")
async def test_who_comes_second_does_not_empty_what_the_first_has_filled(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second looked at the source before the first marked it, and is done with that when the first is
    in the middle of copying."""
    source = f"sqlite:{tmp_path / 'old.db'}"
    before = await filled(source)
    monkeypatch.setattr(sqlite_copying, "BATCH", 5)
    copying, refused, looks = asyncio.Event(), asyncio.Event(), list[str]()
    look_over, put = promoting.require_whole, PostgresMoveEndpoint.put

    async def slowly(where: str, shown: str) -> int:
        looks.append(where)
        if looks == [source, source]:
            await copying.wait()
        return await look_over(where, shown)

    async def and_waits(half: PostgresMoveEndpoint, *given: Any) -> bool:
        copying.set()
        await refused.wait()
        return await put(half, *given)

    monkeypatch.setattr(promoting, "require_whole", slowly)
    monkeypatch.setattr(PostgresMoveEndpoint, "put", and_waits)

    async def one() -> bool:
        try:
            return bool((await promote(source, address)).copied)
        except StoreBusyError:
            refused.set()
            return False

    assert sorted(await asyncio.gather(one(), one())) == [False, True]
    assert await looked(address) == before


@pytest.mark.covers("FLEET-PROM-02")
@pytest.mark.parametrize("back", [False, True], ids=["to the server", "to a file"])
async def test_who_copies_is_reported_when_somebody_takes_the_move_back(
    tmp_path: Path, address: str, back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = (f"sqlite:{tmp_path}/runs.db", address)
    source, target = reversed(ends) if back else ends
    before = await filled(source, 12)
    half = SqliteMoveEndpoint if back else PostgresMoveEndpoint
    put, puts = half.put, list[None]()

    async def amid(self: Any, *given: Any) -> bool:
        puts.append(None)
        if len(puts) == 5:
            await undo(source, target)
        return await put(self, *given)

    monkeypatch.setattr(half, "put", amid)
    with pytest.raises(StoreBusyError, match="cancelled a move"):
        await promote(source, target)
    assert (await looked(source), await looked(target)) == (before, {})


@pytest.mark.covers("FLEET-PROM-02")
async def test_a_lost_target_is_reported_and_the_source_can_be_opened_again(
    tmp_path: Path, address: str
) -> None:
    source = f"sqlite:{tmp_path}/runs.db"
    before = await filled(source, 3)
    await promote(source, address)
    postgres.execute(f"DROP SCHEMA {schema_of(address)} CASCADE")
    with pytest.raises(StoreMovedError, match="which is empty now"):
        await promote(source, address)
    await undo(source, address)
    async with Holdfast(source) as hf:
        assert await seen(hf) == before
        assert (await counting().run({"n": 4}, on=hf)).holds
