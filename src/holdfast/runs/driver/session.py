"""The data of one claimed run, which the helpers of its driver share.

The helpers have an order, and each imports only those before it: session, late_evidence, record_writer,
context_calls, handler_call, handler_tasks, run_inbox, park, wait, driver. What a helper needs of a later one
is data, and is here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.engine.decision import Decision
from holdfast.engine.messages import HandlerFinished, Message, SubstepDoubted
from holdfast.errors import LeaseLostError
from holdfast.model.graph import Graph, Node
from holdfast.model.position import Exec, Position, Sub
from holdfast.model.program import Program
from holdfast.model.user_code.tasks import OwnedTask
from holdfast.runs.context.driver_protocols import OpenContext
from holdfast.runs.driver.load import LoadedRun
from holdfast.runs.driver.services import RunServices
from holdfast.runs.hold_preparation import facts_of
from holdfast.store.rows import Claim
from holdfast.telemetry import NodePlace, log
from holdfast.types.concurrency_limits import is_entity
from holdfast.types.fleet import BlockedEntity
from holdfast.types.ids import RunId
from holdfast.types.record import Side
from holdfast.types.redaction import tenant_scope

Place = tuple[str, int]
"""(scope, node) of an execution"""

HandlerTask = OwnedTask[HandlerFinished | SubstepDoubted | None]


class RunSession:
    """From claim to park or end. It does nothing itself; `on_lost` is called when the lease is lost."""

    def __init__(
        self,
        services: RunServices,
        program: Program,
        claim: Claim,
        loaded: LoadedRun,
        on_lost: Callable[[], None],
    ) -> None:
        self.services = services
        self.store = services.store
        self.clock = services.clock
        self.recorder = services.recorder
        self.program = program
        self.graph: Graph = program.graph
        self.row = claim.run
        self.lease = claim.lease
        self.run: RunId = claim.run.id
        self.pos: Position = loaded.pos
        self.codec = services.codec_for(program, claim.run.tenant)
        self.facts = facts_of(claim.run)
        self.queue = services.recorder.open(claim.lease, loaded.pos.head, on_lost)
        self.queue.route = self._prepare_holds
        self.loop = asyncio.get_running_loop()
        # Set when something happened that a waiting driver has to handle.
        self.wake = asyncio.Event()
        self.lost = False
        # Handlers may finish, nothing new starts; then the run is released.
        self.draining = False
        # The driver was stopped: the run leaves this process.
        self.stopped = False
        # Nothing is at work: it waits in memory for a person or a time.
        self.idle = False
        # Asked to leave memory: the run parks as if it had waited there long enough.
        self.evicted = False
        # Our lease is ended by ourselves.
        self.leaving = False
        # The inbox counter when it was last read: parking is refused if it has grown since (D-29).
        self.inbox_seen = 0
        # The execution whose handler runs in the driver's own task, if one does.
        self.inline: Exec | None = None
        self.tasks: dict[Place, HandlerTask] = {}
        self.contexts: dict[Place, OpenContext] = {}
        # Handlers that wait for a person or a time, by place and ordinal of the question.
        self.answers: dict[tuple[str, int, str], asyncio.Future[Sub]] = {}
        # The starts of items of maps that have a rate, by the place and the visit of the map.
        self.item_starts: dict[tuple[str, int, int], Any] = {}
        self.is_shared = False
        # What ended and was not given to the engine yet.
        self.finished: list[Message] = []
        # Code of this run that was stopped and still runs; kept only where its end matters.
        self.left_running: set[asyncio.Future[Any]] = set()
        # Nothing of the run may run when the next of its entity starts.
        self._is_entity = is_entity(claim.run.limit)
        # An error of a handler's task that ends this driver.
        self.fatal: BaseException | None = None

    async def _prepare_holds(self, side: Side) -> None:
        """Before the record that opens them is written."""
        put_states = self.services.put_hold_states
        # The recorder calls this, for runs of all tenants.
        with tenant_scope(self.row.tenant):
            if put_states is not None:
                await put_states(self.program, self.row, self.queue.pending, side)
            await self.services.preparer.prepare(side, self.facts)

    def take_finished(self) -> list[Message]:
        messages, self.finished = self.finished, []
        return messages

    # ------------------------------------------------------------------ lookups
    def graph_of(self, execution: Exec) -> Graph:
        scope = self.pos.scopes[execution.scope]
        return self.graph if scope.graph == "" else self.pos.scope_graph(self.graph, scope)

    def node(self, execution: Exec) -> Node:
        return self.graph_of(execution).nodes[execution.node]

    def program_of(self, execution: Exec) -> Program:
        path = self.pos.scopes[execution.scope].graph
        return self.program if path == "" else self.program.at(path)

    def where(self, execution: Any) -> NodePlace | None:
        """For log lines and traces; None: the execution that runs inline, if one does."""
        execution = execution or self.inline
        # A task that a handler started may log after the handler's branch has ended.
        if execution is None or execution.scope not in self.pos.scopes:
            return None
        return NodePlace(
            self.run,
            self.row.flow,
            execution.scope,
            self.node(execution).id,
            execution.visit,
            execution.attempt,
            execution.seq,
        )

    def leave_running(self, call: asyncio.Future[Any]) -> None:
        if self._is_entity and not call.done():
            self.left_running.add(call)
            call.add_done_callback(self._has_ended)
            nodes = ", ".join(sorted({self.node(each).id for each in self.pos.execs.values()}))
            at = self.clock.now()
            self.loop.call_later(self.services.settings.grace, self._name_blocker, call, nodes, at)

    def _name_blocker(self, call: asyncio.Future[Any], nodes: str, since: int) -> None:
        """No other run of the entity starts meanwhile, and the code may never return. In the log, and with
        the worker's heartbeats."""
        if call.done() or not self.keeps_place:
            return
        entity = self.row.instance_key or ""
        self.services.blocked[call] = BlockedEntity(
            entity=entity, run=self.run, flow=self.row.flow, nodes=nodes, since=since
        )
        message = (
            "code of run %s (node %s) is still running after the run was stopped; its entity %r stays locked "
            'until the code returns or this worker is restarted (isolation="process" ends such code)'
        )
        log.error(message, self.run, nodes, entity, extra={"run": self.run})

    def _has_ended(self, call: asyncio.Future[Any]) -> None:
        self.left_running.discard(call)
        self.services.blocked.pop(call, None)
        self.wake.set()

    @property
    def keeps_place(self) -> bool:
        """Whether it has to end here when its code has ended, and not before: the run of an entity. One that
        leaves this process with code that still runs keeps its place until its lease has expired."""
        return self._is_entity and not (self.lost or self.stopped)

    async def wait_for_code(self) -> None:
        """Until no code runs that was stopped, if the run keeps its place so long."""
        while self.left_running and self.keeps_place:
            await asyncio.wait(self.left_running)

    def timeout_of(self, execution: Any) -> float | None:
        """Of the node of an execution, in seconds; None as in `where`."""
        execution = execution or self.inline
        limit = None if execution is None else self.node(execution).timeout
        return None if limit is None else limit / 1e6

    def is_effect(self, key: Place) -> bool:
        execution = self.pos.execs.get(key)
        return execution is not None and (execution.intent >= 0 or bool(execution.step_intents))

    def decision(self) -> Decision:
        """A new decision, for what is decided outside the engine's step."""
        return Decision(self.graph, self.pos, self.clock.now())

    def check(self) -> None:
        """Raises what ends this driver: the lost lease, or an error of a handler's task."""
        if self.lost:
            raise self.lease_lost_error()
        if self.fatal is not None:
            raise self.fatal

    def lease_lost_error(self) -> LeaseLostError:
        return LeaseLostError(f"lost the lease on run {self.run} to another worker", run=self.run)
