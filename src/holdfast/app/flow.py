"""`Flow`: built like a graph, run like a function."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import datetime
from functools import cached_property
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from holdfast.app.agent_nodes import AgentNodes
from holdfast.app.holdfast import Holdfast, default_instance
from holdfast.app.result import Result, State
from holdfast.errors import RunExistsError, VersionMismatchError
from holdfast.model.position import Position
from holdfast.model.program import Program
from holdfast.model.user_code.boundary import call_plain, run_loop
from holdfast.runs.claim_run import WaitCallback, claim_in_turn
from holdfast.runs.concurrency_limits.run_limits import QueuedRun, held_limits, set_held_limits
from holdfast.runs.driver.handler_result import build_state
from holdfast.runs.service import RunService
from holdfast.store.rows import Claim, RunRow
from holdfast.types.clock import to_datetime
from holdfast.types.event import Event
from holdfast.types.ids import DEFAULT_TENANT, RunId
from holdfast.types.lease import Lease
from holdfast.types.status import ENDED, RunStatus

if TYPE_CHECKING:
    from holdfast.frontends.python.declarations import FlowSettings
    from holdfast.runs.migrate.check import MigrationReport

T = TypeVar("T")

# Seconds between two looks at a run that another process or task advances: soon at first, then less often.
LOOK_SOON, LOOK_AGAIN = 0.01, 0.25
LOOK_HERE = 0.05


class Flow(AgentNodes, Generic[State]):
    """A named, versioned description of work that runs with no server.

    `Flow("refund", state=Refund)` is a `Flow[Refund]`, and the `state` of its results is a `Refund`; without
    a type it is a mapping.
    """

    if TYPE_CHECKING:

        @overload
        def __init__(
            self: Flow[dict[str, Any]], name: str, state: None = None, **settings: Unpack[FlowSettings]
        ) -> None: ...
        @overload
        def __init__(self, name: str, state: type[State], **settings: Unpack[FlowSettings]) -> None: ...
        def __init__(self, name: str, state: Any = None, **settings: Any) -> None: ...

    def program(self) -> Program:
        """The compiled form; compiled once, until something is added."""
        return self.compile()

    def schedule(self, name: str, **plan: Any) -> None:
        """Workers that serve this flow set that schedule when they start: one of `cron`, `every` and `at`,
        and the other settings of `hf.schedules().put`. An operator's changes are kept; a schedule that is no
        longer declared stays until it is deleted. Raises InputError."""
        from holdfast.runs.schedules.parse_schedule import make_plan, require_name

        tenant = plan.pop("tenant", DEFAULT_TENANT)
        make_plan(0, **plan)
        self.declared[tenant, require_name(name)] = plan

    @cached_property
    def declared(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The schedules that `schedule` has declared, by tenant and name."""
        return {}

    async def run(
        self, given: Any = None, *, on: Holdfast | None = None, run_id: str | None = None, **options: Any
    ) -> Result[State]:
        """Start a run and advance it until it ends or waits for a person or for a long time.

        Options of the run: `tenant`, `thread`, `instance_key`, `idempotency_key`, `lane`, `priority`, `mode`;
        `started_by`: who started it, as `user:dana@acme`; `deployment`: what it is a run of;
        `breaks`: nodes to stop before; `checkpoints`: which records it lists, instead of the flow's policy.

        Where the flow's limits are reached, this run is queued first.
        """
        hf = await (on or default_instance()).at(options.get("tenant", DEFAULT_TENANT))
        program = self.program()
        hf.register(program)
        hf.require_judges(program)
        service = await hf.service()
        if service.runtime.engine is not None:
            row, _ = await service.create(
                program, given if given is not None else {}, run_id=run_id, **options
            )
            self._require_own(row)
            await wait_until_idle(service, row.id, None)
            return await result_of(service, program, row.id)
        started = await service.start(program, given if given is not None else {}, run_id=run_id, **options)
        if isinstance(started, RunRow):
            self._require_own(started)
            return await result_of(service, program, started.id)
        if isinstance(started, QueuedRun):
            return await advance(service, program, started.row.id, created=True)
        claim, pos = started
        status, pos = await service.runtime.drive(claim, pos)
        return await make_result(service, program, claim.run.id, status, pos)

    def _require_own(self, row: RunRow) -> None:
        """Raises RunExistsError for an earlier run of another flow."""
        if row.flow != self.name:
            raise RunExistsError(
                f"run {row.id} exists already, as one of flow {row.flow!r}, not {self.name!r}.",
                hint="Start this one under another id or idempotency key.",
                run=row.id,
            )

    async def submit(self, given: Any = None, *, on: Holdfast | None = None, **options: Any) -> RunId:
        """A new run for any worker; durable when this returns. Options as for `run`. With an
        `idempotency_key` that was used before: the id of that run. See `result`."""
        service = await self._service(on, options.get("tenant", DEFAULT_TENANT))
        row, _ = await service.create(self.program(), given if given is not None else {}, **options)
        return row.id

    async def result(
        self, run_id: str, *, wait: float | None = 0.0, on: Holdfast | None = None
    ) -> Result[State]:
        """The present state of a run of this flow, without advancing it.

        `wait`: seconds to wait until it has ended or waits for a person; None: no limit. `result.status` says
        which."""
        service = await self._service(on)
        row, _ = await self._of_this_flow(service, run_id, None)
        await wait_until_idle(service, row.id, wait)
        return await result_of(service, self.program(), row.id)

    async def resume(
        self,
        run_id: str,
        *,
        checkpoint: str | int | None = None,
        input: Any = None,  # noqa: A002
        patch: Mapping[str, Any] | None = None,
        on: Holdfast | None = None,
        tenant: str | None = None,
        breaks: Sequence[str] | None = None,
        accept_loss: bool = False,
    ) -> Result[State]:
        """Resume a run of this flow: after an answer, a crash, or a failure that was fixed.

        `run_id` may be a checkpoint's id: of the latest one, or of the question that was just answered. An
        older one, an input or a patch never changes the run's history: it continues in a fork, whose id is in
        the result. `tenant`: only a run of theirs.
        `breaks`: nodes that it stops before from now on too. `accept_loss`: also where the store lost part of
        its history, else that is a HistoryLostError.
        """
        hf, program = on or default_instance(), self.program()
        if tenant is not None:
            hf = await hf.at(tenant)
        hf.require_judges(program)
        hf.register(program)
        service = await hf.service()
        row, seq = await self._of_this_flow(service, run_id, checkpoint)
        if tenant is not None:
            await service.get(row.id, tenant=tenant)
        if seq is not None and input is None and patch is None:
            from holdfast.runs.resume import resume_point

            _, seq = await resume_point(service, run_id, checkpoint)
        if seq is not None or input is not None or patch is not None:
            row = await service.fork(row.id, row.head if seq is None else seq, patch=patch, input=input)
        elif row.status in (RunStatus.completed, RunStatus.cancelled):
            return await result_of(service, program, row.id)
        # Before anything is changed: a run that this process cannot serve keeps its status (D-34).
        await service.runtime.find_program(row.version, row.flow)
        if row.status is RunStatus.failed or breaks:
            await service.request_resume(row.id, breaks=breaks, accept_loss=accept_loss)
        return await advance(service, program, row.id)

    async def fork(
        self,
        checkpoint: str,
        seq: int | None = None,
        *,
        patch: Mapping[str, Any] | None = None,
        input: Any = None,  # noqa: A002
        on: Holdfast | None = None,
    ) -> Result[State]:
        """What if: a new run from a checkpoint (its id, or a run and a record), advanced like any other."""
        service = await self._service(on)
        await self._of_this_flow(service, checkpoint, seq)
        row = await service.fork(checkpoint, seq, patch=patch, input=input)
        return await advance(service, self.program(), row.id)

    async def rewind(
        self,
        checkpoint: str,
        seq: int | None = None,
        *,
        patch: Mapping[str, Any] | None = None,
        input: Any = None,  # noqa: A002
        on: Holdfast | None = None,
    ) -> Result[State]:
        """A fork that supersedes its source: the old run ends as cancelled."""
        service = await self._service(on)
        await self._of_this_flow(service, checkpoint, seq)
        row = await service.rewind(checkpoint, seq, patch=patch, input=input)
        return await advance(service, self.program(), row.id)

    async def check_runs(self, *, on: Holdfast | None = None) -> list[MigrationReport]:
        """Each live run on another version of this flow: whether it would fit this one, and why not; and
        those of this version that wait inside of a script whose code has changed."""
        return await (await self._service(on)).check(self.program())

    async def migrate_runs(
        self, *runs: str, dry_run: bool = False, force: bool = False, on: Holdfast | None = None
    ) -> list[MigrationReport]:
        """Migrate runs (default: all live ones of another version) to this one, as `migrate` declared it.

        `force`: named runs are migrated despite reasons that you accept, such as sub-steps of other code.
        """
        service = await self._service(on)
        return await service.migrate(self.program(), runs=runs, dry_run=dry_run, force=force)

    async def _of_this_flow(
        self, service: RunService, ref: str, checkpoint: str | int | None
    ) -> tuple[RunRow, int | None]:
        """`RunService.standing`, of a run that this flow may resume, else VersionMismatchError."""
        row, seq = await service.standing(ref, checkpoint)
        if row.flow != self.name:
            raise VersionMismatchError(
                f"{ref} is a run of flow {row.flow!r}, not of {self.name!r}.",
                hint=f"Resume it through the flow {row.flow!r}.",
                flow=row.flow,
            )
        return row, seq

    async def _service(self, on: Holdfast | None, tenant: str | None = None) -> RunService:
        hf = on or default_instance()
        if tenant is not None:
            hf = await hf.at(tenant)
        hf.register(self.program())
        return await hf.service()

    def run_sync(self, given: Any = None, **options: Any) -> Result[State]:
        """`run` for code without an event loop (inside one, it runs in a separate thread)."""
        return run_blocking(self.run(given, **options))

    async def stream(
        self, given: Any = None, *, on: Holdfast | None = None, **options: Any
    ) -> AsyncIterator[Event]:
        """The events of a new run as they become durable, until it ends or waits."""
        hf = await (on or default_instance()).at(options.get("tenant", DEFAULT_TENANT))
        program = self.program()
        hf.register(program)
        hf.require_judges(program)
        service = await hf.service()
        row, _ = await service.create(program, given if given is not None else {}, **options)
        driving = asyncio.ensure_future(advance(service, program, row.id))
        try:
            async for event in follow(service, row.id, driving):
                yield event
            await driving
        finally:
            if not driving.done():
                # The reader left. The run is released, and any worker can resume it.
                driving.cancel()
                await asyncio.gather(driving, return_exceptions=True)


async def follow(
    service: RunService, run: RunId, driving: asyncio.Future[Any], *, poll: float | None = None
) -> AsyncGenerator[Event]:
    """Events as they become durable, until the work is done. `poll`: seconds after which events of another
    process are looked for, which advances the run meanwhile."""
    after, woken = 0, asyncio.Event()
    stop = service.runtime.listen(run, woken.set)
    driving.add_done_callback(lambda _done: woken.set())
    try:
        while True:
            # Both before the events are read: what is written after this line is found by another round.
            woken.clear()
            over = driving.done()
            for event in await service.events(run, after=after, limit=10_000):
                after = event.number
                yield event
            if over:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), poll)
    finally:
        stop()


async def wait_until_idle(service: RunService, run: RunId, wait: float | None) -> None:
    """Until the run has ended or waits for a person, or the time is over."""
    clock = service.runtime.clock
    deadline = None if wait is None else clock.monotonic() + wait
    pause = LOOK_SOON
    committed, rested, here = asyncio.Event(), asyncio.Event(), False
    stops = [
        service.runtime.listen(run, committed.set),
        service.runtime.listen(run, rested.set, rests=True),
    ]
    try:
        while not await is_idle(service, run):
            while True:
                left = pause if deadline is None else min(pause, deadline - clock.monotonic())
                if left <= 0:
                    return
                # An engine may advance it in this process: then it is looked at when it rests, or when
                # nothing of it was committed here for a while. Not with the commits of other runs.
                here = service.runtime.engine is not None and (here or committed.is_set())
                if not here or await _is_set(rested, left) or not committed.is_set():
                    break
                committed.clear()
            if rested.is_set():
                rested.clear()
                pause = LOOK_HERE
            # Its driver may be in another process; not every store notifies of every step.
            elif here or not await service.store.wait_change(left):
                pause = min(2 * pause, LOOK_AGAIN)
    finally:
        for stop in stops:
            stop()


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def is_idle(service: RunService, run: RunId) -> bool:
    """Whether a run has ended or waits for a person."""
    status = (await service.get(run)).status
    if status is not RunStatus.pending_input:
        return status in ENDED
    # A run whose questions are answered only waits to be claimed.
    return bool(await service.holds(run))


def is_on_engine(service: RunService, row: RunRow) -> bool:
    """Whether an engine advances this run: this process only waits for it."""
    engine = service.runtime.engine
    return engine is not None and row.worker == engine.name


async def advance(
    service: RunService,
    program: Program,
    run: RunId,
    *,
    created: bool = False,
    waits: WaitCallback | None = None,
) -> Result:
    """Claim the run, in its turn (`claim_in_turn`), and drive it until it ends or parks."""
    if service.runtime.engine is not None and is_on_engine(service, row := await service.get(run)):
        async with _beside(service, program, row):
            await wait_until_idle(service, run, None)
        return await result_of(service, program, run)
    claim = await claim_in_turn(service, run, created=created, waits=waits)
    if isinstance(claim, RunRow):
        return await result_of(service, program, run)
    status, pos = await service.runtime.drive(claim)
    if claim.run.version != program.version:
        program = await service.runtime.find_program(claim.run.version, claim.run.flow)
    return await make_result(service, program, run, status, pos)


def _beside(service: RunService, program: Program, row: RunRow) -> AbstractAsyncContextManager[None]:
    """What a process that follows a run of an engine does beside it."""
    if program.beside is None or program.version != row.version:
        return nullcontext()
    service.runtime.register(program)
    return program.beside(service.runtime, Claim(Lease(row.id, row.key, row.term, row.worker or ""), row))


async def result_of(service: RunService, program: Program, run: RunId) -> Result:
    """The present state of a run, without advancing it."""
    from holdfast.runs.driver.load import load

    row = await service.get(run)
    if row.version != program.version:
        # An older version of the same flow: its state is shown as its own code declares it.
        program = await service.runtime.find_program(row.version, row.flow)
    codec = service.runtime.codec_for(program, row.tenant)
    loaded = await load(service.store, codec, program.graph, row.id, blobs=service.runtime.blobs)
    await service.runtime.blobs.materialise(loaded.pos, codec.registry)
    return await make_result(service, program, row.id, row.status, loaded.pos)


async def make_result(
    service: RunService, program: Program, run: RunId, status: RunStatus, pos: Position
) -> Result:
    tree = pos.scopes[""].tree
    values = tree.merged() if len(tree.frames) > 1 else tree.values
    for partition, key in list(tree.lazy):
        if partition == "artifacts":
            tree.fill(partition, key)
    holds = await service.questions(run) if status is RunStatus.pending_input else []
    state = call_plain(build_state, program, tree, values.get("scratch", {}))
    return Result(
        run,
        status,
        state,
        dict(values.get("artifacts", {})),
        pos.failing,
        holds,
        pos.failed_node,
        dict(pos.totals),
        program.graph.secrets,
        await _wakes_at(service, run) if status is RunStatus.waiting else None,
    )


async def _wakes_at(service: RunService, run: RunId) -> datetime | None:
    found = (await service.store.wake_times([run])).get(run)
    return None if found is None else to_datetime(found)


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end from sync code, even if an event loop already runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_loop(work)
    done: list[Any] = []
    # Context variables do not follow into a thread: without them a run that is started inside a limited one
    # would wait for the place that its own caller holds.
    places = held_limits()

    def target() -> None:
        set_held_limits(places)
        try:
            done.append((True, run_loop(work)))
        except BaseException as error:
            done.append((False, error))

    thread = Thread(target=target, name="holdfast-run-sync")
    thread.start()
    thread.join()
    fine, value = done[0]
    if not fine:
        raise value
    return value
