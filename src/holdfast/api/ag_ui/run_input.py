"""What a front end sends: AG-UI's `RunAgentInput`, and the input of the run that it starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, cast

import msgspec

from holdfast.api.schemas.common import Name
from holdfast.api.schemas.input_guard import require_outside
from holdfast.errors import InputError
from holdfast.model.graph import GraphSpec
from holdfast.model.hold_declaration import decision_fields
from holdfast.model.input_schema import input_schema
from holdfast.model.program import Program

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=150, pattern=r"^[\x21-\x7e]*$")]
"""Idempotency keys have 200 characters; the key of an answer has the id of its hold too."""


ROLES: Final = frozenset({"activity", "assistant", "developer", "reasoning", "system", "tool", "user"})


class ResumeEntry(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The answer to one interrupt. `cancelled`: the person gave none, and the question stays open."""

    interrupt_id: Name
    status: Literal["resolved", "cancelled"]
    payload: Any = None
    metadata: dict[str, Any] | None = None


class RunAgentInput(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """All fields of version 1.0, so that a misspelled one is not overlooked. `tools`, `context` and
    `forwardedProps` are not used."""

    thread_id: Name
    run_id: Key
    messages: list[dict[str, Any]]
    state: Any = None
    tools: list[dict[str, Any]] | None = None
    context: list[dict[str, Any]] | None = None
    forwarded_props: Any = None
    protocol_version: Name | None = None
    parent_run_id: Name | None = None
    resume: Annotated[list[ResumeEntry], msgspec.Meta(max_length=1000)] | None = None


def require_messages(given: RunAgentInput) -> None:
    """Raises InputError for a message that the protocol does not know: a flow that looks at roles would take
    it for one that it does know, or overlook it."""
    for place, message in enumerate(given.messages):
        role, name = message.get("role"), message.get("id")
        if not isinstance(role, str) or role not in ROLES:
            shown = f"the role {role!r:.80}" if "role" in message else "no role"
            raise InputError(
                f"messages[{place}] has {shown}.", hint=f"The role is one of {', '.join(sorted(ROLES))}."
            )
        if not isinstance(name, str) or not name:
            raise InputError(f"messages[{place}] has no id.", hint="Give each message a text as its `id`.")


def input_for(program: Program, given: RunAgentInput) -> dict[str, Any]:
    """The values of `state` that the flow takes, and of `messages` and `prompt` (the last text of the
    person) if it takes those. A flow that does not say what it takes gets all of them."""
    state: Any = {} if given.state is None else given.state
    if not isinstance(state, dict):
        raise InputError("`state` must be an object.", hint="Send the input of the flow as its fields.")
    found: dict[str, Any] = {**cast("dict[str, Any]", state)}
    require_outside(found)
    said = [message for message in given.messages if message.get("role") == "user"]
    # What is said now comes before `state`: clients send the last STATE_SNAPSHOT back with the next run, and
    # it has the prompt of the run before.
    new = {"messages": given.messages, "prompt": _text(said[-1].get("content", "")) if said else ""}
    found = {**found, **new} if said else {**new, **found}
    # For the same reason it has the decisions of that run, which are none about this one.
    decisions = _decisions(program.graph.spec)
    found = {name: value for name, value in found.items() if name not in decisions}
    declared = input_schema(program.graph.spec).get("properties")
    if not declared:
        return found
    return {name: value for name, value in found.items() if name in declared}


def _decisions(spec: GraphSpec) -> set[str]:
    """The fields in which the holds of a flow and of its sub-flows put their decisions."""
    found = {field for node in spec.nodes if node.hold for field in decision_fields(node.hold)}
    return found.union(*(_decisions(inner) for inner in spec.subgraphs))


def _text(content: Any) -> str:
    """Of a message: a text, or parts of which some are texts."""
    if isinstance(content, str):
        return content
    parts = cast("Iterable[Any]", content) if isinstance(content, list) else ()
    fields = [cast("Mapping[str, Any]", part) for part in parts if isinstance(part, Mapping)]
    return "\n".join(str(part.get("text", "")) for part in fields if part.get("type") == "text")
