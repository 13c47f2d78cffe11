"""Maps whose items start at a rate or share a limit: their node waits before it calls the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

from holdfast.frontends.python.function_parameters import takes_of
from holdfast.model.program import ItemCall
from holdfast.types.concurrency_limits import ItemLimit
from holdfast.types.status import REPEATABLE

_OF_STEP = ("retry", "timeout", "idempotency_key")
_REFUSED = ("probe", "isolation")
_PARAMETERS = ("item", "ctx", "index", "key")


def limited_body(
    fn: Callable[..., Any],
    limit: ItemLimit,
    effect: str,
    options: dict[str, Any],
    wrong: Callable[[str, str], None],
) -> Callable[..., Any]:
    """The node's function in place of `fn`. Takes the options of the step out of `options`."""
    for name in _REFUSED:
        if options.pop(name, None) is not None:
            wrong(f"{name}= does not go with rate= or limit_key=", "leave one of them out")
    takes = takes_of(fn, "item")
    is_script = "ctx" in takes
    if is_script and effect not in REPEATABLE:
        wrong(
            f"its function takes the context, and its class is {effect}: with rate= or limit_key= it is a "
            "script, whose code runs again",
            'declare effect="read", and give its steps their effect: ctx.step(name, fn, effect="external")',
        )
    of_step = {} if is_script else {name: options.pop(name, None) for name in _OF_STEP}
    call = ItemCall(
        name=getattr(fn, "__name__", type(fn).__name__), fn=fn, limit=limit, is_script=is_script,
        effect=effect, **of_step,
    )  # fmt: skip

    async def limited(item: Any, ctx: Any, index: int, key: str) -> Any:
        given = {"item": item, "ctx": ctx, "index": index, "key": key}
        return await ctx.run_item(call, *(given[name] for name in takes))

    made = cast("Any", limited)
    made.__name__ = call.name
    # Its code is that of the function, and its parameters are not.
    made.__wrapped__ = fn
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    made.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in _PARAMETERS])
    return made
