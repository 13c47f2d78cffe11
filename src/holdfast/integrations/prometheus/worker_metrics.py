"""Metrics of one worker. Few labels and no ids, so that the number of series stays small."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from holdfast.errors import StoreError

_SHORT: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_LONG: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)


class WorkerMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        def count(name: str, about: str, *labels: str) -> Counter:
            return Counter(name, about, labels, registry=registry)

        self.claimed = count("holdfast_runs_claimed_total", "Runs claimed by this worker.", "lane")
        self.waited = Histogram(
            "holdfast_claim_latency_seconds",
            "Time from a run being ready until this worker claimed it.",
            ("lane",),
            registry=registry,
            buckets=_LONG,
        )
        self.settle = Histogram(
            "holdfast_settle_duration_seconds",
            "Duration of a commit of records.",
            registry=registry,
            buckets=_SHORT,
        )
        self.records = count("holdfast_records_settled_total", "Records committed.")
        self.steps = count("holdfast_steps_settled_total", "Steps committed.", "outcome")
        self.ended = count("holdfast_runs_ended_total", "Runs that ended on this worker.", "status")
        self.lost = count("holdfast_leases_lost_total", "Leases lost to another worker.")
        self.reclaimed = count(
            "holdfast_runs_reclaimed_total", "Runs reclaimed from workers that stopped heartbeating."
        )
        self.errors = count("holdfast_store_errors_total", "Store calls that failed.", "code")
        self.outages = count("holdfast_store_outages_total", "Times that the store became unavailable.")
        self.requests = count(
            "holdfast_http_requests_total", "HTTP requests answered.", "method", "route", "status"
        )
        self.answers = Histogram(
            "holdfast_http_request_duration_seconds",
            "Time from a request until the start of its answer.",
            ("method", "route"),
            registry=registry,
            buckets=_SHORT,
        )
        self.away = False

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Unknown methods share one label: clients may send anything, and each label is a series."""
        known = method if method in _METHODS else "other"
        self.requests.labels(known, route, str(status)).inc()
        self.answers.labels(known, route).observe(seconds)

    def failed(self, error: StoreError) -> None:
        """An error that is worth a retry is an outage; a permanent error means that the store is up."""
        self.errors.labels(error.code).inc()
        if error.retryable and not self.away:
            self.outages.inc()
        self.away = error.retryable

    def answered(self) -> None:
        self.away = False
