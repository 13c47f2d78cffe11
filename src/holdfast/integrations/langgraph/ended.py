"""Whether the invocation that has a claim has ended, although something keeps its objects.

An exception that somebody keeps (`self.error = error`) keeps the frames that it passed, and with them the
loop and its claim. While an invocation is alive, a generator or a coroutine of LangGraph has its loop.
"""

from __future__ import annotations

import gc
from types import AsyncGeneratorType, CellType, CoroutineType, GeneratorType
from typing import Any, Final, cast

_LOOKED_AT: Final = 50_000  # objects; with more it counts as alive
_LAYERS: Final = 20
_CONTAINERS: Final = (dict, list, tuple, set, CellType)
_FRAMES: Final = {GeneratorType: "gi_frame", CoroutineType: "cr_frame", AsyncGeneratorType: "ag_frame"}


def has_ended(claim: object) -> bool:
    """Nothing that can continue refers to the claim, directly or through containers and objects of LangGraph.
    One look for each layer of objects: a look goes through all objects of the process."""
    seen: dict[int, Any] = {id(claim): claim}
    layer: list[Any] = [claim]
    found: list[Any] = []
    fresh: list[Any] = []
    for _ in range(_LAYERS):
        # Our own lists refer to all of it too.
        ours = {id(seen), id(layer), id(found), id(fresh)}
        found = gc.get_referrers(*layer)
        fresh = [each for each in found if id(each) not in seen and id(each) not in ours]
        if any(_can_continue(each) for each in fresh):
            return False
        layer = [each for each in fresh if _is_looked_through(each)]
        if not layer:
            return True
        seen |= {id(each): each for each in layer}
        if len(seen) > _LOOKED_AT:
            break
    return False


def _can_continue(found: Any) -> bool:
    """Code that handles claims refers to them as well, and is not meant."""
    name = _FRAMES.get(cast("Any", type(found)))
    frame = None if name is None else getattr(found, name)
    if frame is None:
        return False
    return not str(frame.f_globals.get("__name__", "")).startswith("holdfast.integrations.langgraph")


def _is_looked_through(found: object) -> bool:
    module = str(type(found).__module__)
    return isinstance(found, _CONTAINERS) or module.startswith(("langgraph.", "langchain_core."))
