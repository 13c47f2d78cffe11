"""A blocked event loop: found from another thread, and blamed on the node whose code blocks it.

A coroutine that calls a blocking function stops every run of its process. Its own lease is extended all the
same, because it may still finish; the other runs are given up after one lease time, and another worker has
them within two.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from logging import ERROR, WARNING
from types import FrameType
from typing import Any, Final, NamedTuple

from holdfast.telemetry import NodePlace, PlaceSource, current_node, log

_WARN: Final = 1.0  # seconds, or a third of a lease if that is shorter
_SHOWN: Final = 6  # frames of the stack


class LoopBlock(NamedTuple):
    """`seconds`: for how long. `place`: the node that blocks it, if it is one. `timeout`: of that node, in
    seconds."""

    seconds: float
    place: NodePlace | None
    timeout: float | None


class LoopWatchdog:
    """Of one event loop, made in its thread; `look` is called by another one, about every `tick` seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lease_ttl: float) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._warn = min(_WARN, lease_ttl / 3)
        self.tick = min(_WARN, lease_ttl / 6)
        self._asked = False
        self._looked = 0.0
        self._blocked = 0.0
        self._reported = False
        self._place: NodePlace | None = None
        # How often each node blocked the loop, by flow and node; empty names: no node was running.
        self.blocks: Counter[tuple[str, str]] = Counter()

    def look(self, now: float) -> LoopBlock | None:
        """Whether the loop is blocked for longer than is usual."""
        passed, self._looked = now - self._looked, now
        if not self._asked:
            self._asked, self._blocked = True, 0.0
            self._loop.call_soon_threadsafe(self._answer)
            return None
        # Not the time since it was asked: a process that was stopped meanwhile was not blocked.
        self._blocked += min(passed, 2 * self.tick)
        if self._blocked < self._warn:
            return None
        place, timeout = self._running_node()
        if self._reported and place != self._place:
            # Another node by now: the loop does turn, only too slowly to answer.
            self._blocked = self._warn
        self._place = place
        if not self._reported:
            self._report(place)
        return LoopBlock(self._blocked, place, timeout)

    def _answer(self) -> None:
        if self._reported:
            log.warning("the event loop runs again; it was blocked for about %.1f s", self._blocked)
        self._asked = self._reported = False

    def _report(self, place: NodePlace | None) -> None:
        self._reported = True
        self.blocks[("", "") if place is None else (place.flow, place.node)] += 1
        who = "code outside a node" if place is None else f"node {place.node!r} of run {place.run}"
        message = "%s blocks the event loop, and with it every run of this process; it is at:\n%s"
        about = {} if place is None else {"run": place.run, "flow": place.flow, "node": place.node}
        # A busy machine can also keep the loop from turning.
        log.log(WARNING if place is None else ERROR, message, who, self._stack(), extra=about)

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread)  # pyright: ignore[reportPrivateUsage]
        return "".join(traceback.format_stack(frame)[-_SHOWN:]) if frame is not None else "?"

    def _running_node(self) -> tuple[NodePlace | None, float | None]:
        """The node in whose context the loop's present callback runs, whatever task that is."""
        frame: FrameType | None = sys._current_frames().get(self._thread)  # pyright: ignore[reportPrivateUsage]
        run: Any = asyncio.Handle._run  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]
        while frame is not None and frame.f_code is not run.__code__:
            frame = frame.f_back
        if frame is None:
            return None, None
        found: tuple[PlaceSource, Any] | None = frame.f_locals["self"]._context.get(current_node)
        if found is None:
            return None, None
        source, execution = found
        try:
            place = source.where(execution)
            timeout: Callable[[Any], float | None] = getattr(source, "timeout_of", _no_timeout)
            return place, None if place is None else timeout(execution)
        except (KeyError, RuntimeError):  # the run changed while it was read
            return None, None


def _no_timeout(_execution: Any) -> None:
    return None
