"""Performing one execution: calling its node's handler, or its probe, and reporting how that ended."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any, cast

from holdfast.engine.messages import HandlerFinished, SubstepDoubted
from holdfast.errors import (
    HoldfastError,
    InputError,
    LeaseLostError,
    RequirementsMissingError,
    StoreError,
    UserCodeExitError,
)
from holdfast.model.child_scopes import item_key
from holdfast.model.fingerprint import CODED, dialect_of
from holdfast.model.graph import Node
from holdfast.model.position import SETTLED, Exec, Scope
from holdfast.model.program import NodeHandler, Program
from holdfast.model.record_bodies import Usage
from holdfast.model.step_writes import check_ops
from holdfast.model.user_code import forks
from holdfast.model.user_code.boundary import ControlFlow, absorb_own_cancel, call, to_error
from holdfast.model.user_code.tasks import OwnedTask
from holdfast.runs.context.context import Context
from holdfast.runs.context.driver_protocols import ContextCalls, Suspended
from holdfast.runs.context.node_timeout import call_in_time
from holdfast.runs.context.thread_context import ThreadContext
from holdfast.runs.driver import handler_result, retryable_errors
from holdfast.telemetry import crashpoint, log
from holdfast.types.record import Op
from holdfast.types.status import REPEATABLE

OWN_CANCEL = "it cancelled its own task"
SLOW = 50_000  # microseconds: work that took longer is flushed at once (D-9)


class Disowned(ControlFlow):
    """Unwinds the frames around code that did not stop: its run resumed without it."""


class HandlerCall:
    """Returns messages to the engine; nothing here changes the position."""

    def __init__(self, calls: ContextCalls) -> None:
        self.session = calls.session
        self.calls = calls

    async def run(
        self, execution: Exec, task: OwnedTask[Any] | None = None
    ) -> HandlerFinished | SubstepDoubted | None:
        """Call a node's handler and report how it ended. `task`: the one that runs this, if it is known."""
        scope = self.session.pos.scopes[execution.scope]
        program = self.session.program if scope.graph == "" else self.session.program.at(scope.graph)
        node = program.graph.nodes[execution.node]
        handler = program.handlers.get(node.id)
        if execution.subs and SETTLED in execution.subs:
            return await self._choose(program, node, execution)
        if execution.intent >= 0:
            await self.calls.begin_effect(execution)
        started, began = time.perf_counter_ns(), forks.count
        task = task or running_task()
        ctx: Context | None = None
        scratch = scope.tree.see(execution.frame, "scratch", lazily=True)
        try:
            if handler is None:
                raise self._no_code(node)
            state = (
                handler_result.build_state(program, scope.tree, scratch)
                if scope.tree.lazy
                else program.schema.build(scratch)
            )
            crashpoint("lease_lost_mid_handler")
            # The common case needs no context, no thread and no timer. A script has a context also if it does
            # not take it: integrations find it there.
            plain = handler.takes == ("state",) and not node.script
            if plain and handler.is_async and node.timeout is None:
                result = await handler.fn(state)
            else:
                ctx = self._context(execution, node, handler, task)
                result = await self._call(node, handler, ctx, state, self._item(scope, handler))
            # Almost always false: an await here would cost each step a turn of the loop.
            if forks.count != began or task.disowned or task.cancelling():
                await _leave_code(task, began)
            # A change of the state in place would be in memory but in no record: lost with the next load.
            program.schema.unchanged(
                state, handler_result.loaded_part(scratch) if scope.tree.lazy else scratch
            )
            if ctx is not None:
                if await _is_in_doubt(ctx, failed=ctx.suspended):
                    return _doubt(execution, ctx)
                if ctx.suspended:
                    return _ignored(ctx)
                ctx.made_calls.require_begun(node.id)
            crashpoint("after_handler")
            if handler.isolation:
                finished = self._decode(execution, result, started)
            elif self.session.services.gate is not None:
                finished = await self._in_preview(program, node, execution, result, scratch, ctx, started)
            else:
                finished = self._success(program, node, execution, result, scratch, ctx, started)
            if node.id in program.routers and _may_route(node, finished):
                finished.routes = await self._route(program, node, execution, finished.ops, ctx)
            return finished
        except Suspended:
            return None
        except BaseException as error:
            found = await _error_of(task, error, began)
            if self._ends_driver(found):
                raise
            if ctx is not None:
                if await _is_in_doubt(ctx, failed=True):
                    return _doubt(execution, ctx)
                if ctx.suspended:
                    return _ignored(ctx)
            return retryable_errors.failure(node, handler, execution, found, _since(started))
        finally:
            if ctx is not None:
                self._close_context(ctx)

    def _no_code(self, node: Node) -> HoldfastError:
        return HoldfastError(
            f"no code for node {node.id!r} of flow {self.session.graph.name!r} is loaded here",
            hint="Start a worker that serves this version of the flow.",
        )

    def _ends_driver(self, error: BaseException) -> bool:
        """A handler may use Holdfast itself and get these errors from another run: they end the driver only
        if this run's own queue failed, or this process lacks what the run of a stored document needs."""
        if isinstance(error, RequirementsMissingError):
            return dialect_of(self.session.row.version) != CODED
        return isinstance(error, (LeaseLostError, StoreError)) and self.calls.is_lost

    def _context(self, execution: Exec, node: Node, handler: NodeHandler, task: OwnedTask[Any]) -> Context:
        ctx = (Context if handler.is_async else ThreadContext)(self.calls, execution, node)
        ctx.task = task
        self.session.contexts[(execution.scope, execution.node)] = ctx
        return ctx

    def _close_context(self, ctx: Context) -> None:
        ctx.close("its attempt has ended")
        place = (ctx.execution.scope, ctx.execution.node)
        if self.session.contexts.get(place) is ctx:
            del self.session.contexts[place]
            # A task that the attempt left behind would count as a wait of the next attempt.
            for where in [each for each in self.session.answers if each[:2] == place]:
                self.session.answers.pop(where).cancel()

    def _item(self, scope: Scope, handler: NodeHandler) -> dict[str, Any]:
        """The item of the map that this child gets, with its index, and its key if the function takes it.
        Raises InputError."""
        owner = self.session.pos.execs.get(scope.owner) if scope.owner is not None else None
        item = owner.items[scope.index] if owner is not None and owner.items is not None else None
        found = {"item": item, "index": scope.index}
        if owner is not None and "key" in handler.takes:
            found["key"] = item_key(self.session.node(owner), item, scope.index)
        return found

    async def _call(
        self, node: Node, handler: NodeHandler, ctx: Context, state: Any, item: dict[str, Any]
    ) -> Any:
        if handler.isolation:
            # Imported with the first such node: most flows have none.
            from holdfast.runs.node_process.run import run_node

            call = run_node(self.session, ctx, node, item, self.calls.code_of(ctx.execution))
        else:
            call = handler_result.call(handler, {"state": state, "ctx": ctx, **item})
        try:
            if node.timeout is None:
                return await call
            return await call_in_time(call, node.id, node.timeout, ctx.patience, ctx.close)
        finally:
            if self.session.left_running:
                await self.session.wait_for_code()

    def _decode(self, execution: Exec, reply: Any, started: int) -> HandlerFinished:
        """Of a node in a process of its own."""
        from holdfast.runs.node_process.message import decode_reply

        return decode_reply(reply, _finished(execution, started), self.session.codec.registry)

    def _success(
        self,
        program: Program,
        node: Node,
        execution: Exec,
        result: Any,
        scratch: dict[str, Any],
        ctx: Context | None,
        started: int,
    ) -> HandlerFinished:
        finished = _finished(execution, started)
        if ctx is not None:
            # While a person answers, nothing is done.
            finished.duration = max(0, finished.duration - ctx.waited)
            finished.usage = ctx.usage()
            if ctx.memories:
                self.calls.remember_at_settle(finished, ctx.memories)
        artifacts = [] if ctx is None else ctx.artifact_ops()
        handler_result.fill_result(program, node, result, finished, scratch, artifacts)
        if finished.duration > SLOW or finished.usage is not None:
            self.calls.note_cost()
        return finished

    async def _in_preview(
        self, program: Program, node: Node, execution: Exec, result: Any, *more: Any
    ) -> Any:
        """The same in the process of the API, which others use too: large values are compared in a thread. A
        worker does it at once, so that no cancel comes between an effect and its record."""
        from holdfast.holds.forms.schema_threads import compare

        slow = program.schema.is_slow_to_start(result)
        return await compare(
            self.session.row.tenant, slow, self._success, program, node, execution, result, *more
        )

    async def _route(
        self, program: Program, node: Node, execution: Exec, ops: list[Op], ctx: Context | None
    ) -> list[int]:
        tree = self.session.pos.scopes[execution.scope].tree
        after = program.schema.build(handler_result.preview(tree, execution.frame, ops))
        ctx = ctx or Context(self.calls, execution, node)
        began = forks.count
        chosen = await handler_result.route(program, node, program.routers.get(node.id, []), after, ctx)
        await _leave_code(running_task(), began)
        return chosen

    async def _choose(self, program: Program, node: Node, execution: Exec) -> HandlerFinished:
        """A node without a handler, or whose handler failed, is done: a router chooses its next edge."""
        settled = execution.subs[SETTLED].value
        finished = HandlerFinished(
            scope=execution.scope,
            node=execution.node,
            visit=execution.visit,
            duration=settled["duration"],
            outcome=settled["outcome"],
            ops=[tuple(op) for op in settled["ops"]],
            output=settled.get("output"),
            notes=settled.get("notes"),
        )
        if settled.get("usage"):
            finished.usage = Usage(*settled["usage"])
        task, began = running_task(), forks.count
        try:
            finished.routes = await self._route(program, node, execution, finished.ops, None)
        except BaseException as error:
            found = await _error_of(task, error, began)
            finished.error, finished.outcome = handler_result.describe(found), "fail"
        return finished

    async def probe(self, execution: Exec) -> HandlerFinished | None:
        """Find out whether an effect happened, by the node's own probe."""
        scope = self.session.pos.scopes[execution.scope]
        program = self.session.program.at(scope.graph)
        node = program.graph.nodes[execution.node]
        handler = program.handlers[node.id]
        scratch = scope.tree.see(execution.frame, "scratch")
        ctx = Context(self.calls, execution, node)
        assert handler.probe is not None
        finished = HandlerFinished(scope=execution.scope, node=execution.node, visit=execution.visit)
        task, began = running_task(), forks.count
        try:
            state = program.schema.build(scratch)
            found = await call(handler.probe, *_probe_args(handler, state, ctx))
            await _leave_code(task, began)
        except BaseException as raised:
            error = await _error_of(task, raised, began)
            # A probe that fails proves nothing. "Not happened" would run the effect again.
            finished.outcome, finished.error, finished.probe = (
                "fail",
                handler_result.describe(error),
                "unknown",
            )
            return finished
        if found is None or found is False:
            finished.probe = "not_happened"
        else:
            finished.probe = "happened"
            if found is not True:
                finished.ops, finished.output = handler_result.interpret_result(
                    program, node, found, scratch, ctx.artifact_ops()
                )
        return finished

    def storable(self, message: HandlerFinished, execution: Exec) -> HandlerFinished:
        """A value that a record cannot hold is a failure of its node, found before the engine
        relies on it."""
        session = self.session
        try:
            for op in message.ops:
                # A reducer can fail on the value that is there now; a `set` cannot.
                if op[2] != "set":
                    check_ops(session.pos.scopes[execution.scope].tree, execution.frame, message.ops)
                    break
            session.codec.prepare(message.ops, message.output)
        except InputError as error:
            program = session.program_of(execution)
            node = program.graph.nodes[execution.node]
            failed = retryable_errors.failure(
                node, program.handlers.get(node.id), execution, error, message.duration
            )
            failed.probe = "unknown" if message.probe is not None else None
            return failed
        return message


def _may_route(node: Node, finished: HandlerFinished) -> bool:
    """An effect is recorded first, so that it is not run again whatever its router does."""
    return node.effect in REPEATABLE and node.guard is None and finished.error is None


async def _is_in_doubt(ctx: Context, *, failed: bool = False) -> bool:
    """Waits for sub-steps that the handler started and did not await: they are part of this attempt and must
    not write records after it has settled."""
    await ctx.wait_for_substeps()
    if not failed:
        ctx.check_all_asked_for()
    return ctx.doubt is not None


def _doubt(execution: Exec, ctx: Context) -> SubstepDoubted:
    """Whatever the handler did about it: a sub-step whose outcome is unknown is handled by the in-doubt
    policy."""
    assert ctx.doubt is not None
    substep, error = ctx.doubt
    return SubstepDoubted(
        scope=execution.scope, node=execution.node, visit=execution.visit, substep=substep, error=error
    )


def _ignored(ctx: Context) -> None:
    """The code caught the end of its wait (`except:`, `finally: return`) and went on without an answer."""
    log.warning(
        "node %r continued after its wait had been ended: its result is ignored, and it is entered again "
        "with the answer. Let CancelledError pass: catch Exception, not everything",
        ctx.node,
        extra={"run": ctx.run_id, "node": ctx.node},
    )


def running_task() -> OwnedTask[Any]:
    """The task of this driver or handler."""
    # Not checked: drivers and handlers have no other tasks.
    return cast("OwnedTask[Any]", asyncio.current_task())


async def _leave_code(task: OwnedTask[Any], began: int) -> None:
    """The code has returned. Raises if its result does not count."""
    forks.leave_child_of(began)
    if task.disowned:
        raise Disowned
    # A task that its owner stops may still finish: what it returned counts.
    if task.cancelling() and not task.stopped:
        await absorb_own_cancel(task)
        raise UserCodeExitError(OWN_CANCEL)


async def _error_of(task: OwnedTask[Any], error: BaseException, began: int) -> Exception:
    """What the code raised. Raises it again if it was ended from outside."""
    if task.disowned:
        forks.leave_child_of(began)
        raise Disowned from None
    if isinstance(error, (Exception, asyncio.CancelledError)) and task.cancelling() and not task.stopped:
        await absorb_own_cancel(task)
        if isinstance(error, asyncio.CancelledError):
            return UserCodeExitError(OWN_CANCEL)
    return to_error(error, began)


def _finished(execution: Exec, started: int) -> HandlerFinished:
    return HandlerFinished(
        scope=execution.scope, node=execution.node, visit=execution.visit, duration=_since(started)
    )


def _since(started: int) -> int:
    return (time.perf_counter_ns() - started) // 1000


def _probe_args(handler: NodeHandler, state: Any, ctx: Context) -> list[Any]:
    assert handler.probe is not None
    names = list(inspect.signature(handler.probe).parameters)
    return [ctx if name == "ctx" else state for name in names[:2]]
