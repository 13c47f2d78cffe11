"""The names of LangGraph that are not part of its public interface, all in one place (IN-3)."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Awaitable, Callable, Iterable
from types import AsyncGeneratorType, CellType, FrameType, GeneratorType
from typing import Any, Final, cast

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.callbacks.manager import AsyncRunManager, BaseRunManager

RUNTIME: Final = "__pregel_runtime"
"""In `configurable` of the load of a loop, and not in that of a read."""
TASK: Final = "__pregel_task_id"
"""In `configurable` of a subgraph's loop."""
CLAIM: Final = "__pregel_holdfast_claim"
"""Ours: LangGraph removes keys with this beginning from metadata, from streams and from what users get."""
DELTA_COUNTERS: Final = "counters_since_delta_snapshot"
"""In the metadata: the channels whose values are built from the writes of ancestors."""
_LOADS: Final = ("__enter__", "__aenter__")
"""The methods of a loop that load its checkpoint."""
_MANAGER: Final = "manager"
"""The loop's run manager. It is told the end of the invocation, whether that has succeeded, was interrupted,
has failed (also in the methods above), or was cancelled or closed; after all writes of the loop."""
SUBMIT: Final = "submit"
"""Of a loop: the method of its executor that starts nodes and writes."""
TASKS: Final = "tasks"
"""Of an executor: the futures of what it has started."""
_FRAMES: Final = 8

STREAMS: Final = ("stream", "astream")
"""The generators that have a loop as one of their variables."""


class Invocation:
    """One that has just begun: its loop loads the checkpoint."""

    def __init__(self, loop: object, manager: BaseRunManager) -> None:
        self.loop = weakref.ref(loop)
        self._manager = weakref.ref(manager)
        # References to its generators, once they were searched for.
        self.streams: list[weakref.ref[Any]] | None = None

    def runs_nothing(self) -> bool:
        submit = getattr(self.loop(), SUBMIT, None)
        tasks: Any = getattr(getattr(submit, "__self__", None), TASKS, None)
        return tasks is not None and all(each.done() for each in list(tasks))

    def on_end(self, call: Callable[[], object], call_async: Callable[[], Awaitable[object]]) -> None:
        """One of them is called at the end, and the caller of the invocation gets its result after that.
        `call_async`: if the invocation has an event loop."""
        manager = self._manager()
        if manager is not None:
            # Not in place: the list may be that of other managers too. Those of nodes do not inherit it.
            asynchronous = isinstance(manager, AsyncRunManager)
            handler = _AsyncEndHandler(call_async) if asynchronous else _EndHandler(call)
            manager.handlers = [*manager.handlers, handler]


def idle_streams(invocations: Iterable[Invocation]) -> set[Invocation]:
    """Those that do nothing until they are read from: nothing is being read, and no node runs. Searches all
    objects for the generators of those that were not looked at before."""
    idle = [each for each in invocations if each.runs_nothing()]
    _find_streams([each for each in idle if each.streams is None])
    return {
        each for each in idle for ref in each.streams or () if (stream := ref()) and _is_suspended(stream)
    }


def _find_streams(invocations: list[Invocation]) -> None:
    sought: dict[int, Invocation] = {}
    loops: list[object] = []
    for each in invocations:
        each.streams, loop = [], each.loop()
        if loop is not None:
            sought[id(loop)] = each
            loops.append(loop)
    holders = gc.get_referrers(*loops) if loops else []
    cells = [each for each in holders if isinstance(each, CellType)]
    for cell in cells:
        sought |= {id(cell): sought[id(each)] for each in gc.get_referents(cell) if id(each) in sought}
    for stream in (*holders, *(gc.get_referrers(*cells) if cells else ())):
        if _is_stream(stream):
            for each in gc.get_referents(stream):
                if id(each) in sought:
                    cast("list[Any]", sought[id(each)].streams).append(weakref.ref(stream))


def _is_stream(found: object) -> bool:
    # By its type: other objects are not asked for attributes.
    if type(found) is AsyncGeneratorType:
        return found.ag_code.co_name in STREAMS
    return type(found) is GeneratorType and found.gi_code.co_name in STREAMS


def _is_suspended(stream: Any) -> bool:
    return not (stream.ag_running if isinstance(stream, AsyncGeneratorType) else stream.gi_running)


def invocation_of_caller() -> Invocation | None:
    """The one whose loop loads its checkpoint: for methods of a saver, called in the loop's own thread. None
    if it is no loop that calls."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    for _ in range(_FRAMES):
        frame = None if frame is None else frame.f_back
        if frame is not None and frame.f_code.co_name in _LOADS:
            loop = frame.f_locals.get("self")
            manager = getattr(loop, _MANAGER, None)
            if isinstance(manager, BaseRunManager):
                return Invocation(loop, manager)
    return None


class _EndHandler(BaseCallbackHandler):
    run_inline = True

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call

    def on_chain_end(self, outputs: Any, **_given: Any) -> None:
        self._call()

    def on_chain_error(self, error: BaseException, **_given: Any) -> None:
        self._call()


class _AsyncEndHandler(AsyncCallbackHandler):
    run_inline = True

    def __init__(self, call: Callable[[], Awaitable[object]]) -> None:
        self._call = call

    async def on_chain_end(self, outputs: Any, **_given: Any) -> None:
        await self._call()

    async def on_chain_error(self, error: BaseException, **_given: Any) -> None:
        await self._call()
