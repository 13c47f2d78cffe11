"""Digests of what a model request or a tool call depends on, as `agents.digests` makes them of our agents."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final

import pydantic_ai
from pydantic_ai.durable_exec import DurableOperationId, ModelRequestId, ToolsetCallToolId
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import to_jsonable_python

from holdfast._version import __version__
from holdfast.agents.digests import digest
from holdfast.integrations.pydantic_ai.private_names import arguments_of, request_parts

_EXCLUDED: Final[Any] = {"__all__": {"usage": True}}
_VARIES: Final = re.compile(
    rb'"(?:timestamp|run_id|conversation_id|tool_call_id)":(?:null|"(?:[^"\\]|\\.)*")', re.DOTALL
)
"""What differs between messages of two runs that are the same. Text that looks like it has escaped quotes."""
_VERSIONS: Final = {"holdfast": __version__, "pydantic_ai": pydantic_ai.__version__}


def operation_digests(operation: DurableOperationId, inputs: tuple[object, ...]) -> dict[str, str]:
    """Empty for other operations."""
    if isinstance(operation, ModelRequestId):
        messages, settings, parameters = request_parts(inputs)
        plain = to_jsonable_python(parameters, fallback=repr)
        return {
            "model": digest([operation.model_name, to_jsonable_python(settings, fallback=repr)]),
            "prompt": _prompt_digest(messages),
            "tools": digest(plain),
            **_VERSIONS,
        }
    if isinstance(operation, ToolsetCallToolId):
        arguments = to_jsonable_python(arguments_of(inputs), fallback=repr)
        return {"tool": digest(str(inputs[0])), "arguments": digest(arguments), **_VERSIONS}
    return {}


def _prompt_digest(messages: list[Any]) -> str:
    # Without a walk in Python: the whole conversation is digested at each of its requests.
    written = ModelMessagesTypeAdapter.dump_json(messages, exclude=_EXCLUDED)
    return sha256(_VARIES.sub(b"", written)).hexdigest()[:32]
