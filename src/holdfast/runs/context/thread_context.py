"""The context of a sync handler, which runs in a thread beside the driver's loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.errors import ScriptError
from holdfast.runs.context.context import Context
from holdfast.runs.node_memory import ThreadMemory

if TYPE_CHECKING:
    from holdfast.runs.context.callbacks import Callback
    from holdfast.runs.context.children import ChildRun


class ThreadContext(Context):
    """The same calls, made from its thread."""

    _in_thread = True

    def step(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.from_thread(Context.step(self, *args, **kwargs))

    def ask(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.from_thread(Context.ask(self, *args, **kwargs))

    def sleep(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.from_thread(Context.sleep(self, *args, **kwargs))

    def start(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return ThreadChildRun(self, self.from_thread(Context.start(self, *args, **kwargs)))

    def call(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.from_thread(Context.call(self, *args, **kwargs))

    def wait_for(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.from_thread(Context.wait_for(self, *args, **kwargs))

    def callback(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return ThreadCallback(self, self.from_thread(Context.callback(self, *args, **kwargs)))

    def gather(self, *branches: Any, **_options: Any) -> Any:  # type: ignore[override]
        raise self._no_branches("gather", branches)

    def race(self, *branches: Any, **_options: Any) -> Any:  # type: ignore[override]
        raise self._no_branches("race", branches)

    def first(self, *branches: Any, **_options: Any) -> Any:  # type: ignore[override]
        raise self._no_branches("first", branches)

    def map(self, *_args: Any, **_options: Any) -> Any:  # type: ignore[override]
        raise self._no_branches("map", ())

    def _no_branches(self, name: str, branches: tuple[Any, ...]) -> ScriptError:
        for each in branches:
            if inspect.iscoroutine(each):
                each.close()
        return ScriptError(
            f"ctx.{name} in node {self.node!r}, which is a plain function: branches cannot run beside each "
            "other in one thread.",
            hint="Make the script async: async def.",
        )

    def file(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.from_thread(Context.file(self, *args, **kwargs))

    @property
    def memory(self) -> Any:
        return ThreadMemory(super().memory, self)

    def from_thread(self, work: Coroutine[Any, Any, Any]) -> Any:
        if self._at.closed:
            work.close()
        self._at.check_open()
        call = asyncio.run_coroutine_threadsafe(self._until_closed(work), self._session.loop)
        self._thread_calls.add(call)
        try:
            return call.result()
        finally:
            self._thread_calls.discard(call)

    async def _until_closed(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await work
        except Exception:
            # Closing it has cancelled the call: its thread does not wait for this error any more.
            if self._at.closed:
                return None
            raise

    def emit(self, data: Any, kind: str = "text") -> None:
        self._at.check_open()
        inside = copy_context()
        emit = partial(inside.run, self._emitter.emit_if_open, *self._emitter.emittable(data, kind))
        self._session.loop.call_soon_threadsafe(emit)


class ThreadChildRun:
    """A child of a sync handler."""

    def __init__(self, ctx: ThreadContext, child: ChildRun) -> None:
        self._ctx = ctx
        self._child = child
        self.run_id = child.run_id
        self.flow = child.flow

    def result(self, **options: Any) -> Any:
        return self._ctx.from_thread(self._child.result(**options))


class ThreadCallback:
    """A callback of a sync handler."""

    def __init__(self, ctx: ThreadContext, callback: Callback) -> None:
        self._ctx = ctx
        self._callback = callback
        self.name = callback.name
        self.token = callback.token
        self.url = callback.url

    def result(self) -> Any:
        return self._ctx.from_thread(self._callback.result())
