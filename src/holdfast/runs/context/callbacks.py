"""`ctx.callback`: a place of a script that another system completes by a token (`holds.callbacks`).

The wait is a hold that no person answers. It is open from the call on, beside the code that hands the token
over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, cast

from holdfast.errors import (
    CallbackFailedError,
    HeartbeatMissedError,
    HoldExpiredError,
    InputError,
    WaitTimeoutError,
)
from holdfast.holds.callbacks import COMPLETED, FAILED, Callbacks
from holdfast.model.graph import HoldSpec
from holdfast.model.position import Sub
from holdfast.runs.context.driver_protocols import Attempt
from holdfast.runs.context.emit import Emitter
from holdfast.runs.context.questions import reply_of
from holdfast.runs.context.substeps import Numbers, require_script
from holdfast.types.clock import micros
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.hold import CALLBACK, Option
from holdfast.types.redaction import hide
from holdfast.types.terms import HoldTerms
from holdfast.types.text import require_text

MAX_NAME: Final = 100
_OPTIONS: Final = (Option(COMPLETED, "Completed"), Option(FAILED, "Failed"))


class CallbackPlace(NamedTuple):
    """The attempt that opens callbacks. `answer`: until the hold of a number is answered."""

    at: Attempt
    numbers: Numbers
    emitter: Emitter
    answer: Callable[[str], Awaitable[Sub]]


class Callback:
    """`token` completes it, and is all that the other system needs. `url` takes it with
    POST; it begins with the `base_url` of the settings, and without one with `/v1/callbacks/`."""

    def __init__(self, place: CallbackPlace, ordinal: str, name: str, token: str, url: str) -> None:
        self._place = place
        self._ordinal = ordinal
        self.name = name
        self.token = token
        self.url = url

    def __repr__(self) -> str:
        return f"Callback({self.name!r})"

    async def result(self) -> Any:
        """What the other system sent. Raises CallbackFailedError if it reported a failure, WaitTimeoutError
        after `timeout`, HeartbeatMissedError after `heartbeat`; the same on every re-entry."""
        at = self._place.at
        at.check_open()
        known = at.execution.subs[self._ordinal]
        return _result_of(
            at.node.id, self.name, known if known.done else await self._place.answer(self._ordinal)
        )


async def open_callback(
    place: CallbackPlace, name: str, timeout: Any, heartbeat: Any, key: str | None
) -> Callback:
    at = place.at
    spec = callback_spec(f"ctx.callback in node {at.node.id!r}", name, timeout, heartbeat)
    ordinal = place.numbers.take_beside(spec.prompt, key)
    require_script(at, "ctx.callback")
    known = place.numbers.recorded(ordinal, spec.prompt)
    session = at.session
    if known is None or not (known.done or known.hold in session.pos.holds):
        place.emitter.flush()
        at.calls.ask_inside(at.execution, ordinal, place.numbers.taken, spec, {"callback": name})
    # The token is valid when the hold is a row of the store.
    await at.calls.committed()
    services, row = session.services, session.row
    hold = at.execution.subs[ordinal].hold
    base = "" if services.deliverer is None else services.deliverer.channels.settings.base_url
    callbacks = Callbacks(services.people.ctx, base)
    make = partial(callbacks.token, row.tenant, row.id, hold)
    token = await at.calls.when_available(make)
    # It is a credential: an error that names the URL must not give it to everyone who may read the run.
    hide(token)
    return Callback(place, ordinal, name, token, callbacks.url(token))


def callback_spec(where: str, name: str, timeout: Any, heartbeat: Any) -> HoldSpec:
    """Raises InputError."""
    if not require_text(name, f"the name of {where}").strip() or len(name) > MAX_NAME:
        raise InputError(f"the name of {where} must have 1 to {MAX_NAME} characters.")
    return HoldSpec(
        type=CALLBACK,
        prompt=f"Waits for the callback {name}.",
        options=_OPTIONS,
        timeout=_length(timeout, f"the timeout of {where}"),
        terms=HoldTerms(heartbeat=_length(heartbeat, f"the heartbeat of {where}"), late_resolution="reject"),
    )


def _length(given: Any, what: str) -> int | None:
    if given is None:
        return None
    try:
        return micros(parse_duration(given))
    except (DurationError, TypeError, ValueError) as error:
        raise InputError(f"{what}: {error}.", hint='Write "2d" or 30.') from error


def _result_of(node: str, name: str, sub: Sub) -> Any:
    if sub.error is not None and sub.error.code == HeartbeatMissedError.code:
        raise HeartbeatMissedError(f"node {node!r}: no heartbeat came in time for the callback {name}.")
    try:
        data = cast("Mapping[str, Any]", reply_of(sub).data)
    except HoldExpiredError:
        raise WaitTimeoutError(f"node {node!r}: the callback {name} was not completed in time.") from None
    if "error" not in data:
        return data["result"]
    error = data["error"]
    raise CallbackFailedError(
        f"the callback {name} has failed: {error['message']}", callback=name, data=error.get("data")
    )
