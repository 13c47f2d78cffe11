"""Branches of a script that run in parallel: `ctx.gather`, `ctx.first`, `ctx.race`, `ctx.map`.

Each branch is a task with numbers of its own (`model.branch_ordinals`). A branch that is entered again gets
what its calls have recorded; only what depends on arrival, such as which branch was first, is recorded here.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.errors import (
    InputError,
    LeaseLostError,
    ReplayMismatchError,
    StepFailedError,
    StoreError,
    UserCodeExitError,
    WaitTimeoutError,
)
from holdfast.model.branch_ordinals import BRANCH, outside_winner
from holdfast.model.record_bodies import ErrorInfo, SubstepBody
from holdfast.model.user_code.tasks import OwnedTask
from holdfast.runs.context.children import starter_of
from holdfast.runs.context.substeps import Branch, Numbers, enter_branch, require_script
from holdfast.runs.driver.handler_result import describe
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, Effect
from holdfast.types.text import clean_text
from holdfast.types.value import FrozenDict

if TYPE_CHECKING:
    from holdfast.runs.context.driver_protocols import Attempt, HandlerSession

_TIME = "time"
_ENDED = "ended"  # in the value of a decision: how it ended
Work = Callable[[], Awaitable[Any]]


class Winner(NamedTuple):
    """The branch that was first: its place among the branches, and what it returned."""

    branch: int
    value: Any


class BranchOutcome(NamedTuple):
    value: Any = None
    error: BaseException | None = None


class Branches(NamedTuple):
    """What branches use of the context of their script."""

    at: Attempt
    numbers: Numbers
    step: Callable[..., Awaitable[Any]]
    sleep: Callable[..., Awaitable[None]]

    @property
    def node(self) -> str:
        return self.at.node.id


class Combinator:
    """One call of a combinator: its branches, and what was decided about them before."""

    def __init__(self, script: Branches, name: str, key: str | None) -> None:
        self.script = script
        self.name = name
        numbers = self._numbers = script.numbers
        self._around = numbers.here
        self.path = numbers.take_branches(name, key)
        require_script(script.at, f"ctx.{name}")
        known = numbers.recorded(self.path, name)
        self.decided: Mapping[str, Any] = {} if known is None else known.value
        self.error: ErrorInfo | None = None if known is None else known.error
        self._ended: asyncio.Queue[tuple[str, Branch]] = asyncio.Queue()
        self._branches: dict[str, Branch] = {}

    # Branches.
    def start(self, name: str, work: Work) -> None:
        branch = self._branches[name] = Branch(self._numbers, f"{self.path}{name}/")
        context = copy_context()
        context.run(enter_branch, branch)
        branch.task = OwnedTask(_outcome(work), loop=asyncio.get_running_loop(), context=context)
        self._around.children.append(branch)
        branch.task.add_done_callback(lambda _task: self._ended.put_nowait((name, branch)))

    def start_time(self, seconds: float) -> None:
        self.start(_TIME, partial(self.script.sleep, seconds))

    async def next(self) -> tuple[str, BranchOutcome]:
        """The next branch that has ended. Raises its error if that is not a result, but about the run."""
        # All branches may be waiting now.
        self.script.at.calls.step_ended()
        name, branch = await self._ended.get()
        assert branch.task is not None
        self._around.require_live()
        if branch.task.cancelled():
            return name, BranchOutcome(error=UserCodeExitError("its branch cancelled its own task"))
        found: BranchOutcome = branch.task.result()
        if found.error is not None and self._concerns_run(found.error):
            raise found.error
        self._around.children.remove(branch)
        del self._branches[name]
        return name, found

    def _concerns_run(self, error: BaseException) -> bool:
        at = self.script.at
        ours = isinstance(error, (ReplayMismatchError, LeaseLostError, StoreError))
        return ours or bool(at.closed) or at.doubt is not None or not isinstance(error, Exception)

    async def close(self, *, now: bool = False) -> None:
        """The rest is given up. An effect outside that has begun may end, so that its outcome is known, but
        not where the node itself is stopped (`now`)."""
        left = list(self._branches.values())
        for branch in left:
            branch.stop()
        waiting = {task for branch in left if (task := branch.task) is not None}
        try:
            effects = set[Any]().union(*(branch.all_effects() for branch in left))
            if effects and not now:
                await asyncio.wait(effects)
        finally:
            for task in waiting:
                task.cancel()
            # Not interrupted: a branch that runs on would use a context that is closed.
            while not all(task.done() for task in waiting):
                await asyncio.wait(waiting)
            for branch in left:
                self._around.children.remove(branch)
            self._branches.clear()
            self.script.at.calls.step_ended()

    # Decisions.
    def decide(self, branch: str, ended: str, error: BaseException | None = None) -> None:
        self._around.require_live()
        self.script.at.check_open()
        value = FrozenDict({BRANCH: branch, _ENDED: ended})
        info = None if error is None else describe(cast("Exception", error))
        body = SubstepBody(self.path, self.name, value, info)
        if isinstance(error, StepFailedError) and error.final:
            body.failures = 1
        at = self.script.at
        at.calls.decide_branches(at.execution, at.node, body, branch)
        self.decided = value

    async def cancel_children(self) -> None:
        """Runs that were started by branches that were given up."""
        decided = {self.path: str(self.decided.get(BRANCH, ""))}
        subs = self.script.at.execution.subs
        started = [
            str(sub.value)
            for ordinal, sub in subs.items()
            if sub.done and sub.error is None and sub.name.startswith("start ")
            and outside_winner(ordinal, decided)
        ]  # fmt: skip
        if started:
            cancel = partial(_cancel_runs, self.script.at.session, started)
            await self.script.step(
                "cancel children", cancel, effect=Effect.write, idempotent=True, key=f"{self.path}cancel"
            )

    def time_is_over(self, timeout: Any) -> WaitTimeoutError:
        return WaitTimeoutError(
            f"node {self.script.node!r}: ctx.{self.name} did not end within {clean_text(str(timeout), 40)}."
        )


async def _outcome(work: Work) -> BranchOutcome:
    """Whatever it raises is returned: a task that raises SystemExit would end the loop."""
    try:
        return BranchOutcome(await work())
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return BranchOutcome(error=error)


async def _cancel_runs(session: HandlerSession, runs: Sequence[str]) -> None:
    starter = starter_of(session)
    for run in runs:
        row = await session.store.get_run(RunId(run))
        if row is not None and row.parent_run == session.run and row.status not in ENDED:
            await starter.cancel_child(row.id)


# ---------------------------------------------------------------------- the four calls


async def gather(
    script: Branches, works: Sequence[Any], *, return_exceptions: bool, timeout: Any, key: Any
) -> list[Any]:
    found = _works(script, "gather", works)
    seconds = _seconds(script, "gather", timeout, found)
    call = Combinator(script, "gather", key)

    def decides(_index: int, error: BaseException | None) -> bool:
        return error is not None and not return_exceptions

    outcomes = await run_branches(call, found, decides, timeout if seconds is not None else None, seconds)
    failed = decided_branch(call)
    if failed is not None:
        raise error_of(call, outcomes[failed])
    return [outcome.value if outcome.error is None else outcome.error for outcome in in_order(outcomes)]


async def race(script: Branches, works: Sequence[Any], *, timeout: Any, key: Any) -> Winner:
    found = _works(script, "race", works, least=1)
    seconds = _seconds(script, "race", timeout, found)
    call = Combinator(script, "race", key)
    outcomes = await run_branches(call, found, lambda _index, _error: True, timeout, seconds)
    won = decided_branch(call)
    assert won is not None
    if outcomes[won].error is not None:
        raise error_of(call, outcomes[won])
    return Winner(won, outcomes[won].value)


async def first(script: Branches, works: Sequence[Any], *, timeout: Any, key: Any) -> Winner:
    found = _works(script, "first", works, least=1)
    seconds = _seconds(script, "first", timeout, found)
    call = Combinator(script, "first", key)
    outcomes = await run_branches(call, found, lambda _index, error: error is None, timeout, seconds)
    won = decided_branch(call)
    if won is not None:
        return Winner(won, outcomes[won].value)
    errors = [cast("Exception", outcome.error) for outcome in in_order(outcomes)]
    raise ExceptionGroup(f"all {len(errors)} branches of ctx.first failed", errors)


def in_order(outcomes: Mapping[int, BranchOutcome]) -> list[BranchOutcome]:
    return [outcomes[index] for index in range(len(outcomes))]


async def run_branches(
    call: Combinator,
    works: Sequence[Work],
    decides: Callable[[int, BaseException | None], bool],
    timeout: Any,
    seconds: float | None,
    *,
    names: Sequence[str] | None = None,
    limit: int = 0,
    to_error: Callable[[BaseException], BaseException] = lambda error: error,
) -> dict[int, BranchOutcome]:
    """What each branch gave, until `decides` says that it is decided. Raises WaitTimeoutError."""
    names = names or [str(index) for index in range(len(works))]
    place = {name: index for index, name in enumerate(names)}
    # Decided before: only the branch that it is about is entered again.
    chosen = decided_branch(call, names)
    if call.decided.get(_ENDED) == "timeout":
        discard(works)
        await call.cancel_children()
        raise call.time_is_over(timeout)
    todo = [names[chosen]] if chosen is not None else list(names)
    if chosen is not None:
        discard([work for index, work in enumerate(works) if index != chosen])
    # From here on each work belongs to a branch; those that never start are closed at the end.
    outcomes: dict[int, BranchOutcome] = {}
    waiting = list(reversed(todo))
    timed = seconds is not None and not call.decided
    over = False
    try:
        if timed and seconds is not None:
            call.start_time(seconds)
        for _ in range(min(limit, len(todo)) if limit else len(todo)):
            name = waiting.pop()
            call.start(name, works[place[name]])
        while len(outcomes) < len(todo):
            name, outcome = await call.next()
            if name == _TIME:
                if outcome.error is not None:
                    raise outcome.error  # the wait has failed: the time is not over
                call.decide("", "timeout")
                over = True
                break
            outcomes[place[name]] = outcome
            if not call.decided and decides(place[name], outcome.error):
                error = None if outcome.error is None else to_error(outcome.error)
                call.decide(name, "won" if error is None else "failed", error)
                break
            if waiting:
                following = waiting.pop()
                call.start(following, works[place[following]])
        else:
            if timed and works:
                # The clock is not asked again when the script is entered later.
                call.decide("", "all")
    except BaseException as error:
        discard([works[place[name]] for name in waiting])
        await call.close(now=not isinstance(error, Exception))
        raise
    discard([works[place[name]] for name in waiting])
    await call.close()
    if call.decided.get(_ENDED) in ("won", "failed", "timeout"):
        await call.cancel_children()
    if over:
        raise call.time_is_over(timeout)
    return outcomes


def decided_branch(call: Combinator, names: Sequence[str] | None = None) -> int | None:
    branch = str(call.decided.get(BRANCH, ""))
    if not branch:
        return None
    if names is None:
        return int(branch)
    if branch not in names:
        raise ReplayMismatchError(
            f"ctx.{call.name} of node {call.script.node!r} has no item {branch!r} any more; it was recorded.",
            hint="Keep the items the same whenever the script is entered: read them in ctx.step.",
        )
    return list(names).index(branch)


def error_of(call: Combinator, outcome: BranchOutcome) -> BaseException:
    if outcome.error is not None:
        return outcome.error
    return ReplayMismatchError(
        f"a branch of ctx.{call.name} in node {call.script.node!r} has failed before, and does not fail now.",
        hint="Code around the steps must do the same whenever it is entered: put what varies into ctx.step.",
    )


def _works(script: Branches, name: str, given: Sequence[Any], *, least: int = 0) -> list[Work]:
    """Of coroutines, and of functions that return them. Raises InputError."""
    for each in given:
        if not (inspect.iscoroutine(each) or callable(each)):
            discard([GivenBranch(one) for one in given if inspect.iscoroutine(one)])
            raise InputError(
                f"ctx.{name} in node {script.node!r} was given {clean_text(repr(each), 100)}.",
                hint=f"Give coroutines that have not started: ctx.{name}(ctx.step(...), pay(ctx)).",
            )
    if len(given) < least:
        hint = "Give at least one coroutine."
        raise InputError(f"ctx.{name} in node {script.node!r} has no branch.", hint=hint)
    return [GivenBranch(each) for each in given]


class GivenBranch:
    """A branch as it was given: a coroutine, or a function."""

    def __init__(self, given: Any) -> None:
        self._given = given

    async def __call__(self) -> Any:
        if inspect.iscoroutine(self._given):
            return await self._given
        found = self._given()
        return await found if inspect.isawaitable(found) else found

    def close(self) -> None:
        if inspect.iscoroutine(self._given):
            self._given.close()


def discard(works: Sequence[Work]) -> None:
    """Not a warning about coroutines that were never awaited: they were not needed."""
    for work in works:
        if isinstance(work, GivenBranch):
            work.close()


def _seconds(script: Branches, name: str, timeout: Any, works: Sequence[Work]) -> float | None:
    if timeout is None:
        return None
    try:
        return parse_duration(timeout).total_seconds()
    except (DurationError, TypeError) as error:
        discard(works)
        raise InputError(
            f"the timeout of ctx.{name} in node {script.node!r}: {error}.", hint='Write "2d" or 30.'
        ) from error
