"""The workflow `holdfast.run`: decisions of the engine, in the history of a Temporal cluster.

It runs no code of the flow: it depends on the stored graph and on this release alone. What it decides is
appended to the store by its activities.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import lru_cache

import msgspec
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from holdfast.checkpoint import decode_body
    from holdfast.drivers.temporal.payloads import PROTOCOL, RecordRegistry, RunStart, Wire
    from holdfast.drivers.temporal.search_attributes import STATUS
    from holdfast.drivers.temporal.workflow_nodes import WorkflowNodes
    from holdfast.engine import end
    from holdfast.engine.decision import CannotContinueError, Decision
    from holdfast.engine.messages import (
        BreakpointsSet,
        CancelRequested,
        HandlerFinished,
        HandlersStopped,
        Message,
        ResumeRequested,
        RunRecovered,
    )
    from holdfast.model.fingerprint import decode_graph
    from holdfast.model.graph import Graph
    from holdfast.model.position import Exec
    from holdfast.types.status import RunStatus


def _cancels(messages: list[Message]) -> bool:
    return any(isinstance(message, CancelRequested) for message in messages)


def _breaks_in(messages: list[Message]) -> list[Message]:
    asked = [message for message in messages if isinstance(message, ResumeRequested)]
    return [BreakpointsSet(breaks=each.breaks, off=each.off) for each in asked if each.breaks or each.off]


@lru_cache(maxsize=64)
def _graph(encoded: bytes) -> Graph:
    return Graph(decode_graph(encoded))


@workflow.defn(name="holdfast.run")
class RunWorkflow(WorkflowNodes):
    # ------------------------------------------------------------------ from outside
    @workflow.signal(name="holdfast.mail")
    def on_mail(self, row: int) -> None:
        """Something was decided in the store. What, is read there."""
        self._mail += 1

    @workflow.query(name="holdfast.position")
    def position(self) -> bytes:
        return self._wire.position(self._pos)

    @workflow.query(name="holdfast.progress")
    def progress(self) -> bytes:
        """How far it is, and when the oldest record was decided that is not known to be in the store."""
        oldest = self._drafts[0].at if self._drafts else 0
        return msgspec.msgpack.encode({"head": self._pos.head, "oldest": oldest})

    # ------------------------------------------------------------------ the loop
    @workflow.run
    async def run(self, raw: bytes, graph: bytes) -> str:
        self._start = start = decode_body(raw, RunStart)
        if start.protocol > PROTOCOL:
            raise RuntimeError(
                f"run {start.run} was started by a newer release (protocol {start.protocol}; this worker "
                f"knows {PROTOCOL}): it continues when a worker of that release has it."
            )
        self._graph, self._encoded = _graph(graph), graph
        self._wire = Wire(RecordRegistry(start.enums))
        self._pos = self._wire.load(start.position)
        self._acked = self._pos.head
        self._lost, self._entries, self._queued = dict(start.lost), start.entries, start.queued
        messages: list[Message] = [RunRecovered()]
        if start.mail:
            found = await self._steady(self._read_mail())
            # Breakpoints first: otherwise what was running would continue before they are known.
            messages = [*_breaks_in(found), *messages, *found]
        while True:
            decision = await self._decide(await self._admitted(messages))
            self._enter, self._parked = [*self._enter, *self._parked], []
            if decision.ended:
                await self._steady(self._project())
                return self._end()
            if self._pos.failing is not None or self._pos.cancelling is not None:
                messages = await self._finish_running()
                continue
            await self._act(decision)
            messages = await self._next()

    def _show(self, status: str) -> None:
        """For lists of the cluster, where the run waits or has ended."""
        if status != self._shown:
            self._shown = status
            update = STATUS.value_set(str(status))
            workflow.upsert_search_attributes([update])  # pyright: ignore[reportUnknownMemberType]

    def _end(self) -> str:
        status = self._pos.status
        self._show(status)
        if status == RunStatus.cancelled and self._cancelled:
            raise asyncio.CancelledError
        if status == RunStatus.failed:
            # The text of the error is in the store.
            raise ApplicationError(f"the run has {status}", type="RunFailed", non_retryable=True)
        return status

    # ------------------------------------------------------------------ waiting
    async def _next(self) -> list[Message]:
        """What happens next. A run that waits is written as waiting."""
        rests = False
        while True:
            if self._broken is not None:
                raise self._broken
            if self._inbox:
                found, self._inbox = self._inbox, []
                return found
            if self._enter or self._can_begin():
                await self._enter_again()
            if self._mail or (self._cancelled and not self._cancel_read):
                found = await self._read_news()
                if found:
                    return found
                continue
            if not self._live and not rests and not self._has_news():
                await self._rest()
                rests = True
            # Also until the last activity has returned: then only a person or a time is waited for.
            over = self._has_news if rests else self._has_news_or_rests
            await self._steady(workflow.wait_condition(over))

    async def _read_news(self) -> list[Message]:
        found: list[Message] = await self._steady(self._read_mail())
        if self._cancelled and not self._cancel_read:
            self._cancel_read = True
            if not _cancels(found):
                found.append(CancelRequested(reason="cancelled in Temporal", by="temporal"))
        return found

    async def _admitted(self, messages: list[Message]) -> list[Message]:
        """When the limit of the run admits it: it gave its place back while it waited. A cancel needs
        none."""
        if not self._queued:
            return messages
        self._queued = False
        if _cancels(messages):
            return messages
        admission = asyncio.ensure_future(self._admit())
        await self._steady(workflow.wait_condition(lambda: admission.done() or self._is_cancel_unread()))
        if not admission.done():
            admission.cancel()
            with suppress(ActivityError, asyncio.CancelledError):
                await admission
            return [*messages, *await self._read_news()]
        await admission
        return messages

    def _is_cancel_unread(self) -> bool:
        return self._cancelled and not self._cancel_read

    def _has_news_or_rests(self) -> bool:
        return not self._live or self._has_news()

    async def _enter_again(self) -> None:
        """Scripts whose questions are in the store now, or that got an answer while they worked; and nodes
        that waited until fewer run."""
        places, self._enter = self._enter, []
        queue, self._queue = self._queue, []
        if self._must_continue():
            await self._continue_if_idle()
        found = [execution for place in places if (execution := self._pos.execs.get(place)) is not None]
        starts, probes = [each for each in found if each.phase == "work"], list[Exec]()
        for place, visit, probe in queue:
            execution = self._pos.execs.get(place)
            if execution is not None and execution.visit == visit:
                (probes if probe else starts).append(execution)
        await self._begin_all(starts, probes)

    async def _rest(self) -> None:
        pos = self._pos
        if not pos.holds and not pos.timers:
            decision = Decision(self._graph, pos, self._now())
            end.fail_run(decision, CannotContinueError("stall", "work remains but nothing can start", ""))
            self._keep(decision)
            self._inbox.append(RunRecovered())
            return
        if self._must_continue():
            await self._continue_if_idle()
        idle = RunStatus.pending_input if pos.holds else RunStatus.waiting
        self._show(idle)
        self._queued = bool(await self._steady(self._project(idle))) or self._queued

    async def _finish_running(self) -> list[Message]:
        """Nothing new starts. On a cancel everything stops; on a failure running effects may finish."""
        cancelling = self._pos.cancelling is not None
        for place in list(self._live):
            execution = self._pos.execs.get(place)
            if cancelling or execution is None or self._is_repeatable(execution):
                self._stop(place)
        self._queue.clear()
        while self._live:
            await self._steady(workflow.wait_condition(lambda: not self._live or self._broken is not None))
            if self._broken is not None:
                raise self._broken
        self._set_timers()
        found, self._inbox = self._inbox, []
        ended = [m for m in found if isinstance(m, HandlerFinished)]
        if ended and not cancelling:
            return list(ended)
        return [*[m for m in ended if m.error is None], HandlersStopped()]
