"""Waits of a script for a message: an event (`ctx.wait_for`), or the end of a child run.

The wait is a hold that no person answers, in the queue of the message (`holdfast.queues.events`): the message
is used up in the transaction that ends the wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from holdfast.engine.holds import with_timeout
from holdfast.errors import HoldExpiredError, InputError, WaitTimeoutError
from holdfast.model.expr import ExprSyntaxError, compile_expr
from holdfast.model.graph import HoldSpec
from holdfast.runs.context.questions import reply_of
from holdfast.types.duration import DurationError
from holdfast.types.hold import CONSUME, Option
from holdfast.types.queue_message import EVENTS, event_queue, event_tag
from holdfast.types.terms import HitlTarget
from holdfast.types.text import clean_text, require_text

if TYPE_CHECKING:
    from holdfast.runs.context.context import Context

RECEIVED: Final = Option("received", "Received")


def event_spec(ctx: Context, name: str, key: str | None, match: str | None) -> HoldSpec:
    """The wait for an event. Raises InputError."""
    where = f"ctx.wait_for in node {ctx.node!r}"
    require_text(name, f"the name of the event of {where}")
    if key is not None:
        require_text(key, f"the key of the event of {where}")
    if match is not None:
        _require_condition(match, where)
    queue = event_queue(name, key)
    about = "" if key is None else f" with the key {clean_text(repr(key), 100)}"
    return HoldSpec(
        type=CONSUME,
        prompt=f"Waits for the event {name}{about}.",
        options=(RECEIVED,),
        target=HitlTarget(scope=EVENTS, queue=queue),
        tags=(event_tag(queue),),
    )


def event_condition(name: str, match: str | None, values: Mapping[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {"event": name}
    return found if match is None else {**found, "match": match, "values": dict(values or {})}


def _require_condition(match: str, where: str) -> None:
    try:
        compile_expr(require_text(match, f"match of {where}"))
    except ExprSyntaxError as error:
        raise InputError(
            f"match of {where} cannot be read: {error}.", hint='Write match="event.amount > 10".'
        ) from error


def limited(spec: HoldSpec, timeout: Any, where: str) -> HoldSpec:
    """With this time limit. Raises InputError."""
    if timeout is None:
        return spec
    try:
        return with_timeout(spec, timeout)
    except (DurationError, TypeError, ValueError) as error:
        raise InputError(f"the timeout of {where}: {error}.", hint='Write "2d" or 30.') from error


def payload_of(ctx: Context, sub: Any, spec: HoldSpec) -> dict[str, Any]:
    """The content of the message. Raises WaitTimeoutError, the same on every re-entry."""
    try:
        return reply_of(sub).data["payload"]
    except HoldExpiredError:
        raise WaitTimeoutError(f"node {ctx.node!r}: {spec.prompt} It did not come in time.") from None
