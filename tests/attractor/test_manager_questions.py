"""A child that asks a person: its manager waits without a process, shows the question, and takes its answer;
and how little a manager records while nothing changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import Actor, ExcludedError, Holdfast
from holdfast.attractor import directory_sync
from holdfast.attractor.runner import Runner
from holdfast.model.position import Position
from holdfast.runs.driver import wait as driver_wait
from holdfast.types.ids import RunId, new_run_id
from holdfast.types.record import Kind
from tests.attractor.run import dot, line, until
from tests.attractor.test_manager import TOOL, child_file, manager
from tests.cli.conftest import Cli, cli, logs
from tests.deadlines import HANG

__all__ = ["cli", "logs"]
pytestmark = pytest.mark.anyio

GATE = dot(
    'gate [shape=hexagon, label="Ship?"]; fix [label=Fix];',
    "start -> gate; gate -> done [label=Yes]; gate -> fix [label=No]; fix -> done",
)


@pytest.mark.covers("CP2-M1")
async def test_a_question_of_the_child_parks_the_manager_and_its_answer_wakes_it(
    hf: Holdfast, tmp_path: Path
) -> None:
    file = child_file(tmp_path, GATE)
    text = manager(
        file, ", manager.poll_interval=20ms, timeout=20s, manager.max_cycles=400", 'budget_time="30s"'
    )
    runner = Runner(hf, logs_root=tmp_path / "logs")
    found = await runner.run(text)
    assert found.status == "waiting"
    service = await hf.service()
    row = await service.get(found.run_id)
    assert row.status == "pending_input"
    assert row.worker is None
    head, looked = row.head, (tmp_path / "logs/m/cycle").read_text()
    for _ in range(5):
        again = await runner.resume(found.run_id)
        assert again.status == "waiting"
    # Entered again and again, it looks no more and counts no cycle.
    records = await service.store.read(RunId(found.run_id), first=head + 1)
    assert not [record for record in records if record.kind in (Kind.substep, Kind.asked)]
    assert (tmp_path / "logs/m/cycle").read_text() == looked
    (wait,) = await service.holds(RunId(found.run_id))
    assert wait.expires_at is None
    (hold,) = await service.questions(RunId(found.run_id))
    await service.answer(hold.id, "Yes", by="user:dana")
    ended = await runner.resume(found.run_id)
    assert ended.succeeded


@pytest.mark.covers("CP2-M1", "CP2-M2")
async def test_an_answer_two_managers_below_continues_the_top_one_without_a_worker(
    hf: Holdfast, tmp_path: Path
) -> None:
    middle = tmp_path / "middle.dot"
    middle.write_text(manager(child_file(tmp_path, GATE)))
    runner = Runner(hf, logs_root=tmp_path / "logs")
    found = await runner.run(manager(middle))
    assert found.status == "waiting"
    service = await hf.service()
    (hold,) = await service.questions(RunId(found.run_id))
    await service.answer(hold.id, "Yes", by="user:dana")
    assert (await runner.resume(found.run_id)).succeeded


@pytest.mark.covers("CP2-M1")
async def test_a_worker_that_takes_up_the_child_wakes_the_manager(tmp_path: Path) -> None:
    file = child_file(tmp_path, GATE)
    store = f"sqlite:{tmp_path / 'store.db'}"
    async with Holdfast(store) as hf:
        runner = Runner(hf, logs_root=tmp_path / "logs")
        found = await runner.run(manager(file))
        service = await hf.service()
        (hold,) = await service.questions(RunId(found.run_id))
        await service.answer(hold.id, "Yes", by="user:dana")
        # Only the child is advanced: the change wakes its manager, which can be claimed then.
        child = await service.get(hold.run)
        assert len(await service.holds(RunId(found.run_id))) == 1
        await runner.resume(child.id)
        assert await service.holds(RunId(found.run_id)) == []
        assert (await runner.resume(found.run_id)).succeeded


@pytest.mark.covers("CP2-M1")
async def test_an_answer_while_the_child_is_still_in_memory_wakes_the_manager(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody claims the child anew: who has it takes the answer."""
    asks = dot("one [shape=hexagon]; two [shape=hexagon];", "start -> one -> two -> done")
    runner = Runner(hf, logs_root=tmp_path / "logs")
    top = RunId((await runner.run(manager(child_file(tmp_path, asks)))).run_id)
    service = await hf.service()
    (first,) = await service.questions(top)
    await service.answer(first.id, "two", by="user:dana")

    def stay(settings: object, pos: Position, *others: object) -> float:
        return HANG if pos.run == first.run else 0.0

    monkeypatch.setattr(driver_wait, "memory_wait", stay)
    child = asyncio.ensure_future(runner.resume(first.run))
    while True:
        row = await service.get(first.run)
        if row.status == "pending_input" and await service.holds(first.run):
            break
        await service.store.wait_change(0.1)
    assert (await runner.resume(top)).status == "waiting"
    (second,) = await service.questions(top)
    await service.answer(second.id, "done", by="user:dana")
    assert (await child).succeeded
    assert await service.holds(top) == []
    assert (await runner.resume(top)).succeeded


@pytest.mark.covers("CP2-M1")
async def test_a_manager_is_woken_if_who_changed_its_child_died_before_it_said_so(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Runner(hf, logs_root=tmp_path / "logs")
    top = RunId((await runner.run(manager(child_file(tmp_path, GATE)))).run_id)
    service = await hf.service()
    (hold,) = await service.questions(top)

    async def dies(*_given: object) -> None: ...

    monkeypatch.setattr(directory_sync, "tell_watchers", dies)
    await service.answer(hold.id, "Yes", by="user:dana")
    assert (await runner.resume(hold.run)).succeeded
    assert len(await service.holds(top)) == 1
    queues = service.runtime.queues
    assert queues is not None
    async with asyncio.timeout(HANG):
        while await service.holds(top):
            await queues.open().work()
            await service.store.wait_change(0.1)
    assert (await runner.resume(top)).succeeded


@pytest.mark.covers("CP2-M2")
def test_the_question_of_the_child_is_that_of_its_manager(cli: Cli) -> None:
    Path("child.dot").write_text(GATE.replace("digraph g", "digraph child"))
    Path("x.dot").write_text(manager(Path("child.dot")))
    said = cli("run", "x.dot", "--simulate")
    assert said.code == 3, said.err
    # At the terminal of its starter.
    assert "Ship?" in said.out
    assert "holdfast.child" not in said.out
    listed = cli("runs").out
    assert listed.count("Ship?") == 2
    assert "holdfast.child" not in listed
    (row,) = [each for each in cli("runs", "--json").items if each["flow"] == "g"]
    assert (row["status"], row.get("waits_for")) == ("pending_input", [])
    shown = cli("show", row["id"])
    assert "Ship?" in shown.out
    assert "waiting for input" in shown.out
    assert "holdfast.child" not in shown.out
    (hold,) = [each for each in cli("show", row["id"], "--json").json["holds"] if each["status"] == "pending"]
    assert hold["prompt"] == "Ship?"
    assert hold["run"] != row["id"]
    wrong = cli("answer", row["id"], "Perhaps")
    assert wrong.code == 2
    done = cli("answer", row["id"], "Yes", "--resume")
    assert done.code == 0, done.err
    assert [each["status"] for each in cli("runs", "--json").items] == ["completed", "completed"]


@pytest.mark.covers("CP2-M2")
def test_one_of_several_questions_has_to_be_named(cli: Cli) -> None:
    both = dot(
        'f [shape=component]; a [shape=hexagon, label="A?"]; b [shape=hexagon, label="B?"]; '
        "j [shape=tripleoctagon];",
        "start -> f; f -> a; f -> b; a -> j [label=Yes]; b -> j [label=Yes]; j -> done",
    )
    Path("child.dot").write_text(both.replace("digraph g", "digraph child"))
    Path("x.dot").write_text(manager(Path("child.dot")))
    cli("run", "x.dot", "--simulate")
    (row,) = [each for each in cli("runs", "--json").items if each["flow"] == "g"]
    said = cli("answer", row["id"], "Yes")
    assert said.code == 2
    assert "has 2 open holds" in said.err
    holds = [each for each in cli("show", row["id"], "--json").json["holds"] if each["status"] == "pending"]
    for hold in holds:
        assert cli("answer", hold["id"], "Yes").code == 0
    assert cli("resume", row["id"]).code == 0


@pytest.mark.covers("CP2-M3")
async def test_a_thousand_looks_without_a_change_add_two_records_at_most(
    hf: Holdfast, tmp_path: Path
) -> None:
    """And the number of looks survives the process."""
    flag, begun = tmp_path / "flag", tmp_path / "begun"
    command = f"touch {begun}; until test -e {flag}; do sleep 0.05; done"
    file = child_file(tmp_path, line(f'c [{TOOL}="{command}"];', "c"))
    run_id, logs_ = str(new_run_id()), tmp_path / "logs"
    runner = Runner(hf, logs_root=logs_)
    text = manager(file, ", manager.poll_interval=0s, manager.max_cycles=100000")
    work = asyncio.ensure_future(runner.run(text, run_id=run_id))
    service = await hf.service()

    def looked() -> int:
        file = logs_ / "m" / "cycle"
        return int(file.read_text().split()[-1]) if file.exists() else 0

    # The start of the child is a change, and so is that of its stage.
    await until(begun.exists)
    before = looked()
    await until(lambda: looked() > before + 20)
    head, before = (await service.get(run_id)).head, looked()
    await until(lambda: looked() > before + 1000)
    assert (await service.get(run_id)).head <= head + 2
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    left = looked()
    again = asyncio.ensure_future(runner.resume(run_id))
    await until(lambda: looked() > left)
    flag.touch()
    found = await again
    assert found.succeeded
    assert found.context["stack.manager.cycle"] > left


@pytest.mark.covers("SAFE-CHAIN-02")
@pytest.mark.parametrize("name", ["user:ada", "user:eve"])
async def test_who_started_the_manager_is_excluded_where_the_child_excludes_its_starter(
    hf: Holdfast, tmp_path: Path, name: str
) -> None:
    """`eve` made the credential with which ada started it."""
    gate = GATE.replace(
        'label="Ship?"', 'label="Ship?", human.assignee="user:dana", human.excluded="initiator"'
    )
    runner = Runner(hf, logs_root=tmp_path / "logs")
    text = manager(child_file(tmp_path, gate))
    found = await runner.run(text, started_by="user:ada", started_via=("user:ada", "user:eve"))
    (hold,) = await (await hf.service()).questions(RunId(found.run_id))
    with pytest.raises(ExcludedError, match="starter"):
        await (await hf.holds()).resolve(Actor(id=name), hold.id, "Yes")
    await (await hf.holds()).resolve(Actor(id="user:dana"), hold.id, "Yes")
    assert (await runner.resume(found.run_id)).succeeded
