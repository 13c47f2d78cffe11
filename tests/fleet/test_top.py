"""`holdfast top`: the whole fleet on one screen, of whatever size, or in a pipe."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.cli.top.figures import FleetSnapshot
from holdfast.cli.top.screen import FleetView, lines
from holdfast.types.clock import MICROS
from holdfast.types.fleet import FleetFigures, LaneFigures, WorkerRow
from tests.deadlines import HANG
from tests.fleet.workers import settings, until

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-OPS-03")]

NOW = 1_800_000_000 * MICROS


def seen(lanes: int = 3, workers: int = 3, **given: object) -> FleetSnapshot:
    figures: dict[str, object] = {
        "at": NOW,
        "lanes": [
            LaneFigures(lane=f"lane-{n}", ready=n * 100, oldest=n * 20 * MICROS, running=n)
            for n in range(lanes)
        ],
        "statuses": {"pending": 7, "pending_input": 2},
        "dead": 1,
        "holds": [(1, 2), (2, 0), (3, 0), (0, 4)],
        "oldest_hold": 9 * 86_400 * MICROS,
        "timer_lag": 30 * MICROS,
        "hold_lag": 0,
        "schedule_lag": 0,
        "outbox_waiting": 3,
        "outbox_dead": 1,
    }
    rows = [
        WorkerRow(
            name=f"a-worker-with-a-long-name-{n}",
            incarnation=str(n),
            host="h",
            pid=n,
            release="1.0" if n else "1.1",
            started_at=NOW - 3600 * MICROS,
            seen_at=NOW - n * MICROS,
            until=NOW + (5 - 4 * n) * MICROS,
            lanes=("fast", "slow"),
            concurrency=10,
            busy=n,
            draining=n == 1,
            records_per_second=12.34,
        )
        for n in range(workers)
    ]
    return FleetSnapshot(figures=FleetFigures(**{**figures, **given}), workers=rows)  # type: ignore[arg-type]


def on_screen(view: FleetView, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, color_system=None)
    options = console.options.update_dimensions(width, height)
    return ["".join(part.text for part in line) for line in console.render_lines(view, options)]


@pytest.mark.parametrize("size", [(100, 30), (80, 24), (40, 24), (20, 8)])
@pytest.mark.parametrize(("lanes", "workers"), [(0, 0), (3, 3), (40, 60)])
async def test_screen_is_filled_and_nothing_sticks_out(
    size: tuple[int, int], lanes: int, workers: int
) -> None:
    width, height = size
    page = on_screen(FleetView(seen(lanes, workers), "Not up to date: the store is away."), width, height)
    assert len(page) == height
    assert max(cell_len(line) for line in page) <= width
    assert page[0].startswith("Fleet")
    assert page[-2].startswith("Not up to date")
    assert page[-1].startswith("q quit")


async def test_narrow_screen_keeps_what_matters_most() -> None:
    text = "\n".join(lines(seen(), 40))
    assert "a-worker" in text
    assert re.search(r"BUSY\b", text)
    assert "RELEASE" not in text
    wide = "\n".join(lines(seen(), 200))
    assert "a-worker-with-a-long-name-0" in wide
    assert "RELEASE" in wide


async def test_what_deserves_a_look_is_said_in_words_and_not_by_colour_alone() -> None:
    text = "\n".join(lines(seen(), 120))
    for said in ("1 silent", "releases 1.0, 1.1", "1 dead", "timers 30 s", "4 older", "draining", "silent"):
        assert said in text
    nobody = "\n".join(lines(seen(workers=0), 120))
    assert "No worker is alive. Start one: holdfast worker FLOW..." in nobody


async def test_many_rows_are_cut_with_a_word_about_the_rest() -> None:
    text = "\n".join(on_screen(FleetView(seen(40, 60)), 100, 30))
    assert len(re.findall(r"and \d+ more", text)) == 2
    assert "lane-39" in text  # the longest line comes first


def command(address: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "holdfast", "top", "--store", address, *words]


async def test_pipe_and_json_tell_of_real_workers(address: str) -> None:
    flow = Flow("busy", effect="pure")

    @flow.node(effect="read")
    async def work(s: dict) -> dict:
        await asyncio.sleep(30)
        return {}

    async with Holdfast(address, settings=RunSettings(**settings())) as hf:
        service = await hf.service()
        options = {"on": hf, "poll": 0.1, "grace": 0.1}
        async with (
            Worker(flow, name="one", lanes=["fast"], concurrency=1, **options),
            Worker(name="two", lanes=["slow"], **options),
        ):
            for _ in range(3):
                await service.create(flow.program(), {}, lane="fast")

            async def says_so() -> bool:
                return [row.busy for row in await service.store.workers()] == [1, 0]

            await until(says_so, "the first says that it is busy")
            text, shown = await asyncio.gather(
                *(
                    asyncio.to_thread(subprocess.check_output, command(address, *words), text=True)
                    for words in (["--json"], [])
                )
            )
    said = json.loads(text)
    assert [(row["name"], row["state"], row["busy"]) for row in said["workers"]] == [
        ("one", "working", 1),
        ("two", "working", 0),
    ]
    assert [(lane["lane"], lane["ready"], lane["running"]) for lane in said["lanes"]] == [("fast", 2, 1)]
    assert said["runs"] == {"pending": 2, "running": 1}
    assert re.search(r"^one +working +1/1 ", shown, re.MULTILINE)
    assert re.search(r"^fast +2 ", shown, re.MULTILINE)
    assert "\x1b" not in shown


def in_terminal(words: list[str], folder: Path, **env: str) -> tuple[int, str]:
    """Types q when the screen is there; (exit code, all that was written)."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    given = kept | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | env
    process = subprocess.Popen(words, cwd=folder, env=given, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    raw, limit, typed = b"", time.monotonic() + HANG, False
    while time.monotonic() < limit:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                raw += os.read(ours, 65536)
            except OSError:
                break
        if not typed and raw.count(b"q quit") >= 2:  # it has looked again
            os.write(ours, b"q")
            typed = True
        if process.poll() is not None:
            break
    code = process.wait(HANG)
    os.close(ours)
    return code, raw.decode()


@pytest.mark.parametrize("colour", [True, False], ids=["colour", "NO_COLOR"])
async def test_live_view_looks_again_and_ends_with_q(tmp_path: Path, address: str, colour: bool) -> None:
    env = {} if colour else {"NO_COLOR": "1"}
    async with Holdfast(address) as hf:
        await hf.open()
        words = command(address, "--every", "0.3")
        code, raw = await asyncio.to_thread(in_terminal, words, tmp_path, **env)
    assert code == 0
    assert raw.startswith("\x1b[?1049h")
    assert raw.rpartition("\x1b[?1049l")[2] in ("", "\x1b[?25h")  # the screen is restored
    assert "No worker is alive" in raw
    assert ("\x1b[1;31m" in raw) is colour
