"""Instances and places as for flows: every journal is folded and replayed after its test."""

from __future__ import annotations

from tests.flows.conftest import hf, place, positions

__all__ = ["hf", "place", "positions"]
