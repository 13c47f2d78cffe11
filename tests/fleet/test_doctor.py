"""`holdfast doctor` on PostgreSQL: what the servers can lose, in plain words. (With standbys: test_failover,
test_backward.)"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.cli.doctor.store import server_findings
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.durability import Durability, Standby
from tests.deadlines import HANG
from tests.services import prefork

pytestmark = pytest.mark.anyio


def doctor(address: str) -> dict[str, dict[str, Any]]:
    """Its findings by name."""
    words = ["doctor", "--json", "--store", address]
    done = prefork.run("holdfast", words, cwd=Path.cwd(), env=os.environ)
    assert done.stdout, done.stderr
    return {finding["check"]: finding for finding in msgspec.json.decode(done.stdout)["findings"]}


def warned(caplog: pytest.LogCaptureFixture, *words: str) -> bool:
    texts = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    return any(all(word in text for word in words) for text in texts)


@pytest.mark.covers("FLEET-PG-08")
async def test_weak_setting_is_reported_by_doctor_and_by_the_worker(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    # The test database has synchronous_commit = off.
    flow = Flow("quiet", effect="pure")
    flow.node(id="only")(lambda s: {"done": True})
    async with Holdfast(address) as hf, Worker(flow, on=hf):
        async with asyncio.timeout(HANG):
            while not warned(caplog, "synchronous_commit is off", "loses"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finding = (await asyncio.to_thread(doctor, address))["durability"]
    assert finding["state"] == "warn"
    assert any("synchronous_commit is off" in line for line in finding["about"])


@pytest.mark.covers("FLEET-PG-08")
async def test_doctor_lists_runs_that_lost_their_history(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'runs.db'}"
    flow = Flow("asking", effect="pure")
    flow.hold("approve", prompt="Go on?", options=["yes", "no"])
    async with Holdfast(address) as hf:
        run = (await flow.run({}, on=hf)).run_id
        assert (await asyncio.to_thread(doctor, address))["history"]["state"] == "ok"
        store = (await hf.service()).store
        assert await store.lost_history(AcknowledgedState(run=run, head=99, term=1, at=1)) is not None
    finding = (await asyncio.to_thread(doctor, address))["history"]
    assert (finding["state"], finding["about"]) == ("warn", [run[:8]])
    assert "--accept-loss" in finding["todo"]


def said_of(facts: Durability) -> dict[str, tuple[str, str]]:
    return {finding.check: (finding.state, finding.said) for finding in server_findings(facts)}


@pytest.mark.covers("FLEET-PG-08")
def test_doctor_says_what_can_be_lost_with_the_standbys_that_there_are() -> None:
    two = Standby(name="two", state="streaming", sync="async", lag_bytes=8192, lag=1_500_000)
    assert said_of(Durability()) == {}  # a file has no servers
    alone = said_of(Durability(standbys=[]))
    assert (alone["durability"][0], alone["replication"][0]) == ("ok", "ok")
    assert "as safe as the disk" in alone["replication"][1]
    state, said = said_of(Durability(standbys=[two]))["replication"]
    assert state == "warn"
    assert "last moments before a failover can be lost" in said
    assert "stops them" in said
    synchronous = msgspec.structs.replace(two, sync="sync")
    assert said_of(Durability(standbys=[synchronous], waits_for="two"))["replication"][0] == "ok"
    state, said = said_of(Durability(standbys=[two], waits_for="three"))["replication"]
    assert (state, "every write hangs" in said) == ("fail", True)
    (_, finding) = server_findings(Durability(standbys=[two]))
    assert finding.about == ["two: streaming, async, 8,192 bytes behind, 1.500 s late"]
    unseen = Standby(name="two", state=None, sync=None, lag_bytes=None, lag=None)
    (_, finding) = server_findings(Durability(standbys=[unseen], waits_for="two", hidden=True))
    assert finding.about == ["two: its state is visible only to members of pg_monitor"]
