"""The names of LangGraph that are not part of its public interface, all in one place (IN-3)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, Final

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.manager import BaseRunManager

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
_FRAMES: Final = 8

OnEnd = Callable[[Callable[[], object]], None]
"""What it is given is called at the end of an invocation."""


def end_of_caller() -> OnEnd | None:
    """Of the invocation whose loop loads its checkpoint: for methods of a saver, called in the loop's own
    thread. None if it is no loop that calls."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    for _ in range(_FRAMES):
        frame = None if frame is None else frame.f_back
        if frame is not None and frame.f_code.co_name in _LOADS:
            manager = getattr(frame.f_locals.get("self"), _MANAGER, None)
            if isinstance(manager, BaseRunManager):
                return partial(_tell_end, manager)
    return None


def _tell_end(manager: BaseRunManager, call: Callable[[], object]) -> None:
    # Not in place: the list may be that of other managers too. Managers of nodes do not inherit it.
    manager.handlers = [*manager.handlers, _EndHandler(call)]


class _EndHandler(BaseCallbackHandler):
    run_inline = True

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call

    def on_chain_end(self, outputs: Any, **_given: Any) -> None:
        self._call()

    def on_chain_error(self, error: BaseException, **_given: Any) -> None:
        self._call()
