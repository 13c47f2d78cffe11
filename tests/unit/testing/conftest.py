"""The fixtures that users get."""

from __future__ import annotations

from holdfast.testing.plugin import clock, house, human

__all__ = ["clock", "house", "human"]
