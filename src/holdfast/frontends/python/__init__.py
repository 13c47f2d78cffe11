"""Flows written in Python. `holdfast.Flow` adds running to the builder."""

from __future__ import annotations

from holdfast.frontends.python.builder import FlowBuilder
from holdfast.frontends.python.guard import Guard
from holdfast.frontends.python.handle import NodeHandle
from holdfast.frontends.python.policies import Join, Retry, all_of, any_of, quorum

__all__ = ["FlowBuilder", "Guard", "Join", "NodeHandle", "Retry", "all_of", "any_of", "quorum"]
