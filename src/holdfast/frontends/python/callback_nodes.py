"""Nodes that hand a callback over and wait for it: scripts of three calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from holdfast.frontends.python.policies import Duration

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
