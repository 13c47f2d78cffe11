"""Metrics. Names of flows and nodes are attributes; ids are not, so that the number of series stays small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

from opentelemetry.metrics import (
    CallbackOptions,
    Counter,
    Meter,
    MeterProvider,
    Observation,
    UpDownCounter,
)

from holdfast.integrations.otel import conventions as names
from holdfast.integrations.otel.agent_calls import AgentCall
from holdfast.integrations.otel.facts import (
    Fact,
    HoldOpened,
    HoldResolved,
    RunEnded,
    Spent,
    StepEnded,
    StepRetried,
)
from holdfast.integrations.otel.private_names import record_all
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.types.record import RunBatch, SettleAnswer

_SHORT = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
_TOKENS = [4**power for power in range(14)]
_LONG = [1, 10, 60, 300, 1800, 3600, 6 * 3600, 86_400, 3 * 86_400, 7 * 86_400, 30 * 86_400]

MOST_HELD = 4096  # measured values; more are given to OpenTelemetry before it asks
FLOW = "holdfast.flow"
NODE = "holdfast.node"
_CALL = (names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.RESPONSE_MODEL, names.TOOL)


class OtelMetrics:
    """What is counted is held here, and given to OpenTelemetry when a reader collects: a call of the SDK for
    each step took a third of the CPU of telemetry, and many steps of one node are one call."""

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
        self.tokens = count("holdfast.tokens", "{token}", "Tokens of models")
        self.cost = count("holdfast.cost", "{cost}", "Cost of models, in the currency of their prices")
        self.token_usage = span(
            names.TOKEN_USAGE,
            "{token}",
            "Tokens of a call of a model",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self.operation = span(
            names.DURATION,
            "s",
            "Duration of a call of a model or a tool",
            explicit_bucket_boundaries_advisory=_SHORT,
        )
        self._lock = Lock()  # readers collect in threads of their own
        self._buffer: dict[tuple[Counter | UpDownCounter, tuple[tuple[str, str], ...]], float] = {}
        # Seconds of steps, by flow, node and outcome; and of commits.
        self._durations: dict[tuple[str, str, str], list[float]] = {}
        self._settles: list[float] = []
        self._held = 0
        self._records = 0
        self.dropped = 0
        # Asked for its value whenever a reader collects, before the others are: so all are complete then.
        # Last, because a reader may do so at once.
        meter.create_observable_counter(
            "holdfast.telemetry.dropped",
            [self._collected],
            "{record}",
            "Records dropped because the queue was full",
        )

    def add(self, counter: Counter | UpDownCounter, value: float, *attributes: tuple[str, str]) -> None:
        at = (counter, attributes)
        with self._lock:
            self._buffer[at] = self._buffer.get(at, 0) + value

    def _collected(self, _options: CallbackOptions) -> list[Observation]:
        self.flush()
        return [Observation(self.dropped)] if self.dropped else []

    def flush(self) -> None:
        with self._lock:
            settles, self._settles = self._settles, []
            durations, self._durations = self._durations, {}
            taken, self._buffer = self._buffer, {}
            records, self._records = self._records, 0
            self._held = 0
        if settles:
            record_all(self.settle, settles, {})
            self.commits.add(len(settles))
            self.records.add(records)
        for (flow, node, outcome), of_node in durations.items():
            at = {FLOW: flow, NODE: node, "holdfast.outcome": outcome}
            self.steps.add(len(of_node), at)
            record_all(self.duration, of_node, at)
        for (counter, attributes), value in taken.items():
            counter.add(value, dict(attributes))

    def flush_many(self) -> None:
        """If no reader has collected for long, or there is none."""
        if self._held >= MOST_HELD:
            self.flush()

    def count(self, row: RunRow, fact: Fact) -> None:
        if isinstance(fact, StepEnded):
            self._step(row.flow, fact)
            return
        flow = (FLOW, row.flow)
        if isinstance(fact, StepRetried):
            self.add(self.retries, 1, flow, (NODE, fact.node))
        elif isinstance(fact, HoldOpened):
            self.add(self.opened, 1, flow, (NODE, fact.node), ("holdfast.type", fact.type))
        elif isinstance(fact, HoldResolved):
            pairs = (flow, (NODE, fact.key[1]), ("holdfast.type", fact.type), ("holdfast.how", fact.how))
            self.add(self.resolved, 1, *pairs)
            self.waited.record((fact.ended_at - fact.asked_at) / 1e6, dict(pairs))
        elif isinstance(fact, Spent):
            self._spent(flow, (NODE, fact.node), fact)
        elif isinstance(fact, AgentCall):
            self._call(fact)
        elif isinstance(fact, RunEnded):
            self.add(self.ended, 1, flow, ("holdfast.status", fact.status))

    def _step(self, flow: str, fact: StepEnded) -> None:
        visit = fact.visit
        at = (flow, visit.node, visit.outcome)
        with self._lock:
            values = self._durations.get(at)
            if values is None:
                values = self._durations[at] = []
            values.append(visit.duration / 1e6)
            self._held += 1

    def _spent(self, flow: tuple[str, str], node: tuple[str, str], fact: Spent) -> None:
        if fact.usage.tokens:
            self.add(self.tokens, fact.usage.tokens, flow, node)
        if fact.usage.cost:
            self.add(self.cost, fact.usage.cost, flow, node)

    def _call(self, call: AgentCall) -> None:
        """With the attributes that the conventions name."""
        at = {name: call.attributes[name] for name in _CALL if name in call.attributes}
        if call.error is not None:
            at["error.type"] = call.error.type
        self.operation.record((call.ended_at - call.started_at) / 1e6, at)
        for kind, name in (("input", names.INPUT_TOKENS), ("output", names.OUTPUT_TOKENS)):
            if name in call.attributes:
                self.token_usage.record(call.attributes[name], {**at, names.TOKEN_TYPE: kind})

    def committed(self, seconds: float, batches: Sequence[RunBatch]) -> None:
        with self._lock:
            self._settles.append(seconds)
            self._held += 1
            self._records += sum(len(batch.records) for batch in batches)


_shared: WeakKeyDictionary[MeterProvider, OtelMetrics] = WeakKeyDictionary()


def metrics_of(provider: MeterProvider, version: str) -> OtelMetrics:
    """One for all instances of a provider: it keeps the first callback of an instrument only."""
    found = _shared.get(provider)
    if found is None:
        found = _shared[provider] = OtelMetrics(provider.get_meter("holdfast", version))
    return found


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
