"""Child runs of a script (`ctx.start`, `ctx.call`): each is known by the place of its call, so that a script
that is entered again finds it and starts no second one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context as EmptyContext
from functools import partial
from typing import Any, Final

from holdfast.errors import (
    ChildDepthError,
    ChildFailedError,
    FlowNotFoundError,
    InputError,
    NotDone,
    RunExistsError,
)
from holdfast.holds.permissions.starters import RunStarters
from holdfast.model.graph import HoldSpec
from holdfast.model.program import Program
from holdfast.runs.context.driver_protocols import Attempt, HandlerSession
from holdfast.runs.context.message_waits import RECEIVED, MessageWaits, limited
from holdfast.runs.context.substeps import Numbers
from holdfast.runs.driver.load import load
from holdfast.runs.driver.services import RunStarter
from holdfast.runs.store_identity import store_identity
from holdfast.store.rows import RunRow
from holdfast.types.hold import CONSUME
from holdfast.types.ids import RunId, derived_id
from holdfast.types.queue_message import RUNS
from holdfast.types.status import Effect, RunStatus
from holdfast.types.terms import HitlTarget
from holdfast.types.text import clean_text

MAX_DEPTH: Final = 32
"""Of children of children: a flow that calls itself without an end stops here."""


class ChildRun:
    """A run that a script has started. It has an end of its own: `result` waits for it."""

    def __init__(self, children: Children, run: str, program: Program) -> None:
        self._children = children
        self._program = program
        self.run_id = RunId(run)
        self.flow = program.graph.name

    def __repr__(self) -> str:
        return f"ChildRun({self.flow!r}, {self.run_id})"

    async def result(self, *, timeout: Any = None, key: str | None = None) -> Any:
        """The state that the child ended with; while it runs, the parent needs no process. Raises
        ChildFailedError if it failed or was cancelled, WaitTimeoutError after `timeout`: the child runs on.
        `key` replaces the call's number where order depends on arrival."""
        session, waits = self._children.at.session, self._children.waits
        spec = HoldSpec(
            type=CONSUME,
            prompt=f"Waits for the end of {self.flow} ({self.run_id}).",
            options=(RECEIVED,),
            target=HitlTarget(scope=RUNS, queue=self.run_id),
        )
        spec = limited(spec, timeout, f"the child {self.flow!r} of node {self._children.at.node.id!r}")
        ended = await waits.message(spec, {}, key, partial(advance_here, session, self.run_id))
        # The one to which it was rewound has another id.
        run = RunId(ended["run"])
        if ended["status"] != RunStatus.completed:
            how = "has failed" if ended["status"] == RunStatus.failed else "was cancelled"
            why = f": {ended['error']}" if ended["error"] else "."
            raise ChildFailedError(
                f"child run {run} of {self.flow!r} {how}{why}", run=run, status=ended["status"]
            )
        read = partial(_final_state, session, run, self._program)
        state = await self._children.step(
            f"state of {self.flow}", read, effect=Effect.read, key=key and f"{key}/state"
        )
        return self._program.schema.build(dict(state))


class Children:
    """Those that one attempt starts. `step`: `Context.step`, also where the script runs in a thread."""

    def __init__(
        self, attempt: Attempt, numbers: Numbers, waits: MessageWaits, step: Callable[..., Awaitable[Any]]
    ) -> None:
        self.at = attempt
        self.waits = waits
        self.step = step
        self._numbers = numbers

    async def start(
        self, flow: Any, given: Any, key: str | None = None, *, detached: bool = False
    ) -> ChildRun:
        at = self.at
        program = program_of(at.session, flow, at.node.id)
        place = at.calls.substep_key(at.execution, at.node, self._numbers.next(key))
        create = partial(create_child, at.session, program, given, place, detached)
        patient = partial(at.calls.when_available, create)
        name = f"start {program.graph.name}"
        return ChildRun(
            self, await self.step(name, patient, effect=Effect.write, key=key, idempotent=True), program
        )


def starter_of(session: HandlerSession) -> RunStarter:
    found = session.services.starter
    if found is None:
        raise NotDone("this process cannot start runs.", hint="Use Holdfast(...) or a worker.")
    return found


def program_of(session: HandlerSession, flow: Any, node: str) -> Program:
    """Of a `Flow`, or of the name of one that this process has. Raises InputError, FlowNotFoundError."""
    if isinstance(flow, str):
        known = [each for each in starter_of(session).programs.values() if each.graph.name == flow]
        if not known:
            raise FlowNotFoundError(
                f"node {node!r} starts the flow {flow!r}, which is not loaded here.",
                hint="Give the flow itself, or load its module in every worker.",
                flow=flow,
            )
        return known[-1]
    compile_ = getattr(flow, "compile", None)
    if compile_ is None:
        raise InputError(
            f"node {node!r} starts {clean_text(repr(flow), 100)}, which is not a flow.",
            hint="Give a Flow or its name: ctx.call(refund, {...}).",
        )
    return compile_()


async def create_child(
    session: HandlerSession, program: Program, given: Any, place: str, detached: bool
) -> str:
    """Doing it twice has one effect. `place`: of the call, in its run. Raises ChildDepthError."""
    parent = session.row
    await _require_depth(session, program)
    # With the store's own name, so that no caller can take the id before.
    run = derived_id("child", await store_identity(session.store), place)
    starters = await RunStarters(session.store).of_source(parent)
    row, _ = await starter_of(session).create_run(
        program,
        given,
        run_id=run,
        tenant=parent.tenant,
        started_by=parent.started_by,
        started_via=starters,
        parent_run=None if detached else parent.id,
    )
    if row.flow != program.graph.name:
        raise RunExistsError(f"run {run} is a run of {row.flow!r}.", run=run)
    return row.id


async def _require_depth(session: HandlerSession, program: Program) -> None:
    row: RunRow | None = session.row
    for _ in range(MAX_DEPTH):
        above = row.parent_run if row is not None else None
        if above is None:
            return
        row = await session.store.get_run(above)
    raise ChildDepthError(
        f"run {session.run} has {MAX_DEPTH} runs above it, and may not start {program.graph.name!r}.",
        hint="A flow that calls itself needs an end: check its condition.",
    )


async def advance_here(session: HandlerSession, run: str) -> None:
    """Where no worker claims it, it runs in this process, beside its parent."""
    starter = starter_of(session)
    if starter.has_worker:
        return
    task = session.loop.create_task(starter.advance_child(RunId(run)), context=EmptyContext())
    starter.children.add(task)
    task.add_done_callback(starter.children.discard)
    # Shielded: the child is not cancelled because its parent leaves memory.
    await asyncio.shield(task)


async def _final_state(session: HandlerSession, run: RunId, program: Program) -> dict[str, Any]:
    services = session.services
    row = await session.store.get_run(run)
    if row is None:
        raise ChildFailedError(f"child run {run} of {program.graph.name!r} was deleted.", run=run)
    if row.version != program.version:
        program = await starter_of(session).find_program(row.version, row.flow)
    codec = services.codec_for(program, row.tenant)
    loaded = await load(session.store, codec, program.graph, run, blobs=services.blobs)
    await services.blobs.materialise(loaded.pos, codec.registry)
    tree = loaded.pos.scopes[""].tree
    tree.fill_all()
    values = tree.merged() if len(tree.frames) > 1 else tree.values
    return dict(values.get("scratch", {}))
