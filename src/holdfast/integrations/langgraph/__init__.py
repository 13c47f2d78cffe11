"""LangGraph (the extra `langgraph`): a saver on a Holdfast store, with one owner for each thread, and graphs
as flows whose interrupts are holds (docs/how-to/langgraph.md).
"""

from __future__ import annotations

from holdfast.integrations.partner_versions import require_partner

# Before anything of LangGraph is imported: another release may lack a name, or mean something else by it.
require_partner("langgraph-checkpoint", "4.3", "5", "langgraph")
require_partner("langgraph", "1.2", "2", "langgraph")

from holdfast.integrations.langgraph.graph_flow import graph_flow  # noqa: E402
from holdfast.integrations.langgraph.saver import HoldfastSaver  # noqa: E402

__all__ = ["HoldfastSaver", "graph_flow"]
