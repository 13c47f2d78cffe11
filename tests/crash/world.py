"""The outside world of the crash tests: a file to which each effect appends a line, for good.

What happened out here cannot be undone by a crash, so it is what the runs are judged by.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any


def _linger() -> None:
    """Effects that take a while are killed in their middle more often. Asked each time: the fork server of
    the tests imports this module before a process has its environment."""
    time.sleep(float(os.environ.get("VICTIM_LINGER", "0")))


class World:
    def __init__(self, file: Path, *, sync: bool = True) -> None:
        self.file = file
        self._sync = sync

    def happens(self, name: str, run: str, **facts: Any) -> None:
        """Something happens: once it is here it has happened, whatever becomes of the process."""
        line = json.dumps({"name": name, "run": run, "pid": os.getpid(), **facts}) + "\n"
        _linger()
        handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())
            if self._sync:
                os.fsync(handle)
        finally:
            os.close(handle)
        _linger()

    def lines(self, run: str) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        found = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [line for line in found if line["run"] == run]

    def find(self, run: str, key: str) -> dict[str, Any] | None:
        return next((line for line in self.lines(run) if line.get("key") == key), None)

    def count(self, run: str) -> Counter[str]:
        """How often each effect happened, by name."""
        return Counter(line["name"] for line in self.lines(run))
