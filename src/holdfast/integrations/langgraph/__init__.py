"""LangGraph (the extra `langgraph`): a saver on a Holdfast store, with one owner for each thread, and graphs
as flows whose interrupts are holds (docs/how-to/langgraph.md).
"""

from __future__ import annotations

from holdfast.integrations.langgraph.versions import require_versions

# Before anything of LangGraph is imported: another release may lack a name, or mean something else by it.
require_versions()

from holdfast.integrations.langgraph.graph_flow import graph_flow  # noqa: E402
from holdfast.integrations.langgraph.saver import HoldfastSaver  # noqa: E402

__all__ = ["HoldfastSaver", "graph_flow"]
