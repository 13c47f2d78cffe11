"""What cannot be done on a cluster is refused before anything starts, with a sentence that says why."""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from holdfast import Flow, Holdfast
from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope, rotated, with_scope
from holdfast.drivers.temporal.address import EngineAddress, parse_address
from holdfast.drivers.temporal.client import Cluster
from holdfast.drivers.temporal.payloads import Unwritten
from holdfast.drivers.temporal.projection import JournalProjector
from holdfast.errors import EngineError, ProjectionConflictError
from holdfast.testing.clock import FakeClock
from tests.services import temporal
from tests.services.s3 import free_ports
from tests.storage.canary import ring
from tests.temporal.runs import assert_same, engine_of, run, workers
from tests.temporal.test_runs import asks

pytestmark = pytest.mark.anyio


def test_address_is_read_with_its_options() -> None:
    found = parse_address("temporal://db.example:7000/shop?tls=true&heartbeat=10s&activities=7&pollers=3")
    assert found == EngineAddress(
        host="db.example", port=7000, namespace="shop", tls=True, heartbeat=10.0, activities=7, pollers=3
    )
    assert parse_address("temporal://localhost").name == "temporal://localhost:7233/default"
    # The lease of a run is under this name: both spellings are one.
    assert parse_address("temporal://127.0.0.1").name == "temporal://localhost:7233/default"


@pytest.mark.covers("TD-40")
def test_keys_and_certificates_come_from_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "temporal.toml"
    file.write_text('[profile.prod]\naddress = "elsewhere:1"\nnamespace = "other"\napi_key = "sesame"\n')
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(file))
    cluster = Cluster(parse_address("temporal://db.example/shop?profile=prod"))
    options = cluster._options()
    # The address is ours; what proves who we are is the vendor's.
    assert (options["api_key"], options["tls"], "target_host" in options) == ("sesame", True, False)
    assert "sesame" not in cluster.address.name
    with pytest.raises(EngineError, match="the profile 'test' of the engine cannot be read"):
        Cluster(parse_address("temporal://db.example/shop?profile=test"))._options()


@pytest.mark.covers("TD-41")
def test_missing_sdk_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "holdfast.drivers.temporal.client")
    monkeypatch.setitem(sys.modules, "temporalio.client", None)
    with pytest.raises(EngineError, match="need its SDK") as refused:
        Holdfast("memory:", engine="temporal://localhost")
    assert "holdfast-flow[temporal]" in str(refused.value)


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
        ("temporal://localhost/a?tls=true&tls=true", "has an option twice"),
        ("temporal://localhost/a?profile=", "give the name of a profile"),
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
    why = f"the cluster at 127.0.0.1:{port} does not answer: Connection refused"
    with pytest.raises(EngineError, match=why):
        await Cluster(parse_address(f"temporal://127.0.0.1:{port}/default")).connect()
    server = temporal.own()
    with pytest.raises(EngineError, match="has no namespace 'nowhere'"):
        await Cluster(parse_address(f"temporal://{server.target}/nowhere")).connect()


@pytest.mark.covers("TD-41")
async def test_server_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.drivers.temporal.client.OLDEST", (99, 0))
    with pytest.raises(EngineError, match="Holdfast needs 99"):
        await Cluster(parse_address(temporal.own().address())).connect()


async def test_workflow_of_a_run_that_another_engine_has_writes_nothing(sqlite: str, engine: str) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf:
        created = await flow.submit({}, on=hf)
        service = await hf.service()
        row = await service.get(created)
        other = Unwritten(row.id, row.key, row.tenant, row.flow, row.version, "temporal://other:7233/x", [])
        with pytest.raises(ProjectionConflictError, match="not by temporal://other:7233/x"):
            await JournalProjector(service.runtime).append(flow.program(), row, other)


async def test_reducer_that_decides_by_chance_is_recorded_with_its_result(sqlite: str, engine: str) -> None:
    flow = Flow("chance", effect="pure", reducers={"n": lambda old, new: (old or 0) + random.randrange(1000)})

    @flow.node
    async def one(_state: Any) -> dict[str, Any]:
        return {"n": 1}

    @flow.node
    async def two(_state: Any) -> dict[str, Any]:
        return {"n": 1}

    flow.chain("one", "two")
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow, cached=0):
        done = await run(flow, hf)
        assert done.completed
        await assert_same(hf, done.run_id)


@pytest.mark.covers("TD-41")
async def test_keys_that_differ_from_those_of_other_processes_are_found_before_anything_starts(
    sqlite: str, engine: str
) -> None:
    flow, first, second = asks(), ring("acme", EVERYBODY), ring("acme", EVERYBODY)
    async with Holdfast(sqlite, engine=engine, keys=first) as hf, workers(hf, flow):
        assert (await run(flow, hf, tenant="acme")).holds
    async with Holdfast(sqlite, engine=engine, keys=second) as hf:
        with pytest.raises(EngineError, match="their keys differ"):
            await (await engine_of(hf)).check()
        with pytest.raises(EngineError, match="their keys differ"):
            async with workers(hf, flow):
                pass
        # Of one tenant alone.
        with pytest.raises(EngineError, match="of tenant 'acme'"):
            await (await engine_of(hf)).require_keys("acme")


@pytest.mark.covers("TD-41")
async def test_process_that_lacks_the_newest_key_is_refused_after_another_has_started(
    sqlite: str, engine: str
) -> None:
    scope = new_scope(datetime.now(UTC))
    old = StaticKeys(with_scope(None, EVERYBODY, scope))
    new = StaticKeys(with_scope(None, EVERYBODY, rotated(scope, datetime.now(UTC))))
    # As the key is rotated: what was written before is read by both.
    for keys in (None, old, new):
        async with Holdfast(sqlite, engine=engine, keys=keys) as hf:
            await (await engine_of(hf)).check()
    for keys in (None, old):
        async with Holdfast(sqlite, engine=engine, keys=keys) as hf:
            with pytest.raises(EngineError, match="their keys differ"):
                await (await engine_of(hf)).check()
