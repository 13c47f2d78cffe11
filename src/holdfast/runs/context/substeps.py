"""Sub-steps of a handler: each call has a number, runs once, and is recorded (D-21)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from typing import Any

from holdfast.errors import (
    InputError,
    NotDone,
    OutcomeUnknownError,
    ReplayMismatchError,
    ScriptError,
    StepFailedError,
    StepTimeoutError,
)
from holdfast.model.branch_ordinals import decisions_of, outside_winner, segment
from holdfast.model.diagnostics import GraphProblem
from holdfast.model.position import Sub
from holdfast.model.record_bodies import ErrorInfo, SubstepBody, Usage
from holdfast.model.user_code.boundary import call, call_alone
from holdfast.runs.context.driver_protocols import Attempt, SubstepCall
from holdfast.runs.driver.handler_result import describe
from holdfast.runs.driver.retryable_errors import is_declared
from holdfast.telemetry import crashpoint, on_substep
from holdfast.types.status import REPEATABLE, Effect
from holdfast.types.text import clean_text
from holdfast.types.value import freeze

inside_step: ContextVar[bool] = ContextVar("inside a sub-step", default=False)


class Noted(list[Usage]):
    """What a sub-step notes while it runs: its costs, and digests of what it used."""

    digests: dict[str, str] | None = None


spending: ContextVar[Noted | None] = ContextVar("what the sub-step notes", default=None)


class Branch:
    """A branch of a script, or (without a path) the script itself: its calls are numbered apart from those of
    other branches, so that numbers do not depend on which branch is first."""

    def __init__(self, numbers: Numbers, path: str = "") -> None:
        self.numbers = numbers
        self.path = path
        self.calls = 0
        self.children: list[Branch] = []
        # Open questions, sleeps and waits of its own.
        self.waits = 0
        # Effects outside that have begun.
        self.effects: set[asyncio.Future[Any]] = set()
        self.task: asyncio.Task[Any] | None = None
        # Another branch has won, or one has failed: nothing starts here any more.
        self.stopped = False

    def require_live(self) -> None:
        if self.stopped:
            raise asyncio.CancelledError("its branch was given up")

    @property
    def is_working(self) -> bool:
        """Whether it does more than wait for an answer. (Code around the branches is not asked.)"""
        if self.children:
            # One that has ended is waited for no more: what follows from that is about to be decided.
            return any(each.is_over or each.is_working for each in self.children)
        return bool(self.path) and not self.waits

    @property
    def is_over(self) -> bool:
        return self.task is not None and self.task.done()

    def stop(self) -> None:
        self.stopped = True
        for each in self.children:
            each.stop()

    def all_effects(self) -> set[asyncio.Future[Any]]:
        return self.effects.union(*(each.all_effects() for each in self.children))


_branch: ContextVar[Branch | None] = ContextVar("the branch of a script", default=None)


def enter_branch(branch: Branch) -> None:
    _branch.set(branch)


class Numbers:
    """The numbers of the calls that a handler makes, and what is recorded under them."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._asked_for: list[tuple[str, str]] = []
        self._keyed: set[str] = set()
        self.root = Branch(self)

    @property
    def taken(self) -> int:
        return len(self._asked_for)

    @property
    def here(self) -> Branch:
        """The branch whose code this is."""
        found = _branch.get()
        # A branch may run another flow in this process, whose handlers inherit the variable.
        return found if found is not None and found.numbers is self else self.root

    def take(self, name: str, key: str | None, *, repeats: bool = False) -> str:
        """Each call takes its number at once, whatever is awaited later (D-21). `repeats`: a step without an
        effect outside, of which a second call with the same key may have the recorded result."""
        self._attempt.check_open()
        self.here.require_live()
        ordinal = self.next(key)
        self._require_new(ordinal, name, key, repeats=repeats)
        self.here.calls += 1
        self._asked_for.append((ordinal, name))
        return ordinal

    def _require_new(self, ordinal: str, name: str, key: str | None, *, repeats: bool = False) -> None:
        """A call with the key of another would get its answer, or its result in place of an effect of its
        own. Raises InputError."""
        if key is None:
            return
        if ordinal in self._keyed and not repeats:
            raise InputError(
                f"node {self._attempt.node.id!r} makes two calls with the key {clean_text(repr(key), 100)}; "
                f"the second is {clean_text(repr(name), 100)}.",
                hint="Give each call a key of its own: what is recorded under it stands for one call.",
            )
        self._keyed.add(ordinal)

    def take_branches(self, name: str, key: str | None) -> str:
        """The same for a combinator: the path of its branches."""
        self._attempt.check_open()
        branch = self.here
        branch.require_live()
        path = f"{branch.path}{segment(branch.calls, key)}/"
        self._require_new(path, name, key)
        branch.calls += 1
        self._asked_for.append((path, name))
        return path

    def take_beside(self, name: str, key: str | None) -> str:
        """The same for a wait that is open while the code after it runs: it is numbered as the only call of a
        branch, so that the node is entered again after a crash although it waits."""
        ordinal = f"{self.take_branches(name, key)}0"
        self._asked_for.append((ordinal, name))
        return ordinal

    def next(self, key: str | None) -> str:
        """What `take` will give, if nothing is awaited before."""
        branch = self.here
        # The sign keeps a key such as "3" apart from the number of the fourth call.
        return f"{branch.path}{branch.calls if key is None else f'={key}'}"

    def recorded(self, ordinal: str, name: str) -> Sub | None:
        known = self._attempt.execution.subs.get(ordinal)
        # A fork knows no name of a step that was running in its source: what a person said about it has none.
        if known is not None and known.name not in (name, ""):
            raise self._mismatch(f"call {ordinal} is now {name!r}, but {known.name!r} was recorded")
        return known

    def check_all_asked_for(self) -> None:
        """A recorded call that the node did not make again is the same mismatch."""
        asked = {ordinal for ordinal, _ in self._asked_for}
        subs = self._attempt.execution.subs
        decided = decisions_of(subs)
        unused = [s for s in subs if s not in asked and not outside_winner(s, decided)]
        if unused:
            raise self._mismatch(f"{len(unused)} recorded call(s) were not made this time")

    def _mismatch(self, why: str) -> ReplayMismatchError:
        recorded = ", ".join(f"{o}:{s.name}" for o, s in self._attempt.execution.subs.items())
        now = ", ".join(f"{o}:{n}" for o, n in self._asked_for)
        return ReplayMismatchError(
            f"node {self._attempt.node.id!r} does not repeat what it did before: {why}.\n"
            f"  recorded: {recorded}\n  now:      {now}",
            hint="Keep the order of ctx.step and ctx.ask the same for the same input, or give them key=...",
        )


class Substeps:
    """The sub-steps of one attempt; `running` have not ended."""

    def __init__(self, attempt: Attempt, numbers: Numbers, wait: Callable[[str], Awaitable[Sub]]) -> None:
        self._attempt = attempt
        self._numbers = numbers
        # Until the timer of this number has fired.
        self._wait = wait
        self.running: set[asyncio.Future[Any]] = set()

    async def wait(self) -> None:
        """The handler has ended; sub-steps that it left running may end too, and are recorded."""
        while self.running:
            await asyncio.wait(self.running)

    async def beside(self, work: Awaitable[None]) -> None:
        """The handler does more than wait while this runs."""
        done = asyncio.get_running_loop().create_future()
        self.running.add(done)
        try:
            await work
        finally:
            self.running.discard(done)
            done.set_result(None)
            self._attempt.calls.step_ended()

    async def run(
        self, step: SubstepCall, fn: Callable[..., Any], args: Any, kwargs: dict[str, Any], before: Sub | None
    ) -> Any:
        """`before`: it failed and waits for its next attempt, or may start that."""
        at = self._attempt
        if step.idempotent and "idempotency_key" in inspect.signature(fn).parameters:
            kwargs["idempotency_key"] = at.calls.key_of(at.execution, at.node, step)
        gate = at.session.services.gate
        if gate is not None:
            fn = gate.replace_substep(at, step, fn)
        for watch in on_substep:
            fn = watch(fn, step, kwargs.get("idempotency_key"))
        failures = 0 if before is None else before.failures
        if before is not None and before.hold:
            if before.hold not in at.session.pos.timers:
                at.calls.continue_back_off(at.execution, at.node, step.ordinal)
            await self._wait(step.ordinal)
        branch = self._numbers.here
        while True:
            done = asyncio.get_running_loop().create_future()
            self.running.add(done)
            if step.effect not in REPEATABLE:
                branch.effects.add(done)
            try:
                return await self._perform(step, fn, args, kwargs, failures)
            except _TryAgain:
                failures += 1
            finally:
                self.running.discard(done)
                branch.effects.discard(done)
                done.set_result(None)
                at.calls.step_ended()
            # Not `running`: a run in which all handlers wait parks.
            await self._wait(step.ordinal)

    async def _perform(
        self, step: SubstepCall, fn: Callable[..., Any], args: Any, kwargs: dict[str, Any], failures: int
    ) -> Any:
        at, calls = self._attempt, self._attempt.calls
        repeatable = step.effect in REPEATABLE
        if not repeatable:
            # As for nodes: without a durable intent a crash during the call would leave no trace of it.
            await calls.intend_step(at.execution, at.node, step)
        try:
            value, raised, noted = await _called(step, at.node.id, fn, args, kwargs)
        except asyncio.CancelledError:
            # By its handler (a timeout of its own), by the node's timeout, or by itself: if the node ends
            # after this, it must not be run again as if nothing had happened.
            if not (repeatable or step.idempotent):
                at.doubt = at.doubt or (step.ordinal, _cut_off(step, at.node.id))
            raise
        at.check_open()
        usage = total(noted)
        error = None if raised is None else describe(raised)
        declared = raised is not None and _is_declared(step, raised)
        if error is not None and not (
            repeatable or step.idempotent or declared or error.code == NotDone.code
        ):
            # Noted besides raising: a handler that catches the error must not settle over an unknown outcome.
            at.doubt = at.doubt or (step.ordinal, error)
            raise OutcomeUnknownError(f"step {step.name!r} of {at.node.id!r}: {error.type}: {error.message}")
        again = raised is not None and _may_retry(step, raised, declared, failures)
        # A branch that was given up tries nothing again.
        if again and error is not None and not self._numbers.here.stopped:
            calls.back_off(at.execution, at.node, step, failures + 1, error, usage)
            crashpoint("after_substep")
            raise _TryAgain
        if error is None:
            value = self._kept(step, value, sure=repeatable or step.idempotent)
        body = SubstepBody(
            step.ordinal, step.name, value, error, code=calls.code_of(at.execution), usage=usage,
            digests=noted.digests,
        )  # fmt: skip
        if error is not None and step.retry is not None:
            body.failures = failures + 1
        await calls.note_substep(at.execution, at.node, body, effect=step.effect)
        if error is not None:
            raise _failed(error, final=step.retry is not None)
        return value

    def _kept(self, step: SubstepCall, value: Any, *, sure: bool) -> Any:
        """The result as it is recorded. An effect whose result cannot be stored is in doubt: it happened, but
        its result could not be read later."""
        at = self._attempt
        where = f"the result of step {step.name!r} of {at.node.id!r}"
        try:
            frozen = freeze(value, at.session.program.adopt, where)
            at.session.codec.prepare([], frozen, where)
        except InputError as error:
            if not sure:
                at.doubt = at.doubt or (step.ordinal, describe(error))
            raise
        return frozen


class _TryAgain(Exception):
    """An attempt failed, and another follows; its back-off is recorded."""


def _is_declared(step: SubstepCall, error: Exception) -> bool:
    return step.retry is not None and is_declared(step.retry, step.retry_on, error)


def _may_retry(step: SubstepCall, error: Exception, declared: bool, failures: int) -> bool:
    if step.retry is None or failures + 1 >= step.retry.attempts:
        return False
    # Our own checks, which another attempt would not change.
    if isinstance(error, (ScriptError, ReplayMismatchError)):
        return False
    any_error = not step.retry.retry_on
    return (
        declared
        or isinstance(error, NotDone)
        or (any_error and (step.effect in REPEATABLE or step.idempotent))
    )


async def _called(
    step: SubstepCall, node: str, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, Exception | None, Noted]:
    noted = Noted()
    inside, collecting = inside_step.set(True), spending.set(noted)
    try:
        if step.timeout is None:
            return await call(fn, *args, **kwargs), None, noted
        return await _in_time(step, node, call_alone(fn, *args, **kwargs)), None, noted
    except Exception as error:
        return None, error, noted
    finally:
        inside_step.reset(inside)
        spending.reset(collecting)


async def _in_time(step: SubstepCall, node: str, work: Coroutine[Any, Any, Any]) -> Any:
    """A function that ignores its cancellation, or runs in a thread, is left behind (D-16)."""
    seconds = (step.timeout or 0) / 1e6
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise StepTimeoutError(
            f"step {step.name!r} of node {node!r} took longer than {seconds:g} s"
        ) from None


def _cut_off(step: SubstepCall, node: str) -> ErrorInfo:
    return ErrorInfo(
        OutcomeUnknownError.code, "OutcomeUnknownError", f"step {step.name!r} of {node!r} was cancelled"
    )


def total(spent: Sequence[Usage]) -> Usage | None:
    found = Usage(
        sum(usage.tokens for usage in spent),
        sum(usage.cost for usage in spent),
        sum(usage.micros for usage in spent),
    )
    return found if found.tokens or found.cost or found.micros else None


def require_callable(fn: object, name: str, node: str) -> None:
    if not callable(fn):
        raise InputError(
            f"step {name!r} of node {node!r} calls {clean_text(repr(fn), 200)}, which is not a function.",
            hint='Give the function and its arguments: ctx.step("pay", pay, order).',
        )


def effect_of(given: str | Effect, name: str, node: str) -> Effect:
    try:
        return Effect(given)
    except ValueError:
        raise InputError(
            f"step {name!r} of node {node!r} has the effect {clean_text(repr(given), 200)}.",
            hint=f"It is one of: {', '.join(Effect)}.",
        ) from None


def require_script(attempt: Attempt, what: str) -> None:
    node = attempt.node
    if not node.script and node.effect not in REPEATABLE:
        raise ScriptError(
            f"{what} in node {node.id!r}, whose class is {node.effect}: the code around "
            "sub-steps runs again on re-entry, so it must have no effect outside.",
            hint="Declare it with @flow.script, and put each effect into ctx.step(..., effect=...).",
        )


def read_policy(step: SubstepCall, node: str, retry: Any, timeout: Any) -> SubstepCall:
    """With its own retries and time limit. Raises InputError for values that are neither."""
    from holdfast.frontends.python.policies import DeclarationReader, Retry, retry_classes

    problems: list[GraphProblem] = []
    read = DeclarationReader(problems.append, node=node)
    if retry is not None and (isinstance(retry, bool) or not isinstance(retry, (int, Retry))):
        read.wrong("retry", f"retry {clean_text(repr(retry), 200)} is neither a number nor a Retry")
        retry = None
    policy = None if retry is None else read.retry(retry)
    if policy is not None and policy.attempts < 1:
        read.wrong(
            "retry", f"retry has {policy.attempts} attempts", "the first attempt counts too: give 1 or more"
        )
    limit = read.duration(timeout, "timeout")
    if problems:
        first = problems[0]
        hint = first.fix and f"{first.fix[0].upper()}{first.fix[1:]}."
        raise InputError(f"step {step.name!r} of node {node!r}: {first.message}.", hint=hint)
    return step._replace(retry=policy, retry_on=retry_classes(retry), timeout=limit)


def result_of(sub: Sub) -> Any:
    if sub.error is not None:
        raise _failed(sub.error, final=sub.failures > 0)
    return sub.value


def _failed(info: ErrorInfo, *, final: bool) -> StepFailedError:
    error = StepFailedError(info.summary, info=info)
    error.final = final
    return error
