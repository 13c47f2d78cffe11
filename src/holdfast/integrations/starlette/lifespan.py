"""The lifespan of an application with an instance: opens its store, runs its worker, drains, closes."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import FrameType
from typing import Any, Final

from holdfast.api.health import ServerState
from holdfast.api.live.hub import close_streams
from holdfast.app.flow import Flow
from holdfast.app.holdfast import Holdfast
from holdfast.app.open_retry import is_away, open_with_retry
from holdfast.app.worker import Worker
from holdfast.errors import StoreError
from holdfast.integrations.ask_people_flow import ask_people
from holdfast.integrations.starlette.state import state_of
from holdfast.telemetry import log

KEY: Final = "holdfast"
"""The name of the instance in the state of the lifespan, which each request has."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

Lifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any] | None]]


def lifespan(
    hf: Holdfast,
    *,
    worker: bool | Mapping[str, Any] = False,
    flows: Sequence[Flow] = (),
    inner: Lifespan | None = None,
    require_store: bool = False,
) -> Lifespan:
    @asynccontextmanager
    async def living(app: Any) -> AsyncGenerator[dict[str, Any]]:
        life = _Life(hf, flows, worker)
        await life.start(require_store=require_store)
        signals = _Signals(life.drain)
        try:
            signals.watch()
            if inner is None:
                yield {KEY: hf}
            else:
                async with inner(app) as given:
                    yield {**(given or {}), KEY: hf}
        finally:
            signals.restore()
            await life.end()

    return living


class _Life:
    def __init__(self, hf: Holdfast, flows: Sequence[Flow], worker: bool | Mapping[str, Any]) -> None:
        self.hf = hf
        self.flows = flows
        self.state = state_of(hf)
        options = dict(worker) if isinstance(worker, Mapping) else {}
        self.worker = Worker(*flows, ask_people, on=hf, **options) if worker or worker == {} else None
        self._opening: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._working: asyncio.Task[None] | None = None

    async def start(self, *, require_store: bool) -> None:
        """Raises StoreError; not for a store that is away, unless it is required."""
        self.state.standing = ServerState()
        self.state.managed = True
        try:
            await self._open()
        except StoreError as error:
            if require_store or not is_away(error):
                await self.end()
                raise
            self._away(error)
            log.warning("not ready: %s", self.state.standing.wrong)
            self._opening = asyncio.create_task(self._open_later())

    async def _open(self) -> None:
        service = await self.hf.service()
        for flow in self.flows:
            self.hf.register(flow.program())
            await service.store_flow(flow.program())
        if self.worker is not None:
            await self.worker.arrive()
            self._working = asyncio.create_task(self.worker.serve())
            self._working.add_done_callback(self._worker_ended)
        # From here on requests are answered.
        self.state.standing.store = await self.hf.open()

    def _worker_ended(self, working: asyncio.Task[None]) -> None:
        """The server is not ours to end: its probes and its log say that it has no worker any more."""
        error = None if working.cancelled() else working.exception()
        if error is not None:
            self.state.standing.store = None
            self.state.standing.wrong = f"its worker ended: {error}"
            self.state.standing.logged = [self.state.standing.wrong]
            log.error("not ready: %s", self.state.standing.wrong)

    async def _open_later(self) -> None:
        try:
            await open_with_retry(self.hf, on_error=self._away)
            await self._open()
        except StoreError as error:
            self._away(error)
            log.error("the store cannot be used: %s", error)

    def _away(self, error: StoreError) -> None:
        self.state.standing.wrong = f"the store does not answer: {error.message}"

    def drain(self) -> None:
        """When the server is told to stop, which is before it ends the lifespan: a stream that stays open
        would use up its grace."""
        if self.state.standing.draining:
            return
        self.state.standing.draining = True
        close_streams(self.hf)
        if self.worker is not None and self.state.standing.store is not None:
            self._draining = asyncio.create_task(self.worker.stop())

    async def end(self) -> None:
        self.drain()
        waiting = [task for task in (self._opening, self._draining, self._working) if task is not None]
        if self._opening is not None:
            self._opening.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        if self.worker is not None:
            await self.worker.close()
        self.state.standing.store = None
        self.state.managed = False
        await self.hf.close()


class _Signals:
    """Servers install handlers of their own before the lifespan begins; each signal still reaches them."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            before = signal.getsignal(each)
            # Without a handler of a server the signal ends the process, as it should.
            if callable(before) and before is not signal.default_int_handler:
                self._before[each] = before
                signal.signal(each, self._signalled)

    def restore(self) -> None:
        for each, before in self._before.items():
            if signal.getsignal(each) == self._signalled:
                signal.signal(each, before)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop)
        self._before[signal.Signals(number)](number, frame)
