"""Advances one run from the command line: alone, or beside workers; handles Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any

from holdfast.app.flow import advance, make_result, result_of
from holdfast.app.result import Result
from holdfast.cli.output.console import PATIENCE, print_note
from holdfast.errors import HoldfastError, LeaseLostError, LimitReachedError, RunBusyError
from holdfast.model.position import Position
from holdfast.model.program import Program
from holdfast.runs.concurrency_limits.run_limits import QueuedRun
from holdfast.runs.service import RunService
from holdfast.store.rows import Claim, RunRow
from holdfast.types.clock import to_datetime
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, PARKED

Claimed = tuple[Claim, Position]


async def start_run(
    service: RunService, program: Program, given: Any, **options: Any
) -> Claimed | QueuedRun | RunRow:
    """As `RunService.start`; on an engine the run is only created, and this process follows it."""
    if service.runtime.engine is None:
        return await service.start(program, given, **options)
    # A run that nothing starts would only wait here.
    await service.runtime.engine.check()
    row, fresh = await service.create(program, given, **options)
    return QueuedRun(row) if fresh else row


async def drive(
    service: RunService,
    program: Program,
    run: RunId,
    claimed: Claimed | None = None,
    *,
    created: bool = False,
) -> Result:
    """Until the run ends or waits, here or on another worker. Ctrl-C releases it after the running step; a
    second one at once. `created`: the run is new and still queued.

    What it asks or publishes in queues is published here too: there may be no worker."""
    work = asyncio.ensure_future(_drive(service, program, run, claimed, created))
    with Signals(lambda: _interrupt(service, work)):
        try:
            return await work
        except asyncio.CancelledError:
            return await result_of(service, program, run)


async def _drive(
    service: RunService, program: Program, run: RunId, claimed: Claimed | None, created: bool
) -> Result:
    while True:
        seen = service.store.queue_changes()
        result = await _advance(service, program, run, claimed, created)
        if service.store.queue_changes() == seen or not await _publish(service, run):
            return result
        claimed, created = None, False


async def _publish(service: RunService, run: RunId) -> bool:
    """Publish what is due in the queues. Returns whether the run may be advanced again: the message that it
    waits for was there, or its review was completed before it was published."""
    queues = service.runtime.queues
    if queues is None:
        return False
    try:
        await queues.open().bridge.work()
    except HoldfastError as error:
        print_note(f"The queues could not be served: {error.message} A worker tries it again.")
        return False
    row = await service.get(run)
    return row.status in PARKED and row.ready_at is not None and row.ready_at <= service.store.now()


class QueueNotice:
    """Prints once, after two seconds, that the run is queued."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._announced = False

    def __call__(self, error: LimitReachedError) -> None:
        if not self._announced and time.monotonic() - self._since > PATIENCE:
            self._announced = True
            print_note(f"{error.message} Press Ctrl-C to leave it queued for a worker.")


async def _advance(
    service: RunService, program: Program, run: RunId, claimed: Claimed | None, created: bool
) -> Result:
    announced = False
    patience = QueueNotice()
    while True:
        try:
            if claimed is None:
                if service.runtime.engine is not None:
                    await _note_engine(service, run)
                return await advance(service, program, run, created=created, waits=patience)
            claim, pos = claimed
            claimed = None
            return await make_result(service, program, run, *await service.runtime.drive(claim, pos))
        except (RunBusyError, LeaseLostError):
            # Another worker has the run: follow it until it ends, waits, or its lease expires.
            row = await service.get(run)
        if row.status in ENDED:
            return await result_of(service, program, run)
        if row.lease_until is not None and not announced:
            announced = True
            until = to_datetime(row.lease_until).astimezone()
            print_note(f"{row.worker} has this run (its lease: until {until:%H:%M:%S}); waiting for it.")
        await service.store.wait_change(0.2)
        row = await service.get(run)
        if row.status in ENDED or row.status in PARKED:
            return await result_of(service, program, run)


async def _note_engine(service: RunService, run: RunId) -> None:
    """Says once why a run of an engine does not begin."""
    engine, row = service.runtime.engine, await service.get(run)
    if engine is None or row.worker != engine.name:
        return
    found = await engine.report(row)
    if found.problem:
        print_note(f"Run {row.id} waits: {found.problem}. Press Ctrl-C to leave it to a worker.")


def _interrupt(service: RunService, work: asyncio.Future[Any]) -> None:
    """The first time handlers may finish, for a while; the second time the run is released at once."""
    drivers = list(service.runtime.drivers.values())
    # Without a driver the run is queued or on another worker: there is nothing to drain.
    if not drivers or any(driver.session.draining for driver in drivers):
        work.cancel()
        return
    print_note("Stopping; the step that runs may finish. Press Ctrl-C again to stop at once.")
    for driver in drivers:
        driver.drain()
    # A step that never ends must not make the first Ctrl-C useless.
    asyncio.get_running_loop().call_later(service.runtime.settings.grace, work.cancel)


class Signals:
    """Calls `stop` on SIGINT and SIGTERM instead of ending the process."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._loop.add_signal_handler(number, self._stop)
        except (NotImplementedError, RuntimeError, ValueError):
            pass  # not in the main thread: the embedding program handles signals

    def __exit__(self, *_exc: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(number)
