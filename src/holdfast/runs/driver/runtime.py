"""What the drivers of one event loop share: store, recorder, codec, clock, heartbeat, attendant.

How a run stood before somebody claimed it who cannot serve it: so it is given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from functools import partial
from logging import DEBUG
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from holdfast.checkpoint import TypeRegistry
from holdfast.errors import (
    FlowNotFoundError,
    HoldfastError,
    KeyMissingError,
    RunBusyError,
    SchemaTooNewError,
    StoreError,
    StoreMovedError,
    VersionMismatchError,
)
from holdfast.model.fingerprint import decode_graph, dialect_of
from holdfast.model.graph import GraphSpec
from holdfast.model.position import Position
from holdfast.model.program import Program
from holdfast.runs.admission import inside_limit, limit_reached_error
from holdfast.runs.attachments import BlobAttachments
from holdfast.runs.blobs import BlobStore, Objects
from holdfast.runs.driver.driver import Driver
from holdfast.runs.driver.late_evidence import EvidenceOutbox
from holdfast.runs.driver.load import LoadedRun
from holdfast.runs.driver.park import release_run
from holdfast.runs.driver.repair import load_or_repair
from holdfast.runs.encryption.store import encrypted_store_within
from holdfast.runs.hold_preparation import Preparer
from holdfast.runs.memory import MemoryBackend, StoredMemory
from holdfast.runs.recorder.recorder import Recorder, RunQueue
from holdfast.runs.seal import RecordCodec, log_records
from holdfast.store.protocols import Claim, ClaimRequest, Store
from holdfast.store.refusals import require_live
from holdfast.telemetry import crashpoint, log
from holdfast.types.clock import Clock, SharedClock
from holdfast.types.ids import RunId, new_id
from holdfast.types.record import Lease, Record
from holdfast.types.retention import Retention
from holdfast.types.status import ENDED, HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.holds.notify.deliverer import Deliverer
    from holdfast.holds.policies.arbiter import Arbiter
    from holdfast.holds.preparation import HoldPreparation
    from holdfast.holds.service import HoldService
    from holdfast.holds.timing.sweeper import HoldSweeper
    from holdfast.runs.observer import RunObserver
    from holdfast.store.protocols import RunRow, Store


async def status_before(store: Store, row: RunRow) -> RunStatus:
    """From columns that need neither the run's code nor its key: a claim leaves no trace of the old status.

    Mail that nobody has read tells what a parked run waited for. One that was interrupted while it also
    waited for a person is told as waiting for that person; it can be claimed all the same. One that nobody
    had begun is resumable: no run is pending again once it was claimed.
    """
    encrypted = encrypted_store_within(store)
    plain = store if encrypted is None else encrypted.inner
    _, mail = await plain.pending(row.id)
    told = {message.kind for message in mail}
    if told & {"answer", "lapse"} or await plain.holds(run=row.id, status=HoldStatus.pending, limit=1):
        return RunStatus.pending_input
    return RunStatus.waiting if "timer" in told else RunStatus.resumable


ATTEND_AFTER = 0.02  # seconds


class RunSettings(msgspec.Struct, kw_only=True):
    """How runs are kept going; times in seconds."""

    lease_ttl: float = 30.0
    """how long a process that says nothing keeps its runs"""
    lease_margin: float = 2.0
    """no effect begins with less of the lease left than this"""
    hot_timer: float = 30.0
    """a run that waits for a time stays in memory this long before it parks"""
    hot_hold: float = 0.0
    """the same for a run that waits for a person"""
    grace: float = 10.0
    """how long handlers may finish when a worker is told to stop, or a run is cancelled"""
    poll: float = 1.0
    """how often a worker looks for work that nobody told it of"""
    patience: float = 4.0
    """how long a checkpoint that cannot be written is tried again before its run stops with the error"""
    hold_sweep: float = 300.0
    """how often a worker sweeps holds, whatever is due; what falls due is noticed with each poll"""
    retention: Retention | None = None
    """in place of what the flows declare"""
    retention_every: float = 3600.0
    """how often a worker looks what is to go"""
    feed_kept: float = 7 * 86_400.0
    """how long the feed over all runs remembers what it told; a reader that was away for longer is told so"""
    reencrypt: bool = False
    """whether a worker also brings everything under the keys that are current, each time it looks"""


class Runtime:
    """Bound to one event loop. Programs are known by graph fingerprint; runs are pinned to theirs (D-34)."""

    def __init__(
        self,
        store: Store,
        *,
        objects: Objects | None = None,
        clock: Clock | None = None,
        settings: RunSettings | None = None,
        memory: MemoryBackend | None = None,
        desk: HoldPreparation | None = None,
        sweeper: HoldSweeper | None = None,
        people: HoldService | None = None,
        arbiter: Arbiter | None = None,
        deliverer: Deliverer | None = None,
    ) -> None:
        # With the first runtime: whoever only builds flows needs none of them.
        from holdfast.holds.default_preparation import default_preparation
        from holdfast.holds.service import HoldService
        from holdfast.holds.timing.sweeper import HoldSweeper

        self.store = store
        # Wake times and deadlines are the store's: another machine, with another clock, acts on them.
        self.clock: Clock = clock or SharedClock(store.now)
        self.settings = settings or RunSettings()
        self.desk = BlobStore(store, objects)
        self.recorder = Recorder(store, self.desk.put_for)
        self.recorder.published = self._published
        self.recorder.patience = self.settings.patience
        self.evidence_outbox = EvidenceOutbox(store)
        self.preparer = Preparer(desk or default_preparation(store))
        self.sweeper = sweeper or HoldSweeper(store, self.clock)
        self.people = people or HoldService(store)
        self.shelf = self.people.ctx.shelf = BlobAttachments(self.desk)
        self.arbiter = arbiter
        self.deliverer = deliverer
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{new_id()[:8]}"
        self.programs: dict[str, Program] = {}
        # How the programs of stored documents are made here, by dialect: their runs need no other code.
        self.dialects: dict[str, Callable[[GraphSpec], Program]] = {}
        self.drivers: dict[RunId, Driver] = {}
        self.memory: MemoryBackend = memory or StoredMemory(store)
        self.grace = self.settings.grace
        self._codecs: WeakKeyDictionary[Program, RecordCodec] = WeakKeyDictionary()
        self._leased: dict[RunId, float] = {}
        self._heart: threading.Thread | None = None
        self._stop = threading.Event()
        self._attendant: asyncio.Task[None] | None = None
        self._attending: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[RunId, list[Callable[[], None]]] = {}
        # Whoever tells the outside what became durable here (`holdfast.integrations.otel`).
        self.watch: RunObserver | None = None
        self.settled = 0  # records that became durable here
        self._verbose = log.isEnabledFor(DEBUG)

    # ------------------------------------------------------------------ programs
    def register(self, program: Program) -> None:
        """This process can run that version; of two programs with one graph the later code counts."""
        if self.programs.get(program.version) is not program:
            self.programs[program.version] = program
            self.codec_for(program)

    def codec_for(self, program: Program) -> RecordCodec:
        sealer = self._codecs.get(program)
        if sealer is None:
            registry = TypeRegistry(*program.all_types())
            program.adopt_with(registry.adopt)
            sealer = self._codecs[program] = RecordCodec(registry, program.graph.secrets)
        return sealer

    def program_for(self, version: str, flow: str) -> Program:
        program = self.programs.get(version)
        if program is not None:
            return program
        other = [p for p in self.programs.values() if p.graph.name == flow]
        if other:
            raise VersionMismatchError(
                f"this run was started on version {version} of flow {flow!r}, and only "
                f"{', '.join(p.version for p in other)} is loaded here.",
                hint="It keeps its place, and so does an answer that was given. Load the code of its "
                "version, or see with `holdfast flows check` whether it fits and move it with "
                "`holdfast flows migrate`.",
                flow=flow,
                version=version,
            )
        raise FlowNotFoundError(
            f"no flow {flow!r} is loaded here.",
            hint="Import the module that defines it, or name its file.",
            flow=flow,
        )

    async def find_program(self, version: str, flow: str) -> Program:
        """The program of a version that is loaded, or whose stored graph brings all that is needed. Raises as
        `program_for` does."""
        make = None if version in self.programs else self.dialects.get(dialect_of(version))
        stored = await self.store.flow(flow, version) if make is not None else None
        if make is not None and stored is not None:
            self.register(make(decode_graph(stored.graph)))
        return self.program_for(version, flow)

    # ------------------------------------------------------------------ driving
    async def claim(self, run: RunId) -> Claim:
        """This run, now. Raises RunBusyError where somebody else has it, GateShutError where its gate lets it
        not pass, RunReadOnlyError for history."""
        claims = await self.store.claim(ClaimRequest(worker=self.worker, ttl=self.ttl, run=run))
        if not claims:
            row = await self.store.get_run(run)
            if row is not None:
                require_live(row)
                if row.gate and row.worker is None and row.status not in ENDED:
                    raise await limit_reached_error(self.store, row)
            raise RunBusyError(
                f"run {run} is being advanced by another worker.",
                hint="Wait for it, or try again after its lease has lapsed.",
                run=run,
            )
        return claims[0]

    async def drive(self, claim: Claim, fresh: Position | None = None) -> tuple[RunStatus, Position]:
        """Advance a claimed run until it ends or waits. `fresh`: the position of a run just created."""
        crashpoint("after_claim")
        self._keep(claim.lease)
        self.recorder.expected += 1
        driver: Driver | None = None
        try:
            program = await self.find_program(claim.run.version, claim.run.flow)
            await self.evidence_outbox.tell(claim.run.id)
            loaded = LoadedRun(fresh, 1) if fresh is not None else await load_or_repair(self, claim, program)
            driver = Driver(self, program, claim, loaded)
            driver.writer.strict = loaded.pos.mode == "strict"
            driver.queue.lazy = loaded.pos.mode == "exit"
            if program.graph.spec.allow_uncheckpointed:
                driver.queue.on_outage = driver.writer.uncheckpointed
            self.drivers[claim.run.id] = driver
            self._attend()
            beside = contextlib.nullcontext() if program.beside is None else program.beside(self, claim)
            with inside_limit(claim.run.gate):
                async with beside:
                    return await self._drive(driver), driver.pos
        except (VersionMismatchError, FlowNotFoundError, SchemaTooNewError, KeyMissingError):
            await self._give_back(claim)
            raise
        finally:
            self.recorder.expected -= 1
            if self.drivers.get(claim.run.id) is driver:
                # Otherwise the run was lost, and this process has claimed it again meanwhile.
                self.drivers.pop(claim.run.id, None)
                self._leased.pop(claim.run.id, None)
            self._tell(claim.run.id)

    async def _drive(self, driver: Driver) -> RunStatus:
        about = {"run": driver.run, "flow": driver.row.flow, "seq": driver.pos.head}
        log.info("a run is taken up", extra=about)
        status = await self._watched(driver)
        log.info("a run is let go: it is %s", status, extra={**about, "seq": driver.pos.head})
        return status

    async def _watched(self, driver: Driver) -> RunStatus:
        if self.watch is None:
            return await driver.drive()
        self.watch.began(driver)
        try:
            status = await driver.drive()
        except BaseException as error:
            self.watch.left(driver, None, error)
            raise
        self.watch.left(driver, status, None)
        return status

    async def _give_back(self, claim: Claim) -> None:
        """Nobody here can serve this run: it keeps its place for somebody who can, whom we let go first."""
        await release_run(self.store, claim.lease, partial(status_before, self.store), self.ttl // 3)

    @property
    def ttl(self) -> int:
        return int(self.settings.lease_ttl * 1e6)

    def memory_wait(self, pos: Position, next_wake: float | None, since: float) -> float:
        """How long to stay in memory with nothing to do, in seconds; 0: park."""
        settings = self.settings
        if next_wake is not None and next_wake <= settings.hot_timer:
            return max(next_wake, 0.0005)
        if pos.holds and settings.hot_hold:
            return max(0.0, settings.hot_hold - (self.clock.monotonic() - since))
        return 0.0

    # ------------------------------------------------------------------ leases
    def _keep(self, lease: Lease) -> None:
        self._leased[lease.run] = self.clock.monotonic()
        if self._heart is None:
            self._heart = threading.Thread(target=self._heartbeat, name="holdfast-heartbeat", daemon=True)
            self._heart.start()

    def _heartbeat(self) -> None:
        """A thread and connection of its own: a handler that blocks the loop must not cost the lease."""
        pause = self.settings.lease_ttl / 3
        while not self._stop.wait(pause):
            pause = self.settings.lease_ttl / 3
            if self._loop.is_closed():
                return  # the loop ended without closing us: nobody is left to keep a lease for
            drivers = list(self.drivers.values())
            if not drivers:
                continue
            # Before it is asked: whoever was stopped while the answer came must not count from there.
            asked = self.clock.monotonic()
            try:
                held = self.store.extend_now([d.lease for d in drivers], self.ttl)
            except StoreMovedError:
                held = [False] * len(drivers)  # no lease counts there any more
            except StoreError as error:
                log.warning("heartbeat failed, trying again: %s", error)
                # Sooner: when the store is back, leases may have lapsed, and others look for such runs.
                pause = min(1.0, self.settings.lease_ttl / 10)
                continue
            except Exception:
                # A slip of a driver library, say: without a heart every run of this process would be lost.
                log.exception("heartbeat failed, trying again")
                pause = min(1.0, self.settings.lease_ttl / 10)
                continue
            for driver, ours in zip(drivers, held, strict=True):
                if ours:
                    self._leased[driver.run] = asked
                else:
                    with contextlib.suppress(RuntimeError):  # the loop ended while we spoke
                        self._loop.call_soon_threadsafe(driver.lease_gone)

    @property
    def is_heartbeating(self) -> bool:
        """Whether leases are kept; before the first of them there is nothing to keep."""
        return self._heart is None or self._heart.is_alive()

    async def safe_margin(self, lease: Lease) -> bool:
        """Whether the lease lasts a while yet on our own clock; if not, it is extended first (D-17).

        It counts from when it was asked for: an answer may come when the lease is over again."""
        ttl = self.settings.lease_ttl
        usable = max(ttl - self.settings.lease_margin, ttl / 4)
        while self.clock.monotonic() - self._leased.get(lease.run, -ttl) >= usable:
            asked = self.clock.monotonic()
            if not (await self.store.extend([lease], self.ttl))[0]:
                return False
            self._leased[lease.run] = asked
        return True

    # ------------------------------------------------------------------ the attendant
    def _attend(self) -> None:
        """Soon, if runs are still in memory then: most are let go before anybody could tell them anything."""
        if self._attending is None and (self._attendant is None or self._attendant.done()):
            self._attending = self._loop.call_later(ATTEND_AFTER, self._start_watch)

    def _start_watch(self) -> None:
        self._attending = None
        if self.drivers:
            self._attendant = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        """Looks after the runs in memory: mail from other processes, timers that are due."""
        while self.drivers:
            try:
                await self._check_drivers()
                await self.store.wait_change(self.settings.poll)
            except HoldfastError as error:
                log.warning("the store did not answer: %s", error)
                await asyncio.sleep(self.settings.poll)

    async def _check_drivers(self) -> None:
        await self.store.fire_timers(limit=100)
        await self.sweep_holds()
        drivers = list(self.drivers.values())
        # Asked once for all of them: a worker keeps up to a hundred that wait for people.
        heads = await self.store.inbox_heads([driver.run for driver in drivers])
        for driver in drivers:
            if heads.get(driver.run, driver.box.seen) != driver.box.seen:
                await self._look(driver)

    async def _look(self, driver: Driver) -> None:
        _, rows = await self.store.pending(driver.run)
        if any(r.kind == "cancel" for r in rows):
            driver.interrupt()
        elif rows:
            driver.inbox_changed()

    async def sweep_holds(self, run: RunId | None = None) -> bool:
        """Whether there was anything to do: deadlines that have passed become mail to their runs."""
        due = await self.store.next_due_hold()
        if due is None or due > self.store.now():
            return False
        await self.sweeper.sweep(run=run)
        return True

    # ------------------------------------------------------------------ publishing
    def listen(self, run: RunId, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each commit of that run; answers how to stop."""
        self._listeners.setdefault(run, []).append(listener)

        def stop() -> None:
            self._listeners.get(run, []).remove(listener)

        return stop

    def _published(self, queue: RunQueue, records: list[Record]) -> None:
        self.settled += len(records)
        if self._verbose:
            log_records(queue.lease.run, records)
        if self.watch is not None:
            self.watch.committed(queue.lease, records)
        if self._listeners:
            self._tell(queue.lease.run)
        crashpoint("after_publish")

    def _tell(self, run: RunId) -> None:
        for listener in self._listeners.get(run, ()):
            listener()

    async def close(self) -> None:
        """Give back what we hold; the store stays open."""
        drivers = list(self.drivers.values())
        for driver in drivers:
            driver.drain()
        await asyncio.gather(*(driver.gone(self.settings.grace) for driver in drivers))
        await self.evidence_outbox.close()
        self._stop.set()
        if self._attending is not None:
            self._attending.cancel()
        if self._attendant is not None:
            self._attendant.cancel()
            await asyncio.gather(self._attendant, return_exceptions=True)
        if self.watch is not None:
            await self.watch.close()
