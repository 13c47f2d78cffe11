"""Interrupts as questions to people: what a hold shows of one, and what the graph gets as the answer.

An interrupt of LangChain's approval middleware asks about several actions: each is a question of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, cast

from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.types import Interrupt

from holdfast.errors import InputError, VersionMismatchError
from holdfast.types.value import EXACT, SCALARS

# In quotes: before 1.2.12 it is no generic type.
HoldOptions = Callable[["Interrupt[Any]"], Mapping[str, Any]]
"""Whom an interrupt is for, and until when: the options of `ctx.ask`."""

_PROMPTS: Final = ("question", "prompt", "description")
_DECISIONS: Final = ("approve", "edit", "reject", "respond")
_ANSWER: Final = "answer"


class GraphQuestion(NamedTuple):
    """`key` is unique in its thread. `wrapped`: the form has one field, whose value is the answer."""

    key: str
    prompt: str
    options: list[Any] | None
    form: dict[str, Any] | None
    manner: dict[str, Any]
    wrapped: bool = False


class GivenAnswer(NamedTuple):
    decision: Any
    data: Any
    comment: str | None


def open_interrupts(pending: Iterable[tuple[str, str, Any]] | None) -> dict[str, Interrupt[Any]]:
    """Those in the pending writes of a checkpoint whose tasks have not ended, by id."""
    asked: dict[str, list[Interrupt[Any]]] = {}
    ended: set[str] = set()
    for task, channel, value in pending or ():
        if channel == INTERRUPT:
            asked[task] = list(cast("Any", value)) if isinstance(value, (list, tuple)) else [value]
        elif channel not in WRITES_IDX_MAP:
            ended.add(task)
    return {each.id: each for task, found in asked.items() if task not in ended for each in found}


def require_asked_by_graph(
    thread: str, stored: Mapping[str, Interrupt[Any]], shown: Iterable[Interrupt[Any]]
) -> None:
    """`stored`: of the thread; `shown`: those that the present graph would resume. Raises
    VersionMismatchError: LangGraph drops the answer to one that it does not know."""
    lost = sorted(stored.keys() - {each.id for each in shown})
    if lost:
        raise VersionMismatchError(
            f"the graph has no node any more for {len(lost)} interrupt(s) of thread {thread!r}, such as "
            f"{lost[0]} ({str(stored[lost[0]].value)[:200]!r}).",
            hint="A node was renamed or removed: run the graph that asked, then resume.",
            thread=thread,
            interrupts=lost,
        )


# ---------------------------------------------------------------------- what is asked


def response_schema(interrupt: Interrupt[Any]) -> Any:
    """The form of its answer. The lowest version that is allowed has none."""
    return getattr(interrupt, "response_schema", None)


def questions_of(interrupt: Interrupt[Any], hold: HoldOptions | None) -> list[GraphQuestion]:
    """Raises InputError."""
    given = dict(_given(hold, interrupt))
    actions = _actions(interrupt.value)
    if actions is not None:
        return [
            _of_action(f"{interrupt.id}/{n}", action, review, dict(given))
            for n, (action, review) in enumerate(actions)
        ]
    value = interrupt.value
    context: dict[str, Any] = plain(value) if isinstance(value, Mapping) else {}
    if not context and not isinstance(value, str):
        context = {"value": plain(value)}
    form, wrapped = _form(response_schema(interrupt))
    asked: dict[str, Any] = {"prompt": _prompt(value), "options": None, "form": form} | given
    manner = {k: v for k, v in given.items() if k not in ("prompt", "options", "form", "context")}
    manner["context"] = context | dict(given.get("context") or {})
    return [
        GraphQuestion(
            interrupt.id,
            asked["prompt"],
            asked["options"],
            asked["form"],
            manner,
            wrapped and asked["form"] is form,
        )
    ]


def _given(hold: HoldOptions | None, interrupt: Interrupt[Any]) -> Mapping[str, Any]:
    found: Any = {} if hold is None else hold(interrupt)
    if not isinstance(found, Mapping):
        raise InputError(
            f"hold= returned a {type(found).__name__} for an interrupt, not the options of a hold.",
            hint='Return a dict: {"assignee": "group:care", "timeout": "2d"}.',
        )
    return cast("Mapping[str, Any]", found)


def _prompt(value: Any) -> str:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, Mapping):
        named = cast("Mapping[str, Any]", value)
        texts = (named.get(key) for key in _PROMPTS)
        found = next((text for text in texts if isinstance(text, str) and text.strip()), None)
        if found is not None:
            return found
    return "The graph waits for an answer."


def _form(schema: Any) -> tuple[dict[str, Any] | None, bool]:
    if not isinstance(schema, dict):
        return None, False
    found = cast("dict[str, Any]", schema)
    if found.get("type") == "object" and isinstance(found.get("properties"), dict):
        return found, False
    # A form is an object: any other value is its one field.
    return {"type": "object", "properties": {_ANSWER: found}, "required": [_ANSWER]}, True


def _actions(value: Any) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]] | None:
    """The actions of LangChain's approval middleware, each with what may be decided about it."""
    if not isinstance(value, Mapping):
        return None
    named = cast("Mapping[str, Any]", value)
    requests, configs = named.get("action_requests"), named.get("review_configs")
    if not isinstance(requests, list) or not isinstance(configs, list):
        return None
    by_name: dict[Any, Any] = {each.get("action_name"): each for each in cast("list[Any]", configs)}
    return [(each, by_name.get(each.get("name"), {})) for each in cast("list[Any]", requests)]


def _of_action(
    key: str, action: Mapping[str, Any], review: Mapping[str, Any], given: dict[str, Any]
) -> GraphQuestion:
    allowed = [each for each in review.get("allowed_decisions", ()) if each in _DECISIONS]
    if not allowed:
        raise InputError(
            f"the interrupt allows no decision about the action {action.get('name')!r}.",
            hint=f"Its allowed_decisions are some of {', '.join(_DECISIONS)}.",
        )
    args = plain(action.get("args") or {})
    fields: dict[str, Any] = {}
    if "edit" in allowed:
        schema: Any = review.get("args_schema")
        fields["args"] = {**(schema if isinstance(schema, dict) else {"type": "object"}), "default": args}
    if "reject" in allowed or "respond" in allowed:
        fields["message"] = {"type": "string"}
    prompt = action.get("description") or f"The agent wants to call {action.get('name')}."
    manner = {k: v for k, v in given.items() if k not in ("prompt", "options", "form", "context")}
    manner["context"] = {"action": action.get("name"), "args": args} | dict(given.get("context") or {})
    form = {"type": "object", "properties": fields} if fields else None
    return GraphQuestion(key, str(given.get("prompt") or prompt), allowed, form, manner)


# ---------------------------------------------------------------------- what is answered


def answer_of(
    interrupt: Interrupt[Any], questions: Sequence[GraphQuestion], given: Sequence[GivenAnswer]
) -> Any:
    """What the interrupt returns in the graph: the decision, or the form's values; both where both were asked
    for."""
    actions = _actions(interrupt.value)
    if actions is not None:
        pairs = zip(actions, given, strict=True)
        return {"decisions": [_decision(action, each) for (action, _), each in pairs]}
    asked, each = questions[0], given[0]
    data = plain(each.data)
    if asked.form is None:
        # Data that nobody asked for does not take the place of a decision.
        return each.decision if data is None or asked.options is not None else data
    if asked.wrapped and isinstance(data, dict):
        data = cast("dict[str, Any]", data).get(_ANSWER)
    return data if asked.options is None else {"decision": each.decision, "data": data}


def _decision(action: Mapping[str, Any], given: GivenAnswer) -> dict[str, Any]:
    filled: Any = plain(given.data)
    data = cast("dict[str, Any]", filled) if isinstance(filled, dict) else dict[str, Any]()
    said = data.get("message") or given.comment
    if given.decision == "edit":
        changed = data.get("args")
        args: Any = plain(action.get("args") or {}) if changed is None else changed
        return {"type": "edit", "edited_action": {"name": action.get("name"), "args": args}}
    if given.decision == "respond":
        return {"type": "respond", "message": said or ""}
    return {"type": given.decision} | ({"message": said} if given.decision == "reject" and said else {})


def plain(value: Any) -> Any:
    """What a run can store of a value: models and records as dicts, what else is unknown as text."""
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in SCALARS or kind in EXACT:
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in cast("Iterable[Any]", value)]
    if isinstance(value, Enum):
        return plain(value.value)
    if hasattr(kind, "model_dump"):
        return plain(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    return str(value)
