"""Digests of what a model request or a tool call depends on, as `agents.digests` makes them of our agents."""

from __future__ import annotations

from typing import Any, Final, cast

import pydantic_ai
from pydantic_ai.durable_exec import DurableOperationId, ModelRequestId, ToolsetCallToolId
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import to_jsonable_python

from holdfast._version import __version__
from holdfast.agents.digests import digest
from holdfast.integrations.pydantic_ai.private_names import arguments_of, request_parts

_VARIES: Final = frozenset({"timestamp", "run_id", "conversation_id", "tool_call_id", "usage"})
"""What differs between two runs that are the same."""


def operation_digests(operation: DurableOperationId, inputs: tuple[object, ...]) -> dict[str, str]:
    """Empty for other operations."""
    versions = {"holdfast": __version__, "pydantic_ai": pydantic_ai.__version__}
    if isinstance(operation, ModelRequestId):
        messages, settings, parameters = request_parts(inputs)
        plain = to_jsonable_python(parameters, fallback=repr)
        return {
            "model": digest([operation.model_name, to_jsonable_python(settings, fallback=repr)]),
            "prompt": digest(_same(ModelMessagesTypeAdapter.dump_python(messages, mode="json"))),
            "tools": digest(plain),
            **versions,
        }
    if isinstance(operation, ToolsetCallToolId):
        arguments = to_jsonable_python(arguments_of(inputs), fallback=repr)
        return {"tool": digest(str(inputs[0])), "arguments": digest(arguments), **versions}
    return {}


def _same(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _same(each) for name, each in fields.items() if name not in _VARIES}
    if isinstance(value, list):
        return [_same(each) for each in cast("list[Any]", value)]
    return value
