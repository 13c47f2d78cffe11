"""Exports to OpenTelemetry: collects from the runtime at once, exports in the background, never raises."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context as Variables
from typing import Any

import msgspec
from opentelemetry.context import attach, detach

from holdfast.engine.messages import HandlerFinished, SubstepDoubted
from holdfast.errors import LeaseLostError
from holdfast.integrations.otel.agent_calls import AgentCall
from holdfast.integrations.otel.facts import HoldResolved, RunEnded, RunStory, StepEnded, TimerEnded
from holdfast.integrations.otel.metrics import FLOW, OtelMetrics
from holdfast.integrations.otel.spans import Spans
from holdfast.model.graph import Graph
from holdfast.model.position import Exec
from holdfast.model.user_code.tasks import OwnedTask
from holdfast.runs.driver.driver import Driver
from holdfast.runs.driver.handler_call import HandlerCall
from holdfast.runs.record_codec import RecordCodec
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.telemetry import log
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.record import Record
from holdfast.types.status import RunStatus

MOST_WAITING = 10_000  # records
DELAY = 0.05  # seconds, in which records are collected: exporting many at once costs less than one by one
TURN = 16  # records; then the runs of this event loop get their turn
REMEMBERED = 500  # earlier records that are read when a run is claimed again

Place = tuple[RunId, int]


class _Began(msgspec.Struct, frozen=True):
    row: RunRow
    term: int
    head: int
    graph: Graph
    codec: RecordCodec
    at: int


class _Left(msgspec.Struct, frozen=True):
    place: Place
    how: str
    at: int


_Item = _Began | _Left | tuple[Place, list[Record]]


class _Known(msgspec.Struct):
    began: _Began
    story: RunStory


class OtelExporter:
    """The watch of one runtime."""

    def __init__(
        self, store: Store, spans: Spans, measures: OtelMetrics, finish: Callable[[], Awaitable[None]] | None
    ) -> None:
        self._store = store
        self._spans = spans
        self._measures = measures
        self._finish = finish
        self._items: deque[_Item] = deque()
        self._waiting = 0
        self._known: dict[Place, _Known] = {}
        self._work: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # ------------------------------------------------------------------ from the runtime
    def began(self, driver: Driver) -> None:
        driver.handlers.call = TracedHandlerCall(driver.handlers.call, self._spans)
        session = driver.session
        row, term = session.row, session.lease.term
        self._note(_Began(row, term, session.pos.head, session.graph, session.codec, session.clock.now()))
        flow = (FLOW, row.flow)
        self._measures.add(self._measures.active, 1, flow)
        # The term counts claims: above 1 the run was claimed before, perhaps by another process.
        self._measures.add(self._measures.started if term == 1 else self._measures.resumed, 1, flow)

    def committed(self, lease: Lease, records: list[Record]) -> None:
        # A bound on memory: telemetry is dropped, and the run does not wait for its export.
        if self._waiting > MOST_WAITING:
            self._measures.dropped += len(records)
            return
        self._waiting += len(records)
        self._note(((lease.run, lease.term), records))

    def left(self, driver: Driver, status: RunStatus | None, error: BaseException | None) -> None:
        flow = (FLOW, driver.session.row.flow)
        self._measures.add(self._measures.active, -1, flow)
        if isinstance(error, LeaseLostError):
            self._measures.add(self._measures.lost, 1, flow)
        how = (
            str(status) if status is not None else "lost" if isinstance(error, LeaseLostError) else "stopped"
        )
        place = (driver.run, driver.lease.term)
        self._note(_Left(place, how, driver.session.clock.now()))
        # At once: the program may end without closing the instance.
        self._begin()

    async def close(self) -> None:
        # A loop, because a commit during the wait may start another task.
        while self._items or (self._work is not None and not self._work.done()):
            self._begin()
            if self._work is not None:
                await self._work
        self._measures.flush()
        if self._finish is not None and self._work is not None:
            await self._finish()  # only if something was exported: a read-only command has nothing to flush

    # ------------------------------------------------------------------ in the background
    def _note(self, item: _Item) -> None:
        self._items.append(item)
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # What was planned on another loop does not happen any more.
            self._loop, self._timer, self._work = loop, None, None
        if self._timer is None and (self._work is None or self._work.done()):
            self._timer = loop.call_later(DELAY, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._items and (self._work is None or self._work.done()):
            # With empty context variables: the export must not become part of the running task's trace.
            loop = asyncio.get_running_loop()
            self._work = loop.create_task(self._export_all(), context=Variables())

    async def _export_all(self) -> None:
        exported = 0
        while self._items:
            item = self._items.popleft()
            try:
                await self._export(item)
                self._measures.flush_many()
            except Exception:
                # Telemetry must never fail a run, whatever an exporter raises.
                log.warning("telemetry could not be exported", exc_info=True)
            exported += len(item[1]) if isinstance(item, tuple) else 1
            if exported >= TURN:
                # Runs share this event loop.
                exported = 0
                await asyncio.sleep(0)

    async def _export(self, item: _Item) -> None:
        if isinstance(item, _Began):
            self._known[(item.row.id, item.term)] = _Known(item, await self._remembered(item))
        elif isinstance(item, _Left):
            # By term too: after a lost lease two claims of one run may overlap in this process.
            known = self._known.pop(item.place)
            when = (known.began.at, item.at)
            self._spans.segment(known.began.row, known.story, when, item.how, item.place[1])
        else:
            self._export_records(*item)

    def _export_records(self, place: Place, records: list[Record]) -> None:
        self._waiting -= len(records)
        known = self._known[place]
        for record in records:
            for fact in known.story.facts_of(record, own=True):
                self._export_fact(known, fact)

    def _export_fact(self, known: _Known, fact: Any) -> None:
        row = known.began.row
        self._measures.count(row, fact)
        if isinstance(fact, StepEnded):
            self._spans.step(row, fact)
        elif isinstance(fact, AgentCall):
            self._spans.call(row, fact, known.story)
        elif isinstance(fact, (HoldResolved, TimerEnded)):
            self._spans.wait(row, fact)
        elif isinstance(fact, RunEnded):
            self._spans.root(row, known.story, fact)

    async def _remembered(self, item: _Began) -> RunStory:
        story = RunStory(item.row.id, item.graph, item.codec, capture=self._spans.capture)
        first = max(item.row.horizon, item.head - REMEMBERED)
        records = await self._store.read(item.row.id, first=first, last=item.head)
        # The first record says which run a fork was made from.
        if first > item.row.horizon:
            horizon = item.row.horizon
            records = await self._store.read(item.row.id, first=horizon, last=horizon) + records
        story.recall(records)
        return story


class TracedHandlerCall(HandlerCall):
    """Handlers run with their step's span as the current one, so that their spans belong to it."""

    def __init__(self, call: HandlerCall, spans: Spans) -> None:
        super().__init__(call.calls)
        self._spans = spans

    async def run(
        self, execution: Exec, task: OwnedTask[Any] | None = None
    ) -> HandlerFinished | SubstepDoubted | None:
        session = self.session
        key = (execution.scope, session.node(execution).id, execution.visit)
        token = attach(self._spans.around(session.run, key))
        try:
            return await super().run(execution, task)
        finally:
            detach(token)
