"""What is used of Pydantic AI beside its public interface, all in one place (IN-3)."""

from __future__ import annotations

from typing import Any, Final, cast

from pydantic_ai.exceptions import UserError

ARGUMENTS: Final = 1
"""The place of a tool call's arguments among the inputs that the framework gives to a backend."""


def arguments_of(inputs: tuple[object, ...]) -> dict[str, Any]:
    return cast("dict[str, Any]", inputs[ARGUMENTS])


def request_parts(inputs: tuple[object, ...]) -> tuple[list[Any], Any, Any]:
    """The messages of a model request, its settings and its parameters."""
    _model, messages, settings, parameters, *_ = inputs
    return cast("list[Any]", messages), settings, parameters


def is_registered(durability: Any, model: object) -> bool:
    """Whether a run may use that instance: it is the agent's own or one of `models=`."""
    try:
        durability._find_model_id(model)
    except UserError:
        return False
    return True


def tool_result(value: Any) -> dict[str, Any]:
    """A value as the framework records that of a tool."""
    return {"kind": "tool_content_result", "result": value}
