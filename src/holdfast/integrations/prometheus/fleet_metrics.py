"""Metrics of the whole fleet, as last read from the store. Every worker reports the same values: aggregate
them with the maximum, not the sum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from holdfast._version import __version__
from holdfast.model.user_code.threads import threads_left_behind
from holdfast.runs.engine_report import BUCKETS, EngineMetric, Series
from holdfast.runs.migrate.check import LIVE
from holdfast.runs.unserved import find_unserved
from holdfast.types.clock import MICROS
from holdfast.types.fleet import FleetFigures, LaneFigures, WorkerRow
from holdfast.types.queue_message import QueueCounts

if TYPE_CHECKING:
    from holdfast.runs.worker.worker import RunWorker

AGES: Final = {"under_1h": 3600, "under_1d": 86_400, "under_7d": 7 * 86_400}
OLDER: Final = "over_7d"
Place = tuple[str, str]


class FleetCollector(Collector):
    """`figures` and `workers` are set before each scrape; None: the store did not answer."""

    def __init__(self) -> None:
        self.worker: RunWorker | None = None
        self.figures: FleetFigures | None = None
        self.workers: list[WorkerRow] = []
        self.queues: list[QueueCounts] = []
        self.away = False
        # A lane that is empty now is reported as 0: alerts and autoscalers need the series to continue.
        self._lanes: set[str] = set()
        self._queues: set[Place] = set()

    def collect(self) -> Iterator[Metric]:
        yield _gauge("holdfast_build_info", "The version of Holdfast.", ("version",), [((__version__,), 1)])
        yield _gauge("holdfast_store_up", "Whether the store answered last.", (), [((), not self.away)])
        if self.worker is not None:
            yield from _of_worker(self.worker)
            yield from _of_user_code(self.worker)
            yield from _of_engine(self.worker)
        if self.figures is not None:
            yield from self._of_lanes(self.figures)
            yield from _of_fleet(self.figures)
            yield from _of_unserved(self.figures, self.workers)
            yield _of_workers(self.workers, self.figures.at)
            yield from self._of_queues(self.queues)

    def _of_queues(self, found: list[QueueCounts]) -> Iterator[Metric]:
        known = {(each.tenant, f"{each.scope}/{each.queue}"): each for each in found}
        self._queues.update(known)
        empty = QueueCounts(tenant="", scope="", queue="")
        queues = [(place, known.get(place, empty)) for place in sorted(self._queues)]
        states = [
            ((*place, state), getattr(counts, state))
            for place, counts in queues
            for state in ("ready", "claimed", "dead")
        ]
        oldest = [(place, counts.oldest / MICROS) for place, counts in queues]
        yield _gauge("holdfast_queue_messages", "Messages of queues.", ("tenant", "queue", "state"), states)
        about = "Time for which the oldest ready message could have been claimed."
        yield _gauge("holdfast_queue_oldest_seconds", about, ("tenant", "queue"), oldest)

    def _of_lanes(self, fleet_figures: FleetFigures) -> Iterator[Metric]:
        served = () if self.worker is None else self.worker.lanes or ()
        self._lanes.update(served, (lane.lane for lane in fleet_figures.lanes))
        known = {lane.lane: lane for lane in fleet_figures.lanes}
        empty = [LaneFigures(lane=lane, ready=0, oldest=0, running=0) for lane in self._lanes - known.keys()]
        lanes = sorted((*known.values(), *empty), key=lambda lane: lane.lane)
        of = ("lane",)
        ready = [((lane.lane,), lane.ready) for lane in lanes]
        oldest = [((lane.lane,), lane.oldest / MICROS) for lane in lanes]
        running = [((lane.lane,), lane.running) for lane in lanes]
        in_line = [((lane.lane,), lane.in_line) for lane in lanes]
        yield _gauge("holdfast_backlog_runs", "Runs that are ready to be claimed.", of, ready)
        yield _gauge("holdfast_backlog_oldest_seconds", "Age of the oldest ready run.", of, oldest)
        yield _gauge("holdfast_running_runs", "Runs that a worker or an engine runs.", of, running)
        yield _gauge("holdfast_in_line_runs", "Runs that wait for a limit.", of, in_line)


def _of_user_code(worker: RunWorker) -> Iterator[Metric]:
    """What the code of nodes did to this worker."""
    runtime = worker.runtime
    yield _counter(
        "holdfast_loop_blocked_total",
        "Times that a node blocked the event loop.",
        ("flow", "node"),
        list(runtime.leases.watchdog.blocks.items()),
    )
    yield _counter(
        "holdfast_handlers_disowned_total",
        "Handlers that did not stop when they were cancelled.",
        ("flow", "node"),
        list(runtime.disowned.items()),
    )
    left = [((), len(threads_left_behind()))]
    yield _gauge("holdfast_threads_left_behind", "Threads of handlers that were given up.", (), left)


def _of_engine(worker: RunWorker) -> Iterator[Metric]:
    """Of the worker of a Temporal cluster in this process."""
    engine = worker.runtime.engine
    if engine is None:
        return
    found, now = engine.figures, worker.store.now()
    gauges = (
        ("projection_lag_records", "Records that were decided and are being written.", found.lag_records()),
        ("projection_lag_seconds", "How long the oldest of them is known.", found.lag_seconds(now)),
        ("mail_undelivered", "Decisions that their run has not taken in.", found.undelivered),
        ("history_events", "Events of the longest history of a live run.", found.history_events),
    )
    for name, about, value in gauges:
        yield _gauge(f"holdfast_engine_{name}", about, (), [((), value)])
    totals = (
        ("conflicts_total", "Records that the store has otherwise.", found.conflicts),
        ("lost_activities_total", "Nodes whose worker was lost.", found.lost),
    )
    for name, about, value in totals:
        yield _counter(f"holdfast_engine_{name}", about, (), [((), value)])
    for metric in found.own() if found.own is not None else ():
        yield from _of_library(metric)


def _of_library(metric: EngineMetric) -> Iterator[Metric]:
    """Its series may have different labels: what one lacks is empty."""
    for values, family in ((metric.counts, _counter), (metric.gauges, _gauge)):
        if values:
            labels = _labels(values)
            yield family(metric.name, metric.about, labels, [(_cells(s, labels), values[s]) for s in values])
    if metric.histograms:
        labels = _labels(metric.histograms)
        made = HistogramMetricFamily(metric.name, metric.about, labels=labels)
        for series, found in metric.histograms.items():
            sums = list(accumulate(found.counts))
            bounds = [*(str(bound) for bound in BUCKETS), "+Inf"]
            made.add_metric(_cells(series, labels), list(zip(bounds, sums, strict=True)), found.total)
        yield made


def _labels(found: Iterable[Series]) -> tuple[str, ...]:
    return tuple(sorted({name for series in found for name, _ in series}))


def _cells(series: Series, labels: tuple[str, ...]) -> tuple[str, ...]:
    values = dict(series)
    return tuple(values.get(name, "") for name in labels)


def _of_worker(worker: RunWorker) -> Iterator[Metric]:
    busy = [((), worker.slots.busy)]
    yield _gauge("holdfast_worker_busy_runs", "Runs that this worker advances.", (), busy)
    yield _gauge(
        "holdfast_worker_hot_runs",
        "Runs kept in memory while they wait for an answer or a time.",
        (),
        [((), worker.slots.hot)],
    )
    yield _gauge(
        "holdfast_worker_concurrency",
        "Maximum number of runs that this worker advances.",
        (),
        [((), worker.slots.concurrency)],
    )
    yield _gauge(
        "holdfast_worker_draining", "Whether this worker is draining.", (), [((), worker.is_stopping)]
    )


def _of_fleet(fleet_figures: FleetFigures) -> Iterator[Metric]:
    statuses = [((str(status),), fleet_figures.statuses.get(status, 0)) for status in LIVE]
    yield _gauge("holdfast_runs", "Runs that have not ended.", ("status",), statuses)
    yield _gauge(
        "holdfast_dead_runs",
        "Dead letters: runs whose workers died too often.",
        (),
        [((), fleet_figures.dead)],
    )
    yield _gauge(
        "holdfast_suspect_runs",
        "Runs whose worker died; they run alone until they make progress.",
        (),
        [((), fleet_figures.suspects)],
    )
    yield _gauge("holdfast_timers", "Waits for a time that have not ended.", (), [((), fleet_figures.timers)])
    ends = [] if fleet_figures.next_timer is None else [((), fleet_figures.next_timer / MICROS)]
    yield _gauge("holdfast_next_timer_seconds", "Time until the first of these waits ends.", (), ends)
    names = (*AGES, OLDER)
    ages = [((name,), count) for name, (_, count) in zip(names, fleet_figures.holds, strict=True)]
    yield _gauge("holdfast_pending_holds", "Open holds, by age.", ("age",), ages)
    oldest = fleet_figures.oldest_hold / MICROS
    yield _gauge("holdfast_oldest_hold_seconds", "Age of the oldest open hold.", (), [((), oldest)])
    lags = {
        "timers": fleet_figures.timer_lag,
        "holds": fleet_figures.hold_lag,
        "schedules": fleet_figures.schedule_lag,
    }
    late = [((sweep,), lag / MICROS) for sweep, lag in lags.items()]
    yield _gauge("holdfast_sweep_lag_seconds", "Age of the oldest item that is due.", ("sweep",), late)
    outbox = [(("waiting",), fleet_figures.outbox_waiting), (("dead",), fleet_figures.outbox_dead)]
    yield _gauge("holdfast_outbox_messages", "Outbox messages that are not delivered.", ("state",), outbox)


def _of_unserved(fleet_figures: FleetFigures, workers: list[WorkerRow]) -> Iterator[Metric]:
    unserved = find_unserved(fleet_figures, workers)
    runs = [((each.lane, each.flow, each.version), each.ready) for each in unserved.runs]
    labels = ("lane", "flow", "version")
    yield _gauge("holdfast_unserved_runs", "Ready runs that no live worker takes.", labels, runs)
    flows = [((each.flow,), each.schedules) for each in unserved.schedules]
    about = "Schedules of flows that no live worker serves."
    yield _gauge("holdfast_unserved_schedules", about, ("flow",), flows)


def _of_workers(workers: list[WorkerRow], now: int) -> Metric:
    alive = [row for row in workers if row.is_alive(now)]
    draining = sum(row.draining for row in alive)
    states = {"working": len(alive) - draining, "draining": draining, "silent": len(workers) - len(alive)}
    values = [((state,), count) for state, count in states.items()]
    return _gauge(
        "holdfast_workers",
        "Workers by state; silent ones (no heartbeat) are kept for a day.",
        ("state",),
        values,
    )


def _counter(
    name: str, about: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    family = CounterMetricFamily(name.removesuffix("_total"), about, labels=labels)
    for label, value in values:
        family.add_metric(label, value)
    return family


def _gauge(
    name: str, about: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    family = GaugeMetricFamily(name, about, labels=labels)
    for of, value in values:
        family.add_metric(of, value)
    return family
