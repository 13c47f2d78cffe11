"""Numbers about the runs of a flow."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.routes.flows import find_version
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.common import moment
from holdfast.errors import FlowNotFoundError
from holdfast.runs.history.statistics import FailureStatistics, NodeStatistics, statistics_of
from holdfast.store.rows import RunFilter

routes = Routes("flows")


class StatisticsQuery(msgspec.Struct, kw_only=True):
    """`version`: only runs of this version. `runs`: how many of the latest runs are looked at."""

    version: str | None = None
    runs: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20


class NodeStatisticsWire(msgspec.Struct, kw_only=True):
    """`failed_runs`, `retried_runs`: newest first. `p50_ms`, `p95_ms`: from the start of a visit to its end,
    with waits. `p50_run`, `p95_run`: a run with a visit that took so long. `waiting`: visits that wait now
    for a person, a time or a retry; `waited_p50_ms`: half of those that waited had no more."""

    node: str
    visits: int
    failed: int
    retries: int
    failed_runs: list[str]
    p50_ms: float | None
    p95_ms: float | None
    retried_runs: list[str] = []
    p50_run: str = ""
    p95_run: str = ""
    waiting: int = 0
    waiting_runs: list[str] = []
    waited_p50_ms: float | None = None
    waited_run: str = ""


class FailureWire(msgspec.Struct, kw_only=True):
    """Runs that ended with the same error, newest first. `node`: where the newest failed."""

    error: str
    node: str
    runs: list[str]
    last_at: str | None


class FlowStatisticsWire(msgspec.Struct, kw_only=True):
    """Of the latest `runs` runs. `nodes`: in the order in which they were first visited. `failures`: the most
    frequent first."""

    flow: str
    runs: int
    nodes: list[NodeStatisticsWire]
    failures: list[FailureWire]


@routes.get("/flows/{flow:path}/stats", needs=Right.runs_read, raises=(FlowNotFoundError,))
async def get_flow_stats(call: ApiCall, flow: str, query: StatisticsQuery) -> FlowStatisticsWire:
    """Where the latest runs of a flow failed and wait, and how long each node takes."""
    service = await call.runs()
    row, _ = await find_version(call, flow, query.version or "latest")
    where = RunFilter(tenant=call.tenant, flow=flow, version=row.version if query.version else None)
    rows = await service.store.list_runs(where, after=None, limit=query.runs)
    found = await statistics_of(service, rows)
    return FlowStatisticsWire(
        flow=flow,
        runs=found.runs,
        nodes=[_node(each) for each in found.nodes],
        failures=[_failure(each) for each in found.failures],
    )


def _node(found: NodeStatistics) -> NodeStatisticsWire:
    return NodeStatisticsWire(
        node=found.node,
        visits=found.visits,
        failed=found.failed,
        retries=found.retries,
        failed_runs=found.failed_runs,
        retried_runs=found.retried_runs,
        p50_run=found.p50_run,
        p95_run=found.p95_run,
        p50_ms=None if found.p50 is None else found.p50 / 1000,
        p95_ms=None if found.p95 is None else found.p95 / 1000,
        waiting=found.waiting,
        waiting_runs=found.waiting_runs,
        waited_p50_ms=None if found.waited_p50 is None else found.waited_p50 / 1000,
        waited_run=found.waited_run,
    )


def _failure(found: FailureStatistics) -> FailureWire:
    return FailureWire(error=found.error, node=found.node, runs=found.runs, last_at=moment(found.last_at))
