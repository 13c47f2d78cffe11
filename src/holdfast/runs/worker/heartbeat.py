"""The heartbeat of a worker: it registers its name and state in the fleet, and renews them.

No two live workers have the same name. The leases of its runs have their own heartbeat (`runs/driver/lease`).

Nothing important depends on names: leases are fenced by their terms. They are for people, who need to
distinguish workers, and for `doctor`, which checks whether any worker serves a version.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from functools import cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast._version import __version__
from holdfast.errors import StoreError, StoreMovedError, WorkerNameTakenError
from holdfast.runs.worker.served_versions import offers_of
from holdfast.telemetry import log
from holdfast.types.clock import MICROS, SharedClock, SystemClock, to_datetime
from holdfast.types.fleet import HOLD_RULES, WorkerRow
from holdfast.types.ids import new_id

if TYPE_CHECKING:
    from holdfast.runs.worker.worker import RunWorker

OFTEN: Final = 5.0
_LOOK: Final = 0.25
_PATIENCE: Final = 2.0
MOST_UNSTORED: Final = 100
_OURS: set[str] = set()
"""Incarnations in this process: of several with the same process id, these are alive."""


class Throughput:
    """Runs per second, between the last two measurements that are a second or more apart."""

    def __init__(self) -> None:
        self.records = self.ended = 0.0
        self._before: tuple[float, int, int] | None = None

    def look(self, at: float, records: int, ended: int) -> None:
        before = self._before
        if before is not None and at - before[0] < 1:
            return
        if before is not None:
            took = at - before[0]
            self.records, self.ended = (records - before[1]) / took, (ended - before[2]) / took
        self._before = at, records, ended


class WorkerHeartbeat:
    """Renewed regularly, each time for the length of a lease; removed when the worker ends."""

    def __init__(self, worker: RunWorker) -> None:
        self._worker = worker
        self.incarnation = new_id()
        self.taken_by: WorkerRow | None = None
        self.moved: StoreMovedError | None = None
        self.announced = False
        self._started_at = 0
        self._beating: asyncio.Task[None] | None = None
        self._pace = Throughput()

    @property
    def name(self) -> str:
        return self._worker.runtime.worker

    async def enter(self) -> None:
        """Raises WorkerNameTakenError if another live worker has the name; then nothing has happened. Does
        not wait for a store that does not answer: the name is requested when it does."""
        if self._beating is not None:
            return
        _OURS.add(self.incarnation)
        self.taken_by = None
        self._started_at = self._worker.store.now()
        try:
            holder = await self._announce()
            if holder is not None:
                await self._outlast(holder)
        except StoreMovedError:
            _OURS.discard(self.incarnation)
            raise
        except StoreError as error:
            log.warning("the worker %s is not registered yet: %s", self.name, error)
        except BaseException:
            _OURS.discard(self.incarnation)
            raise
        self._beating = asyncio.create_task(self._heartbeat())

    async def _outlast(self, holder: WorkerRow) -> None:
        """A worker that is known to be alive keeps the name; for others it shows within a heartbeat."""
        first, store = holder, self._worker.store
        if _is_alive(holder) is None:
            left = max(0, holder.until - store.now()) / MICROS
            message = "the name %s was used by pid %s on %s: waiting up to %.0f s to see whether it is alive"
            log.warning(message, self.name, holder.pid, holder.host, left)
        found: WorkerRow | None = holder
        while found is not None and not self._worker.is_stopping:
            alive = _is_alive(found)
            if alive is False:
                log.warning("the worker %s takes over from pid %s, which is gone", self.name, found.pid)
                await store.drop_worker(found.name, found.incarnation)
            elif alive or (found.incarnation, found.seen_at) != (first.incarnation, first.seen_at):
                raise self._refusal(found)
            else:
                await self._worker.runtime.clock.sleep(_LOOK)
            found = await self._announce()

    def _refusal(self, holder: WorkerRow) -> WorkerNameTakenError:
        since = f"{to_datetime(holder.started_at):%Y-%m-%d %H:%M:%S}"
        left = max(1, ceil((holder.until - self._worker.store.now()) / MICROS))
        return WorkerNameTakenError(
            f"another worker has the name {self.name!r}: pid {holder.pid} on {holder.host}, running since "
            f"{since} UTC.",
            hint="Give this one another name (--name, or Worker(name=...)), or try again "
            f"in {left} s if that one has ended.",
            name=self.name,
            host=holder.host,
            pid=holder.pid,
        )

    async def _heartbeat(self) -> None:
        """A name that was lost while we did not heartbeat is not taken back."""
        settings, clock = self._worker.runtime.settings, self._worker.runtime.clock
        while True:
            await clock.sleep(min(settings.lease_ttl / 3, OFTEN))
            try:
                holder = await self._announce()
            except StoreMovedError as error:
                self.moved, self.announced = error, False
                self._worker.halt()
                return
            except StoreError as error:
                log.warning("the registration of worker %s could not be renewed: %s", self.name, error)
                continue
            except Exception:
                log.exception("the registration of worker %s could not be renewed", self.name)
                continue
            if holder is not None:
                self.taken_by, self.announced = holder, False
                log.error("%s This one claims nothing more and stops.", self._refusal(holder).message)
                self._worker.halt()
                return

    async def _announce(self) -> WorkerRow | None:
        row = self._row()
        holder = await self._worker.store.put_worker(row, self._worker.runtime.ttl)
        self.announced = holder is None
        return holder

    async def announce_draining(self) -> None:
        """At once, so that the fleet shows why it claims nothing; if the store answers in time."""
        if self.announced and self.taken_by is None:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await self._announce()

    async def leave(self) -> None:
        """Removes its row; one that belongs to another worker by now is kept."""
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
        _OURS.discard(self.incarnation)
        if self.taken_by is not None or self.moved is not None:
            return
        self.announced = False
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._worker.store.drop_worker(self.name, self.incarnation)
        except (StoreError, TimeoutError) as error:
            log.warning("the worker %s could not be deregistered: %s", self.name, error)

    def check(self) -> None:
        """Raises WorkerNameTakenError if the name was lost, StoreMovedError if the store was moved."""
        if self.moved is not None:
            raise self.moved
        if self.taken_by is not None:
            raise self._refusal(self.taken_by)

    def _row(self) -> WorkerRow:
        worker = self._worker
        programs = worker.runtime.programs
        records, ended = worker.runtime.settled, worker.ended
        self._pace.look(worker.runtime.clock.monotonic(), records, ended)
        return WorkerRow(
            name=self.name,
            incarnation=self.incarnation,
            host=socket.gethostname(),
            pid=os.getpid(),
            release=__version__,
            started_at=self._started_at,
            lanes=worker.lanes,
            versions={version: program.graph.name for version, program in programs.items()},
            concurrency=worker.slots.concurrency,
            busy=worker.slots.busy,
            hot=worker.slots.hot,
            draining=worker.is_stopping,
            place=_place(),
            skew=self._skew(),
            records=records,
            ended=ended,
            records_per_second=self._pace.records,
            ended_per_second=self._pace.ended,
            offers=(*sorted(offers_of(worker.runtime)), *_rules_of(worker)),
            lacking=tuple(sorted(worker.served.lacking)),
            blocked=tuple(worker.runtime.blocked.values()),
            unstored=dict(list(worker.runtime.recorder.unstored.items())[:MOST_UNSTORED]),
            unserved=worker.runtime.unserved.words(worker.served.lacking, MOST_UNSTORED),
        )

    def _skew(self) -> int:
        """0 if a clock was given: then all use it."""
        given = not isinstance(self._worker.runtime.clock, SharedClock)
        return 0 if given else SystemClock().now() - self._worker.store.now()


@cache
def _rules_of(worker: RunWorker) -> list[str]:
    """The first word says that it tells them: a worker of an earlier release does not."""
    return [HOLD_RULES, *(HOLD_RULES + text for text in worker.runtime.preparer.preparation.rules)]


def _place() -> str:
    """The machine, its boot and the container that our process ids belong to."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _is_alive(holder: WorkerRow) -> bool | None:
    """None: unknown."""
    # A process id says something only within the same boot and the same container.
    if not holder.place or holder.place != _place():
        return None
    if holder.pid == os.getpid():
        return holder.incarnation in _OURS
    try:
        # Signal 0 is not delivered: it only asks whether there is such a process.
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
