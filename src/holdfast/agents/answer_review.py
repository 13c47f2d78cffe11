"""Approval of an agent's answer: a person approves it, changes it, or rejects it with instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.agents.agent_scope import AgentScope
from holdfast.agents.schemas import schema_of
from holdfast.agents.tool_approval import OPTIONS
from holdfast.agents.tools import Approval
from holdfast.errors import HoldExpiredError
from holdfast.model.annotations import is_pydantic
from holdfast.model.expressions import mapping_resolver
from holdfast.model.template import compile_template
from holdfast.runs.context.questions import Reply

if TYPE_CHECKING:
    from holdfast.agents.agent import Agent


class ReviewResult(msgspec.Struct, frozen=True):
    """`refused`: the message to the model if the answer does not count."""

    value: Any = None
    refused: str = ""


async def review_answer(at: AgentScope, agent: Agent, value: Any, turn: int) -> ReviewResult:
    """Asked once for each answer, identified by its turn. At the timeout the answer is refused."""
    asked = agent.approval
    plain = _plain(value)
    if asked is None or not asked.is_needed({"answer": plain}):
        return ReviewResult(value)
    try:
        reply = await at.ask(
            f"{turn}/answer",
            at.asked(f"{turn}/answer") or _prompt(asked, agent, plain),
            options=OPTIONS,
            type="approval",
            **asked.manner(),
            schema=_schema(agent),
            context={"agent": agent.name, "answer": plain, "turn": turn},
        )
    except HoldExpiredError:
        return ReviewResult(refused="This answer was not approved in time. Give it again, or correct it.")
    return _review_result(reply, agent, value)


def _review_result(reply: Reply, agent: Agent, value: Any) -> ReviewResult:
    changes = _changes(reply.data)
    if reply.decision != "approve":
        notes = [reply.comment, changes.get("instructions")]
        why = " ".join(each for each in notes if each)
        return ReviewResult(refused=f"A person did not accept this answer. {why}".rstrip())
    if "output" not in changes:
        return ReviewResult(value)
    if agent.returns is None:
        return ReviewResult(changes["output"])
    read, problem = agent.read_answer(msgspec.json.encode(changes["output"]).decode())
    return ReviewResult(read, f"The answer that a person entered does not fit: {problem}." if problem else "")


def _changes(data: Any) -> Mapping[str, Any]:
    found: Any = cast("Mapping[str, Any]", data).get("modifications") if isinstance(data, Mapping) else None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _schema(agent: Agent) -> dict[str, Any]:
    """An answer that does not fit is refused while the person can still correct it."""
    text = {"type": "string"}
    output = text if agent.returns is None else schema_of(agent.returns, f"what agent {agent.name!r} returns")
    changes = {"output": output, "instructions": text}
    return {
        "type": ["object", "null"],
        "properties": {
            "modifications": {"type": "object", "properties": changes, "additionalProperties": False}
        },
        "additionalProperties": False,
    }


def _prompt(asked: Approval, agent: Agent, plain: Any) -> str:
    if asked.prompt is not None:
        return str(compile_template(asked.prompt).render(mapping_resolver({"answer": plain})).value)
    return f"The agent {agent.name} has an answer. Accept it?"


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if is_pydantic(type(value)) else msgspec.to_builtins(value)
