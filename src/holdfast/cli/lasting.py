"""Durations and moments as people say them, at hand for the command line."""

from __future__ import annotations

from holdfast.types.lasting import ago, clock_time, lasting

__all__ = ["ago", "clock_time", "lasting"]
