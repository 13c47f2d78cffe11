"""The page for Prometheus, with health and readiness."""

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
from holdfast.integrations.prometheus.fleet_metrics import AGES, FleetCollector
from holdfast.integrations.prometheus.store_metrics import MeteredStore, RunMetricsWatch
from holdfast.integrations.prometheus.worker_metrics import WorkerMetrics
from holdfast.runs.observer import combine_observers
from holdfast.runs.worker.health_server import PATIENCE, Health, HealthResponse
from holdfast.types.clock import MICROS

if TYPE_CHECKING:
    from holdfast.runs.worker.worker import RunWorker
    from holdfast.store.protocols import Store

FRESH: Final = 5.0
"""Seconds for which the fleet's figures are cached, so that many scrapes do not load the store."""


class Metrics(Health):
    """`Metrics("9464")`: /metrics, /metrics/worker, /healthz and /readyz on loopback. For one worker, or for
    a server that runs none."""

    measures = True

    def __init__(self, address: str) -> None:
        super().__init__(address)
        # Not the library's global registry: several workers in
        # one process (tests) would register the same names twice.
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
        """Called by a server in the same process (`ApiSettings(observed=metrics.request)`)."""
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

    async def _without_worker(self, path: str) -> HealthResponse:
        """A server has requests to report, and the fleet, even if it runs no worker itself."""
        if self._source is None or not path.startswith("/metrics"):
            return await super()._without_worker(path)
        if path == "/metrics/worker":
            return await self._own_page()
        if self._source.store is not None:
            await self._ask(self._source.store)
        else:
            self._look.away = True
        return HealthResponse(200, CONTENT_TYPE_LATEST, generate_latest(self.registry))

    async def _page(self, worker: RunWorker) -> HealthResponse:
        await self._ask(worker.store)
        return HealthResponse(200, CONTENT_TYPE_LATEST, generate_latest(self.registry))

    async def _own_page(self, _worker: RunWorker | None = None) -> HealthResponse:
        """Without a query to the store: with many workers it is enough that one reports the fleet."""
        async with self._looking:
            # Under the lock, so that a concurrent page with the fleet's figures does not lose them.
            kept, self._look.figures = self._look.figures, None
            text = generate_latest(self.registry)
            self._look.figures = kept
        return HealthResponse(200, CONTENT_TYPE_LATEST, text)

    async def _ask(self, store: Store) -> None:
        """If the store is unavailable, that is reported, and the worker's own metrics as usual."""
        async with self._looking:
            if monotonic() - self._looked < FRESH:
                return
            look = self._look
            try:
                # A scrape has a deadline of its own: late figures are
                # worse than a page that says that the store is away.
                async with asyncio.timeout(PATIENCE):
                    look.figures = await store.fleet_figures(
                        ages=tuple(age * MICROS for age in AGES.values())
                    )
                    look.workers = await store.workers()
                    look.queues = await store.queue_counts()
                look.away = False
                self._looked = monotonic()
            except (StoreError, TimeoutError):
                look.figures, look.away = None, True


def metrics_of_process(address: str) -> Metrics:
    """Only in our own process: disables the `_created` series of each counter."""
    disable_created_metrics()
    return Metrics(address)
