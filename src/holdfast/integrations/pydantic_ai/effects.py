"""The effect class of each operation of an agent, and the key by which a callee recognises a repetition
(IN-53)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic_ai.durable_exec import (
    CapabilityOperationId,
    DurableOperationId,
    ToolsetCallToolId,
)

from holdfast.integrations.tool_effects import EXTERNAL, READ, OperationEffect, read_effect, read_effects

METADATA: Final = "holdfast"
"""The key of a tool's metadata that has its options."""


class EffectTable:
    """What the operations of one agent do: as declared for the agent, else by the tool's metadata, else as
    the kind of operation has it. Implements the framework's `DurableOperationConfig`."""

    def __init__(self, effects: Mapping[str, str] | None) -> None:
        self._declared = read_effects(effects)

    @property
    def tools(self) -> frozenset[str]:
        """That it names. Operations of capabilities have a dot."""
        return frozenset(name for name in self._declared if "." not in name)

    def base(self, role: str, *, operation_id: DurableOperationId) -> OperationEffect:
        """Without a tool. Model requests, discovery, checks of arguments and handlers of events may be
        repeated; what else a capability does is not known."""
        if isinstance(operation_id, CapabilityOperationId):
            name = f"{operation_id.capability_id}.{operation_id.operation}"
            return self._declared.get(name, EXTERNAL)
        return EXTERNAL if isinstance(operation_id, ToolsetCallToolId) else READ

    def for_tool(
        self, role: str, *, operation_id: DurableOperationId, tool: object | None, tool_name: str
    ) -> OperationEffect:
        if not isinstance(operation_id, ToolsetCallToolId):
            return READ
        if tool_name in self._declared:
            return self._declared[tool_name]
        metadata: dict[str, Any] = (cast("Any", tool).tool_def.metadata if tool is not None else None) or {}
        given = metadata.get(METADATA)
        return (
            EXTERNAL if given is None else read_effect(given, f"metadata[{METADATA!r}] of tool {tool_name!r}")
        )
