"""An agent as a node of a flow: its prompt comes from the state, and its answer is written there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, cast

import msgspec

from holdfast.agents.agent import Agent
from holdfast.agents.loop import ConversationResult
from holdfast.agents.messages import Message, message_from_plain, message_to_plain
from holdfast.app.extensions import AGENT_NODES
from holdfast.errors import InputError
from holdfast.frontends.python import FlowBuilder, NodeHandle
from holdfast.model.annotations import field_types, is_pydantic
from holdfast.model.template import TemplateSyntaxError, compile_template
from holdfast.model.user_code.boundary import call_plain
from holdfast.runs.context.context import Context
from holdfast.types.text import clean_text

Prompt = str | Callable[[Any], str]
Turns = bool | Callable[[Any], bool]
Handler = Callable[[Any, Context], Awaitable[Any]]


class AgentFields(msgspec.Struct, frozen=True):
    """The fields of the state that an agent reads and writes. `typed`: they accept instances of types."""

    output: str | None = None
    history: str | None = None
    uploads: str | None = None
    files: str | None = None
    typed: bool = False

    @property
    def are_written(self) -> bool:
        return any((self.output, self.history, self.files))


def add_agent_node(
    flow: FlowBuilder,
    id: str,  # noqa: A002
    agent: Agent | None,
    *,
    parts: dict[str, Any],
    prompt: Prompt,
    turns: Turns,
    fields: dict[str, str | None],
    policies: dict[str, Any],
) -> NodeHandle[..., Any]:
    """What `Flow.agent` does."""
    if agent is None:
        if parts["model"] is None:
            raise InputError(f"agent node {id!r} has no model.", hint="Give it model=..., or an Agent.")
        agent = Agent(id, **parts)
    used = AgentFields(**fields, typed=flow.state is not None)
    if not used.are_written:
        policies.setdefault("output_as", id)
    for message, fix in problems_of(agent, used, prompt, flow.state):
        flow.wrong("agent", message, node=id, fix=fix)
    policies["metadata"] = {"agent": agent.name, **(policies.get("metadata") or {})}
    work = handler_of(agent, used, prompt=prompt, turns=turns)
    return flow.task(work, {"id": id, **policies}, script=True)


AGENT_NODES.register(add_agent_node)


def problems_of(agent: Agent, fields: AgentFields, prompt: Prompt, state: Any) -> Iterator[tuple[str, str]]:
    """(the problem, the fix): found when the flow is compiled, not after the model was paid."""
    for what, text in (("prompt", prompt), ("instructions", agent.instructions)):
        try:
            compile_template(text if isinstance(text, str) else "")
        except TemplateSyntaxError as error:
            yield f"its {what} cannot be parsed: {error}", "write {{name}} for a value of the state"
    known = field_types(state) if isinstance(state, type) else None
    for name in (fields.output, fields.history, fields.uploads, fields.files):
        if known is not None and name is not None and name not in known:
            yield f"the state has no field {name!r}", f"declare it, or name one of: {', '.join(known)}"


def handler_of(agent: Agent, fields: AgentFields, *, prompt: Prompt, turns: Turns) -> Handler:

    async def converse(state: Any, ctx: Context) -> Any:
        asked = ctx.render(prompt) if isinstance(prompt, str) else _text(call_plain(prompt, state), agent)
        listed = turns if isinstance(turns, bool) else bool(call_plain(turns, state))
        result = await agent.run(
            ctx,
            asked,
            history=_messages(_field(state, fields.history) or (), fields.history),
            uploads=_bytes(_field(state, fields.uploads) or {}, fields.uploads),
            listed=listed,
        )
        if result.stopped:
            ctx.emit({"agent": agent.name, "stopped": result.stopped}, "agent")
        return _update(agent, result, fields)

    cast("Any", converse).code_text = agent.code_text()
    return converse


def _field(state: Any, name: str | None) -> Any:
    if name is None:
        return None
    return cast("Mapping[str, Any]", state).get(name) if isinstance(state, Mapping) else getattr(state, name)


def _text(asked: Any, agent: Agent) -> str:
    if not isinstance(asked, str):
        raise InputError(
            f"the prompt of agent {agent.name!r} is a {type(asked).__name__}.", hint="Return text."
        )
    return asked


def _messages(found: Any, field: str | None) -> list[Message]:
    try:
        return [message_from_plain(plain) for plain in found]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the field {field!r} does not contain messages: {error}.",
            hint='They are {"role": "user" or "assistant", "text": ...}.',
        ) from None


def _bytes(found: Any, field: str | None) -> dict[str, bytes]:
    files: dict[Any, Any] = (
        dict(cast("Mapping[Any, Any]", found)) if isinstance(found, Mapping) else {None: found}
    )
    for path, data in files.items():
        if not isinstance(path, str) or not isinstance(data, (bytes, str)):
            raise InputError(
                f"the field {field!r} does not contain files: {clean_text(repr(path or data), 80)}.",
                hint="It must be a dict of paths and their content, bytes or text.",
            )
    return {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}


def _update(agent: Agent, result: ConversationResult, fields: AgentFields) -> Any:
    value = _storable(agent, result.value, typed=fields.typed)
    if not fields.are_written:
        return value
    update: dict[str, Any] = {}
    if fields.output is not None:
        update[fields.output] = value
    if fields.history is not None:
        update[fields.history] = [
            message_to_plain(message) for message in result.messages if message.role != "system"
        ]
    if fields.files is not None:
        update[fields.files] = result.files
    return update


def _storable(agent: Agent, value: Any, *, typed: bool) -> Any:
    if agent.returns is None or isinstance(agent.returns, dict):
        return value
    if is_pydantic(agent.returns):
        return value if typed else value.model_dump(mode="json")
    return msgspec.to_builtins(value)
