"""Exit codes of the `holdfast` command (docs/reference/cli.md)."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    ok = 0
    run_failed = 1
    bad_input = 2
    run_waits = 3
    store_trouble = 4
    broken = 5
    interrupted = 130
