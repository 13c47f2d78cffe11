"""What one worker counts. Few labels and no ids, so that the number of series stays small."""

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

        self.claimed = count("holdfast_runs_claimed_total", "Runs that this worker took.", "lane")
        self.waited = Histogram(
            "holdfast_claim_latency_seconds",
            "From the moment a run was ready until this worker took it.",
            ("lane",),
            registry=registry,
            buckets=_LONG,
        )
        self.settle = Histogram(
            "holdfast_settle_duration_seconds",
            "How long a commit of records took.",
            registry=registry,
            buckets=_SHORT,
        )
        self.records = count("holdfast_records_settled_total", "Records that became durable.")
        self.steps = count("holdfast_steps_settled_total", "Steps that became durable.", "outcome")
        self.ended = count("holdfast_runs_ended_total", "Runs that this worker brought to an end.", "status")
        self.lost = count("holdfast_leases_lost_total", "Runs that another worker took over from this one.")
        self.reclaimed = count(
            "holdfast_runs_reclaimed_total", "Runs that this worker freed from one that fell silent."
        )
        self.errors = count(
            "holdfast_store_errors_total", "Calls that the store refused or did not answer.", "code"
        )
        self.outages = count("holdfast_store_outages_total", "How often the store went away.")
        self.requests = count(
            "holdfast_http_requests_total", "Requests that were answered.", "method", "route", "status"
        )
        self.answers = Histogram(
            "holdfast_http_request_duration_seconds",
            "From a request until its answer began.",
            ("method", "route"),
            registry=registry,
            buckets=_SHORT,
        )
        self.away = False

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """What is no method that we know is one kind: anybody may send anything."""
        known = method if method in _METHODS else "other"
        self.requests.labels(known, route, str(status)).inc()
        self.answers.labels(known, route).observe(seconds)

    def failed(self, error: StoreError) -> None:
        """One that is worth another try is an outage; what the store refuses for good is an answer."""
        self.errors.labels(error.code).inc()
        if error.retryable and not self.away:
            self.outages.inc()
        self.away = error.retryable

    def answered(self) -> None:
        self.away = False
