"""`holdfast dead`: what it tells of a run that killed its workers, and what can be done about it."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.store.open import open_store
from holdfast.store.rows import ClaimRequest
from holdfast.types.ids import RunId
from tests.cli.conftest import Cli, given

STORE = "sqlite:.holdfast/holdfast.db"
WORKERS = ("mill-1", "mill-2")


async def _die(run: RunId) -> None:
    """Two workers take the run and are never heard of again."""
    store = await open_store(STORE)
    for worker in WORKERS:
        assert await store.claim(ClaimRequest(worker=worker, ttl=0, run=run))
        await store.reclaim(limit=9, max_recoveries=1)
    await store.close()


@pytest.fixture
def dead(cli: Cli, refund: str) -> str:
    """A run that waited for a person and was then taken up by workers that died with it."""
    cli("run", refund, "--input", given(500))
    (row,) = cli("runs", "--json").items
    asyncio.run(_die(RunId(row["id"])))
    return row["id"]


@pytest.mark.covers("FLEET-WORK-11")
def test_a_dead_run_is_listed_with_its_evidence(cli: Cli, dead: str) -> None:
    assert dead in cli("runs", "--dead").out
    (listed,) = cli("dead", "list", "--json").items
    assert (listed["run"], listed["dead"], listed["status"]) == (dead, True, "failed")
    assert [death["worker"] for death in listed["deaths"]] == list(WORKERS)
    assert "mill-2" in cli("dead", "list").out
    shown = cli("dead", "show", dead[:8])
    assert all(worker in shown.out for worker in WORKERS)
    assert "a dead letter" in shown.out
    assert f"holdfast dead retry {dead[:8]}" in shown.err
    assert f"holdfast dead discard {dead[:8]}" in shown.err


@pytest.mark.covers("FLEET-WORK-11")
def test_a_dead_run_goes_on_when_it_is_retried(cli: Cli, refund: str, dead: str) -> None:
    assert "is queued again" in cli("dead", "retry", dead, "--by", "user:dana").out
    assert cli("dead", "list", "--json").items == []
    cli("worker", refund, "--until-idle")
    assert cli("answer", dead, "approve", "--resume").code == 0
    assert [row["status"] for row in cli("runs", "--json").items] == ["completed"]
    assert [death["worker"] for death in cli("dead", "show", dead, "--json").json["deaths"]] == list(WORKERS)


@pytest.mark.covers("FLEET-WORK-11")
def test_a_dead_run_is_cancelled_when_it_is_discarded(cli: Cli, refund: str, dead: str) -> None:
    said = cli("dead", "discard", dead, "--reason", "ordered twice")
    assert "cancelled by the next worker that serves refund" in said.out
    cli("worker", refund, "--until-idle")
    (row,) = cli("runs", "--json").items
    assert (row["status"], row["dead"]) == ("cancelled", False)


@pytest.mark.covers("FLEET-WORK-11")
def test_doctor_names_dead_letters(cli: Cli, dead: str) -> None:
    found = {each["check"]: each for each in cli("doctor", "--json").json["findings"]}
    assert found["dead letters"]["state"] == "warn"
    assert dead[:8] in found["dead letters"]["about"][0]
