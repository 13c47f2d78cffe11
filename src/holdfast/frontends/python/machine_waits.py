"""Nodes that wait for a machine: declared as holds that no inbox shows (`queue_wait`). Those that hand a
callback over and wait for it are scripts of three calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.frontends.python.holds import FormOptions, hold_spec
from holdfast.frontends.python.policies import DeclarationReader, Duration
from holdfast.model.expressions import PARTITIONS, compile_expr
from holdfast.model.graph import HoldSpec
from holdfast.types.hold import CONSUME
from holdfast.types.queue_message import EVENTS
from holdfast.types.terms import HitlTarget

RECEIVED: Final = "received"
MESSAGE: Final = "message"
"""What `match` calls the message that it looks at."""
EVENT: Final = "event"
"""What it calls the data of an event."""
_UNKNOWN_YET: Final = "event"
"""The queue of an event follows from its key, which is known when the wait begins."""


def event_hold(
    read: DeclarationReader,
    name: str,
    key: str | None,
    match: str | None,
    *,
    timeout: Duration | None,
    on_timeout: str | Mapping[str, str] | None,
    into: str | None,
    bind: str,
) -> HoldSpec:
    """The wait of an `event` node."""
    if not name.strip() or len(name) > 100:
        read.wrong("event-name", f"{name!r} cannot be the name of an event", "give 1 to 100 characters")
        name = "?"
    about = "" if key is None else f" with the key {key}"
    context = {
        EVENT: name,
        **({} if key is None else {"key": key}),
        **match_condition(match, (MESSAGE, EVENT)),
    }
    made = hold_spec(
        read,
        prompt=f"Waits for the event {name}{about}.",
        options=[RECEIVED],
        assignee=None,
        timeout=timeout,
        on_timeout=on_timeout,
        priority="normal",
        type=CONSUME,
        bind=bind,
        context=context,
        schema=None,
        form=FormOptions(None, None, False, into, None),
        terms={},
    )
    return msgspec.structs.replace(made, target=HitlTarget(scope=EVENTS, queue=_UNKNOWN_YET))


def match_condition(match: str | None, received: Sequence[str]) -> dict[str, Any]:
    """The condition, with the values of the run that it compares: they are known when the wait begins.
    `received`: names for what arrives."""
    if match is None:
        return {}
    try:
        names = sorted({_variable(path) for path in compile_expr(match).names} - {*received})
    except ValueError:
        names = list[str]()  # reported where texts are read
    return {"match": match, "values": {name: f"{{{{{name}}}}}" for name in names}}


def _variable(path: Sequence[str]) -> str:
    return ".".join(path[: 2 if path[0] in {*PARTITIONS, "state"} else 1])


CALLBACK: Final = "callback"
"""The parameter of the function that gets the token and the address."""
_STATE_AND_CONTEXT: Final = inspect.Signature(
    [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("state", "ctx")]
)


def callback_script(
    fn: Callable[..., Any],
    name: str,
    *,
    timeout: Duration | None,
    heartbeat: Duration | None,
    into: str | None,
    step: dict[str, Any],
) -> Callable[..., Any]:
    """`fn` hands it over, in a recorded step with these options."""
    wanted = [parameter == CALLBACK for parameter in inspect.signature(fn).parameters]

    async def wait(state: Any, ctx: Any) -> dict[str, Any] | None:
        callback = await ctx.callback(name, timeout=timeout, heartbeat=heartbeat)
        given = [callback if each else state for each in wanted]
        await ctx.step("send", fn, *given, **step)
        result = await callback.result()
        return None if into is None else {into: result}

    # The code of the node is that of the function, and its parameters are those of a node.
    wait.__wrapped__ = fn  # type: ignore[attr-defined]
    wait.__signature__ = _STATE_AND_CONTEXT  # type: ignore[attr-defined]
    wait.__name__ = getattr(fn, "__name__", name)
    return wait
