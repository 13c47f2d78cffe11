"""The proxy itself: passes on, and strikes."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from types import TracebackType
from typing import Final

from tests.proxy.wire import Counts, PendingCut, Way, Wire, bound, by_way_of, place

QUEUED: Final = 64


class Proxy:
    """Listens on loopback and passes everything on to `target` ("host:port"), with the faults that are set.

    `seed` makes the jitter repeatable. `port` 0: a free one. Faults hold for every connection, those that are
    open and those to come, until `clear`.
    """

    def __init__(self, target: str, *, host: str = "127.0.0.1", port: int = 0, seed: int = 0) -> None:
        self.target = place(target)
        self.host = host
        self.port = port
        self.counts = Counts()
        self._random = random.Random(seed)
        self._latency = 0.0
        self._jitter = 0.0
        self._ways: frozenset[Way] = frozenset()
        self._clear = asyncio.Event()
        self._clear.set()
        self._blows: list[PendingCut] = []
        self._wires: set[Wire] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keeper: socket.socket | None = None
        self._ear: socket.socket | None = None

    # ------------------------------------------------------------------ living
    async def start(self) -> Proxy:
        """Listen; `port` and `address` are known then. `async with` does it, and closes."""
        # One socket only keeps the port, another listens: while we refuse, nobody else can take the port.
        self._keeper = bound(self.host, self.port)
        self.port = self._keeper.getsockname()[1]
        self._listen()
        return self

    async def close(self) -> None:
        """Nobody is let in any more, and every connection ends."""
        self.refuse()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    async def __aenter__(self) -> Proxy:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def between(self, url: str) -> str:
        """The same URL, by way of this proxy."""
        return by_way_of(url, self.address)

    # ------------------------------------------------------------------ striking
    def clear(self) -> None:
        """No fault any more. What was swallowed arrives, as it does when a cable is put back."""
        self._latency = self._jitter = 0.0
        self._ways = frozenset()
        self._blows.clear()
        self._clear.set()
        if self._keeper is not None and self._ear is None:
            self._listen()

    def delay(self, latency: float, *, jitter: float = 0.0) -> None:
        """Each piece arrives `latency` seconds later, and up to `jitter` more; the order stays."""
        if latency < 0 or jitter < 0:
            raise ValueError("a delay is not negative")
        self._latency, self._jitter = latency, jitter

    def swallow(self, way: Way | None = None) -> None:
        """Nothing arrives, on this way or on both, and neither side is told so. New connections are taken
        and lead nowhere."""
        self._ways = frozenset((way,)) if way else frozenset(("up", "down"))
        self._clear.clear()

    def cut(self) -> int:
        """Reset every connection now, both sides; how many there were."""
        wires = list(self._wires)
        for wire in wires:
            self._reset(wire)
        return len(wires)

    def cut_after(self, count: int, way: Way = "up") -> asyncio.Event:
        """Reset the first connection that carries more than `count` bytes that way from now on, right behind
        them: in the middle of a statement, or (0, "down") when the answer is due. Once; the event says
        when."""
        blow = PendingCut(count=count, way=way, struck=asyncio.Event(), passed={})
        self._blows.append(blow)
        return blow.struck

    def refuse(self) -> None:
        """Nobody new is let in; connections that are open stay so."""
        if self._ear is not None:
            asyncio.get_running_loop().remove_reader(self._ear)
            self._ear.close()
            self._ear = None

    def switch(self, target: str, *, cut: bool = False) -> None:
        """New connections go there; `cut`: the others are reset, so that all come anew."""
        self.target = place(target)
        if cut:
            self.cut()

    # ------------------------------------------------------------------ passing on
    def _listen(self) -> None:
        self._ear = bound(self.host, self.port)
        self._ear.listen(128)
        asyncio.get_running_loop().add_reader(self._ear, self._accept, self._ear)

    def _accept(self, ear: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError, ConnectionError):
            taken, _peer = ear.accept()
            taken.setblocking(False)
            task = asyncio.create_task(self._taken(taken))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _taken(self, taken: socket.socket) -> None:
        self.counts.connections += 1
        self.counts.open += 1
        wire = Wire(self.counts.connections)
        self._wires.add(wire)
        try:
            await wire.client(taken)
            await self._wait_while_swallowed(None)
            await wire.server(self.target)
            await asyncio.gather(self._passing(wire, "up"), self._passing(wire, "down"))
            wire.close()
        except OSError:
            self.counts.refused += 1  # nobody listens at the target
        finally:
            wire.reset()
            self._wires.discard(wire)
            self.counts.open -= 1

    async def _passing(self, wire: Wire, way: Way) -> None:
        """Reads ahead of what it writes: a delay makes each piece late, and the line no narrower."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(QUEUED)
        taking = asyncio.create_task(self._taking(wire, way, queue))
        try:
            while True:
                due, piece = await queue.get()
                await self._later(due)
                await self._wait_while_swallowed(way)
                if not piece:
                    wire.finish(way)
                    return
                await self._write(wire, way, piece)
        except OSError:
            wire.reset()  # one side is gone: so is the other
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)

    async def _taking(self, wire: Wire, way: Way, queue: asyncio.Queue[tuple[float, bytes]]) -> None:
        loop, last = asyncio.get_running_loop(), 0.0
        piece = b"?"
        while piece:
            try:
                piece = await wire.read(way)
            except OSError:
                piece = b""
            last = max(last, loop.time() + self._latency + self._random.random() * self._jitter)
            await queue.put((last, piece))

    async def _later(self, due: float) -> None:
        left = due - asyncio.get_running_loop().time()
        if left > 0:
            self.counts.delayed += 1
            await asyncio.sleep(left)

    async def _wait_while_swallowed(self, way: Way | None) -> None:
        """Waits while this way is swallowed; a new connection while any is."""
        counted = False
        while not self._clear.is_set() and (way is None or way in self._ways):
            self.counts.swallowed += not counted
            counted = True
            await self._clear.wait()

    async def _write(self, wire: Wire, way: Way, piece: bytes) -> None:
        blow = next((each for each in self._blows if each.exceeds(wire.number, way, len(piece))), None)
        if blow is not None:
            self._blows.remove(blow)
            piece = piece[: blow.left(wire.number)]
        await wire.write(way, piece)
        if way == "up":
            self.counts.up += len(piece)
        else:
            self.counts.down += len(piece)
        if blow is not None:
            self._reset(wire)
            blow.struck.set()

    def _reset(self, wire: Wire) -> None:
        if not wire.gone:
            self.counts.cuts += 1
            wire.reset()
