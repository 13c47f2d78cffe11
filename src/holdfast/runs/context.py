"""What a handler reaches the world through: sub-steps, questions, live output, artifacts, memory."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar, copy_context
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.checkpoint import pack
from holdfast.checkpoint.envelope import MAX_SIZE, encode_packed
from holdfast.errors import (
    AnswerInvalidError,
    InputError,
    NotDone,
    OutcomeUnknownError,
    ReplayMismatchError,
    ScriptError,
    ValueTooLargeError,
)
from holdfast.model.bodies import ErrorInfo, SubstepBody, Usage
from holdfast.model.graph import HoldSpec, Node
from holdfast.model.position import Exec, Sub
from holdfast.runs.calling import describe
from holdfast.runs.memory import RECORDED, ThreadMemory, trace_id
from holdfast.runs.wording import demand_text, told
from holdfast.types.clock import micros
from holdfast.types.duration import parse_duration
from holdfast.types.hold import Option
from holdfast.types.ids import RunId
from holdfast.types.memory import Memory
from holdfast.types.record import Op
from holdfast.types.status import REPEATABLE, Effect
from holdfast.types.value import freeze

if TYPE_CHECKING:
    from holdfast.runs.driver import Driver
    from holdfast.runs.memory import NodeMemory

if TYPE_CHECKING:
    from concurrent.futures import Future as ThreadFuture

CHUNK_BYTES = 4096
CHUNK_DELAY = 0.05
MAX_EMITTED = MAX_SIZE // 2  # so that a batch of them fits into one record
_inside_step: ContextVar[bool] = ContextVar("inside a sub-step", default=False)


class Suspended(BaseException):
    """Unwinds a handler in a thread that waits for a person. Not an Exception: handlers must not catch it."""


class StepFailedError(Exception):
    """A recorded sub-step failed; raised again on every re-entry, with the recorded type and text."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(f"{info.type}: {info.message}")
        self.info = info


class Reply:
    """The answer to a question: `decision` (the option's id, or free text), `data`, `comment`, `by`."""

    __slots__ = ("by", "comment", "data", "decision")

    def __init__(self, resolution: Mapping[str, Any]) -> None:
        self.decision: Any = resolution.get("decision")
        self.data: Any = resolution.get("response_data")
        self.comment: str | None = resolution.get("comment")
        self.by: str | None = resolution.get("resolved_by")

    def __eq__(self, other: object) -> bool:
        return self.decision == (other.decision if isinstance(other, Reply) else other)

    def __hash__(self) -> int:
        return hash(self.decision)

    def __repr__(self) -> str:
        return f"Reply({self.decision!r}, by={self.by!r})"


class Context:
    """Handed to handlers that ask for it. Valid only while its attempt runs (D-16)."""

    def __init__(self, driver: Driver, execution: Exec, node: Node) -> None:
        self._driver = driver
        self._exec = execution
        self._node = node
        self._ordinal = 0
        self._asked_for: list[tuple[str, str]] = []
        self._artifacts: list[Op] = []
        self._chunks: list[tuple[str, Any]] = []
        self._chunk_bytes = 0
        self._chunk_timer: asyncio.TimerHandle | None = None
        self._chunks_inside = False
        # On re-entry after a park: what was emitted before is not emitted again.
        self._emitted_before = execution.chunks
        self._closed = ""
        self._usage = Usage()
        self._running: set[asyncio.Future[Any]] = set()
        self._calls: set[ThreadFuture[Any]] = set()
        # A sub-step whose outcome is unknown: nothing more is done in this attempt.
        self.doubt: tuple[str, ErrorInfo] | None = None
        self.limit: asyncio.Timeout | None = None
        # Writes to the memory that wait until the node has settled.
        self.memories: list[Memory] = []
        self._lives = 0

    @property
    def busy(self) -> bool:
        """Whether a sub-step is under way."""
        return bool(self._running)

    async def rest(self) -> None:
        """The handler has ended; sub-steps that it left behind may end too, and are recorded."""
        while self._running:
            await asyncio.wait(self._running)

    # Who and where.
    @property
    def run_id(self) -> RunId:
        return self._driver.run

    @property
    def node(self) -> str:
        return self._node.id

    @property
    def visit(self) -> int:
        return self._exec.visit

    @property
    def attempt(self) -> int:
        return self._exec.attempt

    @property
    def tenant(self) -> str:
        return self._driver.row.tenant

    @property
    def input(self) -> Any:
        return self._driver.pos.scopes[self._exec.scope].tree.see(0, "input")

    @property
    def idempotency_key(self) -> str:
        """Stable over attempts, new after a fork (D-18); the declared template where there is one."""
        return self._driver.clerk.idempotency_key(self._exec, self._node)

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        extra = {
            "run": self.run_id,
            "node": self.node,
            "visit": self.visit,
            "attempt": self.attempt,
            "seq": self._exec.seq,
        }
        return logging.LoggerAdapter(logging.getLogger("holdfast.node"), extra)

    @property
    def memory(self) -> NodeMemory:
        """What flows remember beyond one run, as consistent as the node or flow asks for (D-22)."""
        self._check_open()
        return self._driver.clerk.memory_of(self, self._exec, self._node)

    # Results.
    def artifact(self, name: str, value: Any) -> None:
        """Something for the caller of the run; becomes visible when the node settles."""
        self._check_open()
        demand_text(name, f"the name of an artifact of node {self.node!r}")
        frozen = freeze(value, self._driver.program.adopt, f"artifact {name!r}")
        self._artifacts.append(("artifacts", name, self._driver.clerk.artifact_op(self._exec, name), frozen))

    def artifact_ops(self) -> list[Op]:
        return self._artifacts

    def spent(self, *, tokens: int = 0, cost: float = 0.0) -> None:
        """What this node's work cost; summed into the run's diagnostics."""
        self._check_open()
        if type(tokens) is not int or type(cost) not in (int, float) or not math.isfinite(cost):
            raise InputError(
                f"ctx.spent in node {self.node!r}: tokens={tokens!r}, cost={cost!r}.",
                hint="Tokens are a whole number, the cost is a number.",
            )
        self._usage = Usage(self._usage.tokens + tokens, self._usage.cost + float(cost))

    def usage(self) -> Usage | None:
        return self._usage if self._usage.tokens or self._usage.cost else None

    def emit(self, data: Any, kind: str = "text") -> None:
        """Live output: a token, a line, progress. Stored in batches, shown after commit (D-23)."""
        self._check_open()
        self._emit(*self._emittable(data, kind))

    def _emittable(self, data: Any, kind: str) -> tuple[Any, str, int]:
        """Checked before it waits in the batch: nobody could be told later."""
        demand_text(kind, f"the kind of what node {self.node!r} emits")
        if type(data) is str and len(data) < CHUNK_BYTES and data.isascii():
            return data, kind, len(data)
        where = f"what node {self.node!r} emits"
        frozen = freeze(data, self._driver.program.adopt, where)
        size = len(encode_packed(pack(frozen, self._driver.sealer.registry, where)))
        if size > MAX_EMITTED:
            raise ValueTooLargeError(
                f"{where} has {size:,} encoded bytes, over the limit of {MAX_EMITTED:,}.",
                hint="Emit it in pieces, or hand it over with ctx.artifact.",
                size=size,
                limit=MAX_EMITTED,
            )
        return frozen, kind, size

    def _emit(self, frozen: Any, kind: str, size: int) -> None:
        inside = _inside_step.get()
        if not inside and self._emitted_before:
            self._emitted_before -= 1
            return
        if inside is not self._chunks_inside:
            self.flush_chunks()
            self._chunks_inside = inside
        self._chunks.append((kind, frozen))
        self._chunk_bytes += size
        if self._chunk_bytes >= CHUNK_BYTES:
            self.flush_chunks()
        elif self._chunk_timer is None:
            self._chunk_timer = asyncio.get_running_loop().call_later(CHUNK_DELAY, self.flush_chunks)

    def flush_chunks(self) -> None:
        if self._chunk_timer is not None:
            self._chunk_timer.cancel()
            self._chunk_timer = None
        if self._chunks and not self._closed:
            items, self._chunks, self._chunk_bytes = self._chunks, [], 0
            self._driver.clerk.note_chunks(self._exec, self._node, items, inside=self._chunks_inside)

    # Sub-steps and questions.
    async def step(
        self,
        name: str,
        fn: Callable[..., Any],
        *args: Any,
        effect: str | Effect = Effect.external,
        key: str | None = None,
        idempotent: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run `fn` once: its result is recorded, and on re-entry returned without running it again.

        `effect` as for nodes. `key` replaces the call's number where order depends on arrival (D-21).
        `idempotent=True` says that the callee deduplicates by a key, so that it may simply run again; where
        `fn` has a parameter `idempotency_key`, it is given that key, the same over all attempts (D-18).
        """
        demand_text(name, f"the name of a step of node {self.node!r}", hint='ctx.step("name", function, ...)')
        if not callable(fn):
            raise InputError(
                f"step {name!r} of node {self.node!r} is to call {told(repr(fn), 200)}, "
                "which is no function.",
                hint='Give the function and its arguments: ctx.step("pay", pay, order).',
            )
        kind = _effect_of(effect, name, self.node)
        ordinal = self._take(name, key)
        self._needs_script("ctx.step")
        known = self._recorded(ordinal, name)
        if known is not None and known.done:
            return _result(known)
        if idempotent and "idempotency_key" in inspect.signature(fn).parameters:
            kwargs["idempotency_key"] = self._driver.clerk.step_key(self._exec, self._node, ordinal)
        done = asyncio.get_running_loop().create_future()
        self._running.add(done)
        try:
            return await self._perform(_Step(ordinal, name, kind, idempotent), fn, args, kwargs)
        finally:
            self._running.discard(done)
            done.set_result(None)
            self._driver.clerk.step_ended()

    async def _perform(self, step: _Step, fn: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        repeatable = step.effect in REPEATABLE
        if not repeatable:
            await self._driver.clerk.intend_step(
                self._exec, self._node, step.ordinal, step.name, idempotent=step.idempotent
            )
        value, error = await self._attempt(fn, args, kwargs)
        self._check_open()
        if error is not None and not (repeatable or step.idempotent or error.code == NotDone.code):
            self.doubt = self.doubt or (step.ordinal, error)
            raise OutcomeUnknownError(f"step {step.name!r} of {self.node!r}: {error.type}: {error.message}")
        if error is None:
            value = self._kept(step, value, sure=repeatable or step.idempotent)
        code = self._driver.clerk.code_of(self._exec)
        await self._driver.clerk.note_substep(
            self._exec, self._node, SubstepBody(step.ordinal, step.name, value, error, code=code)
        )
        if error is not None:
            raise StepFailedError(error)
        return value

    def _kept(self, step: _Step, value: Any, *, sure: bool) -> Any:
        """The result as it is recorded. An effect whose result cannot be kept is in doubt: it happened, and
        nobody could say later what came of it."""
        where = f"the result of step {step.name!r} of {self.node!r}"
        try:
            frozen = freeze(value, self._driver.program.adopt, where)
            self._driver.sealer.prepare([], frozen, where)
        except InputError as error:
            if not sure:
                self.doubt = self.doubt or (step.ordinal, describe(error))
            raise
        return frozen

    async def _attempt(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ErrorInfo | None]:
        inside = _inside_step.set(True)
        try:
            if inspect.iscoroutinefunction(fn):
                return await fn(*args, **kwargs), None
            found = await asyncio.to_thread(fn, *args, **kwargs)
            return (await found if inspect.isawaitable(found) else found), None
        except Exception as error:
            return None, describe(error)
        finally:
            _inside_step.reset(inside)

    async def ask(
        self,
        prompt: str,
        *,
        options: Sequence[str | Mapping[str, str] | Option] | None = None,
        assignee: str | None = None,
        timeout: str | int | float | timedelta | None = None,
        on_timeout: str | None = None,
        type: str | None = None,  # noqa: A002
        priority: str = "normal",
        context: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Reply:
        """Ask a person and wait for the answer, for seconds or months: no process needs to stay alive."""
        demand_text(prompt, f"the prompt of ctx.ask in node {self.node!r}")
        ordinal = self._take(prompt, key)
        self._needs_script("ctx.ask")
        known = self._recorded(ordinal, prompt)
        if known is not None and known.done:
            return _reply(known)
        if known is None or known.hold not in self._driver.pos.holds:
            # What was said before the question is told before it.
            self.flush_chunks()
            normal = options_of(options)
            spec = HoldSpec(
                type=self._text("type", type) or ("approval" if normal else "freeform"),
                prompt=prompt,
                options=normal,
                assignee=self._text("assignee", assignee),
                priority=self._text("priority", priority) or "normal",
                timeout=None if timeout is None else micros(parse_duration(timeout)),
                on_timeout=self._text("on_timeout", on_timeout),
                schema=None if schema is None else self._storable("schema", dict(schema)),
            )
            more = self._storable("context", dict(context or {}))
            self._driver.clerk.ask_inside(self._exec, ordinal, self._ordinal, spec, more)
        return _reply(await self._answer(ordinal))

    def _text(self, what: str, value: str | None) -> str | None:
        return None if value is None else demand_text(value, f"{what} of ctx.ask in node {self.node!r}")

    def _storable(self, what: str, value: dict[str, Any]) -> dict[str, Any]:
        where = f"{what} of ctx.ask in node {self.node!r}"
        frozen = freeze(value, self._driver.program.adopt, where)
        pack(frozen, self._driver.sealer.registry, where)
        return frozen

    async def _answer(self, ordinal: str) -> Sub:
        """The node's timeout does not run while a person thinks: a parked node has none either."""
        limit, left = self.limit, 0.0
        clock = asyncio.get_running_loop().time
        if limit is not None:
            left = (limit.when() or clock()) - clock()
            limit.reschedule(None)
        try:
            return await self._driver.clerk.wait_answer(self, self._exec, ordinal)
        finally:
            if limit is not None and not limit.expired():
                limit.reschedule(clock() + left)

    # For `ctx.memory`.
    def take_recorded(self, name: str) -> tuple[str, Any]:
        """The number of this call, and what was recorded for it."""
        self._check_open()
        if self._driver.clerk.consistency(self._exec, self._node) not in RECORDED:
            self._lives += 1
            return f"live{self._lives}", None
        ordinal = self._take(name, None)
        known = self._recorded(ordinal, name)
        return ordinal, None if known is None else known.value

    async def record(self, body: SubstepBody) -> Any:
        body.code = self._driver.clerk.code_of(self._exec)
        await self._driver.clerk.note_substep(self._exec, self._node, body, effect="memory")
        return body.value

    def remember_later(self, memory: Memory) -> None:
        self.memories.append(memory)

    def memory_scope(self, scope: str) -> str:
        if scope == "run":
            return f"run:{self.run_id}"
        return f"thread:{self._driver.row.thread}" if scope == "thread" else scope

    def trace_id(self, ordinal: str) -> str:
        return trace_id(self.run_id, self._exec.scope, self.node, self.visit, ordinal)

    def now(self) -> int:
        """The time on the runtime's clock, in microseconds."""
        return self._driver.runtime.clock.now()

    def _take(self, name: str, key: str | None) -> str:
        """Each call takes its number at once, whatever is awaited later (D-21)."""
        self._check_open()
        ordinal = f"={key}" if key is not None else str(self._ordinal)
        self._ordinal += 1
        self._asked_for.append((ordinal, name))
        return ordinal

    def _recorded(self, ordinal: str, name: str) -> Sub | None:
        known = self._exec.subs.get(ordinal)
        if known is not None and known.name != name:
            raise self._mismatch(f"call {ordinal} is now {name!r}, but {known.name!r} was recorded")
        return known

    def check_all_asked_for(self) -> None:
        """A record that the node never asked for is the same mismatch."""
        asked = {ordinal for ordinal, _ in self._asked_for}
        unused = [s for s in self._exec.subs if s not in asked]
        if unused:
            raise self._mismatch(f"{len(unused)} recorded call(s) were not made this time")

    def _mismatch(self, why: str) -> ReplayMismatchError:
        recorded = ", ".join(f"{o}:{s.name}" for o, s in self._exec.subs.items())
        now = ", ".join(f"{o}:{n}" for o, n in self._asked_for)
        return ReplayMismatchError(
            f"node {self.node!r} does not repeat what it did before: {why}.\n"
            f"  recorded: {recorded}\n  now:      {now}",
            hint="Keep the order of ctx.step and ctx.ask the same for the same input, or give them key=...",
        )

    def _needs_script(self, what: str) -> None:
        if not self._node.script and self._node.effect not in REPEATABLE:
            raise ScriptError(
                f"{what} in node {self.node!r}, whose class is {self._node.effect}: the code around "
                "sub-steps runs again on re-entry, so it must not touch the outside.",
                hint="Declare it with @flow.script, and put each effect into ctx.step(..., effect=...).",
            )

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"the context of node {self.node!r} is closed: {self._closed}")
        if self.doubt is not None:
            raise OutcomeUnknownError(
                f"a step of {self.node!r} has an unknown outcome: {self.doubt[1].message}"
            )

    def close(self, why: str) -> None:
        """From now on it raises on use: a thread cannot be stopped, but kept from going on (D-16)."""
        if not self._closed:
            self.flush_chunks()
            self._closed = why
            for call in list(self._calls):
                call.cancel()


class _Step(NamedTuple):
    ordinal: str
    name: str
    effect: Effect
    idempotent: bool


def _effect_of(given: str | Effect, name: str, node: str) -> Effect:
    try:
        return Effect(given)
    except ValueError:
        raise InputError(
            f"step {name!r} of node {node!r} has the effect {told(repr(given), 200)}.",
            hint=f"It is one of: {', '.join(Effect)}.",
        ) from None


def _result(sub: Sub) -> Any:
    if sub.error is not None:
        raise StepFailedError(sub.error)
    return sub.value


class HoldExpiredError(Exception):
    """Nobody answered in time."""


def _reply(sub: Sub) -> Reply:
    if sub.error is not None:
        raise HoldExpiredError(sub.error.message)
    return Reply(sub.value)


def options_of(options: Sequence[str | Mapping[str, str] | Option] | None) -> tuple[Option, ...] | None:
    if options is None:
        return None
    found: list[Option] = []
    for option in options:
        if isinstance(option, Option):
            found.append(option)
        elif isinstance(option, str):
            found.append(Option(option, option))
        elif isinstance(option, Mapping) and "id" in option:  # pyright: ignore[reportUnnecessaryIsInstance]
            found.append(
                Option(option["id"], option.get("label", option["id"]), option.get("variant", "secondary"))
            )
        else:
            raise AnswerInvalidError(
                f"{told(repr(option), 200)} is not an option of a question.",
                hint='Write "approve", or {"id": ..., "label": ...}.',
            )
    for option in found:
        for text in (option.id, option.label, option.variant):
            demand_text(text, "an option of a question")
    ids = [o.id for o in found]
    if len(set(ids)) != len(ids) or "" in ids:
        raise AnswerInvalidError("the options of a question need ids that are not empty and differ")
    return tuple(found)


class ThreadContext(Context):
    """The context of a sync handler: the same calls, made from its thread."""

    def step(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.from_thread(Context.step(self, *args, **kwargs))

    def ask(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.from_thread(Context.ask(self, *args, **kwargs))

    @property
    def memory(self) -> Any:
        self._check_open()
        return ThreadMemory(self._driver.clerk.memory_of(self, self._exec, self._node), self)

    def from_thread(self, work: Coroutine[Any, Any, Any]) -> Any:
        if self._closed:
            work.close()
        self._check_open()
        call = asyncio.run_coroutine_threadsafe(work, self._driver.loop)
        self._calls.add(call)
        try:
            return call.result()
        finally:
            self._calls.discard(call)

    def emit(self, data: Any, kind: str = "text") -> None:
        self._check_open()
        inside = copy_context()
        tell = partial(inside.run, self._emit_open, *self._emittable(data, kind))
        self._driver.loop.call_soon_threadsafe(tell)

    def _emit_open(self, frozen: Any, kind: str, size: int) -> None:
        if not self._closed:
            self._emit(frozen, kind, size)
