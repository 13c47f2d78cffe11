"""What a handler uses: sub-steps, questions, live output, artifacts, memory.

The timeout of a node does not run while a person answers: a parked node has none either.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from holdfast.errors import InputError
from holdfast.model.graph import Node
from holdfast.model.position import NAP, Exec, Sub
from holdfast.model.record_bodies import ErrorInfo, SubstepBody, Usage
from holdfast.runs.context.awaited import MadeCalls, awaited
from holdfast.runs.context.budget_ledger import ContextLedger
from holdfast.runs.context.driver_protocols import Attempt, ContextCalls, SubstepCall, Suspended
from holdfast.runs.context.emit import Emitter
from holdfast.runs.context.facts import ContextFacts
from holdfast.runs.context.message_waits import MessageWaits, queues_of
from holdfast.runs.context.node_timeout import PausedTimeout
from holdfast.runs.context.questions import (
    Options,
    QuestionOptions,
    Reply,
    context_of,
    question,
    reply_of,
    storable,
)
from holdfast.runs.context.substeps import (
    Numbers,
    Substeps,
    effect_of,
    read_policy,
    require_callable,
    require_script,
    result_of,
    spending,
    total,
)
from holdfast.runs.node_memory import RECORDED, NodeMemory, trace_id
from holdfast.telemetry import NodeLog
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.memory import Memory
from holdfast.types.record import TURN, Op
from holdfast.types.status import Effect
from holdfast.types.text import require_text
from holdfast.types.value import FrozenDict, freeze

if TYPE_CHECKING:
    from concurrent.futures import Future as ThreadFuture
    from datetime import timedelta

    from holdfast.model.program import ItemCall
    from holdfast.model.user_code.tasks import OwnedTask
    from holdfast.runs.context.branch_map import MapOptions
    from holdfast.runs.context.callbacks import Callback
    from holdfast.runs.context.children import Children, ChildRun
    from holdfast.runs.context.combinators import Branches, Winner
    from holdfast.runs.context.skills import RunSkills
    from holdfast.runs.steer_messages import SteerMessages


T = TypeVar("T")


class Context(ContextFacts):
    """Passed to handlers that ask for it. Valid only while its attempt runs."""

    # Whether its handler runs in a thread, which is not kept over a wait.
    _in_thread = False

    def __init__(self, calls: ContextCalls, execution: Exec, node: Node) -> None:
        super().__init__(calls, execution, node)
        self._at = Attempt(calls, execution, node)
        self._numbers = Numbers(self._at)
        self._substeps = Substeps(self._at, self._numbers, self._answer)
        self._emitter = Emitter(self._at)
        self._waits = MessageWaits(self._at, self._numbers, self._substeps, self._emitter, self._answer)
        self._artifacts: list[Op] = []
        self._spent: list[Usage] = []
        self._thread_calls: set[ThreadFuture[Any]] = set()
        self.patience = PausedTimeout()
        # Writes to the memory that wait until the node has settled.
        self.memories: list[Memory] = []
        self._lives = 0
        self._waiting_now = 0
        # Microseconds in which it waited for an answer or a timer.
        self.waited = 0
        # The handler was let go while it waited: whatever its code does then does not count.
        self.suspended = False
        # What runs the handler.
        self.task: OwnedTask[Any] | None = None
        self.made_calls = MadeCalls()

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger of the standard library. Its lines are also stored with the attempt, at most 1,000 of
        them; those below `stored_log_level` (`info`) are not."""
        extra = {
            "run": self.run_id,
            "flow": self._session.row.flow,
            "scope": self._exec.scope,
            "node": self.node,
            "visit": self.visit,
            "attempt": self.attempt,
            "seq": self._exec.seq,
        }
        lowest = self._session.services.log_from
        return NodeLog(logging.getLogger("holdfast.node"), extra, self._emitter.store_line, lowest)

    @property
    def memory(self) -> NodeMemory:
        """What flows remember beyond one run, as consistent as the node or flow asks for."""
        self._at.check_open()
        consistency = self._calls.consistency(self._exec, self._node)
        return NodeMemory(self._session.services.memory, self, consistency)

    @property
    def queues(self) -> Any:
        """Messages of queues (`holdfast.queues.service.QueueService`). Raises InputError where the process
        has none."""
        self._at.check_open()
        return queues_of(self._session)

    @property
    def ledger(self) -> ContextLedger:
        """What the run may still spend; models of agents reserve their calls there."""
        return ContextLedger(self._calls.ledger, self._at, self._waiting)

    @property
    def skills(self) -> RunSkills:
        """Those that the run's deployment binds, in the versions that the run is pinned to: the same from its
        start to its end, wherever it resumes."""
        return self._calls.skills

    @property
    def steering(self) -> SteerMessages:
        """Messages of people to an agent of this run."""
        from holdfast.runs.steer_messages import SteerMessages

        self._at.check_open()
        row = self._session.row
        return SteerMessages(self._session.services.store, row.tenant, row.id)

    # Results.
    def artifact(self, name: str, value: Any) -> None:
        """Something for the caller of the run; becomes visible when the node settles."""
        self._at.check_open()
        require_text(name, f"the name of an artifact of node {self.node!r}")
        frozen = freeze(value, self._session.program.adopt, f"artifact {name!r}")
        self._artifacts.append(("artifacts", name, self._calls.artifact_op(self._exec, name), frozen))

    @awaited
    async def made(self) -> Mapping[str, Any]:
        """The artifacts of the run so far, without those of nodes that have not settled."""
        self._at.check_open()
        session = self._session
        tree = session.pos.scopes[""].tree
        for partition, key in list(tree.lazy):
            if partition == "artifacts":
                tree.fill(partition, key)
        blobs = session.services.blobs.of(session.row.tenant)
        return await blobs.whole(FrozenDict(tree.see(0, "artifacts")), session.codec.registry)

    def artifact_ops(self) -> list[Op]:
        return self._artifacts

    @awaited
    async def file(self, reference: Mapping[str, Any]) -> bytes:
        """The content of a file that was attached to a question of this run; `reference` is what its
        field has. Raises NotFoundError for a file of another run."""
        self._at.check_open()
        return await self._calls.file(reference)

    def spent(self, *, tokens: int = 0, cost: float = 0.0, micros: int = 0) -> None:
        """What this node's work cost; summed into the run's diagnostics. Inside a sub-step it is recorded
        with that, so that it counts once however often the node is entered. `micros`: its time, for budgets
        that limit that."""
        self._at.check_open()
        numbers = type(tokens) is int and type(cost) in (int, float) and math.isfinite(cost)
        # Less than nothing would give a budget back what others have used.
        if not numbers or min(tokens, cost) < 0:
            raise InputError(
                f"ctx.spent in node {self.node!r}: tokens={tokens!r}, cost={cost!r}.",
                hint="Tokens are a whole number, the cost is a number, and none is below 0.",
            )
        # A context variable: parallel sub-steps of one handler each count their own cost.
        inside = spending.get()
        (self._spent if inside is None else inside).append(Usage(tokens, float(cost), max(micros, 0)))

    def note_digests(self, **digests: str) -> None:
        """Digests of what a sub-step used, such as its model and its prompt: recorded with it, so that later
        versions can be compared with its history. Outside a sub-step it does nothing."""
        self._at.check_open()
        inside = spending.get()
        if inside is not None:
            inside.digests = {**(inside.digests or {}), **digests}

    def usage(self) -> Usage | None:
        return total(self._spent)

    def emit(self, data: Any, kind: str = "text") -> None:
        """Live output: a token, a line, progress. Stored in batches, shown after commit."""
        self._at.check_open()
        self._emitter.emit(*self._emitter.emittable(data, kind))

    def progress(self, done: float, total: float) -> None:
        """How far this node has come, such as `ctx.progress(3, 10)`: shown by `holdfast run`, on the pages of
        the run, and as `progress` of its steps over HTTP."""
        for number in (done, total):
            if type(number) not in (int, float) or not math.isfinite(number) or number < 0:
                raise InputError(
                    f"ctx.progress({done!r}, {total!r}) in node {self.node!r} is not how far it has come.",
                    hint="Give two numbers, such as ctx.progress(3, 10).",
                )
        self.emit({"done": done, "total": total}, "progress")

    def flush_chunks(self) -> None:
        """Do not wait for the batch to fill."""
        self._emitter.flush()

    # Sub-steps and questions.
    @awaited
    async def step(
        self,
        name: str,
        fn: Callable[..., Any],
        *args: Any,
        effect: str | Effect = Effect.external,
        key: str | None = None,
        idempotent: bool = False,
        idempotency_key: str | None = None,
        retry: Any = None,
        timeout: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Run `fn` once: its result is recorded, and on re-entry returned without running it again.

        `effect` as for nodes. `key` replaces the call's number where order depends on arrival; a second step
        with the same key is an error, unless it is `pure` or `read` and gets what is recorded.
        `idempotent=True` says that the callee deduplicates by a key, so that it may simply run again; where
        `fn` has a parameter `idempotency_key`, it is given that key, the same over all attempts.
        `idempotency_key` is that key if it is not to be derived from the place of the call.

        `retry` (a `Retry`, or a number of attempts) as for nodes, with attempts and waits of its own, which
        survive a crash; during a long wait no process needs to stay alive. `timeout` limits one attempt.
        When no attempt is left, `StepFailedError` is raised, the same on every re-entry: the script may catch
        it, and a retry of the node does not repeat the step.
        """
        require_text(
            name, f"the name of a step of node {self.node!r}", hint='ctx.step("name", function, ...)'
        )
        require_callable(fn, name, self.node)
        kind = effect_of(effect, name, self.node)
        ordinal = self._numbers.take(name, key, repeats=kind in (Effect.pure, Effect.read))
        require_script(self._at, "ctx.step")
        known = self._numbers.recorded(ordinal, name)
        if known is not None and known.done:
            return result_of(known)
        own = "" if idempotency_key is None else _own_key(idempotency_key, name)
        call = SubstepCall(ordinal, name, kind, idempotent or bool(own), own)
        if retry is not None or timeout is not None:
            call = read_policy(call, self.node, retry, timeout)
        return await self._substeps.run(call, fn, args, kwargs, known)

    def recorded(self, key: str | int) -> str | None:
        """The name of the sub-step or question that is recorded under this key, or this number, in the branch
        whose code this is."""
        known = self._exec.subs.get(f"{self.branch}{f'={key}' if isinstance(key, str) else key}")
        return None if known is None else known.name

    @property
    def branch(self) -> str:
        """The path of the branch whose code this is; empty outside of `gather`, `race`, `first` and `map`."""
        return self._numbers.here.path

    async def mark_turn(self, number: int, value: Any = None, *, key: str, listed: bool = True) -> None:
        """The end of a turn of a loop inside this node: a checkpoint, durable when this returns.

        `listed=False`: the journal has it, the list of checkpoints does not."""
        name = f"turn {number}"
        ordinal = self._numbers.take(name, key)
        require_script(self._at, "ctx.mark_turn")
        if self._numbers.recorded(ordinal, name) is not None:
            return
        self.flush_chunks()
        kept = freeze(value, self._session.program.adopt, name)
        body = SubstepBody(ordinal, name, kept, code=self._calls.code_of(self._exec))
        await self._calls.note_substep(
            self._exec,
            self._node,
            body,
            outcome=f"{TURN}{number}",
            listed=listed and self._calls.lists_turns(self._exec, self._node),
        )

    @overload
    async def ask(
        self, prompt: str, *, form: type[T], options: None = None, **manner: Unpack[QuestionOptions]
    ) -> T: ...

    @overload
    async def ask(
        self,
        prompt: str,
        *,
        options: Options | None = None,
        schema: Mapping[str, Any] | None = None,
        form: Any = None,
        **manner: Unpack[QuestionOptions],
    ) -> Reply: ...

    @awaited
    async def ask(
        self,
        prompt: str,
        *,
        options: Options | None = None,
        schema: Mapping[str, Any] | None = None,
        form: Any = None,
        key: str | None = None,
        **manner: Any,
    ) -> Any:
        """Ask a person and wait for the answer, for seconds or months: no process needs to stay alive.

        `form` is what to fill in: a type, whose instance is returned (with `options=`: is the reply's
        `data`), a JSON Schema, or a list of sections. Whom it goes to, until when, and on what terms is given
        as for `flow.hold`. Raises HoldExpiredError where no answer came in time, HoldCancelledError
        where it was withdrawn and `on_cancel` is "raise"."""
        require_text(prompt, f"the prompt of ctx.ask in node {self.node!r}")
        ordinal = self._numbers.take(prompt, key)
        require_script(self._at, "ctx.ask")
        known = self._numbers.recorded(ordinal, prompt)
        if known is not None and known.done:
            return reply_of(known, form, bare=options is None)
        if known is None or known.hold not in self._session.pos.holds:
            # What was emitted before the question is shown before it.
            self.flush_chunks()
            spec = question(
                self._at,
                prompt,
                options=options,
                schema=schema,
                form=form,
                manner=manner,
            )
            context = context_of(manner, self._node.id)
            # Before it is masked, too: a value that contains itself is refused here.
            storable(self._at, "context", context)
            more = storable(self._at, "context", dict(self.shown(context)))
            self._calls.ask_inside(self._exec, ordinal, self._numbers.taken, spec, more)
        return reply_of(await self._answer(ordinal), form, bare=options is None)

    @awaited
    async def sleep(self, seconds: float | str | timedelta, *, key: str | None = None) -> None:
        """Wait for that time, durably: during a long sleep no process needs to stay alive, and a node that is
        entered again sleeps only for the rest. It does not count against the node's timeout. A number of
        seconds, a timedelta, or a text such as "10m"."""
        try:
            wait = parse_duration(seconds, allow_zero=True).total_seconds()
        except DurationError as error:
            raise InputError(f"ctx.sleep in node {self.node!r}: {error.message}.", hint=error.hint) from error
        ordinal = self._numbers.take(NAP, key)
        require_script(self._at, "ctx.sleep")
        known = self._numbers.recorded(ordinal, NAP)
        if known is not None and known.done:
            return
        if known is None or known.hold not in self._session.pos.timers:
            self.flush_chunks()
            self._calls.sleep_inside(self._exec, self._node, ordinal, wait)
        await self._answer(ordinal)

    # Branches. Their modules are loaded by the first script that has any.
    @property
    def _branches(self) -> Branches:
        from holdfast.runs.context.combinators import Branches

        step, sleep = partial(Context.step, self), partial(Context.sleep, self)
        return Branches(self._at, self._numbers, step, sleep)

    @awaited
    async def gather(
        self,
        *branches: Any,
        return_exceptions: bool = False,
        timeout: Any = None,
        key: str | None = None,
    ) -> list[Any]:
        """Run branches in parallel and wait for all of them: their results, in order. A branch is a
        coroutine that has not started, such as `ctx.step(...)` or `pay(ctx)`, or a function that returns one.

        The calls of each branch are numbered apart, so they may be recorded in any order. The node waits
        without a process when no branch can continue. The first error stops the other branches and is raised,
        the same on every re-entry; with `return_exceptions` errors are among the results. Raises
        WaitTimeoutError after `timeout`. `key` replaces the call's number where order depends on arrival."""
        from holdfast.runs.context import combinators

        return await combinators.gather(
            self._branches, branches, return_exceptions=return_exceptions, timeout=timeout, key=key
        )

    @awaited
    async def race(self, *branches: Any, timeout: Any = None, key: str | None = None) -> Winner:
        """Run branches in parallel until the first one ends: its place and its result, or its error.
        The others are stopped: their questions are withdrawn, the runs that they started are cancelled, and
        an effect outside that has begun may end. Which branch won is recorded. Otherwise as `gather`."""
        from holdfast.runs.context import combinators

        return await combinators.race(self._branches, branches, timeout=timeout, key=key)

    @awaited
    async def first(self, *branches: Any, timeout: Any = None, key: str | None = None) -> Winner:
        """As `race`, until the first one succeeds. Raises an ExceptionGroup if all of them fail."""
        from holdfast.runs.context import combinators

        return await combinators.first(self._branches, branches, timeout=timeout, key=key)

    @awaited
    async def map(
        self, fn: Callable[..., Any], items: Iterable[Any], **options: Unpack[MapOptions]
    ) -> list[Any]:
        """Call `fn(item)` for each item, each in a branch, at most `concurrency` of them at once: the
        results, in the order of the items. If `fn` has parameters `index` and `key`, it gets those of its
        item; keys come from `item_key`, and name the branches then.

        `rate` ("10/s", "100/min"): items start at even distances, at most so many in any such period. With
        `limit_key` (a text, or a function of the item) `concurrency` and `rate` hold for all items with that
        key, in all maps and runs of the tenant.

        The first error stops the other items and is raised. With `tolerated_failures` (a count, or a share
        such as "10%") or `min_successes`, errors are among the results, and MapFailedError is raised when
        there are too many."""
        from holdfast.runs.context.branch_map import map_items, require_options

        require_options(self.node, options)
        return await map_items(self._branches, fn, items, **options)

    async def run_item(self, call: ItemCall, *args: Any) -> Any:
        """For `flow.map(rate=..., limit_key=...)`: the item of this node, when it may start."""
        from holdfast.runs.context import limited_items

        return await limited_items.run_item(self._branches, call, args)

    # Child runs and events.
    @property
    def _children(self) -> Children:
        from holdfast.runs.context.children import Children

        return Children(self._at, self._numbers, self._waits, partial(Context.step, self))

    @awaited
    async def start(
        self, flow: Any, given: Any = None, *, key: str | None = None, detached: bool = False
    ) -> ChildRun:
        """Start a run of another flow (or of this one), once for this place in the script; it runs beside
        this run. `flow`: a `Flow`, or the name of one that this process has. It is cancelled with this run,
        unless it is `detached`. `key` replaces the call's number where order depends on arrival.

        Raises StepFailedError if it cannot be started, also beyond 32 children of children."""
        return await self._children.start(flow, given, key, detached=detached)

    @awaited
    async def call(self, flow: Any, given: Any = None, *, key: str | None = None, timeout: Any = None) -> Any:
        """Start a run of another flow and wait for its end: the state that it ended with. While it runs, this
        run needs no process. Raises as `start` and `ChildRun.result` do."""
        child = await self._children.start(flow, given, key)
        return await child.result(timeout=timeout, key=key and f"{key}/end")

    @awaited
    async def wait_for(
        self,
        name: str,
        *,
        key: str | None = None,
        match: str | None = None,
        values: Mapping[str, Any] | None = None,
        timeout: Any = None,
        place: str | None = None,
        begun: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """Wait for an event from a machine: its data. During the wait no process needs to stay alive.

        The event has this name and this key (without one: no key), or was sent to this run by its id. `match`
        is a condition on its data, such as `event.amount >= least`; `values` are the names that it may use
        beside `event`. Each event goes to one waiting run, those of one key in order, and one that came
        before this call is kept for as long as its sender said. Raises WaitTimeoutError after `timeout`.
        `place` replaces the call's number where order depends on arrival. `begun` is called when the wait is
        durable, and again whenever the node is entered again: to look whether what it waits for has already
        happened."""
        return await self._waits.event(name, key, match, values, timeout, place, begun)

    @awaited
    async def committed(self) -> None:
        """Until everything that the handler has done and asked so far is in the store."""
        self._emitter.flush()
        await self._calls.committed()

    @contextmanager
    def paused(self) -> Generator[None]:
        """While this process waits for a person: counts neither against the timeout nor as work."""
        with self._waiting():
            yield

    @awaited
    async def callback(
        self, name: str, *, timeout: Any = None, heartbeat: Any = None, key: str | None = None
    ) -> Callback:
        """A token and an address (`token`, `url`) with which another system completes this place of the
        script: hand them over in a step, then `await callback.result()`, which waits without a process.

        The time of `timeout` and `heartbeat` begins now. `heartbeat`: the longest time without a heartbeat of
        that system. `key` replaces the call's number where order depends on arrival."""
        from holdfast.runs.context.callbacks import CallbackPlace, open_callback

        place = CallbackPlace(self._at, self._numbers, self._emitter, self._answer)
        return await open_callback(place, name, timeout, heartbeat, key)

    async def _answer(self, ordinal: str) -> Sub:
        with self._waiting():
            try:
                return await self._calls.wait_answer(self._exec, ordinal, in_thread=self._in_thread)
            except (Suspended, asyncio.CancelledError) as ended:
                if isinstance(ended, Suspended) or (self.task is not None and self.task.stopped):
                    # Code may catch this (`except:`): it must not go on as if it had an answer.
                    self.suspended = True
                    self.close("its node waits, and is entered again with the answer")
                raise

    @contextmanager
    def _waiting(self) -> Generator[None]:
        since, branch = time.perf_counter_ns(), self._numbers.here
        branch.waits += 1
        self._waiting_now += 1
        try:
            with self.patience:
                yield
        finally:
            branch.waits -= 1
            self._waiting_now -= 1
            # Of waits in parallel the last one counts.
            if not self._waiting_now:
                self.waited += (time.perf_counter_ns() - since) // 1000

    # For `ctx.memory`.
    def take_recorded(self, name: str) -> tuple[str, Any]:
        """The number of this call, and what was recorded for it."""
        self._at.check_open()
        if self._calls.consistency(self._exec, self._node) not in RECORDED:
            self._lives += 1
            return f"live{self._lives}", None
        ordinal = self._numbers.take(name, None)
        known = self._numbers.recorded(ordinal, name)
        return ordinal, None if known is None else known.value

    async def record(self, body: SubstepBody) -> Any:
        body.code = self._calls.code_of(self._exec)
        await self._calls.note_substep(self._exec, self._node, body, effect="memory")
        return body.value

    def remember_later(self, memory: Memory) -> None:
        self.memories.append(memory)

    def own_writes(self) -> list[Memory]:
        return [*self._calls.uncommitted_memories(), *self.memories]

    def memory_scope(self, scope: str) -> str:
        if scope == "run":
            return f"run:{self.run_id}"
        return f"thread:{self._session.row.thread}" if scope == "thread" else scope

    def trace_id(self, ordinal: str) -> str:
        return trace_id(self.run_id, self._exec.scope, self.node, self.visit, ordinal)

    def now(self) -> int:
        """The time on the runtime's clock, in microseconds."""
        return self._session.clock.now()

    # For the code that runs the node.
    @property
    def execution(self) -> Exec:
        return self._exec

    @property
    def busy(self) -> bool:
        """Whether a sub-step is running, or about to, or a branch does more than wait."""
        running = bool(self._substeps.running) or self._calls.ledger.is_calling(self._exec)
        return running or self._numbers.root.is_working

    @property
    def doubt(self) -> tuple[str, ErrorInfo] | None:
        """The sub-step whose outcome is unknown, and its error."""
        return self._at.doubt

    async def wait_for_substeps(self) -> None:
        await self._substeps.wait()

    def check_all_asked_for(self) -> None:
        self._numbers.check_all_asked_for()

    def close(self, why: str) -> None:
        """After this call every method raises: a thread cannot be stopped, but kept from continuing."""
        if not self._at.closed:
            self._emitter.close()
            self._at.closed = why
            for call in list(self._thread_calls):
                call.cancel()


def _own_key(given: Any, name: str) -> str:
    """Raises InputError. A key without text, or in which an f was forgotten, is the same in every run."""
    key = require_text(given, f"the key of step {name!r}")
    if not key.strip():
        raise InputError(
            f"the key of step {name!r} is empty: it would be the same in every run.",
            hint="Build it from a value that every run has, or leave it out: then it is derived.",
        )
    # Most keys have no brace, and the module of templates is not loaded for them.
    if "{" in key:
        from holdfast.model.template import single_braces

        for path in single_braces(key):
            raise InputError(
                f"the key of step {name!r} has {{{path}}} as plain text: it would be the same in every run.",
                hint=f'Write it as an f-string: f"...{{{path}}}".',
            )
    return key
