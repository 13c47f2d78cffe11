"""The sources of a worker's metrics: calls of its store, and the commits of its runs.

A worker without metrics does not use this module.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import iscoroutinefunction
from time import perf_counter
from typing import Any

from prometheus_client import Counter

from holdfast.errors import LeaseLostError, StoreError
from holdfast.integrations.prometheus.worker_metrics import WorkerMetrics
from holdfast.runs.driver.driver import Driver
from holdfast.store.protocols import Store
from holdfast.store.rows import Claim, ClaimRequest, RunRow
from holdfast.types.lease import Lease
from holdfast.types.record import Kind, Record, RunBatch, SettleAnswer
from holdfast.types.status import ENDED, RunStatus

_COUNTED = frozenset(
    [
        "extend",
        "park",
        "set_idle",
        "pending",
        "get_run",
        "inbox_heads",
        "fire_timers",
        "next_timer",
        "put_worker",
        "workers",
        "fleet_figures",
        "claim_outbox",
    ]
)


class MeteredStore:
    """The same store; claims and commits are timed, and errors are counted."""

    def __init__(self, store: Store, measures: WorkerMetrics) -> None:
        self._store = store
        self._measures = measures

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name in _COUNTED and iscoroutinefunction(found):
            found = self._counted(found)
            setattr(self, name, found)  # looked up once
        return found

    def _counted(self, act: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*args: Any, **given: Any) -> Any:
            return await self._counted_call(act(*args, **given))

        return counted

    async def _counted_call(self, act: Awaitable[Any]) -> Any:
        try:
            answer = await act
        except StoreError as error:
            self._measures.failed(error)
            raise
        self._measures.answered()
        return answer

    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        began = perf_counter()
        answers = await self._counted_call(self._store.settle(batches))
        self._measures.settle.observe(perf_counter() - began)
        return answers

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        began = perf_counter()
        answers = self._store.settle_now(batches)
        if answers is not None:
            self._measures.settle.observe(perf_counter() - began)
        return answers

    def extend_now(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        try:
            return self._store.extend_now(leases, ttl)
        except StoreError as error:
            self._measures.failed(error)
            raise

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        claims: list[Claim] = await self._counted_call(self._store.claim(want))
        for claim in claims:
            self._measures.claimed.labels(claim.run.lane).inc()
            if claim.since is not None:
                waited = max(0, claim.run.updated_at - claim.since) / 1e6
                self._measures.waited.labels(claim.run.lane).observe(waited)
        return claims

    async def reclaim(self, **given: Any) -> list[RunRow]:
        rows: list[RunRow] = await self._counted_call(self._store.reclaim(**given))
        self._measures.reclaimed.inc(len(rows))
        return rows


class RunMetricsWatch:
    """The watch of one runtime."""

    def __init__(self, measures: WorkerMetrics) -> None:
        self._measures = measures
        self._steps: dict[str, Counter] = {}  # looked up once: this is called with each commit

    def began(self, driver: Driver) -> None: ...

    def committed(self, lease: Lease, records: list[Record]) -> None:
        self._measures.records.inc(len(records))
        for record in records:
            if record.kind is Kind.step:
                counter = self._steps.get(record.outcome)
                if counter is None:
                    counter = self._steps[record.outcome] = self._measures.steps.labels(record.outcome)
                counter.inc()

    def left(self, driver: Driver, status: RunStatus | None, error: BaseException | None) -> None:
        if isinstance(error, LeaseLostError):
            self._measures.lost.inc()
        elif status in ENDED:
            self._measures.ended.labels(str(status)).inc()

    async def close(self) -> None: ...
