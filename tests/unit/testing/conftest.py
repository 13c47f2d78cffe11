"""The fixtures that users get."""

from __future__ import annotations

from holdfast.testing.plugin import clock, hf, human

__all__ = ["clock", "hf", "human"]
