"""Metrics. Names of flows and nodes are attributes; ids are not, so that the number of series stays small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from opentelemetry.metrics import Meter

from holdfast.integrations.otel.facts import Fact, HoldOpened, HoldResolved, RunEnded, StepEnded, StepRetried
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.types.record import RunBatch, SettleAnswer

_SHORT = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
_LONG = [1, 10, 60, 300, 1800, 3600, 6 * 3600, 86_400, 3 * 86_400, 7 * 86_400, 30 * 86_400]


class OtelMetrics:
    def __init__(self, meter: Meter) -> None:
        count, span = meter.create_counter, meter.create_histogram
        self.started = count("holdfast.runs.started", "{run}", "Runs claimed for the first time")
        self.resumed = count("holdfast.runs.resumed", "{run}", "Runs claimed again")
        self.ended = count("holdfast.runs.ended", "{run}", "Runs that ended, by status")
        self.active = meter.create_up_down_counter(
            "holdfast.runs.active", "{run}", "Runs claimed by this process"
        )
        self.steps = count("holdfast.steps", "{step}", "Steps that were committed, by outcome")
        self.duration = span(
            "holdfast.step.duration",
            "s",
            "Duration of the committed attempt of a step",
            explicit_bucket_boundaries_advisory=_SHORT,
        )
        self.retries = count("holdfast.retries", "{attempt}", "Failed attempts that are retried")
        self.opened = count("holdfast.holds.opened", "{hold}", "Holds that were opened")
        self.resolved = count("holdfast.holds.resolved", "{hold}", "Holds that were closed, by how")
        self.waited = span(
            "holdfast.hold.wait",
            "s",
            "Time from opening to closing of a hold",
            explicit_bucket_boundaries_advisory=_LONG,
        )
        self.settle = span(
            "holdfast.settle.duration",
            "s",
            "Duration of a commit",
            explicit_bucket_boundaries_advisory=_SHORT,
        )
        self.commits = count("holdfast.commits", "{commit}", "Commits of records")
        self.records = count("holdfast.records", "{record}", "Records that were committed")
        self.lost = count("holdfast.leases.lost", "{lease}", "Leases lost to another worker")
        self.dropped = count(
            "holdfast.telemetry.dropped", "{record}", "Records dropped because the queue was full"
        )

    def count(self, row: RunRow, fact: Fact) -> None:
        flow = {"holdfast.flow": row.flow}
        if isinstance(fact, StepEnded):
            at = {**flow, "holdfast.node": fact.visit.node, "holdfast.outcome": fact.visit.outcome}
            self.steps.add(1, at)
            self.duration.record(fact.visit.duration / 1e6, at)
        elif isinstance(fact, StepRetried):
            self.retries.add(1, {**flow, "holdfast.node": fact.node})
        elif isinstance(fact, HoldOpened):
            self.opened.add(1, {**flow, "holdfast.node": fact.node, "holdfast.type": fact.type})
        elif isinstance(fact, HoldResolved):
            at = {**flow, "holdfast.node": fact.node, "holdfast.type": fact.type, "holdfast.how": fact.how}
            self.resolved.add(1, at)
            self.waited.record(fact.waited / 1e6, at)
        else:
            self._end(fact, flow)

    def _end(self, fact: RunEnded, flow: dict[str, str]) -> None:
        self.ended.add(1, {**flow, "holdfast.status": fact.status})

    def committed(self, seconds: float, batches: Sequence[RunBatch]) -> None:
        self.settle.record(seconds)
        self.commits.add(1)
        self.records.add(sum(len(batch.records) for batch in batches))


class TimedStore:
    """The recorder's store, with the time of each commit measured."""

    def __init__(self, store: Store, took: Callable[[float, Sequence[RunBatch]], None]) -> None:
        self._store = store
        self._took = took

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        began = perf_counter()
        answers = await self._store.settle(batches)
        self._took(perf_counter() - began, batches)
        return answers

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        began = perf_counter()
        answers = self._store.settle_now(batches)
        if answers is not None:
            self._took(perf_counter() - began, batches)
        return answers
