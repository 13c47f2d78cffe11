"""How long a test waits for what another process, thread or task does."""

from __future__ import annotations

from typing import Final

HANG: Final = 120.0
"""Seconds. Only a test that hangs ever waits so long: on a busy machine everything takes its time. Shorter
than the time-out of a test (`pyproject.toml`), so that the test can say what it waited for."""
