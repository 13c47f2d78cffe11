"""The node types that documents may use, by name."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from holdfast.frontends.document.node_type import NodeType

MODULES: Final = (
    "start", "end", "python", "models", "http", "set", "condition", "router", "parallel", "map", "loop",
    "subflow", "wait", "guardrail", "holds", "queues", "callback",
)  # fmt: skip
"""In `node_types`, in the order of the reference page; each has `NODE_TYPES`."""


@cache
def node_types() -> dict[str, NodeType]:
    found: dict[str, NodeType] = {}
    for module in MODULES:
        types: tuple[NodeType, ...] = import_module(f"{__package__}.node_types.{module}").NODE_TYPES
        found.update({each.name: each for each in types})
    return found
