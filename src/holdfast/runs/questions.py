"""Questions that a handler asks by `ctx.ask`, and the replies to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypedDict

from holdfast.checkpoint import pack
from holdfast.errors import AnswerInvalidError, HoldCancelledError, HoldExpiredError, InputError
from holdfast.model.checks.schemas import schema_faults
from holdfast.model.forms.unmasking import unmasked
from holdfast.model.graph import HoldSpec
from holdfast.model.holding import decision_of
from holdfast.model.position import Sub
from holdfast.runs.attempt import Attempt
from holdfast.runs.forms import form_asked, typed
from holdfast.types.clock import micros
from holdfast.types.duration import parse_duration
from holdfast.types.hold import Option
from holdfast.types.value import freeze
from holdfast.types.veil import veil
from holdfast.types.wording import demand_text, told

Options = Sequence[str | Mapping[str, str] | Option]


class Manner(TypedDict, total=False):
    """How `ctx.ask` asks."""

    assignee: str | None
    timeout: str | int | float | timedelta | None
    on_timeout: str | None
    type: str | None
    priority: str
    context: Mapping[str, Any] | None
    key: str | None


class Reply:
    """The answer to a question: `decision` (the option's id, or free text), `data`, `comment`, `by`."""

    __slots__ = ("by", "comment", "data", "decision")

    def __init__(self, resolution: Mapping[str, Any]) -> None:
        self.decision: Any = decision_of(resolution)
        self.data: Any = resolution.get("response_data")
        self.comment: str | None = resolution.get("comment")
        self.by: str | None = resolution.get("resolved_by")

    def __eq__(self, other: object) -> bool:
        return self.decision == (other.decision if isinstance(other, Reply) else other)

    def __hash__(self) -> int:
        return hash(self.decision)

    def __repr__(self) -> str:
        return f"Reply({self.decision!r}, by={self.by!r})"


def reply_of(sub: Sub, form: Any = None, *, bare: bool = False) -> Any:
    """`bare`: nothing was to be chosen, so that what was filled in is all there is."""
    if sub.error is not None:
        lost = HoldCancelledError if sub.error.code == HoldCancelledError.code else HoldExpiredError
        raise lost(sub.error.message)
    reply = Reply(sub.value)
    if isinstance(form, type) and reply.data is not None:
        reply.data = typed(form, reply.data, "ctx.ask")
        return reply.data if bare else reply
    return reply


def question(
    attempt: Attempt,
    prompt: str,
    *,
    options: Options | None,
    assignee: str | None,
    timeout: str | int | float | timedelta | None,
    on_timeout: str | None,
    type: str | None,  # noqa: A002
    priority: str,
    schema: Mapping[str, Any] | None,
    form: Any = None,
) -> HoldSpec:
    node = attempt.node.id
    normal = options_of(options)
    if form is not None:
        schema, normal = form_asked(form, schema, normal, f"form of ctx.ask in node {node!r}")
    return HoldSpec(
        type=_text("type", type, node) or ("approval" if normal else "freeform"),
        prompt=unmasked(veil.hide(prompt)),
        options=normal,
        assignee=_text("assignee", assignee, node),
        priority=_text("priority", priority, node) or "normal",
        timeout=None if timeout is None else micros(parse_duration(timeout)),
        on_timeout=_text("on_timeout", on_timeout, node),
        schema=None if schema is None else _schema(attempt, schema),
    )


def _text(what: str, value: str | None, node: str) -> str | None:
    return None if value is None else demand_text(value, f"{what} of ctx.ask in node {node!r}")


def _schema(attempt: Attempt, schema: Mapping[str, Any]) -> dict[str, Any]:
    where = f"schema of ctx.ask in node {attempt.node.id!r}"
    if not isinstance(schema, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{where}: {told(repr(schema), 80)} is not a JSON Schema.", hint="Give a dict.")
    faults = schema_faults(schema)
    if faults:
        lines = "".join(f"\n  - {told(fault, 500)}" for fault in faults)
        raise InputError(f"{where} makes no sense:{lines}", hint="Mend the schema.", problems=faults)
    return storable(attempt, "schema", dict(schema))


def storable(attempt: Attempt, what: str, value: dict[str, Any]) -> dict[str, Any]:
    """Checked while the handler can be told."""
    where = f"{what} of ctx.ask in node {attempt.node.id!r}"
    frozen = freeze(value, attempt.driver.program.adopt, where)
    pack(frozen, attempt.driver.sealer.registry, where)
    return frozen


def options_of(options: Options | None) -> tuple[Option, ...] | None:
    if options is None:
        return None
    found = [_option_of(option) for option in options]
    for option in found:
        for text in (option.id, option.label, option.variant):
            demand_text(text, "an option of a question")
    ids = [o.id for o in found]
    if len(set(ids)) != len(ids) or "" in ids:
        raise AnswerInvalidError("the options of a question need ids that are not empty and differ")
    return tuple(found)


def _option_of(option: str | Mapping[str, str] | Option) -> Option:
    if isinstance(option, Option):
        return option
    if isinstance(option, str):
        return Option(option, option)
    if isinstance(option, Mapping) and "id" in option:  # pyright: ignore[reportUnnecessaryIsInstance]
        return Option(option["id"], option.get("label", option["id"]), option.get("variant", "secondary"))
    raise AnswerInvalidError(
        f"{told(repr(option), 200)} is not an option of a question.",
        hint='Write "approve", or {"id": ..., "label": ...}.',
    )
