"""Waits of a script for a message: an event (`ctx.wait_for`), or the end of a child run.

The wait is a hold that no person answers, in the queue of the message (`holdfast.queues.external_events`):
the message is used up in the transaction that ends the wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from holdfast.engine.holds import with_timeout
from holdfast.errors import HoldExpiredError, InputError, WaitTimeoutError
from holdfast.model.expressions import (
    MISSING,
    ExprSyntaxError,
    compile_expr,
    mapping_resolver,
    nested_values,
    required_names,
)
from holdfast.model.graph import HoldSpec
from holdfast.model.position import Sub
from holdfast.model.user_code.boundary import call as call_code
from holdfast.runs.context.driver_protocols import Attempt, HandlerSession
from holdfast.runs.context.emit import Emitter
from holdfast.runs.context.questions import reply_of, storable
from holdfast.runs.context.substeps import Numbers, Substeps, require_script
from holdfast.types.duration import DurationError
from holdfast.types.hold import CONSUME, Option
from holdfast.types.queue_message import EVENTS, LONGEST_EVENT_KEY, LONGEST_EVENT_NAME, event_queue, event_tag
from holdfast.types.terms import HitlTarget
from holdfast.types.text import clean_text, require_length, require_text

RECEIVED: Final = Option("received", "Received")
_MESSAGE: Final = ("event", "message")
"""What a condition calls what was received."""


class MessageWaits:
    """The waits of one attempt."""

    def __init__(
        self,
        attempt: Attempt,
        numbers: Numbers,
        substeps: Substeps,
        emitter: Emitter,
        answer: Callable[[str], Awaitable[Sub]],
    ) -> None:
        self._at = attempt
        self._numbers = numbers
        self._substeps = substeps
        self._emitter = emitter
        # Until the hold of this number is answered.
        self._answer = answer

    async def event(
        self,
        name: str,
        key: str | None,
        match: str | None,
        values: Mapping[str, Any] | None,
        timeout: Any,
        place: str | None,
        begun: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """For `ctx.wait_for`: the data of the event."""
        where = f"ctx.wait_for in node {self._at.node.id!r}"
        spec = limited(event_spec(where, name, key, match), timeout, where)
        condition = storable(self._at, "values", event_condition(name, key, match, values))
        require_known = partial(_require_known_names, match, values or {}, where)
        return (await self.message(spec, condition, place, begun, require_known))["data"]

    async def message(
        self,
        spec: HoldSpec,
        condition: Mapping[str, Any],
        key: str | None,
        before: Callable[[], Awaitable[None]] | None = None,
        require: Callable[[], None] = lambda: None,
    ) -> Any:
        """The content of the message that ended the wait; `before` is done when the wait has begun, `require`
        only where it is a new one: what was recorded once stays as it is."""
        at = self._at
        ordinal = self._numbers.take(spec.prompt, key)
        require_script(at, "a wait for a message")
        known = self._numbers.recorded(ordinal, spec.prompt)
        if known is not None and known.done:
            return payload_of(at.node.id, known, spec)
        fresh = known is None or known.hold not in at.session.pos.holds
        if fresh:
            if known is None:
                require()
            self._emitter.flush()
            at.calls.ask_inside(at.execution, ordinal, self._numbers.taken, spec, dict(condition))
        await self._substeps.beside(self._look(ordinal, before, fresh=fresh))
        return payload_of(at.node.id, await self._answer(ordinal), spec)

    async def _look(self, ordinal: str, before: Callable[[], Awaitable[None]] | None, *, fresh: bool) -> None:
        """What is there already is given to the wait at once, also where no worker runs. Its inbox keeps the
        run from parking then."""
        session = self._at.session
        await self._at.calls.committed()
        if before is not None:
            await call_code(before)
        queues, execution = queues_of(session), self._at.execution
        hold = execution.subs[ordinal].hold
        if fresh and execution.attempt > 1:
            used = {sub.hold for sub in execution.subs.values()}
            await self._at.calls.when_available(partial(queues.give_back, hold, used))
        await self._at.calls.when_available(partial(queues.look, hold))


def queues_of(session: HandlerSession) -> Any:
    """The service of queues. Raises InputError where the process has none."""
    found = session.services.queues
    if found is None:
        raise InputError("this process has no queues.", hint="Open the store with Holdfast(...).")
    return found.open()


def event_spec(where: str, name: str, key: str | None, match: str | None) -> HoldSpec:
    """The wait for an event. Raises InputError."""
    # No event has another one: the run would wait for ever.
    require_length(name, f"the name of the event of {where}", LONGEST_EVENT_NAME)
    if key is not None:
        require_length(key, f"the key of the event of {where}", LONGEST_EVENT_KEY)
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


def event_condition(
    name: str, key: str | None, match: str | None, values: Mapping[str, Any] | None
) -> dict[str, Any]:
    found: dict[str, Any] = {"event": name} if key is None else {"event": name, "key": key}
    return found if match is None else {**found, "match": match, "values": dict(values or {})}


def _require_condition(match: str, where: str) -> None:
    try:
        compile_expr(require_text(match, f"match of {where}"))
    except ExprSyntaxError as error:
        raise InputError(
            f"match of {where} cannot be read: {error}.", hint='Write match="event.amount > 10".'
        ) from error


def _require_known_names(match: str | None, values: Mapping[str, Any], where: str) -> None:
    """Raises InputError if the condition reads what there is not: no event would ever be the right one."""
    if match is None:
        return
    resolve = mapping_resolver(nested_values(values))
    unknown = sorted(
        ".".join(path)
        for path in required_names(compile_expr(match).node)
        if path[0] not in _MESSAGE and resolve(path) is MISSING
    )
    if unknown:
        raise InputError(
            f"match of {where} reads {', '.join(unknown)}, which {'has' if len(unknown) == 1 else 'have'} no "
            "value.",
            hint="It may read `event` (the data of the event), `message`, and what values={...} gives it.",
        )


def limited(spec: HoldSpec, timeout: Any, where: str) -> HoldSpec:
    """With this time limit. Raises InputError."""
    if timeout is None:
        return spec
    try:
        return with_timeout(spec, timeout)
    except (DurationError, TypeError, ValueError) as error:
        raise InputError(f"the timeout of {where}: {error}.", hint='Write "2d" or 30.') from error


def payload_of(node: str, sub: Sub, spec: HoldSpec) -> dict[str, Any]:
    """The content of the message. Raises WaitTimeoutError, the same on every re-entry."""
    try:
        return reply_of(sub).data["payload"]
    except HoldExpiredError:
        raise WaitTimeoutError(f"node {node!r}: {spec.prompt} It did not come in time.") from None
