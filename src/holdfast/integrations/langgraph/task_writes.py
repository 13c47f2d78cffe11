"""Writes of tasks are put with the checkpoint that follows them, in one transaction.

LangGraph puts both in turn, mostly within one turn of the event loop. Writes that no checkpoint follows
(other tasks of the step still run, or one has failed) are put alone, a few turns later. While an earlier
checkpoint of the thread is being put they wait for that: without it they could not be read.
"""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.types.graph_thread import GraphBatch

TURNS: Final = 4
"""Of the event loop, that writes wait. LangGraph takes two from the end of a task to the checkpoint."""

Place = tuple[asyncio.AbstractEventLoop, str]
"""An event loop and a thread."""


class TaskWrites:
    """Of one call."""

    __slots__ = ("batch", "stored", "taken", "woken")

    def __init__(self, batch: GraphBatch) -> None:
        self.batch = batch
        self.taken = False  # by a checkpoint
        self.stored: bool | None = None  # with it, once it was put
        self.woken: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self.woken is not None and not self.woken.done():
            self.woken.set_result(None)


class _Waiting:
    __slots__ = ("puts", "writes")

    def __init__(self) -> None:
        self.puts = 0  # of checkpoints, that are under way
        self.writes: list[TaskWrites] = []


class WaitingWrites:
    """By event loop and thread. Used from any thread."""

    def __init__(self) -> None:
        self._waiting: dict[Place, _Waiting] = {}

    async def stored(self, batch: GraphBatch) -> bool:
        """Whether they were put with a checkpoint. If not, the caller puts them."""
        loop = asyncio.get_running_loop()
        place, mine, turns = (loop, batch.thread), TaskWrites(batch), 0
        here = self._at(place)
        here.writes.append(mine)
        try:
            while mine.stored is None:
                if mine.taken or here.puts:
                    mine.woken = loop.create_future()
                    await mine.woken
                elif turns < TURNS:
                    turns += 1
                    await asyncio.sleep(0)
                else:
                    return False
        finally:
            if not mine.taken:
                here.writes.remove(mine)
                self._leave(place, here)
        return mine.stored

    def take(self, batch: GraphBatch) -> list[TaskWrites]:
        """Those that wait for this checkpoint. `settle` must follow."""
        place = (asyncio.get_running_loop(), batch.thread)
        here = self._at(place)
        here.puts += 1
        if not here.writes:
            return []
        # Those of another claim are perhaps refused, but not the checkpoint.
        taken = [each for each in here.writes if each.batch.claim == batch.claim]
        here.writes = [each for each in here.writes if each not in taken]
        for each in taken:
            each.taken = True
        return taken

    def settle(self, batch: GraphBatch, taken: list[TaskWrites], *, stored: bool) -> None:
        """If they are not stored, each of their callers puts its own."""
        place = (asyncio.get_running_loop(), batch.thread)
        here = self._waiting[place]
        here.puts -= 1
        for each in taken:
            each.stored = stored
            each.wake()
        for each in here.writes:
            each.wake()
        self._leave(place, here)

    def _at(self, place: Place) -> _Waiting:
        found = self._waiting.get(place)
        if found is None:
            found = self._waiting[place] = _Waiting()
        return found

    def _leave(self, place: Place, here: _Waiting) -> None:
        if not here.puts and not here.writes:
            self._waiting.pop(place, None)
