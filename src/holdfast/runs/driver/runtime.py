"""The drivers of one event loop: their programs, what they share, and the watch over their inboxes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from logging import DEBUG
from typing import TYPE_CHECKING, Any, Unpack

from holdfast.errors import (
    FlowNotFoundError,
    HoldfastError,
    KeyMissingError,
    RequirementsMissingError,
    RunBusyError,
    RunEndedError,
    RunFileMissingError,
    SchemaTooNewError,
    VersionMismatchError,
)
from holdfast.model.fingerprint import decode_graph, dialect_of
from holdfast.model.graph import GraphSpec
from holdfast.model.position import Position
from holdfast.model.program import Program
from holdfast.runs.concurrency_limits.run_limits import inside_limit, limit_reached_error
from holdfast.runs.driver.driver import Driver
from holdfast.runs.driver.load import LoadedRun
from holdfast.runs.driver.release import release_unserved
from holdfast.runs.driver.repair import load_or_repair
from holdfast.runs.driver.services import RunCreator, RunServices, ServiceOptions
from holdfast.runs.record_codec import log_records
from holdfast.runs.recorder.recorder import RunQueue
from holdfast.store.errors import require_live
from holdfast.store.protocols import Store
from holdfast.store.rows import Claim, ClaimRequest, RunRow
from holdfast.telemetry import crashpoint, log
from holdfast.types.ids import RunId, new_id
from holdfast.types.record import Record
from holdfast.types.redaction import tenant_scope
from holdfast.types.status import ENDED, RunStatus

if TYPE_CHECKING:
    from holdfast.runs.flow_versions import FlowSummary
    from holdfast.runs.observer import RunObserver

# Most runs in a process end sooner, and then no task and no query is spent on watching them.
WATCH_AFTER = 0.02  # seconds


class Runtime(RunServices):
    """Bound to one event loop. Programs are identified by graph fingerprint; runs are pinned to theirs
    (D-34)."""

    def __init__(self, store: Store, **options: Unpack[ServiceOptions]) -> None:
        self.drivers: dict[RunId, Driver] = {}
        super().__init__(store, self.drivers, **options)
        self.recorder.published = self._published
        self.starter = self
        self.has_worker = False
        self.children: set[asyncio.Task[None]] = set()
        # Set by the run service.
        self.make_run: RunCreator | None = None
        self.stop_run: Callable[..., Awaitable[RunRow]] | None = None
        # With a random part: a process that restarts with the same number must not pass for the old one.
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{new_id()[:8]}"
        self.programs: dict[str, Program] = {}
        # How the programs of stored documents are built here, by dialect: their runs need no other code.
        self.dialects: dict[str, Callable[[GraphSpec], Program]] = {}
        # Versions of documents that name what this process does not have; its worker claims no run of them.
        self.lacking: set[str] = set()
        # Of stored versions, by flow and version (`flow_versions.flow_summary`).
        self.flow_summaries: dict[tuple[str, str], FlowSummary] = {}
        # They run code beside that of runs, so only a few at once.
        self.previews = asyncio.Semaphore(2)
        self._watch_task: asyncio.Task[None] | None = None
        self._watch_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[RunId, list[Callable[[], None]]] = {}
        self._rest_listeners: dict[RunId, list[Callable[[], None]]] = {}
        # Called with what became durable here (`holdfast.integrations.otel`).
        self.observer: RunObserver | None = None
        self.settled = 0  # records that became durable here
        self._verbose = log.isEnabledFor(DEBUG)

    # ------------------------------------------------------------------ programs
    def register(self, program: Program) -> None:
        """This process can run that version; of two programs with the same graph the later code counts."""
        if self.programs.get(program.version) is not program:
            self.programs[program.version] = program
            self.codec_for(program)

    def program_for(self, version: str, flow: str) -> Program:
        program = self.programs.get(version)
        if program is not None:
            return program
        other = [p for p in self.programs.values() if p.graph.name == flow]
        if other:
            raise VersionMismatchError(
                f"this run was started on version {version} of flow {flow!r}, and only "
                f"{', '.join(p.version for p in other)} is loaded here.",
                hint="The run waits, and answers are kept. Load the code of its "
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
        """The program of a version that is loaded, or that its stored graph is enough for. Raises as
        `program_for` does."""
        make = None if version in self.programs else self.dialects.get(dialect_of(version))
        stored = await self.store.flow(flow, version) if make is not None else None
        if make is not None and stored is not None:
            try:
                self.register(make(decode_graph(stored.graph)))
            except VersionMismatchError:
                self.lacking.add(version)
                raise
        return self.program_for(version, flow)

    # ------------------------------------------------------------------ driving
    async def claim(self, run: RunId) -> Claim:
        """Claim this run now. Raises RunBusyError if another worker has it, LimitReachedError if its limit is
        reached, RunReadOnlyError for imported history."""
        claims = await self.store.claim(ClaimRequest(worker=self.worker, ttl=self.ttl, run=run))
        if not claims:
            row = await self.store.get_run(run)
            if row is not None:
                require_live(row)
                if row.limit and row.worker is None and row.status not in ENDED:
                    raise await limit_reached_error(self.store, row)
            raise RunBusyError(
                f"run {run} is being advanced by another worker.",
                hint="Wait for it, or try again after its lease has expired.",
                run=run,
            )
        return claims[0]

    async def drive(self, claim: Claim, fresh: Position | None = None) -> tuple[RunStatus, Position]:
        """Advance a claimed run until it ends or waits. `fresh`: the position of a run just created."""
        crashpoint("after_claim")
        self.leases.add(claim.lease)
        self.recorder.expected += 1
        driver: Driver | None = None
        try:
            program = await self.find_program(claim.run.version, claim.run.flow)
            # Before it is loaded: otherwise the run would ask a person about an effect whose outcome this
            # process knows.
            await self.evidence_outbox.report(claim.run.id)
            loaded = LoadedRun(fresh, 1) if fresh is not None else await load_or_repair(self, claim, program)
            driver = Driver(self, program, claim, loaded)
            self.drivers[claim.run.id] = driver
            driver.on_left = partial(self._forget, driver)
            self._start_watch_soon()
            if program.beside is None and not claim.run.limit:
                return await self._drive(driver), driver.session.pos
            beside = contextlib.nullcontext() if program.beside is None else program.beside(self, claim)
            with inside_limit(claim.run.limit):
                async with beside:
                    return await self._drive(driver), driver.session.pos
        except (VersionMismatchError, FlowNotFoundError, SchemaTooNewError, KeyMissingError) as error:
            if isinstance(error, RequirementsMissingError) and not isinstance(error, RunFileMissingError):
                self.lacking.add(claim.run.version)
            # With a delay: a worker that can serve it claims it first.
            await release_unserved(self.store, claim.lease, self.ttl // 3)
            raise
        finally:
            self.recorder.expected -= 1
            if driver is None:
                self.leases.remove(claim.run.id)
            else:
                self._forget(driver)
            self.notify(claim.run.id)

    def _forget(self, driver: Driver) -> None:
        if self.drivers.get(driver.run) is driver:
            # Otherwise the run was lost, and this process has claimed it again meanwhile.
            del self.drivers[driver.run]
            self.leases.remove(driver.run)

    async def _drive(self, driver: Driver) -> RunStatus:
        session = driver.session
        about = {"run": session.run, "flow": session.row.flow, "seq": session.pos.head}
        log.info("run claimed", extra=about)
        status = await self._observed(driver)
        log.info("run released (status %s)", status, extra={**about, "seq": session.pos.head})
        if session.row.parent_run is not None and status in ENDED:
            await self.tell_parent(session.row)
        return status

    async def tell_parent(self, row: RunRow) -> None:
        """A crash before this only delays it: a worker looks for the ends that runs wait for."""
        try:
            if self.queues is not None:
                await self.queues.open().run_ended(row)
        except HoldfastError as error:
            log.warning("the parent of run %s could not be notified of its end: %s", row.id, error)

    async def create_run(self, program: Program, given: Any, **options: Any) -> tuple[RunRow, bool]:
        """For a script that starts another run."""
        assert self.make_run is not None, "a runtime has its service"
        return await self.make_run(program, given, **options)

    async def advance_child(self, run: RunId) -> None:
        """In a process without a worker, who starts a child advances it. If that fails it stays in the store
        for any worker."""
        try:
            await self.drive(await self.claim(run))
        except HoldfastError as error:
            log.warning("child run %s is left for a worker: %s", run, error, extra={"run": run})

    async def cancel_child(self, run: RunId) -> None:
        """Of a branch of a script that was given up."""
        assert self.stop_run is not None, "a runtime has its service"
        with contextlib.suppress(RunEndedError):  # it ended meanwhile
            await self.stop_run(run, reason="the branch that started it was given up", by="system")

    async def _observed(self, driver: Driver) -> RunStatus:
        if self.observer is None:
            return await driver.drive()
        self.observer.began(driver)
        try:
            status = await driver.drive()
        except BaseException as error:
            self.observer.left(driver, None, error)
            raise
        self.observer.left(driver, status, None)
        return status

    @property
    def ttl(self) -> int:
        """Of a lease, in microseconds."""
        return self.leases.ttl

    # ------------------------------------------------------------------ watching inboxes
    def _start_watch_soon(self) -> None:
        """If runs are still in memory then: most end or park before anything is sent to them."""
        if self._watch_timer is None and (self._watch_task is None or self._watch_task.done()):
            # It watches the runs of all tenants, whichever comes first.
            with tenant_scope(None):
                self._watch_timer = self._loop.call_later(WATCH_AFTER, self._start_watch)

    def _start_watch(self) -> None:
        self._watch_timer = None
        if self.drivers:
            self._watch_task = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        """For the runs in memory: inbox rows that other processes wrote, timers and deadlines now due."""
        while self.drivers:
            try:
                await self._check_drivers()
                await self.store.wait_change(self.settings.poll)
            # The watch outlives an outage: without it no run in memory would notice an answer any more.
            except HoldfastError as error:
                log.warning("the store did not answer: %s", error)
                await asyncio.sleep(self.settings.poll)

    async def _check_drivers(self) -> None:
        await self.store.fire_timers(limit=100)
        await self.sweep_holds()
        drivers = list(self.drivers.values())
        # One query for all of them: a worker keeps up to a hundred that wait for people.
        heads = await self.store.inbox_heads([driver.run for driver in drivers])
        for driver in drivers:
            seen = driver.session.inbox_seen
            if heads.get(driver.run, seen) != seen:
                await self._check_inbox(driver)

    async def _check_inbox(self, driver: Driver) -> None:
        _, rows = await self.store.pending(driver.run)
        # Only a cancel interrupts a handler; everything else waits until the handler has ended.
        if any(r.kind == "cancel" for r in rows):
            driver.interrupt()
        elif rows:
            driver.inbox_changed()

    # ------------------------------------------------------------------ publishing
    def listen(self, run: RunId, listener: Callable[[], None], *, rests: bool = False) -> Callable[[], None]:
        """Call `listener` after each commit of that run, or with `rests` only after those with which it may
        have ended or begun to wait. Returns a function that stops that."""
        known = self._rest_listeners if rests else self._listeners
        known.setdefault(run, []).append(listener)

        def stop() -> None:
            known[run].remove(listener)
            if not known[run]:
                del known[run]

        return stop

    def _published(self, queue: RunQueue, records: list[Record]) -> None:
        self.settled += len(records)
        if self._verbose:
            log_records(queue.lease.run, records)
        if self.observer is not None:
            self.observer.committed(queue.lease, records)
        if self._listeners or self._rest_listeners:
            self.notify(queue.lease.run)
        crashpoint("after_publish")

    def notify(self, run: RunId, *, rests: bool = True) -> None:
        for listener in tuple(self._listeners.get(run, ())):
            listener()
        for listener in tuple(self._rest_listeners.get(run, ())) if rests else ():
            listener()

    async def close(self) -> None:
        """Release the runs in memory; the store stays open."""
        drivers = list(self.drivers.values())
        for driver in drivers:
            driver.drain()
        # Before the leases stop: a handler that uses its whole grace still needs its lease.
        await asyncio.gather(*(driver.gone(self.settings.grace) for driver in drivers))
        await self.evidence_outbox.close()
        if self.queues is not None:
            await self.queues.close()
        self.leases.stop()
        if self._watch_timer is not None:
            self._watch_timer.cancel()
        if self._watch_task is not None:
            self._watch_task.cancel()
            await asyncio.gather(self._watch_task, return_exceptions=True)
        if self.observer is not None:
            await self.observer.close()
