"""What other runners of the specification were seen to do wrong, and this one does not.

Tools append to a file, so that whatever runs twice, or not at all, is seen."""

from __future__ import annotations

import asyncio
import fcntl
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import detached_commands
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.attractor.worktree_requirements import WORKDIR
from holdfast.errors import AnswerInvalidError, HoldDecidedError
from holdfast.testing.clock import FakeClock
from tests.attractor.run import dot, either, line, until
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio


def tool(name: str, then: str = "true", more: str = "") -> str:
    """A stage that writes its name down."""
    return f'{name} [shape=parallelogram, tool_command="echo {name} >>trace; {then}"{more}]; '


def tools(*names: str) -> str:
    return "".join(map(tool, names))


class Runs:
    """Pipelines on one house, with their tools in one folder."""

    def __init__(self, hf: Holdfast, folder: Path) -> None:
        self.hf, self.folder = hf, folder

    def runner(self, **options: Any) -> Runner:
        return Runner(self.hf, logs_root=self.folder / "logs", **options)

    async def run(self, text: str, **options: Any) -> PipelineResult:
        return await self.runner(**options).run(text, context={WORKDIR: str(self.folder)})

    @property
    def trace(self) -> Counter[str]:
        path = self.folder / "trace"
        return Counter(path.read_text().split()) if path.exists() else Counter()


@pytest.fixture
def runs(hf: Holdfast, tmp_path: Path) -> Runs:
    return Runs(hf, tmp_path)


# ---------------------------------------------------------------------- failures


@pytest.mark.covers("ATTRACTOR-PROOF-03", "AT-A1", "AT-A2")
@pytest.mark.parametrize(
    ("links", "after"),
    [
        pytest.param(
            'start -> t; t -> next; t -> mend [condition="outcome=fail"]; mend -> done; next -> done',
            ["mend"],
            id="a fail edge beside a plain one",
        ),
        pytest.param(
            'start -> t -> d; d -> next [condition="outcome=success"]; d -> mend [condition="outcome=fail"];'
            " mend -> done; next -> done",
            ["mend"],
            id="a diamond",
        ),
        pytest.param(
            'start -> t -> d; d -> next [condition="outcome=success"]; d -> mend; mend -> done; next -> done',
            ["mend"],
            id="a diamond's plain edge",
        ),
    ],
)
async def test_a_failing_tool_takes_its_fail_branch_and_runs_once(
    runs: Runs, links: str, after: list[str]
) -> None:
    routing = "d [shape=diamond];" if "-> d;" in links else ""
    found = await runs.run(dot(tool("t", "exit 7") + tools("mend", "next") + routing, links))
    assert found.succeeded
    assert runs.trace == Counter(["t", *after])
    assert found.node_outcomes["t"] == "fail"


@pytest.mark.covers("ATTRACTOR-PROOF-03", "AT-A2")
async def test_a_failing_tool_with_a_plain_edge_ends_the_run_and_runs_once(runs: Runs) -> None:
    found = await runs.run(line(tool("t", "exit 7") + tools("next"), "t", "next"))
    assert (found.status, found.outcome.failure_reason) == ("fail", "exit code 7")
    assert runs.trace == Counter(["t"])


@pytest.mark.covers("ATTRACTOR-PROOF-06", "AT-184", "ATTRACTOR-HANDLER-01")
async def test_a_tool_that_takes_too_long_leaves_nothing_of_its_group_behind(runs: Runs) -> None:
    hidden = "(trap '' TERM; sleep 300) & (sleep 300 &) ; sleep 300"
    stages = tool("t", hidden, ", timeout=200ms") + tools("mend")
    found = await runs.run(dot(stages, either("t", "mend")))
    assert found.succeeded
    assert runs.trace == Counter(["t", "mend"])
    (said,) = (runs.folder / "logs" / "t").glob("tool-*/pid")
    await until(lambda: not detached_commands.is_living(int(said.read_text())))


@pytest.mark.covers("ATTRACTOR-HANDLER-01", "ATTRACTOR-PROOF-04")
async def test_a_command_begins_though_a_fork_of_another_thread_keeps_its_lock(tmp_path: Path) -> None:
    """A command that had not begun was taken for one that nobody knows the end of."""
    with (tmp_path / detached_commands.LOCK).open("a+b") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)
        threading.Timer(0.05, fcntl.flock, (kept, fcntl.LOCK_UN)).start()
        assert await asyncio.to_thread(
            detached_commands.begin,
            tmp_path,
            "exit 5",
            shell="/bin/sh",
            cwd=None,
            env={"PATH": "/usr/bin:/bin"},
        )
    assert (await detached_commands.wait_for_exit(tmp_path, timeout=HANG)).code == 5


# ---------------------------------------------------------------------- branches


@pytest.mark.covers("ATTRACTOR-PROOF-04", "AT-192", "AT-193", "ATTRACTOR-RUN-01")
async def test_each_stage_of_nested_branches_runs_once_and_each_join_once(runs: Runs) -> None:
    names = ("a1", "a2", "b1", "c1", "c2", "d1", "d2", "after", "last")
    shapes = """outer [shape=component]; inner [shape=component]
        back [shape=tripleoctagon]; front [shape=tripleoctagon]; """
    links = """start -> outer; outer -> a1 -> a2 -> front; outer -> b1 -> inner
        inner -> c1 -> c2 -> back; inner -> d1 -> d2 -> back; back -> after -> front; front -> last -> done"""
    found = await runs.run(dot(tools(*names) + shapes, links))
    assert found.succeeded
    assert runs.trace == Counter(names)
    assert found.completed_nodes == ("start", "outer", "front", "last", "done")
    ran = [each.node for each in (await (await runs.hf.service()).latest(found.run_id)).executions]
    assert (ran.count("front"), ran.count("back"), ran.count("inner")) == (1, 1, 1)


@pytest.mark.covers("ATTRACTOR-PROOF-04", "AT-186")
async def test_twenty_branches_of_tools_all_run_once(runs: Runs) -> None:
    names = [f"t{number}" for number in range(20)]
    links = " ".join(f"fan -> {name} -> join;" for name in names)
    fan = "fan [shape=component, max_parallel=20]; join [shape=tripleoctagon]; "
    found = await runs.run(dot(tools(*names) + fan, f"start -> fan; {links} join -> done"))
    assert found.succeeded, found.outcome
    assert runs.trace == Counter(names)
    assert len(found.context["parallel.results"]) == 20


# ---------------------------------------------------------------------- shapes


@pytest.mark.covers("ATTRACTOR-PROOF-05", "AT-22")
async def test_defaults_never_override_a_shape_and_shapes_are_what_they_say(
    runs: Runs, tmp_path: Path
) -> None:
    (tmp_path / "child.dot").write_text(line(tools("inside"), "inside").replace("digraph g", "digraph child"))
    text = f"""digraph g {{
        node [shape=box, prompt="A default"]; graph [stack.child_dotfile="{tmp_path}/child.dot"]
        begin [shape=Mdiamond]; finish [shape=Msquare]
        gate [shape=hexagon, label="Is this a gate?"]; boss [shape=house, manager.poll_interval=10ms]
        work
        begin -> gate; gate -> boss [label="[Y] Yes"]; gate -> finish [label="[N] No"]
        boss -> work -> finish }}"""
    found = await runs.run(text, auto_approve=False)
    assert (found.status, [hold.prompt for hold in found.holds]) == ("waiting", ["Is this a gate?"])
    assert runs.trace == Counter()
    await (await runs.hf.service()).answer(found.holds[0].id, "Y")
    ended = await runs.runner().resume(found.run_id)
    assert ended.completed_nodes == ("begin", "gate", "boss", "work", "finish")
    assert ended.context["context.stack.child.status"] == "completed"
    assert runs.trace == Counter(["inside"])


# ---------------------------------------------------------------------- people

GATE = tools("a", "b") + 'gate [shape=hexagon, label="Again?"]; '
ROUND = 'start -> a -> gate; gate -> a [label="[A] Again"]; gate -> b [label="[B] On"]; b -> done'


@pytest.mark.covers("ATTRACTOR-PROOF-09", "ATTRACTOR-PROOF-10", "ATTRACTOR-GATE-01")
async def test_asking_again_is_a_new_question_and_the_first_answer_wins(runs: Runs) -> None:
    service = await runs.hf.service()
    found = await runs.run(dot(GATE, ROUND))
    (first,) = found.holds
    for unknown in ("C", "Again please", "", "1"):
        with pytest.raises(AnswerInvalidError):
            await service.answer(first.id, unknown)
    await service.answer(first.id, "A")
    with pytest.raises(HoldDecidedError) as late:
        await service.answer(first.id, "B")
    assert late.value.status == 409
    (second,) = (await runs.runner().resume(found.run_id)).holds
    assert second.id != first.id
    await service.answer(second.id, "B")
    ended = await runs.runner().resume(found.run_id)
    assert ended.completed_nodes == ("start", "a", "gate", "a", "gate", "b", "done")
    assert runs.trace == Counter({"a": 2, "b": 1})


@pytest.mark.covers("ATTRACTOR-PROOF-09", "ATTRACTOR-GATE-06")
async def test_gates_in_branches_are_independent_and_no_gate_approves_itself(runs: Runs) -> None:
    shapes = "fan [shape=component]; join [shape=tripleoctagon]; one [shape=hexagon]; two [shape=hexagon]; "
    links = """start -> fan; fan -> one; fan -> two; one -> a [label="[Y] Yes"]; one -> c [label="[N] No"]
        two -> b [label="[Y] Yes"]; two -> c [label="[N] No"]
        a -> join; b -> join; c -> join; join -> done"""
    service = await runs.hf.service()
    found = await runs.run(dot(tools("a", "b", "c") + shapes, links))
    assert found.status == "waiting"
    assert runs.trace == Counter()
    by_gate = {hold.node: hold for hold in found.holds}
    assert set(by_gate) == {"one", "two"}
    await service.answer(by_gate["two"].id, "N")
    still = await runs.runner().resume(found.run_id)
    assert [hold.node for hold in still.holds] == ["one"]
    assert runs.trace == Counter(["c"])
    await service.answer(by_gate["one"].id, "Y")
    assert (await runs.runner().resume(found.run_id)).succeeded
    assert runs.trace == Counter(["a", "c"])


@pytest.fixture
async def patient(anyio_backend: str, tmp_path: Path) -> AsyncIterator[tuple[Runs, FakeClock]]:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        yield Runs(hf, tmp_path), clock


@pytest.mark.covers("ATTRACTOR-PROOF-09")
async def test_waiting_for_a_person_counts_against_nothing(patient: tuple[Runs, FakeClock]) -> None:
    runs, clock = patient
    graph = 'goal="wait", budget_time=10s'
    found = await runs.run(dot(GATE, ROUND, graph))
    clock.advance(days=90)
    await (await runs.hf.service()).answer(found.holds[0].id, "B")
    ended = await runs.runner().resume(found.run_id)
    assert ended.succeeded, ended.outcome
    assert runs.trace == Counter(["a", "b"])


# ---------------------------------------------------------------------- bounds


@pytest.mark.covers("ATTRACTOR-PROOF-11", "AT-A10", "AT-247", "ATTRACTOR-BOUND-01", "ATTRACTOR-BOUND-02")
@pytest.mark.parametrize(
    ("text", "ran", "why"),
    [
        pytest.param(
            dot(tool("a", "exit 1", ", goal_gate=true, retry_target=a") + "d [shape=diamond];",
                "start -> a -> d -> done", "max_same_failures=0"),
            11, "goal gate", id="jumps",
        ),
        pytest.param(
            dot(tool("a"), 'start -> a; a -> a [condition="outcome=success"]; a -> done'),
            100, "'a'", id="visits",
        ),
        pytest.param(
            dot(tool("a"), 'start -> a; a -> a [condition="outcome=success", loop_restart=true]; a -> done'),
            11, "restarted the walk", id="restarts",
        ),
        pytest.param(
            dot(tool("a", "exit 1", ", retry_target=a"), "start -> a -> done"),
            3, "same way", id="same failure",
        ),
    ],
)  # fmt: skip
async def test_nothing_goes_round_for_ever_by_default(runs: Runs, text: str, ran: int, why: str) -> None:
    found = await runs.run(text)
    assert found.status == "fail"
    assert why in found.outcome.failure_reason
    assert runs.trace["a"] == ran


@pytest.mark.covers("ATTRACTOR-PROOF-11", "ATTRACTOR-BOUND-06", "AT-A12")
async def test_every_counter_survives_a_wait_and_another_runner(tmp_path: Path) -> None:
    """Each round ends at a gate, and each answer is taken on by a house that remembers nothing."""
    text = dot(
        tool("a", "exit 1", ", goal_gate=true, retry_target=a")
        + 'd [shape=diamond]; gate [shape=hexagon, label="On?"];',
        'start -> a -> d -> gate; gate -> done [label="[Y] Yes"]; gate -> a [label="[N] No"]',
        "max_goal_jumps=2, max_same_failures=0",
    )
    store = f"sqlite:{tmp_path}/store.db"
    async with Holdfast(store) as hf:
        found = await Runs(hf, tmp_path).run(text)
    for _ in range(3):
        async with Holdfast(store) as hf:
            await (await hf.service()).answer(found.holds[0].id, "Y")
            found = await Runs(hf, tmp_path).runner().resume(found.run_id)
    assert found.status == "fail"
    assert "after 2 retries" in found.outcome.failure_reason
    assert (tmp_path / "trace").read_text().split() == ["a"] * 3


# ---------------------------------------------------------------------- proof


@pytest.mark.covers("ATTRACTOR-PROOF-12", "AT-A15")
@pytest.mark.parametrize("proves", [False, True])
async def test_prose_of_a_goal_gate_is_no_success_where_it_has_to_prove_itself(
    runs: Runs, proves: bool
) -> None:
    def answer(node: Any, prompt: str, context: Any) -> str:
        if proves:
            folder = runs.folder / "logs" / node.id
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "status.json").write_text(json.dumps({"outcome": "success", "notes": "all green"}))
        return "All tests pass, everything is wonderful!"

    text = line('a [prompt="Test", goal_gate=true, auto_status=false];', "a")
    found = await runs.run(text, backend=answer)
    assert found.succeeded == proves
    assert proves or "a text is not accepted as proof" in found.outcome.failure_reason


async def test_a_backends_terminal_failure_is_not_tried_again(runs: Runs) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> StageOutcome:
        asked.append(prompt)
        return StageOutcome(status="fail", failure_reason="no such model", terminal=True)

    found = await runs.run(line('a [prompt="x", max_retries=3];', "a"), backend=answer)
    assert (found.status, asked) == ("fail", ["x"])
