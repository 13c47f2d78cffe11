"""Notes every outside effect of a previewed run instead of performing it, and stops that branch."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial, wraps
from typing import Any

import msgspec

from holdfast.model.graph import END, EdgeKind, Node, NodeKind
from holdfast.model.program import NodeHandler, Program
from holdfast.runs.context.context import Context
from holdfast.runs.context.driver_protocols import Attempt, SubstepCall
from holdfast.runs.node_memory import FilteringMemory, MemoryBackend, select
from holdfast.types.memory import Memory, MemoryFilter
from holdfast.types.status import Effect

NO_CODE = "no code of this node is loaded here"
STUCK = "its code has not returned in earlier previews, and is not started again"
OWN_PROCESS = "it runs in a process of its own, which a preview does not start"


class StoppedCall(msgspec.Struct, frozen=True, kw_only=True):
    """What was about to happen. `step`: the name of a sub-step, empty for a node as a whole. `why`: why the
    preview does not know what it would do, for what is no outside effect."""

    scope: str
    node: str
    visit: int
    effect: str
    step: str = ""
    key: str = ""
    why: str = ""
    # The nodes that may come next.
    then: tuple[str, ...] = ()


class PlainCalls:
    """Plain functions that previews of this process have called and that have not returned. Nothing ends
    such a function from outside: without a limit, one that never returns would cost each preview a thread."""

    MOST = 2

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[Any] = Counter()

    def is_stuck(self, fn: Callable[..., Any]) -> bool:
        return self._running[_code(fn)] >= self.MOST

    def counted(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        code = _code(fn)

        @wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self._running[code] += 1
            try:
                return fn(*args, **kwargs)
            finally:
                with self._lock:
                    self._running[code] -= 1
                    if not self._running[code]:
                        del self._running[code]

        return call


def _code(fn: Callable[..., Any]) -> Any:
    """The same for each function that is made from the same lines, as a lambda in a node is."""
    inner = fn.func if isinstance(fn, partial) else fn
    return getattr(inner, "__code__", None) or id(inner)


class EffectGate:
    """Of one previewed run. Whatever reaches it waits until the preview is over."""

    def __init__(self, calls: PlainCalls | None = None) -> None:
        self.stopped: list[StoppedCall] = []
        self._calls = calls or PlainCalls()
        self._over = asyncio.Event()

    @property
    def places(self) -> set[tuple[str, str]]:
        return {(call.scope, call.node) for call in self.stopped}

    def end(self) -> None:
        """Handlers that wait in threads are released by an error."""
        self._over.set()

    # ------------------------------------------------------------------ sub-steps
    def replace_substep(
        self, attempt: Attempt, step: SubstepCall, fn: Callable[..., Any]
    ) -> Callable[..., Any]:
        """A pure sub-step runs; of any other one nothing is known."""
        why = ""
        if step.effect is Effect.pure:
            if inspect.iscoroutinefunction(fn):
                return fn
            if not self._calls.is_stuck(fn):
                return self._calls.counted(fn)
            why = STUCK
        execution, node = attempt.execution, attempt.node

        async def stop(*_args: Any, **_kwargs: Any) -> None:
            key = attempt.calls.substep_key(execution, node, step.ordinal) if step.idempotent else ""
            await self._stop(
                StoppedCall(
                    scope=execution.scope,
                    node=node.id,
                    visit=execution.visit,
                    effect=step.effect,
                    step=step.name,
                    key=key,
                    why=why,
                )
            )

        return stop

    # ------------------------------------------------------------------ nodes
    def replace_handlers(self, program: Program) -> Program:
        """The same program, with the code of pure nodes only."""
        made = copy(program)
        # Its own, because the worker's registry is put into it.
        made.schema = copy(program.schema)
        made.handlers = {
            node.id: handler
            for node in program.graph.nodes
            if (handler := self._handler(program, node)) is not None
        }
        made.children = {name: self.replace_handlers(child) for name, child in program.children.items()}
        # These act outside of the run: run directories, limits of the fleet.
        made.beside, made.limits = None, None
        return made

    def _handler(self, program: Program, node: Node) -> NodeHandler | None:
        handler = program.handlers.get(node.id)
        if handler is None:
            return self._stopping(program, node, NO_CODE) if node.kind is NodeKind.task else None
        if handler.isolation:
            return self._stopping(program, node, OWN_PROCESS)
        # The code of a script has no effect outside: its effects are sub-steps.
        if node.effect is Effect.pure or node.script:
            if handler.is_async:
                return handler
            if self._calls.is_stuck(handler.fn):
                return self._stopping(program, node, STUCK)
            return msgspec.structs.replace(handler, fn=self._calls.counted(handler.fn))
        return self._stopping(program, node, "")

    def _stopping(self, program: Program, node: Node, why: str) -> NodeHandler:
        out = [edge for edge in program.graph.edges if edge.source == node.id]
        then = [edge.target for edge in out if edge.kind is not EdgeKind.failure and edge.target != END]

        async def stop(ctx: Context) -> None:
            call = StoppedCall(
                scope=ctx.scope,
                node=node.id,
                visit=ctx.visit,
                effect=node.effect,
                key=ctx.shown(ctx.idempotency_key) if node.idempotency_key else "",
                why=why,
                then=tuple(dict.fromkeys(then)),
            )
            await self._stop(call)

        return NodeHandler(fn=stop, is_async=True, takes=("ctx",))

    async def _stop(self, call: StoppedCall) -> None:
        self.stopped.append(call)
        await self._over.wait()
        raise RuntimeError("the preview is over")


class ReadOnlyMemory:
    """The memory as it is; what a previewed run would remember is known to that run only."""

    def __init__(self, memory: MemoryBackend) -> None:
        self._memory = memory
        self._written: list[Memory] = []

    async def read(self, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        return await self.find(MemoryFilter(tenant=tenant, scope=scope, query=query, limit=limit))

    async def find(self, wanted: MemoryFilter, own: Sequence[Memory] = ()) -> list[Memory]:
        written = [*self._written, *own]
        if isinstance(self._memory, FilteringMemory):
            return await self._memory.find(wanted, written)
        found = await self._memory.read(wanted.tenant, wanted.scope, wanted.query, wanted.limit)
        return await select(found, written, wanted)

    async def write(self, memory: Memory) -> None:
        self._written.append(memory)
