"""The page that Prometheus reads, with health and readiness beside it."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from holdfast.errors import StoreError
from holdfast.integrations.prometheus.collector import MeteredStore, RunMetricsWatch
from holdfast.integrations.prometheus.fleet_metrics import AGES, FleetCollector
from holdfast.integrations.prometheus.worker_metrics import WorkerMetrics
from holdfast.runs.observer import combine_observers
from holdfast.runs.worker.health_server import PATIENCE, Health, HealthResponse
from holdfast.types.clock import MICROS

if TYPE_CHECKING:
    from holdfast.runs.worker.worker import RunWorker
    from holdfast.store.protocols import Store

FRESH: Final = 5.0
"""Seconds for which the store is not asked again how the fleet is, however many ask us."""


class Metrics(Health):
    """`Metrics("9464")`: /metrics, /metrics/worker, /healthz and /readyz on loopback. For one
    worker."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.registry = CollectorRegistry()
        self._measures = WorkerMetrics(self.registry)
        self._look = FleetCollector()
        self.registry.register(self._look)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._looked = -FRESH
        self._looking = asyncio.Lock()
        self._seen: RunWorker | None = None
        self.pages |= {"/metrics": self._page, "/metrics/worker": self._own_page}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Of a server in the same process (`ApiSettings(observed=metrics.request)`)."""
        self._measures.request(method, route, status, seconds)

    async def open(self, worker: RunWorker) -> None:
        await super().open(worker)
        if self._seen is not worker:
            self._seen = self._look.worker = worker
            self._watch(worker)

    def _watch(self, worker: RunWorker) -> None:
        runtime = worker.runtime
        runtime.observer = combine_observers(runtime.observer, RunMetricsWatch(self._measures))
        seen: Any = MeteredStore(worker.store, self._measures)
        worker.store = worker.reaper.store = worker.timers.store = runtime.store = seen
        recorded: Any = MeteredStore(runtime.recorder.store, self._measures)
        runtime.recorder.store = recorded

    async def _page(self, worker: RunWorker) -> HealthResponse:
        await self._ask(worker.store)
        return HealthResponse(200, CONTENT_TYPE_LATEST, generate_latest(self.registry))

    async def _own_page(self, _worker: RunWorker) -> HealthResponse:
        """Without a question to the store: where there are many workers, one of them tells of the fleet."""
        async with self._looking:
            kept, self._look.figures = self._look.figures, None
            text = generate_latest(self.registry)
            self._look.figures = kept
        return HealthResponse(200, CONTENT_TYPE_LATEST, text)

    async def _ask(self, store: Store) -> None:
        """A store that is away is told as that; what the worker counts itself is told all the same."""
        async with self._looking:
            if monotonic() - self._looked < FRESH:
                return
            look = self._look
            try:
                async with asyncio.timeout(PATIENCE):
                    look.figures = await store.figures(ages=tuple(age * MICROS for age in AGES.values()))
                    look.workers = await store.workers()
                look.away = False
                self._looked = monotonic()
            except (StoreError, TimeoutError):
                look.figures, look.away = None, True


def metrics_of_process(address: str) -> Metrics:
    """Where the process is ours alone: without a series beside each counter that says when it began."""
    disable_created_metrics()
    return Metrics(address)
