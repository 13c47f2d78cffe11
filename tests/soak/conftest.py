"""What the soak did, in numbers: each test notes them, and they are summed over all workers."""

from __future__ import annotations

from collections import Counter

import pytest

PREFIX = "soak:"


class _Sums:
    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        sums: Counter[str] = Counter()
        for reports in terminalreporter.stats.values():
            for report in reports:
                for name, number in getattr(report, "user_properties", ()):
                    if getattr(report, "when", "") == "call" and name.startswith(PREFIX):
                        sums[name.removeprefix(PREFIX)] += number
        if sums:
            terminalreporter.section("soak")
            for name, number in sorted(sums.items()):
                terminalreporter.write_line(f"{name:<24} {number}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Sums())
