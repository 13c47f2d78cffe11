"""What cannot be done on a cluster is refused before anything starts, with a sentence that says why."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("temporalio")

from holdfast import Holdfast
from holdfast.drivers.temporal.address import EngineAddress, parse_address
from holdfast.drivers.temporal.client import Cluster
from holdfast.errors import EngineError
from holdfast.testing.clock import FakeClock
from tests.services import temporal
from tests.services.s3 import free_ports

pytestmark = pytest.mark.anyio


def test_address_is_read_with_its_options() -> None:
    found = parse_address("temporal://db.example:7000/shop?tls=true&heartbeat=10s&activities=7&pollers=3")
    assert found == EngineAddress(
        host="db.example", port=7000, namespace="shop", tls=True, heartbeat=10.0, activities=7, pollers=3
    )
    assert parse_address("temporal://localhost").name == "temporal://localhost:7233/default"


@pytest.mark.covers("TD-41")
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("temporal:", "is not the address of a cluster"),
        ("http://localhost:7233", "is not the address of a cluster"),
        ("temporal://localhost:99999/x", "cannot be read"),
        ("temporal://localhost/a/b", "more than one namespace"),
        ("temporal://user:secret@localhost/a", "has a credential in it"),
        ("temporal://localhost/a?retries=3", "has no option 'retries'"),
        ("temporal://localhost/a?heartbeat=0s", "heartbeat"),
        ("temporal://localhost/a?heartbeat=soon", "heartbeat"),
        ("temporal://localhost/a?tls=maybe", "tls"),
        ("temporal://localhost/a?activities=0", "activities"),
    ],
)
def test_wrong_address_is_refused_when_the_instance_is_made(address: str, said: str) -> None:
    with pytest.raises(EngineError, match=said) as refused:
        Holdfast("memory:", engine=address)
    assert "secret" not in str(refused.value)


@pytest.mark.covers("TD-41")
async def test_store_that_workers_cannot_share_is_refused(tmp_path: Path) -> None:
    file = f"sqlite:{tmp_path / 'h.db'}"
    here, there = "temporal://localhost:7233/default", "temporal://db.example:7233/default"
    cases = [
        (Holdfast("memory:", engine=here), "in the memory of one process"),
        (Holdfast(file, engine=there), "a file of this machine"),
        (Holdfast(file, engine=here, clock=FakeClock()), "a clock was given"),
    ]
    for hf, why in cases:
        async with hf:
            with pytest.raises(EngineError, match=why):
                await hf.service()


@pytest.mark.covers("TD-41")
async def test_server_that_is_away_and_an_unknown_namespace_are_named() -> None:
    (port,) = free_ports(1)
    with pytest.raises(EngineError, match=f"the cluster at 127.0.0.1:{port} does not answer"):
        await Cluster(parse_address(f"temporal://127.0.0.1:{port}/default")).connect()
    server = temporal.own()
    with pytest.raises(EngineError, match="has no namespace 'nowhere'"):
        await Cluster(parse_address(f"temporal://{server.target}/nowhere")).connect()


@pytest.mark.covers("TD-41")
async def test_server_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.drivers.temporal.client.OLDEST", (99, 0))
    with pytest.raises(EngineError, match="Holdfast needs 99"):
        await Cluster(parse_address(temporal.own().address())).connect()
