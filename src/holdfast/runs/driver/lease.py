"""The leases of the runs in memory: a heartbeat extends them, and no effect begins with one that may expire
soon."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Mapping
from typing import Protocol

from holdfast.errors import StoreError, StoreMovedError
from holdfast.runs.driver.loop_watchdog import LoopBlock, LoopWatchdog
from holdfast.runs.driver.settings import RunSettings
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import Clock
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease

# Of a lease time: how long the loop is blocked before the other runs are given up.
_GIVEN_UP = 0.9


class LeaseHolder(Protocol):
    """The owner of a lease in this process: a driver."""

    lease: Lease

    def lease_gone(self) -> None:
        """The store says that the lease is no longer ours. Called on the event loop."""
        ...


class LeaseKeeper:
    """Of one event loop. The heartbeat starts with the first lease."""

    def __init__(
        self, store: Store, clock: Clock, settings: RunSettings, holders: Mapping[RunId, LeaseHolder]
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._holders = holders
        self._loop = asyncio.get_running_loop()
        # When each lease was last requested, in seconds of the monotonic clock.
        self._asked_at: dict[RunId, float] = {}
        self.watchdog = LoopWatchdog(self._loop, settings.lease_ttl)
        self._heartbeat: threading.Thread | None = None
        self._stop = threading.Event()
        self._given_up = False

    @property
    def ttl(self) -> int:
        """Microseconds."""
        return int(self._settings.lease_ttl * 1e6)

    def add(self, lease: Lease) -> None:
        """It was claimed just now."""
        self._asked_at[lease.run] = self._clock.monotonic()
        if self._heartbeat is None:
            self._heartbeat = threading.Thread(target=self._beat, name="holdfast-heartbeat", daemon=True)
            self._heartbeat.start()

    def remove(self, run: RunId) -> None:
        self._asked_at.pop(run, None)

    @property
    def is_heartbeating(self) -> bool:
        """Whether leases are extended; before the first one there is nothing to extend."""
        return self._heartbeat is None or self._heartbeat.is_alive()

    def stop(self) -> None:
        self._stop.set()

    def _beat(self) -> None:
        """In a separate thread with its own connection: a handler that blocks the loop must not lose the
        lease."""
        # A third: two heartbeats may fail before the lease expires.
        pause, block = self._settings.lease_ttl / 3, None
        due = time.monotonic() + pause
        while not self._stop.wait(max(0.0, min(self.watchdog.tick, due - time.monotonic()))):
            try:
                block = self.watchdog.look(time.monotonic())
            except RuntimeError:
                return  # the loop ended without closing this: no run is left that needs a lease
            if time.monotonic() < due:
                continue
            # Sooner after an error: when the store is back, leases may have expired, and other workers look
            # for such runs.
            done = self._extend(self._kept(list(self._holders.values()), block))
            pause = self._settings.lease_ttl / 3 if done else min(1.0, self._settings.lease_ttl / 10)
            due = time.monotonic() + pause

    def _kept(self, holders: list[LeaseHolder], block: LoopBlock | None) -> list[LeaseHolder]:
        """Those whose leases are extended. A node that blocks the loop for longer than a lease costs the
        other runs their leases, so that another worker advances them; its own run keeps it, up to the
        timeout of the node."""
        ttl = self._settings.lease_ttl
        # Less than one: the last extension before this moment lasts for a whole one.
        if block is None or block.place is None or block.seconds < ttl * _GIVEN_UP:
            return holders
        overdue = block.timeout is not None and block.seconds > block.timeout + ttl
        kept = [] if overdue else [each for each in holders if each.lease.run == block.place.run]
        given_up = [each.lease.run for each in holders if each not in kept]
        if given_up and not self._given_up:
            self._given_up = True
            log.error(
                "node %r of run %s has blocked the event loop for %.1f s: the leases of %d run(s) are not "
                "extended any more, so that another worker can advance them",
                block.place.node,
                block.place.run,
                block.seconds,
                len(given_up),
                extra={"run": block.place.run, "flow": block.place.flow, "node": block.place.node},
            )
        return kept

    def _extend(self, holders: list[LeaseHolder]) -> bool:
        """Whether the store answered."""
        if len(holders) == len(self._holders):
            self._given_up = False
        if not holders:
            return True
        # Read before the store is asked: a process that was stopped while the answer came must not count from
        # the answer.
        asked = self._clock.monotonic()
        try:
            held = self._store.extend_now([holder.lease for holder in holders], self.ttl)
        except StoreMovedError:
            held = [False] * len(holders)  # no lease is valid there any more
        except StoreError as error:
            log.warning("heartbeat failed, trying again: %s", error)
            return False
        except Exception:
            # For example a bug of a database driver: without a heartbeat every run of this process would be
            # lost.
            log.exception("heartbeat failed, trying again")
            return False
        for holder, ours in zip(holders, held, strict=True):
            if ours:
                self._asked_at[holder.lease.run] = asked
            else:
                with contextlib.suppress(RuntimeError):  # the loop ended meanwhile
                    self._loop.call_soon_threadsafe(holder.lease_gone)
        return True

    async def ensure_margin(self, lease: Lease) -> bool:
        """Extend a lease that may expire soon by our own clock; False: it is no longer ours (D-17). It counts
        from when it was requested: the answer may arrive after the lease has expired again."""
        ttl = self._settings.lease_ttl
        # At least a quarter: with a margin as long as the lease every answer would be too late, and this loop
        # would never end.
        usable = max(ttl - self._settings.lease_margin, ttl / 4)
        while self._clock.monotonic() - self._asked_at.get(lease.run, -ttl) >= usable:
            asked = self._clock.monotonic()
            if not (await self._store.extend([lease], self.ttl))[0]:
                return False
            self._asked_at[lease.run] = asked
        return True
