"""Places whose runs are replayed after each test, as those of the flows are."""

from __future__ import annotations

from tests.flows.conftest import place, positions

__all__ = ["place", "positions"]
