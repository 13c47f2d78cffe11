"""One owner for each thread: claims that live as long as an object, renewed off the caller's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
import socket
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from holdfast.errors import (
    ConflictError,
    HoldfastError,
    LeaseLostError,
    StoreUnavailableError,
    ThreadOwnedError,
)
from holdfast.integrations.langgraph.portal import LoopThread
from holdfast.integrations.langgraph.private_names import Invocation, idle_streams
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import MICROS
from holdfast.types.graph_thread import GraphClaim, GraphClaimRequest, GraphExtension, GraphRefusal

_AGAIN: Final = 0.02  # seconds between two attempts
_ENDS_IN: Final = 0.1  # seconds from the write of an interrupt to the end of its invocation, mostly
_RENEWALS: Final = 3  # in the time of a lease
_UNUSED: Final = 5 * _RENEWALS  # renewals after which a stream may have been abandoned
_RELEASES_TAKE: Final = 5.0  # seconds, at most, until a claim that is being released is gone


class ThreadClaim:
    """The right to write to a thread. It is given up at the end of the invocation that made it, or when this
    object is: a stream that was abandoned does not end."""

    __slots__ = (
        "__weakref__", "claim", "idle", "invocation", "thread", "unused", "used",
    )  # fmt: skip

    def __init__(self, thread: str, claim: GraphClaim, invocation: Invocation | None) -> None:
        self.thread = thread
        self.claim = claim
        self.invocation = invocation
        self.used = True  # since the last renewal
        self.unused = 0  # renewals since
        self.idle = 0  # renewals at which it was a stream that waits for its reader

    @property
    def end_is_seen(self) -> bool:
        return self.invocation is not None


class ThreadOwners:
    """The claims of one saver. Used from any thread and any event loop."""

    def __init__(
        self,
        store: Callable[[], Awaitable[Store]],
        loop: LoopThread,
        *,
        tenant: str,
        lease: int,
        patience: float,
    ) -> None:
        """`lease` in microseconds; `patience`: seconds to wait for another owner."""
        self._store, self._loop = store, loop
        self._tenant, self._lease, self._patience = tenant, lease, patience
        self._name = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self._lock = threading.Lock()
        self._live: weakref.WeakValueDictionary[str, ThreadClaim] = weakref.WeakValueDictionary()
        self.owned: dict[str, ThreadClaim] = {}
        # Claims whose object is gone. A finalizer may run anywhere, so it takes no lock.
        self._ended: deque[GraphExtension] = deque()
        self._wake: Callable[[], None] | None = None
        self._interrupted = False
        self._closed = False

    # ------------------------------------------------------------------ claims
    async def claim(
        self,
        thread: str,
        *,
        nested: bool = False,
        patience: float | None = None,
        invocation: Invocation | None = None,
    ) -> ThreadClaim:
        """Raises ThreadOwnedError. `nested`: the loop of a subgraph, which joins that of its graph.
        `invocation`: the claim is given up at its end."""
        if self._closed:
            # Nothing would renew the claim, or release it.
            raise StoreUnavailableError(
                f"thread {thread!r} cannot be written to: its saver is closed.",
                hint="Invoke the graph inside the `with` of HoldfastSaver.open.",
            )
        joined = self.owned.get(thread) or (self._live.get(thread) if nested else None)
        if joined is not None:
            return joined
        store, loop = await self._store(), asyncio.get_running_loop()
        end, collected = loop.time() + (self._patience if patience is None else patience), False
        last = max(end, loop.time() + _RELEASES_TAKE)
        while True:
            await self._release_ended(store, thread)
            want = GraphClaimRequest(
                tenant=self._tenant,
                thread=thread,
                owner=f"{self._name}/{secrets.token_hex(6)}",
                ttl=self._lease,
            )
            answer = await self._ask_for(store, want)
            if isinstance(answer, GraphClaim):
                return self._made(thread, answer, invocation)
            if self._is_mine(answer) and not collected and self._live.get(thread) is not None:
                # A stream that was abandoned may be in a cycle of objects, and with it its claim.
                collected = True
                gc.collect()
                continue
            # A claim of this saver whose object is gone is about to be released.
            leaves = self._is_mine(answer) and self._live.get(thread) is None
            if loop.time() >= (last if leaves else end):
                raise owned_error(thread, answer)
            await asyncio.sleep(_AGAIN)

    async def _ask_for(self, store: Store, want: GraphClaimRequest) -> GraphClaim | GraphRefusal:
        """A caller that is cancelled meanwhile leaves no claim behind: a store completes what was sent."""
        asked = asyncio.ensure_future(store.claim_graph_thread(want))
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(partial(self._unclaimed, want.thread))
            raise

    def _unclaimed(self, thread: str, asked: asyncio.Future[GraphClaim | GraphRefusal]) -> None:
        if not asked.cancelled() and asked.exception() is None and isinstance(asked.result(), GraphClaim):
            claim: Any = asked.result()
            self._start()  # perhaps it was the first claim
            self._end(GraphExtension(tenant=self._tenant, thread=thread, claim=claim))

    def _made(self, thread: str, claim: GraphClaim, invocation: Invocation | None) -> ThreadClaim:
        made = ThreadClaim(thread, claim, invocation)
        gone = GraphExtension(tenant=self._tenant, thread=thread, claim=claim)
        ending = weakref.finalize(made, self._end, gone)  # called once, there or here
        ending.atexit = False
        if invocation is not None:
            # An exception that the program keeps, keeps the object too: so the end of the invocation counts.
            release = partial(self._end_now, ending, gone)
            invocation.on_end(partial(self._end_in_thread, ending, release), release)
        with self._lock:
            self._live[thread] = made
        self._start()
        return made

    def _start(self) -> None:
        with self._lock:
            if self._wake is None and not self._closed:
                self._wake = _nothing
                self._loop.submit(self._serve())

    def _forget(self, gone: GraphExtension) -> None:
        live = self._live.get(gone.thread)
        if live is not None and live.claim == gone.claim:
            self._live.pop(gone.thread, None)

    def _end(self, gone: GraphExtension) -> None:
        self._forget(gone)
        self._ended.append(gone)
        wake = self._wake
        if wake is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the claim expires
                wake()

    def _end_in_thread(self, ending: Any, release: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._loop.is_current:
            ending()  # a stream is collected here
        else:
            self._loop.run(release())

    async def _end_now(self, ending: Any, gone: GraphExtension) -> None:
        """The caller of the invocation goes on when its thread is free. If the store does not answer, it goes
        on without that, and the release is made later."""
        if self._closed or ending.detach() is None:
            ending()
            return
        self._forget(gone)
        try:
            async with asyncio.timeout(_RELEASES_TAKE):
                await (await self._store()).release_graph_claim(gone)
        except (HoldfastError, TimeoutError):
            self._end(gone)
        except BaseException:
            self._end(gone)
            raise

    def _is_mine(self, answer: GraphRefusal) -> bool:
        return answer.claim is not None and answer.claim.owner.startswith(f"{self._name}/")

    async def write(
        self, thread: str, act: Callable[[], Awaitable[GraphRefusal | None]]
    ) -> GraphRefusal | None:
        """A write without a claim: one of this saver whose invocation has ended does not refuse it."""
        refused, loop = await act(), asyncio.get_running_loop()
        if refused is None or refused.lost or not self._is_mine(refused):
            return refused
        gc.collect()
        store, last = await self._store(), loop.time() + _RELEASES_TAKE
        while refused is not None and self._is_mine(refused) and self._live.get(thread) is None:
            if loop.time() >= last:
                break
            await self._release_ended(store, thread)
            refused = await act()
            if refused is not None:
                await asyncio.sleep(_AGAIN)
        return refused

    def expect_end(self) -> None:
        """An invocation was interrupted or failed: it ends and leaves a cycle of objects with its claim."""
        self._interrupted = True
        wake = self._wake
        if wake is not None:
            wake()

    @property
    def lease_seconds(self) -> float:
        return self._lease / MICROS

    async def own(self, thread: str, *, patience: float | None = None) -> ThreadClaim:
        """`patience`: seconds to wait for another owner, if not those of the saver."""
        claim = await self.claim(thread, patience=patience)
        self.owned[thread] = claim
        return claim

    async def disown(self, thread: str) -> None:
        claim = self.owned.pop(thread, None)
        if claim is not None:
            gone = GraphExtension(tenant=self._tenant, thread=thread, claim=claim.claim)
            await (await self._store()).release_graph_claim(gone)

    # ------------------------------------------------------------------ in the thread of the loop
    async def _serve(self) -> None:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(woken.set) and None
        woken.set()  # what has ended until now has woken nobody
        interval = self._lease / MICROS / _RENEWALS
        due = loop.time() + interval
        while not self._closed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), max(due - loop.time(), 0.001))
            woken.clear()
            try:
                store = await self._store()
                if self._interrupted:
                    self._interrupted = False
                    await asyncio.sleep(_ENDS_IN)
                    gc.collect()
                await self._release_ended(store)
                if loop.time() >= due:
                    due = loop.time() + interval
                    await self._renew(store)
            except HoldfastError:
                if not self._closed:  # else the store may be closed too
                    log.warning("claims of threads could not be renewed or released", exc_info=True)

    async def _renew(self, store: Store) -> None:
        if any(not each.used for each in list(self._live.values())):
            # Perhaps its invocation has ended, and only a cycle of objects keeps it.
            gc.collect()
            await self._release_ended(store)
        abandoned = self._abandoned()
        claims = [
            GraphExtension(tenant=self._tenant, thread=each.thread, claim=each.claim)
            for each in list(self._live.values())
            if each not in abandoned
        ]
        if claims:
            await store.extend_graph_claims(claims, self._lease)

    def _abandoned(self) -> set[ThreadClaim]:
        """Those of streams that have long waited for their readers. They expire; each lives again with the
        next write, if no other has taken the thread."""
        claims = list(self._live.values())
        for each in claims:
            each.unused = 0 if each.used else each.unused + 1
            each.used = False
        unused = {each.invocation: each for each in claims if each.unused >= _UNUSED and each.invocation}
        idle = idle_streams(unused)
        for invocation, each in unused.items():
            each.idle = each.idle + 1 if invocation in idle else 0
        return {each for each in unused.values() if each.idle > 1}

    async def _release_ended(self, store: Store, thread: str | None = None) -> None:
        """All of them, or those of one thread."""
        found: list[GraphExtension] = []
        for _ in range(len(self._ended)):
            try:
                gone = self._ended.popleft()
            except IndexError:
                break
            (found if thread is None or gone.thread == thread else self._ended).append(gone)
        try:
            if len(found) == 1:
                # Not as a task: a local store does it at once, before another invocation asks for the thread.
                await store.release_graph_claim(found[0])
            else:
                # Together: a store writes calls that are made at once in one transaction.
                await asyncio.gather(*(store.release_graph_claim(each) for each in found))
        except BaseException:
            self._ended.extend(found)  # those that were released are refused the next time
            raise

    async def close(self) -> None:
        """Gives up all claims."""
        self._closed = True
        store = await self._store()
        for each in list(self._live.values()):
            gone = GraphExtension(tenant=self._tenant, thread=each.thread, claim=each.claim)
            await store.release_graph_claim(gone)
        await self._release_ended(store)
        self.owned.clear()


def _nothing() -> None:
    pass


def owned_error(thread: str, refusal: GraphRefusal) -> HoldfastError:
    claim = refusal.claim
    if refusal.missing:
        return ConflictError(
            f"thread {thread!r} was deleted or pruned while it was written to.",
            hint="Nothing was written. Try again.",
            thread=thread,
        )
    if refusal.lost or claim is None:
        return LeaseLostError(
            f"the claim of thread {thread!r} was taken over"
            + (f" by {claim.owner}." if claim is not None else ", or the thread was deleted."),
            hint="Nothing was written. Invoke the graph again: it continues from the newest checkpoint.",
            thread=thread,
        )
    until = datetime.fromtimestamp(claim.until / MICROS, UTC).isoformat(timespec="seconds")
    return ThreadOwnedError(
        f"thread {thread!r} is in use by {claim.owner}, until {until} or longer.",
        hint='Try again later, or open the saver with on_conflict="wait:30s".',
        thread=thread,
        owner=claim.owner,
        until=until,
    )
