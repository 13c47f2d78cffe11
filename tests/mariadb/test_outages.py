"""A server of our own is killed, restarted, frozen, cut off: what was acknowledged stays, work goes on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.errors import StoreUnavailableError
from holdfast.store.open import open_store
from holdfast.types.document import Document
from tests.deadlines import HANG
from tests.fleet.test_doctor import doctor
from tests.proxy import Proxy
from tests.services import absent, mariadb
from tests.services.mariadb_server import MariadbServer, programs

pytestmark = [pytest.mark.anyio, pytest.mark.covers("MB-7")]

FAST = RunSettings(lease_ttl=4.0, poll=0.05, hot_timer=0.0)


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    if programs() is None:
        absent("mariadb", "mariadbd is not installed")
    own = MariadbServer()
    own.start()
    yield own
    own.remove()


@pytest.fixture
def own(server: MariadbServer) -> str:
    """A database on it."""
    mariadb.execute("CREATE OR REPLACE DATABASE runs", server.address)
    return f"mariadb://root@127.0.0.1:{server.port}/runs?timeout=2"


def named(name: str) -> Document:
    return Document(tenant="t", kind="k", name=name, body=b"", revision=0, updated_at=0)


async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(
    own: str, server: MariadbServer
) -> None:
    store = await open_store(own)
    acknowledged: list[str] = []

    async def write(n: int) -> None:
        for m in range(1000):
            await store.put_document(named(f"{n}-{m}"))
            acknowledged.append(f"{n}-{m}")

    tasks = [asyncio.create_task(write(n)) for n in range(4)]
    while len(acknowledged) < 40:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.to_thread(server.kill)
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(one, StoreUnavailableError) and one.facts.get("away") for one in found), found
    with pytest.raises(StoreUnavailableError):
        await store.document("t", "k", "0-0")
    await asyncio.to_thread(server.start)
    kept = {one.name for one in await store.documents("t", "k", limit=5000)}
    assert set(acknowledged) <= kept
    await store.close()


async def test_run_goes_on_when_the_server_is_restarted_in_the_middle(
    own: str, server: MariadbServer, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    flow = Flow("steps", effect="pure")

    async def step(s: Any) -> dict[str, Any]:
        with ledger.open("a") as file:
            file.write(f"{s['n']}\n")
        await asyncio.sleep(0.05)
        return {"n": s["n"] + 1}

    names = [flow.node(id=f"s{n}")(step) for n in range(12)]
    flow.chain(*names)
    async with Holdfast(own, settings=FAST) as hf:
        run = (await (await hf.service()).create(flow.program(), {"n": 0}))[0]
        async with Worker(flow, on=hf, poll=0.05), asyncio.timeout(HANG):
            while not ledger.exists() or len(ledger.read_text().split()) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
            service = await hf.service()
            while (await service.get(run.id)).status != "completed":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    done = ledger.read_text().split()
    assert sorted(set(done), key=int) == [str(n) for n in range(12)]


async def test_call_ends_with_an_error_in_time_when_the_server_does_not_answer(
    own: str, server: MariadbServer
) -> None:
    store = await open_store(f"{own}&statement_timeout=1&timeout=1")
    server.freeze()
    try:
        async with asyncio.timeout(HANG):
            with pytest.raises(StoreUnavailableError):
                await store.put_document(named("a"))
    finally:
        server.thaw()
    assert await store.put_document(named("b")) is not None
    await store.close()


async def test_lost_answer_of_a_commit_is_no_second_write(own: str, server: MariadbServer) -> None:
    async with Proxy(f"127.0.0.1:{server.port}") as proxy:
        store = await open_store(proxy.between(own))
        await store.put_document(named("a"))
        proxy.cut()
        # The pool's connection is gone: it is replaced, because nothing had begun on it.
        assert await store.put_document(named("b")) is not None
        proxy.delay(0.05)
        assert await store.document("t", "k", "b") is not None
        proxy.clear()
        await store.close()


async def test_killed_connection_is_replaced(own: str, server: MariadbServer) -> None:
    store = await open_store(own)
    await store.put_document(named("a"))
    for (number,) in mariadb.execute(
        "SELECT id FROM information_schema.processlist WHERE db = 'runs'", server.address
    ):
        mariadb.execute(f"KILL {number}", server.address)
    assert await store.put_document(named("b")) is not None
    assert [one.name for one in await store.documents("t", "k")] == ["a", "b"]
    await store.close()


async def test_weak_setting_is_reported_by_doctor(own: str, server: MariadbServer) -> None:
    await (await open_store(own)).close()
    found = await asyncio.to_thread(doctor, own)
    assert found["durability"]["state"] == "ok"
    assert "mariadb-check" in str(found["integrity"])
    mariadb.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 2", server.address)
    try:
        finding = (await asyncio.to_thread(doctor, own))["durability"]
    finally:
        mariadb.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1", server.address)
    assert finding["state"] == "warn"
    assert any("innodb_flush_log_at_trx_commit" in line for line in finding["about"])


async def test_command_line_runs_and_shows_a_flow_on_mariadb(own: str, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        "from holdfast import Flow\nflow = Flow('hello', effect='pure')\n"
        "@flow.node\nasync def greet(s):\n    return {'said': 'hello'}\n"
    )

    def command(*args: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *args, "--store", own, "--json"],
            capture_output=True, text=True, timeout=60, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return msgspec.json.decode(done.stdout.splitlines()[-1])

    await asyncio.to_thread(command, "run", "f.py")
    listed = await asyncio.to_thread(command, "runs")
    assert [one["status"] for one in listed["items"]] == ["completed"]
