"""The same instances and places as the flow tests: the runtime's rules are proven on every store."""

from __future__ import annotations

from tests.flows.conftest import hf, place, positions

__all__ = ["hf", "place", "positions"]
