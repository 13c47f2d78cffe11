"""The names of LangGraph that are not part of its public interface, all in one place (IN-3)."""

from __future__ import annotations

from typing import Final

RUNTIME: Final = "__pregel_runtime"
"""In `configurable` of the load of a loop, and not in that of a read."""
TASK: Final = "__pregel_task_id"
"""In `configurable` of a subgraph's loop."""
CLAIM: Final = "__pregel_holdfast_claim"
"""Ours: LangGraph removes keys with this beginning from metadata, from streams and from what users get."""
DELTA_COUNTERS: Final = "counters_since_delta_snapshot"
"""In the metadata: the channels whose values are built from the writes of ancestors."""
