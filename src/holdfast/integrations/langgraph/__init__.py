"""LangGraph (the extra `langgraph`): a saver on a Holdfast store, with one owner for each thread
(docs/how-to/langgraph.md).
"""

from __future__ import annotations

try:
    # The newest name that is used here: an older release does not have it.
    from langgraph.checkpoint.base import writes_sort_key as _  # noqa: F401
except ImportError as error:
    raise ImportError(
        "holdfast.integrations.langgraph needs langgraph 1.2 or a later 1.x, and langgraph-checkpoint 4.3 or "
        "a later 4.x: pip install 'holdfast-flow[langgraph]'"
    ) from error

from holdfast.integrations.langgraph.graph_flow import graph_flow
from holdfast.integrations.langgraph.saver import HoldfastSaver

__all__ = ["HoldfastSaver", "graph_flow"]
