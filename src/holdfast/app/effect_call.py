"""A call of an effect: starts its run, or finds the one of its key, and returns or raises what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from holdfast.app.effect_function import APPROVE, CALL
from holdfast.app.flow import LOOK_AGAIN, Result, make_result, result_of
from holdfast.errors import (
    EffectInDoubtError,
    EffectRejectedError,
    EffectWaitingError,
    HoldExpiredError,
    KeyReusedError,
    LimitReachedError,
    NodeFailedError,
    NotDone,
    OutcomeUnknownError,
    RunBusyError,
    RunCancelledError,
    RunExistsError,
)
from holdfast.holds.actions.conflicts import resolution_of
from holdfast.runs.concurrency_limits.run_limits import QueuedRun
from holdfast.runs.idempotency import comparable
from holdfast.store.rows import Claim, RunRow
from holdfast.types.status import RunStatus
from holdfast.types.value import thaw

if TYPE_CHECKING:
    from holdfast.app.effect_function import EffectCall, EffectFunction, EffectState
    from holdfast.model.position import Position
    from holdfast.runs.service import RunService
    from holdfast.types.hold import HoldRow

REFUSE: Final = "refuse"
IN_DOUBT: Final = "in_doubt"
HAPPENED: Final = "happened"
SETTLED: Final = (RunStatus.completed, RunStatus.cancelled, RunStatus.failed)


async def perform(
    function: EffectFunction,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    wait: float | None,
    on_conflict: str,
) -> Any:
    """What the function returned, now or in an earlier call with this key."""
    function.hf.require_judges(function.flow.program())
    function.hf.register(function.flow.program())
    # Before the call is read: registering the program makes known the types that its arguments may have.
    service = await function.hf.service()
    return await EffectRun(function, function.read_call(args, kwargs), service, on_conflict).result(wait)


class EffectRun:
    """The run of one key, as one call sees it."""

    def __init__(
        self, function: EffectFunction, call: EffectCall, service: RunService, on_conflict: str
    ) -> None:
        self.function, self.call, self.service = function, call, service
        self.program = function.flow.program()
        self.on_conflict = on_conflict

    async def result(self, wait: float | None) -> Any:
        started = await self.service.start(
            self.program,
            self.call.given,
            run_id=self.call.run,
            tenant=self.call.tenant,
            idempotency_key=self.call.given["key"],
            started_by=self.call.started_by,
        )
        if isinstance(started, tuple):
            found = await self._drive(*started)
        else:
            if isinstance(started, RunRow):
                await self._require_same(started)
            found = await self._join(created=isinstance(started, QueuedRun))
        clock = self.service.runtime.clock
        deadline = None if wait is None else clock.monotonic() + wait
        while found.waiting:
            left = LOOK_AGAIN if deadline is None else min(LOOK_AGAIN, deadline - clock.monotonic())
            # A back-off between two attempts ends by itself; a person may not answer.
            if found.status is RunStatus.pending_input and left <= 0:
                self._raise_waiting(found)
            await self._wait(max(left, 0.01) if found.status is RunStatus.pending_input else LOOK_AGAIN)
            found = await self._join()
        return await self._value(found)

    # ------------------------------------------------------------------ advancing
    async def _join(self, *, created: bool = False) -> Result[EffectState]:
        """Advance the run, or wait until another process has."""
        asked = created
        while True:
            row = await self.service.get(self.call.run)
            found = await self._ended(row) if row.status in SETTLED else None
            if found is None and row.status is RunStatus.failed and not asked:
                # An error is not an outcome: this call tries again.
                await self.service.request_resume(row.id)
                asked = True
            if found is None and await self._waits(row):
                found = await result_of(self.service, self.program, row.id)
            if found is not None:
                return found
            try:
                claim = await self.service.runtime.claim(row.id)
            except RunBusyError as busy:
                # LimitReachedError is a limit of the flow, not another process with this key.
                if self.on_conflict == REFUSE and not isinstance(busy, LimitReachedError):
                    raise RunBusyError(
                        f"another process runs the effect {self.function.name!r} with the key "
                        f"{self.call.given['key']!r} at this moment.",
                        hint="Call it again later, or declare the effect with on_conflict='wait'.",
                        run=row.id,
                    ) from busy
                await self._wait(LOOK_AGAIN)
                continue
            return await self._drive(claim)

    async def _ended(self, row: RunRow) -> Result[EffectState] | None:
        """The final result; None where a further attempt is made."""
        found = await result_of(self.service, self.program, row.id)
        if row.status is RunStatus.failed and not self._is_final(found):
            return None
        return found

    async def _waits(self, row: RunRow) -> bool:
        if row.status is RunStatus.pending_input:
            return bool(await self.service.holds(row.id))
        return row.status is RunStatus.waiting and row.ready_at is None

    async def _wait(self, seconds: float) -> None:
        """Also fires this run's timers and deadlines, because there may be no worker."""
        runtime, run = self.service.runtime, self.call.run
        await self.service.store.wait_change(seconds)
        await self.service.store.fire_timers(limit=10, run=run)
        await runtime.sweeper.sweep(run)

    async def _drive(self, claim: Claim, pos: Position | None = None) -> Result[EffectState]:
        running = self.function.running
        running[self.call.run] = self.call
        self.call.raised.clear()
        try:
            status, pos = await self.service.runtime.drive(claim, pos)
        finally:
            running.pop(self.call.run, None)
        return await make_result(self.service, self.program, self.call.run, status, pos)

    async def _require_same(self, row: RunRow) -> None:
        """Raises KeyReusedError for other arguments than those that the key stands for."""
        name, key = self.function.name, self.call.given["key"]
        if row.flow != self.program.graph.name or row.tenant != self.call.tenant:
            raise RunExistsError(
                f"the id of the effect {name!r} with the key {key!r} is taken by another run."
            )
        if row.id != self.call.run:
            raise RunExistsError(
                f"the key {key!r} of the effect {name!r} is taken by run {row.id}, which no call of it "
                "has started.",
                hint="Nothing was done. An administrator can delete that run; then call again.",
                run=row.id,
            )
        known = await self.service.checkpoint(row.id, row.horizon)
        if comparable(known.input.get("arguments")) != comparable(self.call.given["arguments"]):
            raise KeyReusedError(
                f"the effect {name!r} was called with the key {key!r} and other arguments before.",
                hint=f"Give each effect a key of its own; `holdfast show {row.id}` has the earlier call.",
                run=row.id,
            )

    # ------------------------------------------------------------------ what came of it
    async def _value(self, found: Result[EffectState]) -> Any:
        if found.completed and self._is_rejected(found):
            raise EffectRejectedError(
                f"the effect {self._what()} was rejected: the decision was {found.state.decision!r}.",
                hint="It is not done. A call with another key asks again.",
                run=found.run_id,
            )
        if found.completed:
            recorded = found.state.result
            return thaw(await self._entered(found) if recorded is None else recorded)
        if found.status is RunStatus.cancelled:
            raise RunCancelledError(f"the effect {self._what()} was cancelled.", run=found.run_id)
        raise self._failed(found)

    async def _entered(self, found: Result[EffectState]) -> Any:
        """The result that a person entered who was asked whether it happened."""
        holds = await self.service.holds(found.run_id, open_only=False)
        asked = [hold for hold in holds if hold.type == IN_DOUBT]
        # After any other last answer the function ran again, and returned None.
        if not asked or resolution_of(max(asked, key=lambda hold: hold.seq)).get("decision") != HAPPENED:
            return None
        visit = (await self.service.latest(found.run_id)).node_results.get(CALL)
        return None if visit is None else visit.output

    def _is_rejected(self, found: Result[EffectState]) -> bool:
        return self.function.question is not None and found.state.decision != APPROVE

    def _is_final(self, found: Result[EffectState]) -> bool:
        """Whether its outcome stays unknown: to try again would repeat the effect in silence."""
        if not found.failed or found.error is None:
            return False
        if found.error.code == OutcomeUnknownError.code:
            return True
        called = found.failed_node == CALL and not self.function.is_repeatable
        return called and found.error.code != NotDone.code

    def _what(self) -> str:
        return f"{self.function.name!r} with the key {self.call.given['key']!r}"

    def _failed(self, found: Result[EffectState]) -> BaseException:
        raised = self.call.raised[0] if self.call.raised else None
        if self._is_final(found):
            unknown = OutcomeUnknownError(
                f"the effect {self._what()} started, and its outcome is not known.",
                hint=f"Find out; `holdfast resume {found.run_id}` runs it again.",
                run=found.run_id,
            )
            unknown.__cause__ = raised
            return unknown
        if raised is not None:
            return raised
        if found.error is not None and found.error.code == HoldExpiredError.code:
            return HoldExpiredError(
                f"the effect {self._what()} was not approved in time.",
                hint="The next call asks again.",
                run=found.run_id,
            )
        why = "it failed" if found.error is None else f"{found.error.type}: {found.error.message}"
        return NodeFailedError(f"the effect {self._what()} failed: {why}", run=found.run_id)

    def _raise_waiting(self, found: Result[EffectState]) -> NoReturn:
        hold: HoldRow = next((each for each in found.holds if each.type == IN_DOUBT), found.holds[0])
        facts: dict[str, Any] = {"hold": hold.id, "run": found.run_id, "key": self.call.given["key"]}
        if hold.type == IN_DOUBT:
            raised = self.call.raised[0] if self.call.raised else None
            raise EffectInDoubtError(
                f"the effect {self._what()} started, and its outcome is not known: hold {hold.id} asks "
                "whether it happened.",
                hint=f"Answer `happened` or `not_happened` (`holdfast answer {found.run_id}`), then call.",
                **facts,
            ) from raised
        raise EffectWaitingError(
            f"the effect {self._what()} waits for a decision: hold {hold.id}.",
            hint="Call again with the same key after the decision.",
            **facts,
        )
