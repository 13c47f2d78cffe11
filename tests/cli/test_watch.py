"""`run --watch` and `resume --watch`: live in a terminal, lines in a pipe, JSON lines for machines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.output.live_view import LiveView
from holdfast.store.rows import RunRow
from holdfast.types.event import Event
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.cli.conftest import Cli, given
from tests.cli.flows import write_news
from tests.cli.terminal import in_terminal

RUN = RunId("3fa9c100-0000-4000-8000-000000000000")
SECOND = 1_000_000


def row() -> RunRow:
    return RunRow(
        key=1, id=RUN, tenant="default", flow="news", version="v", code="c", status=RunStatus.running,
        lane="default", priority=0, term=1, worker="w", lease_until=0, head=0, event_seq=0, inbox_seq=0,
        ready_at=None, thread=None, instance_key=None, parent_run=None, forked_from=None, superseded_by=None,
        created_at=0, updated_at=0, ended_at=None, recoveries=0, error=None, horizon=0,
    )  # fmt: skip


class Watched:
    """A live view, told events one by one."""

    def __init__(self) -> None:
        self.view = LiveView(row())
        self.number = 0

    def tell(self, at: int, type: str, node: str = "", **data: object) -> None:  # noqa: A002
        self.number += 1
        self.view.see(Event(run=RUN, number=self.number, at=at, type=type, node=node, data=data))

    def lines(self, now: int, height: int = 30, width: int = 100) -> list[str]:
        from rich.console import Console

        console = Console(width=width, height=height, color_system=None, force_terminal=False)
        with console.capture() as got:
            console.print(self.view.drawn(now, width, height))
        return [line.rstrip() for line in got.get().splitlines()]


@pytest.mark.covers("TOOL-CLI-01")
def test_the_live_view_tells_what_runs_what_waits_and_what_it_costs() -> None:
    seen = Watched()
    seen.tell(0, "node.started", "plan", visit=1)
    seen.tell(2 * SECOND, "node.completed", "plan", visit=1, duration_us=5, usage={"tokens": 7, "cost": 0.5})
    seen.tell(2 * SECOND, "node.started", "write", visit=1)
    seen.tell(3 * SECOND, "node.emitted", "write", kind="text", data="once upon ")
    seen.tell(3 * SECOND, "node.emitted", "write", kind="text", data="a time")
    seen.tell(2 * SECOND, "node.started", "ask", visit=1)
    seen.tell(3 * SECOND, "hold.opened", "ask", checkpoint_id="h", prompt="Publish?")

    head, plan, ask, write, said, foot = seen.lines(5 * SECOND)

    assert head == "news  3fa9c100  running  5 s"
    assert plan.split() == ["✓", "plan", "2", "s", "7", "tokens,", "cost", "0.5"]
    assert (ask.split()[0], ask.endswith("asks: Publish?")) == ("⏸", True)
    assert write.split()[1:] == ["write", "3", "s"]
    assert said == "    once upon a time"
    assert foot == "1 done · 1 running · 1 asking · 7 tokens · cost 0.5"


@pytest.mark.covers("TOOL-CLI-01", "TOOL-AGENT-04")
def test_the_live_view_reads_on_over_tools_and_sub_agents() -> None:
    seen = Watched()
    seen.tell(0, "node.started", "bot", visit=1)
    seen.tell(1, "node.emitted", "bot", kind="text", data="Let me look.")
    seen.tell(2, "node.emitted", "bot", kind="tool", data={"tool": "look", "call": "c1", "turn": 1})
    seen.tell(3, "node.emitted", "bot", kind="agent", data={"agent": "helper", "text": "It is calm."})

    assert seen.lines(5 * SECOND)[2] == "    Let me look. [look] It is calm."


@pytest.mark.covers("TOOL-CLI-01")
def test_the_live_view_tells_progress_retries_and_failures() -> None:
    seen = Watched()
    error = {"code": "x", "type": "ValueError", "message": "the wire was cut"}
    seen.tell(0, "node.started", "gather", visit=1)
    seen.tell(0, "node.emitted", "gather", kind="progress", data={"done": 3, "total": 4})
    assert seen.lines(SECOND)[2] == "    ━━━━━━━━━━━━━━━╌╌╌╌╌ 75%"

    seen.tell(SECOND, "node.retried", "gather", visit=1, attempt=2, error=error, wake_at=5 * SECOND)
    assert "attempt 2, retries in 3 s, ValueError: the wire was cut" in seen.lines(2 * SECOND)[1]

    seen.tell(6 * SECOND, "node.failed", "gather", visit=1, attempt=3, error=error)
    seen.tell(6 * SECOND, "run.failed", status="failed")
    lines = seen.lines(9 * SECOND)
    assert lines[0] == "news  3fa9c100  failed  6 s"
    assert lines[1].startswith("✗ gather")


@pytest.mark.covers("TOOL-CLI-01")
def test_the_live_view_shows_no_work_when_nobody_has_the_run_any_more() -> None:
    seen = Watched()
    seen.tell(0, "node.started", "gather", visit=1)
    seen.view.stands("resumable")

    head, gather, foot = seen.lines(SECOND)

    assert head == "news  3fa9c100  interrupted  1 s"
    assert gather.startswith("· gather")
    assert foot == "1 ready"


def test_a_line_on_the_way_goes_above_the_live_view(tmp_path: Path) -> None:
    """Somebody who stops a run is told so, and the view stays whole."""
    (tmp_path / "noisy.py").write_text(NOISY)

    seen = in_terminal(tmp_path, "run", "noisy.py", "--watch")

    assert seen.code == 130
    assert any(line.startswith("Stopping; the step that runs may finish.") for line in seen.screen)
    assert [line.split()[0] for line in seen.screen if "noisy" in line or "first" in line] == ["noisy", "✓"]


NOISY = """
import asyncio, os, signal
from holdfast import Flow
noisy = Flow("noisy", effect="pure")

@noisy.node
async def first(s):
    await asyncio.sleep(0.15)
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(0.15)

@noisy.node
async def second(s):
    pass

noisy.chain(first, second)
"""


def test_the_live_view_keeps_to_the_height_of_the_terminal() -> None:
    seen = Watched()
    seen.tell(0, "node.started", "patient", visit=1)
    for visit in range(1, 100):
        seen.tell(visit, "node.started", "tick", visit=visit)
        seen.tell(visit, "node.completed", "tick", visit=visit)

    lines = seen.lines(SECOND, height=12)

    assert len(lines) <= 12
    assert lines[1] == "  92 more"
    assert "patient" in lines[2]
    assert "visit 99" in lines[-2]


@pytest.mark.covers("TOOL-CLI-01", "TOOL-CLI-26")
def test_run_watch_is_live_in_a_terminal_and_then_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    write_news(tmp_path)

    seen = in_terminal(tmp_path, "run", "news.py:news", "--watch")

    assert seen.code == 3
    assert "✓ gather" in seen.text
    assert "⏸ ask" in seen.text
    assert "105 tokens" in seen.text
    assert "waiting for input" in seen.text
    assert "holdfast answer" in seen.text
    assert "\x1b[?25l" in seen.raw


@pytest.mark.covers("TOOL-CLI-01")
def test_resume_watch_tells_lines_in_a_pipe_and_json_lines_to_machines(cli: Cli, refund: str) -> None:
    runs = [cli("run", refund, "--input", given(250), "--json").json["id"] for _ in range(2)]
    for run in runs:
        cli("answer", run, "approve")

    lines = cli("resume", runs[0], "--watch").out.splitlines()
    *events, result = [
        json.loads(line) for line in cli("resume", runs[1], "--watch", "--json").out.splitlines()
    ]

    assert any("node.completed" in line and "pay" in line for line in lines)
    assert "\x1b" not in "".join(lines)
    assert [event["type"] for event in events][-2:] == ["run.completed", "checkpoint.created"]
    assert result["status"] == "completed"


GATED = """
import asyncio
from pathlib import Path
from holdfast import Flow
gated = Flow("gated", effect="pure")

@gated.node
async def first(s):
    pass

@gated.node
async def second(s):
    while not Path("go").exists():
        await asyncio.sleep(0.01)

gated.chain(first, second)
"""


@pytest.mark.covers("TOOL-CLI-01")
def test_resume_watch_tells_what_another_process_does_as_it_does_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "gated.py").write_text(GATED)
    command = [sys.executable, "-m", "holdfast"]
    with subprocess.Popen(
        [*command, "run", "gated.py", "--watch"], stdout=subprocess.PIPE, text=True
    ) as works:
        _until(works, "node.started", "second")
        run = cli("runs", "--json").items[0]["id"]
        with subprocess.Popen(
            [*command, "resume", run, "--watch"], stdout=subprocess.PIPE, text=True
        ) as looks:
            _until(looks, "node.started", "second")
            (tmp_path / "go").touch()
            _until(looks, "run.completed")

    assert (works.returncode, looks.returncode) == (0, 0)


def _until(process: subprocess.Popen[str], *words: str) -> None:
    """Reads lines until one has all the words; the test's time limit ends it otherwise."""
    assert process.stdout is not None
    assert any(all(word in line for word in words) for line in process.stdout)


SLOW = """
import asyncio
from holdfast import Flow
slow = Flow("slow", effect="pure")

@slow.node
async def ponder(s):
    await asyncio.sleep(2.3)

slow.start(ponder)
"""


@pytest.mark.covers("TOOL-CLI-26")
def test_run_says_what_it_is_at_when_it_takes_longer_than_two_seconds(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)

    seen = in_terminal(tmp_path, "run", "slow.py")

    assert seen.code == 0
    assert "slow: ponder 2" in seen.text
