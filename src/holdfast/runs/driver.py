"""Driving one run: decide, write, call handlers, wait, park. One driver holds one lease."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from holdfast.checkpoint import Blob
from holdfast.engine import asking
from holdfast.engine.decision import Decision
from holdfast.engine.messages import Doubted, Finished, Message, Proven, Recovered, Stopped
from holdfast.engine.step import step
from holdfast.errors import (
    ExpressionError,
    HoldfastError,
    InputError,
    LeaseLostError,
    NodeTimeoutError,
    StoreError,
    VersionMismatchError,
)
from holdfast.model.apply import apply_record
from holdfast.model.bodies import AttemptBody, ChunkBody, ErrorInfo, IntentBody, SnapshotBody, SubstepBody
from holdfast.model.graph import Graph, HoldSpec, Node
from holdfast.model.position import SETTLED, Exec, Position, Scope, Sub, resolver
from holdfast.model.program import Handler, Program
from holdfast.model.snapshot import dump_position
from holdfast.model.template import compile_template
from holdfast.runs import calling, evidence, mail
from holdfast.runs.context import Context, Suspended, ThreadContext
from holdfast.runs.loading import Loaded
from holdfast.runs.memory import NodeMemory, StoredMemory
from holdfast.store.base import Claim
from holdfast.telemetry import crashpoint, log
from holdfast.types.ids import RunId, derived_id
from holdfast.types.memory import Memory
from holdfast.types.outcome import Outcome
from holdfast.types.record import Body, Kind, Op, Park, Record
from holdfast.types.status import REPEATABLE, Effect, RunStatus
from holdfast.types.value import FrozenDict

if TYPE_CHECKING:
    from holdfast.runs.runtime import Runtime

SNAPSHOT_RECORDS = 200
SLOW = 50_000  # microseconds: work that took longer is flushed at once (D-9)


class Driver:
    """Owns the position of one run in memory, from claim to park or end."""

    def __init__(self, runtime: Runtime, program: Program, claim: Claim, loaded: Loaded) -> None:
        self.runtime = runtime
        self.program = program
        self.graph: Graph = program.graph
        self.row = claim.run
        self.lease = claim.lease
        self.run: RunId = claim.run.id
        self.pos: Position = loaded.pos
        self.since_snapshot = loaded.since_snapshot
        self.bytes_since = 0
        self.snapshot_size = 0
        self.sealer = runtime.sealer_of(program)
        self.loop = asyncio.get_running_loop()
        self.recorder = runtime.recorder
        self.queue = runtime.recorder.open(self.lease, loaded.pos.head, self.lost)
        self.strict = False
        self.tasks: dict[tuple[str, int], asyncio.Task[Finished | Doubted | None]] = {}
        self.contexts: dict[tuple[str, int], Context] = {}
        self.answers: dict[tuple[str, int, str], asyncio.Future[Sub]] = {}
        self.done: list[Message] = []
        self.awake = asyncio.Event()
        self.box = mail.Box(self)
        self.is_lost = False
        self.draining = False
        self.suspending: set[tuple[str, int]] = set()
        self.task: asyncio.Task[Any] | None = None
        self.inline = False
        self.interrupted = False
        self.hurry = False
        # Executions with an intent whose handler was not called: a release withdraws them (D-14).
        self.uncalled: set[tuple[str, int]] = set()
        # Those whose handler is not called at all, because they failed before.
        self.unstarted: set[tuple[str, int]] = set()
        # Effects that ended: (seq of the record that says so, seq of the intent, what it came to) (D-17).
        self.unproven: list[tuple[int, int, Finished | Proven]] = []
        self.fatal: BaseException | None = None
        self.left = asyncio.Event()
        self.remember_later: dict[tuple[str, int, int], list[Memory]] = {}
        self.leaving = False

    # ------------------------------------------------------------------ the loop
    async def drive(self) -> RunStatus:
        """Until the run ends or waits. Raises LeaseLostError where another worker took it over."""
        self.task = asyncio.current_task()
        try:
            return await self._drive()
        except asyncio.CancelledError:
            if self.is_lost:
                await asyncio.shield(self._testify())
                raise self.queue.poison or LeaseLostError(f"run {self.run} is not ours any more") from None
            await asyncio.shield(self._release())
            raise
        except LeaseLostError:
            self.is_lost = True
            await self._testify()
            raise
        finally:
            await self._stop_handlers(set())
            self.recorder.close(self.queue)
            # From here on the task is our caller's own: nobody cancels it for what was ours.
            self.task = None
            self.left.set()

    async def gone(self, grace: float) -> None:
        """Until the run is let go; handlers that take longer than the grace are stopped."""
        task = self.task
        if task is None or task is asyncio.current_task():
            return
        try:
            async with asyncio.timeout(grace):
                await self.left.wait()
        except TimeoutError:
            if not self.left.is_set():
                task.cancel()
            await self.left.wait()

    async def _testify(self) -> None:
        """We lost the run. What became of its effects is told unfenced, for who has it now (D-17)."""
        waiting = [task for key, task in self.tasks.items() if self._is_effect(key)]
        if waiting:
            await asyncio.wait(waiting, timeout=self.runtime.grace)
        for message in self.done:
            if isinstance(message, Finished):
                self._remember_effect(message, 1 << 62)
        committed = self.queue.committed
        for seq, intent, told in self.unproven:
            if seq > committed:
                raw = evidence.encode(told, self.sealer.registry)
                await evidence.report(self.runtime.store, self.run, intent, raw)

    def _is_effect(self, key: tuple[str, int]) -> bool:
        execution = self.pos.execs.get(key)
        return execution is not None and (execution.intent >= 0 or bool(execution.step_intents))

    def _remember_effect(self, message: Finished, seq: int) -> None:
        execution = self.pos.execs.get((message.scope, message.node))
        if execution is not None and execution.intent >= 0 and not message.unknown and message.probe is None:
            self._keep_evidence(seq, execution.intent, message)

    def _keep_evidence(self, seq: int, intent: int, told: Finished | Proven) -> None:
        if self.unproven and self.unproven[0][0] <= self.queue.committed:
            self.unproven = [known for known in self.unproven if known[0] > self.queue.committed]
        self.unproven.append((seq, intent, told))

    def _check_ours(self) -> None:
        if self.is_lost:
            raise LeaseLostError(f"run {self.run} is not ours any more")
        if self.fatal is not None:
            raise self.fatal

    async def _drive(self) -> RunStatus:
        messages = await self.box.first(self.row.inbox_seq)
        clock = self.runtime.clock
        while True:
            self._check_ours()
            for i, message in enumerate(messages):
                if type(message) is Finished:
                    messages[i] = message = self._storable(message)
                    self._remember_effect(message, self.pos.head + 1)
            decision = step(self.graph, self.pos, messages, clock.now())
            await self._write(decision)
            if self.remember_later:
                await self._remember(messages)
            if decision.ended:
                self.leaving = True
                return await self._end()
            if self.pos.failing is not None or self.pos.cancelling is not None:
                messages = await self._come_to_rest()
                continue
            if decision.cancels:
                await self._stop_handlers({(e.scope, e.node) for e in decision.cancels})
            starts = decision.starts
            if self.unstarted:
                starts = [e for e in starts if (e.scope, e.node) not in self.unstarted]
                self.unstarted.clear()
            if self.draining:
                starts = []
            if len(starts) == 1 and not self.tasks and self._may_run_inline(starts[0]):
                messages = await self._run_inline(starts[0])
            else:
                for execution in starts:
                    self._spawn(execution)
                messages = []
            if not messages:
                found = await self._next(decision)
                if isinstance(found, RunStatus):
                    return found
                messages = found
            elif self.queue.full:
                await self.recorder.committed(self.queue, self.pos.head)

    def _storable(self, message: Finished) -> Finished:
        """What a record cannot hold is a failure of its node, found before the engine counts on it."""
        if not message.ops and message.output is None:
            return message
        execution = self.pos.execs.get((message.scope, message.node))
        if execution is None:
            return message
        try:
            if any(op[2] != "set" for op in message.ops):
                self.pos.scopes[execution.scope].tree.check(execution.frame, message.ops)
            self.sealer.prepare(message.ops, message.output)
        except InputError as error:
            program = self.program.at(self.pos.scopes[execution.scope].graph)
            node = program.graph.nodes[execution.node]
            failed = calling.failure(node, program.handlers.get(node.id), execution, error, message.duration)
            failed.probe = "unknown" if message.probe is not None else None
            return failed
        return message

    def _may_run_inline(self, execution: Exec) -> bool:
        """Alone and with nothing to wait for besides: no task of its own is needed."""
        pos = self.pos
        if pos.holds or pos.timers:
            return False
        node = self._node(execution)
        if node.script:
            return False
        # With a context it may ask and wait for the answer: that must not stop the driver.
        handler = self.program.at(pos.scopes[execution.scope].graph).handlers.get(node.id)
        return handler is None or "ctx" not in handler.takes or node.effect not in REPEATABLE

    async def _run_inline(self, execution: Exec) -> list[Message]:
        self.inline = True
        try:
            message = await self._run(execution)
        except asyncio.CancelledError:
            if not self._was_interrupted():
                raise
            message = None
        finally:
            self.inline = False
        if self.interrupted:
            self._was_interrupted()
        if self.box.urgent:
            return [*([message] if message else []), *await self.box.take()]
        return [message] if message is not None else []

    def _was_interrupted(self) -> bool:
        """Whether the cancel that came was our own, to stop a handler; then it is over with that."""
        ours, self.interrupted = self.interrupted, False
        task = asyncio.current_task()
        return ours and task is not None and task.uncancel() == 0

    # ------------------------------------------------------------------ writing
    async def _write(self, decision: Decision) -> None:
        if decision.records:
            self._append_all(decision)
        if decision.starts and self.pos.failing is None and self.pos.cancelling is None:
            self._intend(decision.starts)
        if decision.probes:
            for execution in decision.probes:
                self._spawn(execution, probe=True)
        if self.strict and decision.records:
            await self.recorder.committed(self.queue, self.pos.head)
        elif self.hurry:
            self.hurry = False
            self.recorder.hurry()
        if self.since_snapshot >= SNAPSHOT_RECORDS and not decision.ended:
            self._snapshot()

    def _append_all(self, decision: Decision) -> None:
        """Seal the drafts and order them, all at once: records of one decision are written together."""
        sealer, term = self.sealer, self.lease.term
        for record, body in decision.records:
            self._append(record, sealer.seal(record, body, term))
        if sealer.ready:
            sealer.ready.clear()
        if sealer.spilled:
            self._note_spilled()

    def _append(self, record: Record, blobs: list[Blob]) -> None:
        self.recorder.append(self.queue, record, blobs)
        self.since_snapshot += 1
        self.bytes_since += len(record.payload)

    def _note_spilled(self) -> None:
        """Where large values lie, so that a snapshot can name them instead of copying them."""
        for path, partition, key, operand, ref in self.sealer.spilled:
            scope = self.pos.scopes.get(path)
            if scope is not None and scope.tree.frames[0].over.get(partition, {}).get(key) is operand:
                scope.tree.refs[(partition, key)] = ref
        self.sealer.spilled.clear()

    def _note(
        self, kind: Kind, body: Body, execution: Exec, node: Node, *, effect: str = "", outcome: str = ""
    ) -> int:
        """A record that the handler's context writes while it runs."""
        decision = Decision(self.graph, self.pos, self.runtime.clock.now())
        record = decision.draft(
            kind, body, node=node.id, execution=execution, effect=effect or node.effect, outcome=outcome
        )
        # Sealed first: what cannot be stored must not move the position.
        blobs = self.sealer.seal(record, body, self.lease.term)
        self.sealer.ready.clear()
        apply_record(self.graph, self.pos, record, body)
        self._append(record, blobs)
        return record.seq

    async def _end(self) -> RunStatus:
        """A run whose flow allows it may end while the store is away: no effect came since then (R-41)."""
        self.queue.ending = True
        try:
            await self.recorder.committed(self.queue, self.pos.head)
        except StoreError as error:
            if self.queue.outage is None:
                raise
            log.error(
                "run %s has %s, and no record of that could be written: %s", self.run, self.pos.status, error
            )
        return RunStatus(self.pos.status)

    def uncheckpointed(self, error: Exception) -> None:
        """From the recorder: the store is away. Told on the run as soon as it is back."""
        decision = Decision(self.graph, self.pos, self.runtime.clock.now())
        body = AttemptBody(
            "uncheckpointed", ErrorInfo(getattr(error, "code", ""), type(error).__name__, str(error))
        )
        record = decision.draft(Kind.attempt, body)
        apply_record(self.graph, self.pos, record, body)
        self._append_all(decision)

    def announce(self, asked: list[str]) -> None:
        """The run goes on: told before anything else, with the questions that are still open (R-16, R-17)."""
        decision = Decision(self.graph, self.pos, self.runtime.clock.now())
        body = AttemptBody("loaded", token=",".join(asked))
        record = decision.draft(Kind.attempt, body)
        apply_record(self.graph, self.pos, record, body)
        self._append_all(decision)

    def _intend(self, starts: list[Exec]) -> None:
        """Intents travel in the settle that made their nodes ready (D-14)."""
        for execution in starts:
            node = self._node(execution)
            if node.effect in REPEATABLE or execution.intent >= 0 or SETTLED in execution.subs:
                continue
            try:
                key = self.idempotency_key(execution, node) if node.idempotency_key else ""
            except ExpressionError as error:
                self._without_key(execution, node, error)
                continue
            self._note(Kind.intent, IntentBody(-1, node.id, key), execution, node)
            self.uncalled.add((execution.scope, execution.node))

    def _without_key(self, execution: Exec, node: Node, error: ExpressionError) -> None:
        """No key, no effect: the node fails before its handler is called."""
        info = calling.describe(ExpressionError(f"the idempotency key of node {node.id!r}: {error}"))
        failed = Finished(
            scope=execution.scope, node=execution.node, visit=execution.visit, outcome="fail", error=info
        )
        self.done.append(failed)
        self.unstarted.add((execution.scope, execution.node))

    def _snapshot(self) -> None:
        """So that loading stays short: an index of where the run stands (D-27).

        Not before as many bytes were written as the last one took: snapshots never outweigh the journal.
        """
        if (
            self.bytes_since < self.snapshot_size
            or self.pos.failing is not None
            or self.pos.cancelling is not None
        ):
            return
        decision = Decision(self.graph, self.pos, self.runtime.clock.now())
        body = SnapshotBody(dump_position(self.pos, whole=False, by_ref=True))
        record = decision.draft(Kind.snapshot, body)
        self.pos.head, self.pos.at = record.seq, record.at
        self._append_all(decision)
        crashpoint("inside_snapshot")
        self.since_snapshot, self.bytes_since, self.snapshot_size = 0, 0, len(record.payload)

    # ------------------------------------------------------------------ handlers
    def _node(self, execution: Exec) -> Node:
        scope = self.pos.scopes[execution.scope]
        return (self.graph if scope.graph == "" else self.pos.scope_graph(self.graph, scope)).nodes[
            execution.node
        ]

    def _spawn(self, execution: Exec, *, probe: bool = False) -> None:
        key = (execution.scope, execution.node)
        waiting = [k for k in self.answers if k[:2] == key]
        if key in self.tasks:
            for answer in waiting:
                sub = execution.subs[answer[2]]
                if sub.done and not self.answers[answer].done():
                    self.answers[answer].set_result(sub)
            return
        work = self._probe(execution) if probe else self._run(execution)
        task = self.loop.create_task(work)
        self.tasks[key] = task
        task.add_done_callback(lambda finished: self._ended(key, finished))

    def _ended(self, key: tuple[str, int], task: asyncio.Task[Finished | Doubted | None]) -> None:
        if self.tasks.get(key) is task:
            del self.tasks[key]
        self.suspending.discard(key)
        if not task.cancelled() and task.exception() is None:
            message = task.result()
            if message is not None:
                self.done.append(message)
        elif not task.cancelled():
            error = task.exception()
            if isinstance(error, (LeaseLostError, StoreError)) or not isinstance(error, Exception):
                self.fatal = self.fatal or error
            else:
                self.done.append(self._broken(key, error))
        self.awake.set()

    def _broken(self, key: tuple[str, int], error: BaseException | None) -> Finished:
        """An error of ours inside a handler's task: a failure of the node, never a silent stop."""
        execution = self.pos.execs[key]
        info = ErrorInfo("internal", type(error).__name__, str(error))
        return Finished(scope=key[0], node=key[1], visit=execution.visit, outcome="fail", error=info)

    async def _run(self, execution: Exec) -> Finished | Doubted | None:
        """Call a node's handler and report how it ended."""
        pos = self.pos
        scope = pos.scopes[execution.scope]
        program = self.program if scope.graph == "" else self.program.at(scope.graph)
        node = program.graph.nodes[execution.node]
        handler = program.handlers.get(node.id)
        if SETTLED in execution.subs:
            return await self._choose(program, node, execution)
        if execution.intent >= 0:
            await self.recorder.committed(self.queue, execution.intent)
            crashpoint("after_intent")
            await self._lease_margin()
            self.uncalled.discard((execution.scope, execution.node))
        started = time.perf_counter_ns()
        ctx: Context | None = None
        scratch = scope.tree.see(execution.frame, "scratch", lazily=True)
        try:
            if handler is None:
                raise HoldfastError(
                    f"no code for node {node.id!r} of flow {self.graph.name!r} is loaded here",
                    hint="Start a worker that carries this version of the flow.",
                )
            state = (
                calling.build_state(program, scope.tree, scratch)
                if scope.tree.lazy
                else program.schema.build(scratch)
            )
            crashpoint("lease_lost_mid_handler")
            if handler.takes == ("state",) and handler.is_async and node.timeout is None:
                result = await handler.fn(state)
            else:
                ctx = self._context(execution, node, handler)
                result = await self._call(node, handler, ctx, state, self._item(scope))
            program.schema.unchanged(state, calling.loaded_part(scratch) if scope.tree.lazy else scratch)
            if ctx is not None:
                await ctx.rest()
                ctx.check_all_asked_for()
                if ctx.doubt is not None:
                    return self._doubt(execution, ctx)
            crashpoint("after_handler")
            return await self._success(program, node, execution, result, scratch, ctx, started)
        except Suspended:
            return None
        except asyncio.CancelledError as error:
            return self._cancelled(execution) or calling.failure(
                node, handler, execution, error, _since(started)
            )
        except Exception as error:
            if isinstance(error, (LeaseLostError, StoreError)) and self.queue.poison is not None:
                raise
            if ctx is not None:
                await ctx.rest()
                if ctx.doubt is not None:
                    return self._doubt(execution, ctx)
            return calling.failure(node, handler, execution, error, _since(started))
        finally:
            if ctx is not None:
                ctx.close("its attempt has ended")
                self.contexts.pop((execution.scope, execution.node), None)

    def _context(self, execution: Exec, node: Node, handler: Handler) -> Context:
        ctx = (Context if handler.is_async else ThreadContext)(self, execution, node)
        self.contexts[(execution.scope, execution.node)] = ctx
        return ctx

    def _item(self, scope: Scope) -> Any:
        """What the map hands to this child."""
        owner = self.pos.execs.get(scope.owner) if scope.owner is not None else None
        return owner.items[scope.index] if owner is not None and owner.items is not None else None

    async def _call(self, node: Node, handler: Handler, ctx: Context, state: Any, item: Any) -> Any:
        args = {"state": state, "ctx": ctx, "item": item}
        if node.timeout is None:
            return await calling.call(handler, args)
        limit = asyncio.timeout(node.timeout / 1e6)
        try:
            async with limit:
                ctx.limit = limit
                return await calling.call(handler, args)
        except TimeoutError:
            if not limit.expired():
                raise
            ctx.close("its timeout passed")
            raise NodeTimeoutError(f"node {node.id!r} took longer than {node.timeout / 1e6:g} s") from None

    async def _success(
        self,
        program: Program,
        node: Node,
        execution: Exec,
        result: Any,
        scratch: dict[str, Any],
        ctx: Context | None,
        started: int,
    ) -> Finished:
        finished = Finished(
            scope=execution.scope, node=execution.node, visit=execution.visit, duration=_since(started)
        )
        if ctx is not None:
            finished.usage = ctx.usage()
            if ctx.memories:
                self._remember_at_settle(finished, ctx.memories)
        if node.guard is not None:
            calling.judge_guardrail(program, node, result, finished, scratch)
            return finished
        if type(result) is Outcome:
            result = calling.take_outcome(node, result, finished)
            if finished.error is not None:
                return finished
        finished.ops, finished.output = calling.understand(program, node, result, scratch, ctx)
        if node.id in program.routers:
            finished.routes = await self._route(program, node, execution, finished.ops, ctx)
        if finished.duration > SLOW or finished.usage is not None:
            self.hurry = True
        return finished

    async def _route(
        self, program: Program, node: Node, execution: Exec, ops: list[Op], ctx: Context | None
    ) -> list[int]:
        tree = self.pos.scopes[execution.scope].tree
        after = program.schema.build(calling.preview(tree, execution.frame, ops))
        ctx = ctx or Context(self, execution, node)
        return await calling.route(program, node, program.routers.get(node.id, []), after, ctx)

    async def _choose(self, program: Program, node: Node, execution: Exec) -> Finished:
        """A node that has no handler, or whose handler failed, is done: code chooses the way on."""
        settled = execution.subs[SETTLED].value
        finished = Finished(
            scope=execution.scope,
            node=execution.node,
            visit=execution.visit,
            duration=settled["duration"],
            outcome=settled["outcome"],
            ops=[tuple(op) for op in settled["ops"]],
            output=settled.get("output"),
            notes=settled.get("notes"),
        )
        try:
            finished.routes = await self._route(program, node, execution, finished.ops, None)
        except Exception as error:
            finished.error, finished.outcome = calling.describe(error), "fail"
        return finished

    def _doubt(self, execution: Exec, ctx: Context) -> Doubted:
        """Whatever the handler made of it: a sub-step whose outcome is unknown is for the in-doubt policy."""
        assert ctx.doubt is not None
        substep, error = ctx.doubt
        return Doubted(
            scope=execution.scope, node=execution.node, visit=execution.visit, substep=substep, error=error
        )

    def _cancelled(self, execution: Exec) -> None:
        """The handler was stopped: by a park (it waits for a person), a cancel, a lost lease, from outside.

        Where nobody stopped it, it has cancelled itself: that is a failure like any other.
        """
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    async def _probe(self, execution: Exec) -> Finished | None:
        """Find out whether an effect happened, by the node's own probe."""
        program = self.program.at(self.pos.scopes[execution.scope].graph)
        node = program.graph.nodes[execution.node]
        handler = program.handlers[node.id]
        scratch = self.pos.scopes[execution.scope].tree.see(execution.frame, "scratch")
        ctx = Context(self, execution, node)
        state = program.schema.build(scratch)
        assert handler.probe is not None
        try:
            found = handler.probe(*_probe_args(handler, state, ctx))
            if asyncio.iscoroutine(found):
                found = await found
        except Exception as error:
            info = calling.describe(error)
            return Finished(
                scope=execution.scope,
                node=execution.node,
                visit=execution.visit,
                outcome="fail",
                error=info,
                probe="unknown",
            )
        finished = Finished(scope=execution.scope, node=execution.node, visit=execution.visit)
        if found is None or found is False:
            finished.probe = "not_happened"
        else:
            finished.probe = "happened"
            if found is not True:
                finished.ops, finished.output = calling.understand(program, node, found, scratch, ctx)
        return finished

    # ------------------------------------------------------------------ for contexts
    def idempotency_key(self, execution: Exec, node: Node) -> str:
        if node.idempotency_key:
            tree = self.pos.scopes[execution.scope].tree
            shown = compile_template(node.idempotency_key).render(
                resolver(tree, execution.frame), strict=True
            )
            return str(shown.value)
        return derived_id(self.run, execution.scope, node.id, execution.visit, -1)

    def code_of(self, execution: Exec) -> str:
        program = self.program.at(self.pos.scopes[execution.scope].graph)
        return program.code.get(program.graph.nodes[execution.node].id, "")

    def check_reentry(self) -> None:
        """Other code may not go on amid a visit: its sub-steps were made by the old one (D-34)."""
        for execution in self.pos.execs.values():
            if execution.code and execution.code != self.code_of(execution):
                raise VersionMismatchError(
                    f"the code of node {self._node(execution).id!r} has changed, and visit "
                    f"{execution.visit} of it has "
                    "recorded sub-steps or answers that the old code made.",
                    hint="Load the old code, or give both the same version= if they take the same steps.",
                    flow=self.graph.name,
                    node=self._node(execution).id,
                )

    def artifact_op(self, execution: Exec, name: str) -> str:
        graph = self.pos.scope_graph(self.graph, self.pos.scopes[execution.scope])
        return graph.spec.reducers.get(f"artifacts.{name}", "set")

    async def intend_step(
        self, execution: Exec, node: Node, ordinal: str, name: str, *, idempotent: bool
    ) -> None:
        key = self.step_key(execution, node, ordinal) if idempotent else ""
        body = IntentBody(0, ordinal, key, FrozenDict({"step": name}))
        seq = self._note(Kind.intent, body, execution, node, effect=Effect.external)
        await self.recorder.committed(self.queue, seq)
        crashpoint("after_intent")
        await self._lease_margin()

    def step_key(self, execution: Exec, node: Node, ordinal: str) -> str:
        return derived_id(self.run, execution.scope, node.id, execution.visit, ordinal)

    async def note_substep(self, execution: Exec, node: Node, body: SubstepBody, *, effect: str = "") -> None:
        intent = execution.step_intents.get(body.ordinal)
        if intent is not None and body.error is None:
            proven = Proven(ordinal=body.ordinal, name=body.name, value=body.value)
            self._keep_evidence(self.pos.head + 1, intent, proven)
        outcome = "success" if body.error is None else "fail"
        self._note(Kind.substep, body, execution, node, outcome=outcome, effect=effect)
        crashpoint("after_substep")
        if self.queue.full or self.strict:
            await self.recorder.committed(self.queue, self.pos.head)

    def step_ended(self) -> None:
        """Perhaps nothing of that handler is under way any more but a question."""
        if self.answers:
            self.awake.set()

    def note_chunks(self, execution: Exec, node: Node, items: list[tuple[str, Any]], *, inside: bool) -> None:
        here = self.pos.execs.get((execution.scope, execution.node)) is execution
        if here and not self.is_lost and self.queue.poison is None:
            self._note(Kind.chunk, ChunkBody(items, inside), execution, node)
            self.recorder.hurry()

    def ask_inside(
        self, execution: Exec, key: str, ordinal: int, spec: HoldSpec, context: dict[str, Any]
    ) -> None:
        decision = Decision(self.graph, self.pos, self.runtime.clock.now())
        frozen = FrozenDict(context)
        asking.ask_inside(decision, execution, key, ordinal, spec, frozen, self.code_of(execution))
        self._append_all(decision)
        self.recorder.hurry()

    async def wait_answer(self, ctx: Context, execution: Exec, key: str) -> Sub:
        """The handler stands still here, until an answer comes or the driver parks the run."""
        await self.recorder.committed(self.queue, self.pos.head)
        if isinstance(ctx, ThreadContext):
            raise Suspended
        known = execution.subs.get(key)
        if known is not None and known.done:
            return known
        where = (execution.scope, execution.node, key)
        answer: asyncio.Future[Sub] = self.loop.create_future()
        self.answers[where] = answer
        self.awake.set()
        try:
            return await answer
        finally:
            self.answers.pop(where, None)

    def memory_of(self, ctx: Context, execution: Exec, node: Node) -> NodeMemory:
        return NodeMemory(self.runtime.memory, ctx, self.consistency(execution, node))

    def consistency(self, execution: Exec, node: Node) -> str:
        graph = self.pos.scope_graph(self.graph, self.pos.scopes[execution.scope])
        return node.memory or graph.spec.memory

    async def _remember(self, messages: list[Message]) -> None:
        """Writes to a memory that is not the store's own: applied after the settle has committed."""
        settled = [(m.scope, m.node, m.visit) for m in messages if type(m) is Finished]
        for key in [key for key in settled if key in self.remember_later]:
            await self.recorder.committed(self.queue, self.pos.head)
            for memory in self.remember_later.pop(key):
                await self.runtime.memory.write(memory)

    def _remember_at_settle(self, finished: Finished, memories: list[Memory]) -> None:
        if isinstance(self.runtime.memory, StoredMemory):
            finished.memories = memories
        else:
            self.remember_later[(finished.scope, finished.node, finished.visit)] = memories

    # ------------------------------------------------------------------ waiting
    async def _next(self, decision: Decision) -> list[Message] | RunStatus:
        """What comes next: a handler that ended, mail, a timer. Or nothing for long: then the run parks."""
        hot_since = self.runtime.clock.monotonic()
        while True:
            self._check_ours()
            if self.done:
                messages, self.done = self.done, []
                return messages
            if self.box.urgent or (not self._working() and not self.awake.is_set()):
                messages = await self.box.take()
                if messages:
                    return messages
            self.awake.clear()
            if self._working():
                await self._wait(self._next_wake())
                continue
            if self.done:
                continue
            if self.draining:
                return await self._leave()
            pause = self.runtime.hot_wait(self.pos, self._next_wake(holds=False), hot_since)
            if pause > 0:
                # A timer is the store's: until its record is committed nothing could fire.
                await self.recorder.committed(self.queue, self.pos.head)
                wake = self._next_wake()
                await self._wait(pause if wake is None else min(pause, max(wake, 0.0005)))
                await self.runtime.store.fire_timers(limit=100, run=self.run)
                self.box.urgent = True
                continue
            parked = await self._park()
            if parked is not None:
                return parked
            self.box.urgent = True

    def _working(self) -> bool:
        """Whether some handler does more than wait for an answer."""
        # One whose answer is given goes on in its next turn.
        answered = {key[:2] for key, answer in self.answers.items() if answer.done()}
        blocked = {key[:2] for key in self.answers} - answered
        return any(key not in blocked or self._is_busy(key) for key in self.tasks)

    def _is_busy(self, key: tuple[str, int]) -> bool:
        """It waits for an answer, and does a sub-step beside."""
        ctx = self.contexts.get(key)
        return ctx is not None and ctx.busy

    def _next_wake(self, *, holds: bool = True) -> float | None:
        """Seconds until the next known wake time; `holds`: or until a question expires."""
        times = [e.wake_at for e in self.pos.execs.values() if e.wake_at is not None and e.phase == "delay"]
        times += self.pos.join_wakes.values()
        if holds:
            times += [w.expires_at for w in self.pos.holds.values() if w.expires_at is not None]
        return max(0.0, (min(times) - self.runtime.clock.now()) / 1e6) if times else None

    async def _wait(self, seconds: float | None) -> None:
        """Until something happens, or the time is over (on the runtime's clock)."""
        if seconds is None:
            await self.awake.wait()
            return
        waiting = self.loop.create_task(self.awake.wait())
        sleeping = self.loop.create_task(self.runtime.clock.sleep(seconds))
        done, pending = await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        if sleeping in done:
            crashpoint("during_backoff")
            if await self.runtime.store.fire_timers(limit=100, run=self.run):
                self.box.urgent = True

    async def _park(self) -> RunStatus | None:
        """Let go of the run, durably. None where mail came meanwhile (D-29)."""
        await asyncio.sleep(0)
        if self.awake.is_set() or self._working():
            # Something was about to happen: another question of the same handler, an end.
            return None
        await self._suspend_all()
        if self.done:
            return None
        if not self.pos.holds and not self.pos.timers:
            await self._write(self._stalled())
            return None
        crashpoint("before_park")
        status = RunStatus.pending_input if self.pos.holds else RunStatus.waiting
        self.leaving = True
        parked = await self._let_go(Park(status, self.box.seen))
        self.leaving = parked
        if not parked:
            return await self._not_parked()
        crashpoint("after_park")
        return status

    async def _let_go(self, how: Park) -> bool:
        """With the last records in one commit, where there are any."""
        queue = self.queue
        queue.park, queue.parked = how, False
        try:
            await self.recorder.committed(queue, self.pos.head)
        finally:
            queue.park = None
        if queue.parked:
            return True
        return await self.runtime.store.park(
            self.lease, status=how.status, inbox_seen=how.inbox_seen, ready_at=how.ready_at
        )

    async def _not_parked(self) -> None:
        row = await self.runtime.store.get_run(self.run)
        if row is None or row.term != self.lease.term:
            self.is_lost = True
            raise LeaseLostError(f"run {self.run} is not ours any more")

    def _stalled(self) -> Decision:
        from holdfast.engine.dataflow import Problem
        from holdfast.engine.failing import fail_run

        decision = Decision(self.graph, self.pos, self.runtime.clock.now())
        names = ", ".join(sorted(self._node(e).id for e in self.pos.execs.values())) or "no node"
        fail_run(decision, Problem("stall", f"work remains but nothing can start ({names})", ""))
        self.done.append(Recovered())
        return decision

    async def _suspend_all(self) -> None:
        """Handlers that wait for a person are unwound; they are entered again when the answer is there."""
        keys = {key[:2] for key in self.answers}
        self.suspending |= keys
        await self._stop_handlers(keys)

    async def _stop_handlers(self, keys: set[tuple[str, int]]) -> None:
        """Cancel these handlers (all, if the set is empty) and wait until they are gone."""
        wanted = [task for key, task in self.tasks.items() if not keys or key in keys]
        for task in wanted:
            task.cancel()
        if wanted:
            await asyncio.wait(wanted, timeout=self.runtime.grace)

    async def _come_to_rest(self) -> list[Message]:
        """Nothing new starts. On a cancel everything stops; on a failure effects under way may finish."""
        if self.pos.cancelling is not None:
            await self._stop_handlers(set())
        else:
            repeatable = (
                {key for key in self.tasks if self._node(self.pos.execs[key]).effect in REPEATABLE}
                if self.tasks
                else set[tuple[str, int]]()
            )
            if repeatable:
                await self._stop_handlers(repeatable)
            while self.tasks and not self.done:
                self.awake.clear()
                await self.awake.wait()
        messages, self.done = self.done, []
        if messages and self.pos.cancelling is None:
            return messages
        return [*[m for m in messages if isinstance(m, Finished) and m.error is None], Stopped()]

    # ------------------------------------------------------------------ leases
    async def _lease_margin(self) -> None:
        """An effect is not started on a lease that may lapse under it (D-17)."""
        if not await self.runtime.safe_margin(self.lease):
            self.lost()
            raise LeaseLostError(f"run {self.run} is not ours any more")

    def lease_gone(self) -> None:
        """From the heartbeat: the lease is not ours. Where we are about to end or park that is our own doing,
        and where it is not, the write that follows is refused."""
        if not self.leaving and self.task is not None:
            self.lost()

    def lost(self) -> None:
        """Another worker has the run: stop at once, publish nothing (D-7)."""
        if self.is_lost:
            return
        self.is_lost = True
        self.awake.set()
        for key, task in self.tasks.items():
            # Effects in flight cannot be called back: they may end, and what became of them is told (D-17).
            if not self._is_effect(key):
                task.cancel()
        if self.task is not None and self.task is not asyncio.current_task() and not self._effect_inline():
            self.task.cancel()

    def _effect_inline(self) -> bool:
        return self.inline and any(self._is_effect(key) for key in self.pos.execs) and not self.uncalled

    def mail_came(self) -> None:
        """From the attendant: somebody told this run something."""
        self.box.urgent = True
        self.awake.set()

    def interrupt(self) -> None:
        """A cancel request: do not wait for the handler that runs inline."""
        self.box.urgent = True
        self.awake.set()
        if self.inline and self.task is not None and not self.interrupted:
            self.interrupted = True
            self.task.cancel()

    def drain(self) -> None:
        """Handlers that run may finish, nothing new starts; then the run is given back."""
        self.draining = True
        self.awake.set()

    async def _leave(self) -> RunStatus:
        """Nothing runs any more: park where the run waits anyway, else give it back."""
        starting = any(e.phase == "work" and not self._waits(e) for e in self.pos.execs.values())
        if not starting and (self.pos.holds or self.pos.timers):
            parked = await self._park()
            if parked is not None:
                return parked
        await self._release()
        return RunStatus.resumable

    def _waits(self, execution: Exec) -> bool:
        return any(not sub.done and sub.hold in self.pos.holds for sub in execution.subs.values())

    def _withdraw(self) -> None:
        """Effects whose handler was not called have certainly not begun (D-14)."""
        for key in self.uncalled:
            execution = self.pos.execs.get(key)
            if execution is not None and execution.intent >= 0:
                self._note(Kind.attempt, AttemptBody("withdrawn"), execution, self._node(execution))
        self.uncalled.clear()

    async def _release(self) -> None:
        """Claimable again at once, by anybody."""
        try:
            await self._stop_handlers(set())
            self._withdraw()
            await self.recorder.committed(self.queue, self.pos.head)
            row = await self.runtime.store.get_run(self.run)
            if row is not None:
                await self.runtime.store.park(
                    self.lease,
                    status=RunStatus.resumable,
                    inbox_seen=row.inbox_seq,
                    ready_at=self.runtime.store.now(),
                )
        except HoldfastError as error:
            log.warning("run %s could not be released, its lease will lapse: %s", self.run, error)


def _since(started: int) -> int:
    return (time.perf_counter_ns() - started) // 1000


def _probe_args(handler: Handler, state: Any, ctx: Context) -> list[Any]:
    import inspect

    assert handler.probe is not None
    names = list(inspect.signature(handler.probe).parameters)
    return [ctx if name == "ctx" else state for name in names[:2]]
