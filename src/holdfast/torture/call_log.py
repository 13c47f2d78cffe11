"""Records each call of user code: handlers of nodes, and functions of sub-steps."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.checkpoint.json_view import jsonable
from holdfast.errors import NotDone
from holdfast.model.graph import Node
from holdfast.model.program import NodeHandler, Program
from holdfast.runs.context.context import Context
from holdfast.runs.context.driver_protocols import Suspended
from holdfast.runs.context.substeps import SubstepCall
from holdfast.telemetry import current_place, on_substep
from holdfast.torture.boundaries import AFTER, BEFORE, Watcher
from holdfast.torture.trial_log import CallBegun, CallEnded, CallId, TrialLog
from holdfast.torture.undeclared_effects import current

Fn = Callable[..., Any]
KeyOf = Callable[[CallId, Node], str | None]


class Calls:
    """Wraps what the program calls, in this process only."""

    def __init__(self, notebook: TrialLog, life: int, watcher: Watcher, key_of: KeyOf) -> None:
        self._notebook = notebook
        self._life = life
        self._watcher = watcher
        self._key_of = key_of

    def watch(self, program: Program) -> None:
        on_substep.append(self._substep)
        self._watch_handlers(program)

    def _watch_handlers(self, program: Program) -> None:
        for node in program.graph.nodes:
            handler = program.handlers.get(node.id)
            if handler is not None:
                program.handlers[node.id] = self._handler(handler, node)
        for child in program.children.values():
            self._watch_handlers(child)

    def _handler(self, handler: NodeHandler, node: Node) -> NodeHandler:
        def begin(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> CallBegun:
            at = current_place()
            assert at is not None
            call = CallId(at.scope, at.node, at.visit)
            effect = "script" if node.script else str(node.effect)
            key = self._key_of(call, node) if node.idempotency_key else None
            return CallBegun(call, effect, self._life, key, _digest(_data(args)))

        return msgspec.structs.replace(handler, fn=self._wrapped(handler.fn, begin))

    def _substep(self, fn: Fn, step: SubstepCall, key: str | None) -> Fn:
        at = current_place()
        assert at is not None
        call = CallId(at.scope, at.node, at.visit, step.ordinal, step.name)
        known = key or ("idempotent" if step.idempotent else None)

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallBegun:
            return CallBegun(call, str(step.effect), self._life, known, _digest([_data(args), kwargs]))

        return self._wrapped(fn, begin)

    def _wrapped(self, fn: Fn, begin: Callable[[tuple[Any, ...], dict[str, Any]], CallBegun]) -> Fn:
        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with _Call(self._notebook, self._watcher, begin(args, kwargs)) as call:
                    call.value = await fn(*args, **kwargs)
                    return call.value

            return awaited

        @functools.wraps(fn)
        def called(*args: Any, **kwargs: Any) -> Any:
            with _Call(self._notebook, self._watcher, begin(args, kwargs)) as call:
                call.value = fn(*args, **kwargs)
                return call.value

        return called


class _Call:
    """One call: recorded before it starts and after it ended, each with a boundary."""

    def __init__(self, notebook: TrialLog, watcher: Watcher, begun: CallBegun) -> None:
        self._notebook = notebook
        self._watcher = watcher
        self._begun = begun
        self.value: Any = None

    def __enter__(self) -> _Call:
        self._watcher.where = str(self._begun.call)
        # The boundary first: a process that is killed there has not made the call, and must not log it.
        self._watcher.passed(BEFORE)
        self._notebook.write(self._begun)
        self._token = current.set((self._begun.call, self._begun.effect))
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        current.reset(self._token)
        if isinstance(error, Suspended) or (error is not None and not isinstance(error, Exception)):
            return  # unwound, not ended: it waits for a person, or is stopped
        done = not isinstance(error, NotDone)
        text = None if error is None else f"{type(error).__name__}: {error}"
        value = _plain(self.value)
        # Logged before the boundary: a process that is killed there has made the call.
        self._notebook.write(CallEnded(self._begun.call, self._begun.life, done, text, value))
        self._watcher.passed(AFTER)


def _plain(value: Any) -> Any:
    """The value, if it fits into JSON: the answer to an unknown outcome returns it."""
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return jsonable(value)


def _data(args: tuple[Any, ...]) -> list[Any]:
    """The arguments of the call, without the context."""
    return [one for one in args if not isinstance(one, Context)]


def _digest(given: Any) -> str | None:
    try:
        return sha256(msgspec.json.encode(given, order="deterministic")).hexdigest()[:16]
    except (TypeError, ValueError, RecursionError):
        return None
