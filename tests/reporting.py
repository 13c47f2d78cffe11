"""What the test run reports: minutes per folder, and failures under names that `--last-failed` knows."""

from __future__ import annotations

import re
import signal
from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath

import pytest

# xdist appends the group of a test to its node id. A parameter may hold an @ too, but ends with a bracket.
_GROUP = re.compile(r"@[^\]\s]+$")


def plain_id(nodeid: str) -> str:
    return _GROUP.sub("", nodeid)


class PlainNodeIds:
    """Reports name a test without its group: the cache of failures is read by runs that have no groups."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        report.nodeid = plain_id(report.nodeid)


def receive_interrupts() -> None:
    """A shell's background job (`nohup make test &`) ignores SIGINT, and every child would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class MinutesPerFolder:
    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._tests: Counter[str] = Counter()
        self._before = cpu_ticks()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = folder_of(report.nodeid)
        self._seconds[folder] += report.duration
        self._tests[folder] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._seconds:
            return
        terminalreporter.section("minutes per folder (summed over workers)")
        slowest_first = sorted(self._seconds.items(), key=lambda row: -row[1])
        rows = [*slowest_first, ("total", sum(self._seconds.values()))]
        counts = {**self._tests, "total": sum(self._tests.values())}
        width = max(len(folder) for folder, _ in rows)
        for folder, seconds in rows:
            terminalreporter.line(f"{folder:{width}}  {seconds / 60:6.2f} min  {counts[folder]:5} tests")
        # Of the whole machine. Idle cores: tests wait, and more processes (WORKERS) make the run shorter.
        busy, idle = (after - before for after, before in zip(cpu_ticks(), self._before, strict=True))
        if busy + idle:
            terminalreporter.line(f"cores busy for {busy / (busy + idle):.0%} of the time")


def cpu_ticks() -> tuple[int, int]:
    """Of all cores since the machine started: busy, and idle or waiting for a disk. Zeros outside Linux."""
    try:
        fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    except OSError:
        return 0, 0
    user, nice, system, idle, wait, *others = map(int, fields)
    # The time of guests, at the end, is part of `user` and `nice`.
    return user + nice + system + sum(others[:3]), idle + wait


def folder_of(nodeid: str) -> str:
    """The first folder below `tests/`, or `tests` for a test directly in it."""
    parts = PurePosixPath(nodeid.partition("::")[0]).parts
    below = parts[1:] if parts[:1] == ("tests",) else parts
    return f"tests/{below[0]}" if len(below) > 1 else "tests"
