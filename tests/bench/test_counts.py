"""The counts that no noise can touch, with small sizes: these may hold up a change."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from bench import counts
from bench.flows import Carry, Looped, count_up, message, person
from bench.measure import stored
from holdfast import Holdfast


@pytest.mark.covers("CORE-SPEED-10")
def test_strict_step_flushes_once_when_it_settles() -> None:
    assert counts.commits_per_step("strict", 10, 40) == 1


@pytest.mark.covers("CORE-SPEED-10")
def test_barrier_steps_share_flushes_when_they_are_pure() -> None:
    assert counts.commits_per_step("barrier", 20, 400) < 0.2


@pytest.mark.covers("CORE-SPEED-11")
@pytest.mark.parametrize("mode", ["strict", "barrier"])
def test_step_makes_few_calls_when_it_runs_on_sqlite(mode: str) -> None:
    assert 50 < counts.calls_per_step(mode, 20, 120) <= 300


@pytest.mark.covers("CORE-SPEED-12")
def test_store_keeps_only_what_was_added_when_a_list_grows() -> None:
    assert 0.5 < counts.bytes_per_byte_appended(250, 700) <= 1.5


@pytest.mark.anyio
@pytest.mark.covers("SAFE-SPEED-02")
async def test_large_value_is_stored_once_beside_little_else_when_a_hundred_steps_follow(
    tmp_path: Path,
) -> None:
    flow = Looped("carry", Carry, count_up).flow
    async with Holdfast(f"sqlite:{tmp_path}/h.db") as hf:
        (await flow.run({"limit": 100, "weight": message(7, 1 << 20)}, on=hf)).expect()
    assert stored(tmp_path) <= 1.1 * (1 << 20)


@pytest.mark.covers("CORE-SPEED-12")
def test_step_stores_no_more_when_the_graph_is_larger() -> None:
    one = counts.bytes_per_step(counts.loop_among(1), 250, 1250)
    hundred = counts.bytes_per_step(counts.loop_among(100), 250, 1250)
    assert hundred <= 1.1 * one


def test_few_statements_are_needed_when_a_person_is_asked_and_answers() -> None:
    """Five transactions, one of them without a flush; entries of the audit take two each, messages one."""
    assert 20 < counts.statements_for_a_person() <= 53


def test_few_calls_are_needed_when_a_person_is_asked_and_answers() -> None:
    assert 500 < counts.calls_for_a_person() <= 2_560


@pytest.mark.anyio
async def test_run_leaves_nothing_for_the_event_loop_when_it_pauses_or_ends(tmp_path: Path) -> None:
    """What is left there makes the next write wait for a turn of the loop, in which others could join it."""

    def left() -> list[asyncio.Handle]:
        ready: list[asyncio.Handle] = list(asyncio.get_running_loop()._ready)  # type: ignore[attr-defined]
        return [each for each in ready if not isinstance(each, asyncio.TimerHandle)]

    flow = person()
    async with Holdfast(f"sqlite:{tmp_path}/h.db") as hf:
        paused = await flow.run({}, on=hf)
        assert left() == []
        await (await hf.service()).answer(paused.holds[0].id, "yes")
        (await flow.resume(paused.run_id, on=hf)).expect()
        assert left() == []


def test_program_loads_little_when_it_only_has_a_flow() -> None:
    """Each of these costs every start milliseconds, and most programs need none of them."""
    heavy = (
        "backports.zstd", "compression.zstd", "difflib", "fractions", "html", "secrets", "tomllib",
        "zoneinfo",
        "holdfast.runs.history.diff", "holdfast.runs.fork.fork", "holdfast.runs.transfer.export",
        "holdfast.runs.transfer.import_run", "holdfast.runs.history.checkpoints",
        "holdfast.runs.history.story_loader", "holdfast.runs.history.replay", "holdfast.runs.migrate.check",
        "holdfast.runs.history.graph_match", "holdfast.runs.events",
        "holdfast.runs.node_process.message", "holdfast.runs.prune_run", "holdfast.runs.resume",
        "holdfast.runs.retention", "holdfast.store.copy", "holdfast.frontends.python.lower",
        "holdfast.model.validate", "holdfast.model.checks.names", "sysconfig",
        "holdfast.runs.encryption.store", "holdfast.checkpoint.encrypt", "holdfast.runs.text_similarity",
        "holdfast.holds.forms.file_references",
    )  # fmt: skip
    number, loaded = counts.modules_for_a_flow(*heavy)
    assert loaded == []
    assert number <= 245


def test_run_on_sqlite_loads_no_other_store_and_no_clean_up(tmp_path: Path) -> None:
    unneeded = (
        "holdfast.store.memory", "holdfast.store.sql.postgres", "holdfast.store.sql.mariadb",
        "holdfast.runs.retention", "holdfast.runs.prune_run", "holdfast.runs.history",
    )  # fmt: skip
    program = tmp_path / "program.py"
    program.write_text(f"""
import sys
from holdfast import Flow, Holdfast
flow = Flow("f")

@flow.node(effect="pure")
def one(state):
    return {{"n": 1}}

assert flow.run_sync({{}}, on=Holdfast("sqlite:{tmp_path}/h.db")).status == "completed"
print([m for m in {unneeded} if m in sys.modules])
""")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_telemetry_makes_few_calls_for_a_step() -> None:
    """It was 830 when it took 1.8 times the CPU of a step; row X of the benchmark measures that. What the
    thread of the exporter calls is counted too: about 160 in all, on a busy machine more; with a call of the
    SDK for each measured value 280. The least of three measurements counts, in a process of its own: what
    other tests have loaded adds a hundred."""
    program = "from bench.telemetry import calls_of_telemetry as calls; print(min(calls() for _ in range(3)))"
    root = Path(counts.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )
    assert 50 < float(done.stdout) <= 260
