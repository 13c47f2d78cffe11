"""Where the runs of a flow fail and wait and how long its nodes take, from its latest runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.errors import FlowNotFoundError
from holdfast.runs.history.timeline import make_timeline
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.checkpoint.visit import Visit
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow

MOST_VISITS: Final = 500
"""Of one run: the latest are enough to say how long its nodes take."""
_WAITS: Final = ("asking", "waiting")
_ITEM: Final = re.compile(r"\.\d+\[\d+\]|\[\d+\]")


class NodeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """`failed_runs`, `retried_runs`: newest first. Times in microseconds, from the start of a visit to its
    end, with waits; None: no visit has ended. `p50_run`, `p95_run`: with a visit that took so long.
    `waiting`: visits that wait now for a person, a time or a retry, with their runs; `waited_p50`: of visits
    that have waited, and `waited_run` one of these runs."""

    node: str
    visits: int
    failed: int
    retries: int
    failed_runs: list[str]
    p50: int | None
    p95: int | None
    retried_runs: list[str]
    p50_run: str
    p95_run: str
    waiting: int
    waiting_runs: list[str]
    waited_p50: int | None
    waited_run: str


class FailureStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that ended with the same error. `node`: where the newest of them failed."""

    error: str
    node: str
    runs: list[str]
    last_at: int | None


class FlowStatistics(msgspec.Struct, frozen=True, kw_only=True):
    runs: int
    nodes: list[NodeStatistics]
    failures: list[FailureStatistics]


async def statistics_of(service: RunAccess, rows: Sequence[RunRow]) -> FlowStatistics:
    """Of these runs, which are newest first. A run whose history is gone has no visits."""
    visits: dict[str, list[Visit]] = {}
    for row in rows:
        try:
            visits[row.id] = (await make_timeline(service, row, keep=MOST_VISITS)).visits.all()
        except FlowNotFoundError:
            visits[row.id] = []
    return FlowStatistics(runs=len(rows), nodes=_nodes(visits), failures=_failures(rows, visits))


def _nodes(visits: dict[str, list[Visit]]) -> list[NodeStatistics]:
    """In the order in which nodes were first visited. Items of a map count as one node."""
    found: dict[str, list[tuple[str, Visit]]] = {}
    for run, of_run in visits.items():
        for visit in of_run:
            found.setdefault(_name(visit), []).append((run, visit))
    return [_node(name, same) for name, same in found.items()]


def _node(name: str, same: list[tuple[str, Visit]]) -> NodeStatistics:
    times = sorted(visit.ended_at - visit.started_at for _, visit in same if visit.ended_at is not None)
    failed = [run for run, visit in same if visit.state == "failed"]
    waiting = [run for run, visit in same if visit.state in _WAITS]
    waits = {id(visit): waited for _, visit in same if (waited := _waited(visit)) is not None}
    waited = quantile(sorted(waits.values()), 0.5)
    return NodeStatistics(
        node=name,
        visits=len(same),
        failed=len(failed),
        retries=sum(max(0, visit.attempts - 1) for _, visit in same),
        failed_runs=list(dict.fromkeys(failed)),
        p50=quantile(times, 0.5),
        p95=quantile(times, 0.95),
        retried_runs=list(dict.fromkeys(run for run, visit in same if visit.attempts > 1)),
        p50_run=_run_with(same, quantile(times, 0.5)),
        p95_run=_run_with(same, quantile(times, 0.95)),
        waiting=len(waiting),
        waiting_runs=list(dict.fromkeys(waiting)),
        waited_p50=waited,
        waited_run=next((run for run, visit in same if waits.get(id(visit)) == waited), "") if waits else "",
    )


def _waited(visit: Visit) -> int | None:
    """How long it waited in all, if a wait has ended; without the time in which its run had failed."""
    ended = [
        wait.until - wait.since for wait in visit.waits if wait.until is not None and wait.kind != "failed"
    ]
    return sum(ended) if ended else None


def _run_with(same: list[tuple[str, Visit]], time: int | None) -> str:
    ended = ((run, visit.ended_at - visit.started_at) for run, visit in same if visit.ended_at is not None)
    return next((run for run, took in ended if took == time), "")


def _failures(rows: Iterable[RunRow], visits: dict[str, list[Visit]]) -> list[FailureStatistics]:
    """The most frequent first."""
    found: dict[str, list[RunRow]] = {}
    for row in rows:
        if row.status is RunStatus.failed:
            found.setdefault(row.error or "", []).append(row)
    made = [
        FailureStatistics(
            error=error,
            node=_failed_node(visits[same[0].id]),
            runs=[row.id for row in same],
            last_at=same[0].ended_at,
        )
        for error, same in found.items()
    ]
    return sorted(made, key=lambda each: -len(each.runs))


def _failed_node(visits: Sequence[Visit]) -> str:
    return next((_name(each) for each in reversed(visits) if each.state == "failed"), "")


def _name(visit: Visit) -> str:
    scope = visit.scope if not visit.scope or visit.scope.endswith("/") else f"{visit.scope}/"
    return _ITEM.sub("", scope + visit.node)


def quantile(ordered: Sequence[int], share: float) -> int | None:
    """The smallest value that this share of the values does not exceed."""
    if not ordered:
        return None
    return ordered[max(0, ceil(len(ordered) * share) - 1)]
