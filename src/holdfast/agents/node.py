"""An agent as a node of a flow: what it is asked comes from the state, what it says goes there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast.agents.agent import Agent
from holdfast.agents.loop import Said
from holdfast.agents.messages import Message, restored, stored
from holdfast.model.annotations import is_pydantic
from holdfast.runs.context import Context

Prompt = str | Callable[[Any], str]
Turns = bool | Callable[[Any], bool]
Handler = Callable[[Any, Context], Awaitable[Any]]


def handler_of(
    agent: Agent, *, prompt: Prompt, output: str | None, history: str | None, turns: Turns, typed: bool
) -> Handler:
    """`typed`: the flow's state has a type, and with it fields that take instances."""

    async def converse(state: Any, ctx: Context) -> Any:
        asked = ctx.render(prompt) if isinstance(prompt, str) else prompt(state)
        before = [] if history is None else _messages(state, history)
        listed = turns if isinstance(turns, bool) else bool(turns(state))
        said = await agent.run(ctx, asked, history=before, listed=listed)
        return _update(agent, said, output, history, typed=typed)

    cast("Any", converse).code_text = agent.code_text()
    return converse


def _messages(state: Any, field: str) -> list[Message]:
    if isinstance(state, Mapping):
        found: Any = cast("Mapping[str, Any]", state).get(field)
    else:
        found = getattr(state, field)
    return [restored(plain) for plain in cast("Sequence[Mapping[str, Any]]", found or ())]


def _update(agent: Agent, said: Said, output: str | None, history: str | None, *, typed: bool) -> Any:
    value = _storable(agent, said.value, typed=typed)
    if output is None and history is None:
        return value
    update: dict[str, Any] = {} if output is None else {output: value}
    if history is not None:
        update[history] = [stored(message) for message in said.messages if message.role != "system"]
    return update


def _storable(agent: Agent, value: Any, *, typed: bool) -> Any:
    if agent.returns is None or isinstance(agent.returns, dict):
        return value
    if is_pydantic(agent.returns):
        return value if typed else value.model_dump(mode="json")
    return msgspec.to_builtins(value)
