"""The names of LangGraph that are not part of its public interface, all in one place (IN-3)."""

from __future__ import annotations

from typing import Final

RUNTIME: Final = "__pregel_runtime"
"""In `configurable` of the load of a loop, and not in that of a read."""
TASK: Final = "__pregel_task_id"
"""In `configurable` of a subgraph's loop."""
CLAIM: Final = "__holdfast_claim"
"""Ours: keys with two underscores are neither metadata nor passed to users' functions."""
DELTA_COUNTERS: Final = "counters_since_delta_snapshot"
"""In the metadata: the channels whose values are built from the writes of ancestors."""
