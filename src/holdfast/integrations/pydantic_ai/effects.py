"""The effect class of each operation of an agent, and the key by which a callee recognises a repetition
(IN-53)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from pydantic_ai.durable_exec import (
    CapabilityOperationId,
    DurableOperationId,
    ToolsetCallToolId,
)

from holdfast.errors import InputError
from holdfast.types.status import Effect

METADATA: Final = "holdfast"
"""The key of a tool's metadata that has its options."""
_OPTIONS: Final = {"effect", "idempotency_key"}


class OperationEffect(NamedTuple):
    """How an operation is recorded. `key`: a template over the arguments of the tool; empty: none."""

    effect: Effect
    key: str = ""


READ: Final = OperationEffect(Effect.read)
EXTERNAL: Final = OperationEffect(Effect.external)


class EffectTable:
    """What the operations of one agent do: as declared for the agent, else by the tool's metadata, else as
    the kind of operation has it. Implements the framework's `DurableOperationConfig`."""

    def __init__(self, effects: Mapping[str, str] | None) -> None:
        self._declared = {
            name: _read({"effect": given}, f"effects[{name!r}]") for name, given in (effects or {}).items()
        }

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
        return EXTERNAL if given is None else _read(given, f"metadata[{METADATA!r}] of tool {tool_name!r}")


def _read(given: Any, where: str) -> OperationEffect:
    """Raises InputError."""
    options = cast("dict[str, Any]", given) if isinstance(given, dict) else None
    hint = 'Write {"effect": "read"}, and "idempotency_key": "refund-{{order_id}}" if the callee has one.'
    if options is None or options.keys() - _OPTIONS:
        raise InputError(f"{where} is {given!r}, which does not say what the tool does.", hint=hint)
    key = options.get("idempotency_key", "")
    try:
        effect = Effect(options.get("effect", Effect.external))
    except ValueError as error:
        raise InputError(f"{where}: the effect is one of {', '.join(Effect)}.", hint=hint) from error
    if not isinstance(key, str):
        raise InputError(f"{where}: the idempotency_key is a text.", hint=hint)
    return OperationEffect(effect, key)
