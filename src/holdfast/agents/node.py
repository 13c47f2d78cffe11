"""An agent as a node of a flow: what it is asked comes from the state, what it says goes there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec

from holdfast.agents.agent import Agent
from holdfast.agents.loop import Said
from holdfast.agents.messages import restored, stored
from holdfast.model.annotations import is_pydantic
from holdfast.runs.context import Context

Prompt = str | Callable[[Any], str]
Turns = bool | Callable[[Any], bool]
Handler = Callable[[Any, Context], Awaitable[Any]]


class Fields(msgspec.Struct, frozen=True):
    """The fields of the state that an agent reads and writes. `typed`: they take instances of types."""

    output: str | None = None
    history: str | None = None
    uploads: str | None = None
    files: str | None = None
    typed: bool = False

    @property
    def are_written(self) -> bool:
        return any((self.output, self.history, self.files))


def handler_of(agent: Agent, fields: Fields, *, prompt: Prompt, turns: Turns) -> Handler:

    async def converse(state: Any, ctx: Context) -> Any:
        asked = ctx.render(prompt) if isinstance(prompt, str) else prompt(state)
        listed = turns if isinstance(turns, bool) else bool(turns(state))
        said = await agent.run(
            ctx,
            asked,
            history=[restored(plain) for plain in _field(state, fields.history) or ()],
            uploads=_bytes(_field(state, fields.uploads) or {}),
            listed=listed,
        )
        if said.stopped:
            ctx.emit({"agent": agent.name, "stopped": said.stopped}, "agent")
        return _update(agent, said, fields)

    cast("Any", converse).code_text = agent.code_text()
    return converse


def _field(state: Any, name: str | None) -> Any:
    if name is None:
        return None
    return cast("Mapping[str, Any]", state).get(name) if isinstance(state, Mapping) else getattr(state, name)


def _bytes(files: Mapping[str, bytes | str]) -> dict[str, bytes]:
    return {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}


def _update(agent: Agent, said: Said, fields: Fields) -> Any:
    value = _storable(agent, said.value, typed=fields.typed)
    if not fields.are_written:
        return value
    update: dict[str, Any] = {}
    if fields.output is not None:
        update[fields.output] = value
    if fields.history is not None:
        update[fields.history] = [stored(message) for message in said.messages if message.role != "system"]
    if fields.files is not None:
        update[fields.files] = said.files
    return update


def _storable(agent: Agent, value: Any, *, typed: bool) -> Any:
    if agent.returns is None or isinstance(agent.returns, dict):
        return value
    if is_pydantic(agent.returns):
        return value if typed else value.model_dump(mode="json")
    return msgspec.to_builtins(value)
