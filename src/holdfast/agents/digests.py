"""Digests of what a call of a model, a tool or a judge depends on, recorded with its step: a change of one of
them can be told from a change of another."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast._version import __version__
from holdfast.frontends.python.code import code_fingerprint

if TYPE_CHECKING:
    from holdfast.agents.messages import ModelRequest
    from holdfast.agents.model import Model
    from holdfast.agents.tools import Tool


def digest(value: Any) -> str:
    """Of a value that JSON can have."""
    return sha256(msgspec.json.encode(value, enc_hook=repr, order="deterministic")).hexdigest()[:32]


def model_digest(model: Model) -> str:
    """Of its name and its settings; keys and prices are not part of it."""
    endpoint = getattr(model, "endpoint", None)
    address = getattr(endpoint, "base_url", "")
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    return digest([kind, model.name, address, getattr(model, "options", None)])


def request_digests(model: Model, request: ModelRequest) -> dict[str, str]:
    """`prompt`: the whole conversation. `instructions`: what stays the same over the turns of an agent."""
    fixed = [message for message in request.messages if message.role == "system"]
    return {
        "model": model_digest(model),
        "instructions": digest(fixed),
        "prompt": digest(request.messages),
        "tools": digest(request.tools),
        "holdfast": __version__,
    }


def tool_digests(tool: Tool, arguments: str) -> dict[str, str]:
    """`tool`: as models see it. `code`: of its function."""
    return {
        "tool": digest(tool.spec),
        "code": "" if tool.fn is None else code_fingerprint(tool.fn),
        "arguments": digest(arguments),
        "holdfast": __version__,
    }
