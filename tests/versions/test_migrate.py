"""Moving runs: tried on copies, done in one write, beside runs of other versions."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import (
    CheckpointCorruptError,
    Flow,
    Holdfast,
    InputError,
    RunStatus,
    VersionMismatchError,
    Worker,
    all_of,
)
from holdfast.checkpoint.keys import StaticKeys, new_scope, with_scope
from holdfast.runs.migrate.migrate import move
from holdfast.store.memory import MemoryStore
from holdfast.store.rows import ClaimRequest
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, until_crash
from tests.flows.places import Place, answer, open_holds, told

pytestmark = pytest.mark.anyio


def order(label: str) -> Flow:
    flow = Flow("order", effect="read", version=label)
    gate = "gate" if label == "1" else "approve"

    async def by() -> dict[str, Any]:
        return {"by": label}

    flow.hold(gate, prompt="Go?", options=["yes", "no"], timeout="1d", on_timeout="fail")
    flow.node(id="after")(by)
    flow.edge(gate, "after", when="decision == 'yes'")
    if label != "1":
        flow.migrate("1", rename={"gate": gate})
    return flow


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "open"])
@pytest.mark.covers("TOOL-VER-05")
async def test_a_dry_run_tells_what_comes_next_and_changes_no_byte(tmp_path: Path, answered: bool) -> None:
    file = tmp_path / "d.db"
    async with Holdfast(f"sqlite:{file}") as hf:
        waiting = await order("1").run(on=hf)
        if answered:
            await answer(hf, waiting, "yes")
        files = [file, file.with_name("d.db-wal")]
        before = [each.read_bytes() for each in files]
        (verdict,) = await order("2").migrate_runs(dry_run=True, on=hf)
        assert [each.read_bytes() for each in files] == before
    assert verdict.fits
    assert not verdict.migrated
    assert verdict.next == (["node after starts"] if answered else ["it waits for an answer at approve"])


@pytest.mark.covers("TOOL-VER-05")
async def test_a_dry_run_says_what_does_not_fit(place: Place) -> None:
    hf = await place.hf()
    await order("1").run(on=hf)
    bare = order("2")
    bare.migrations.clear()
    (verdict,) = await bare.migrate_runs(dry_run=True, on=hf)
    assert (verdict.fits, verdict.next) == (False, [])
    assert verdict.misfits


@pytest.mark.covers("TOOL-VER-01")
async def test_one_worker_advances_runs_of_several_versions_each_on_its_own(place: Place) -> None:
    hf = await place.hf()
    runs = {label: (await order(label).run(on=hf)).run_id for label in ("1", "2")}
    for run in runs.values():
        await answer(hf, run, "yes")
    working = await place.hf()
    await Worker(order("1"), order("2"), on=working).run_until_idle()
    service = await working.service()
    for label, run in runs.items():
        assert (await service.latest(run)).state["by"] == label


@pytest.mark.covers("TOOL-VER-01", "TOOL-VER-06")
async def test_a_worker_leaves_runs_of_versions_that_it_does_not_carry(place: Place) -> None:
    hf = await place.hf()
    old = await order("1").run(on=hf)
    await answer(hf, old, "yes")
    working = await place.hf()
    await Worker(order("2"), on=working).run_until_idle()
    service = await working.service()
    row = await service.get(old.run_id)
    assert row.version == order("1").program().version
    assert row.status is RunStatus.pending_input
    assert row.term == 1
    await Worker(order("1"), on=await place.hf()).run_until_idle()
    assert (await service.get(old.run_id)).status is RunStatus.completed


@pytest.mark.covers("TOOL-VER-04")
async def test_the_time_limit_of_a_moved_hold_still_counts(place: Place) -> None:
    hf = await place.hf()
    waiting = await order("1").run(on=hf)
    new = order("2")
    (verdict,) = await new.migrate_runs(on=hf)
    assert verdict.migrated
    place.clock.advance(days=2)
    await Worker(new, on=hf).run_until_idle()
    service = await hf.service()
    assert (await service.get(waiting.run_id)).status is RunStatus.failed
    (failed,) = await told(hf, waiting, "node.failed")
    assert failed.node == "approve"


@pytest.mark.covers("TOOL-VER-07")
async def test_a_run_that_somebody_works_on_is_reported_and_left_alone(place: Place) -> None:
    hf = await place.hf()
    waiting = await order("1").run(on=hf)
    store = await hf.open()
    (claim,) = await store.claim(ClaimRequest(worker="other", ttl=60_000_000, run=waiting.run_id))
    (verdict,) = await order("2").migrate_runs(on=hf)
    assert not verdict.migrated
    assert "another worker" in verdict.refused
    row = await store.get_run(waiting.run_id)
    assert row is not None
    assert (row.term, row.worker, row.version) == (claim.lease.term, "other", order("1").program().version)


@pytest.mark.covers("TOOL-VER-08", "TOOL-VER-04")
@pytest.mark.parametrize("point", ["inside_settle", "after_blob_put"])
def test_a_crash_amid_a_migration_leaves_the_old_version_and_the_next_try_moves_it(point: str) -> None:
    clock = FakeClock(auto=True)
    store = MemoryStore(clock)

    async def prepare() -> str:
        async with Holdfast(store, clock=clock) as hf:
            waiting = await order("1").run(on=hf)
            await answer(hf, waiting, "yes")
            return waiting.run_id

    async def migrate(given: Any) -> list[Any]:
        async with Holdfast(given, clock=clock) as hf:
            return await order("2").migrate_runs(on=hf)

    async def finish(run: str) -> tuple[Any, Any]:
        async with Holdfast(store, clock=clock) as hf:
            service = await hf.service()
            crashed = await service.get(run)
            clock.advance(minutes=2)
            (verdict,) = await order("2").migrate_runs(on=hf)
            assert verdict.migrated, verdict
            return crashed, await order("2").resume(run, on=hf)

    run = asyncio.run(prepare())
    assert isinstance(until_crash(migrate, store, point), Crash)
    crashed, result = asyncio.run(finish(run))
    assert (crashed.version, crashed.migrated) == (order("1").program().version, 0)
    assert result.completed
    assert result.state["by"] == "2"


def mapped(label: str) -> Flow:
    """A map whose items wait for people; version 2 calls the map and the question otherwise."""
    item = Flow("item", effect="read", version=label)
    ask = "ask" if label == "1" else "confirm"
    item.hold(ask, prompt="Take {{item}}?", options=["yes", "no"])
    if label == "2":
        item.migrate("1", rename={"ask": "confirm"})
    flow = Flow("list", effect="read", version=label)

    async def done(s: Any) -> dict[str, Any]:
        return {"taken": [one["decision"] for one in s["found"]]}

    each = "each" if label == "1" else "every"
    flow.map(each, over="rows", body=item, into="found")
    flow.node(id="done")(done)
    flow.edge(each, "done")
    if label == "2":
        flow.migrate("1", rename={"each": "every"})
    return flow


@pytest.mark.covers("TOOL-VER-04")
async def test_questions_inside_a_map_keep_their_answers_when_both_are_renamed(
    place: Place,
) -> None:
    hf = await place.hf()
    waiting = await mapped("1").run({"rows": ["a", "b", "c"]}, on=hf)
    service = await hf.service()
    asked = {hold.prompt: hold.id for hold in await open_holds(hf, waiting)}
    await service.answer(asked["Take a?"], "yes")
    new, later = mapped("2"), await place.hf()
    (verdict,) = await new.migrate_runs(on=later)
    assert verdict.migrated, verdict.misfits
    await service.answer(asked["Take b?"], "no")
    await new.resume(waiting.run_id, on=later)
    await service.answer(asked["Take c?"], "yes")
    result = await new.resume(waiting.run_id, on=later)
    assert result.completed, result.error
    assert list(result.state["taken"]) == ["yes", "no", "yes"]
    rows = await service.holds(result.run_id, open_only=False)
    assert {hold.scope for hold in rows} == {f"every.1[{i}]/" for i in range(3)}


@pytest.mark.covers("TOOL-VER-04", "D-30")
async def test_a_join_with_a_time_limit_gives_up_in_time_when_it_was_renamed(place: Place) -> None:
    def joined(label: str) -> Flow:
        flow = Flow("race", effect="read", version=label)

        async def work() -> dict[str, Any]:
            return {"by": label}

        async def start() -> None: ...

        flow.node(id="start")(start)
        flow.node(id="quick")(work)
        flow.hold("slow", prompt="Well?", options=["yes"])
        join = "join" if label == "1" else "meet"
        flow.node(id=join, join=all_of(timeout="1h"))(work)
        flow.start("start")
        for name in ("quick", "slow"):
            flow.edge("start", name)
            flow.edge(name, join)
        if label == "2":
            flow.migrate("1", rename={"join": "meet"})
        return flow

    waiting = await joined("1").run(on=await place.hf())
    hf, new = await place.hf(), joined("2")
    place.clock.advance(hours=2)
    service = await hf.service()
    # It has fired already, under its old name, when the run is moved.
    await service.store.fire_timers(limit=10)
    (verdict,) = await new.migrate_runs(on=hf)
    assert verdict.migrated, verdict.misfits
    await Worker(new, on=hf).run_until_idle()
    assert [event.node for event in await told(hf, waiting, "join.timed_out")] == ["meet"]


@pytest.mark.covers("TOOL-VER-07", "D-28")
async def test_a_name_that_another_question_of_the_run_has_had_is_refused(place: Place) -> None:
    def twice(label: str) -> Flow:
        flow = Flow("twice", effect="read", version=label)
        if label == "1":
            flow.hold("first", prompt="One?", options=["yes"])
        flow.hold("second" if label == "1" else "first", prompt="Two?", options=["yes"])
        if label == "1":
            flow.edge("first", "second")
        else:
            flow.migrate("1", rename={"second": "first"})
        return flow

    hf = await place.hf()
    waiting = await twice("1").run(on=hf)
    await answer(hf, waiting, "yes")
    await twice("1").resume(waiting.run_id, on=hf)
    (verdict,) = await twice("2").migrate_runs(on=hf)
    assert not verdict.migrated
    assert "was that of another node" in verdict.misfits[0].why


@pytest.mark.covers("D-19")
async def test_a_damaged_migration_stops_the_run_instead_of_misreading_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "d.db"
    async with Holdfast(f"sqlite:{file}") as hf:
        waiting = await order("1").run(on=hf)
        (verdict,) = await order("2").migrate_runs(on=hf)
        assert verdict.migrated
    raw = apsw.Connection(str(file))
    raw.execute("UPDATE journal SET payload = x'00' WHERE outcome = 'migrated'")
    raw.close()
    async with Holdfast(f"sqlite:{file}") as hf:
        await answer(hf, waiting, "yes")
        with pytest.raises(CheckpointCorruptError):
            await order("2").resume(waiting.run_id, on=hf)
        row = await (await hf.service()).get(waiting.run_id)
        assert row.status is RunStatus.failed


@pytest.mark.covers("G-6", "G-35")
async def test_a_failed_run_goes_on_in_the_version_that_repairs_it_when_it_is_named(place: Place) -> None:
    ran: list[str] = []

    def version(label: str) -> Flow:
        flow = Flow("mend", effect="read", version=label)

        async def first() -> None:
            ran.append("first")

        async def work() -> dict[str, Any]:
            if label == "1":
                raise ValueError("broken")
            return {"by": label}

        second = "work" if label == "1" else "mended"
        flow.node(id="first")(first)
        flow.node(id=second)(work)
        flow.edge("first", second)
        if label == "2":
            flow.migrate("1", rename={"work": "mended"})
        return flow

    failed = await version("1").run(on=await place.hf())
    assert failed.failed
    new, hf = version("2"), await place.hf()
    assert await new.migrate_runs(on=hf) == []
    (tried,) = await new.migrate_runs(failed.run_id, dry_run=True, on=hf)
    assert tried.next == ["node mended starts"]
    assert (await (await hf.service()).get(failed.run_id)).status is RunStatus.failed
    (verdict,) = await new.migrate_runs(failed.run_id, on=hf)
    assert verdict.migrated, verdict
    assert verdict.status is RunStatus.resumable
    result = await new.resume(failed.run_id, on=hf)
    assert (result.completed, result.state["by"]) == (True, "2")
    assert ran == ["first"]


@pytest.mark.covers("TOOL-VER-03", "D-38")
async def test_an_encrypted_run_is_moved_with_its_large_values(tmp_path: Path) -> None:
    keys = StaticKeys(with_scope(None, "*", new_scope(datetime(2026, 1, 1, tzinfo=UTC))))
    big = "secret" * 50_000

    def version(label: str) -> Flow:
        flow = order(label)
        if label == "2":
            flow.migrations.clear()
            flow.migrate("1", rename={"gate": "approve"}, state={"more": lambda s: s["text"] * 2})
        return flow

    file = tmp_path / "e.db"
    async with Holdfast(f"sqlite:{file}", keys=keys) as hf:
        waiting = await version("1").run({"text": big}, on=hf)
        (verdict,) = await version("2").migrate_runs(on=hf)
        assert verdict.migrated, verdict
        await answer(hf, waiting, "yes")
        result = await version("2").resume(waiting.run_id, on=hf)
        assert (result.state["text"], result.state["more"]) == (big, big * 2)
    assert not [each for each in files_of(tmp_path) if b"secretsecret" in each]


def files_of(folder: Path) -> list[bytes]:
    return [each.read_bytes() for each in folder.rglob("*") if each.is_file()]


@pytest.mark.covers("G-6", "TOOL-VER-07")
async def test_force_is_for_named_runs_and_not_for_what_has_no_place(place: Place) -> None:
    hf = await place.hf()
    waiting = await order("1").run(on=hf)
    bare = order("2")
    bare.migrations.clear()
    with pytest.raises(InputError, match="needs the ids of runs"):
        await bare.migrate_runs(force=True, on=hf)
    (verdict,) = await bare.migrate_runs(waiting.run_id, force=True, on=hf)
    assert not verdict.migrated
    assert not verdict.misfits[0].soft


@pytest.mark.covers("TOOL-VER-06", "D-34")
async def test_a_refused_resume_changes_nothing_about_the_run(place: Place) -> None:
    hf = await place.hf()
    waiting = await order("1").run(on=hf)
    service = await hf.service()
    before = await service.get(waiting.run_id)
    with pytest.raises(VersionMismatchError):
        await order("2").resume(waiting.run_id, on=await place.hf())
    assert await service.get(waiting.run_id) == before


@pytest.mark.covers("TOOL-VER-08")
async def test_a_run_is_moved_once_when_two_move_it_at_the_same_time(place: Place) -> None:
    hf, other = await place.hf(), await place.hf()
    waiting = await order("1").run(on=hf)
    service = await hf.service()
    row = await service.get(waiting.run_id)
    await order("2").migrate_runs(on=other)
    # The second one still believes in the row that it has read before.
    found = await move(service, row, order("2").program())
    assert not found.misfits
    assert len(await told(other, waiting, "run.migrated")) == 1
    assert (await service.get(row.id)).status is RunStatus.pending_input
