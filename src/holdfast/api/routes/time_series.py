"""Series for charts: how fast people decide, what waits, which deadlines were missed, which runs ended."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.hold_query import Instant
from holdfast.api.schemas.schedules import Length
from holdfast.errors import InputError, NotFoundError
from holdfast.runs.time_series import Series, SeriesWindow, series_of, window_of
from holdfast.types.clock import MICROS, START_OF_TIME, require_moment
from holdfast.types.duration import parse_duration

routes = Routes("admin")

_DAY = 86_400 * MICROS
_POINTS = 24


class ReadMetric(msgspec.Struct, kw_only=True):
    """Default: the last 24 hours, in 24 steps."""

    from_: Instant | None = msgspec.field(name="from", default=None)
    to: Instant | None = None
    step: Length | None = None


class MetricPoint(msgspec.Struct, kw_only=True):
    """`at`: the begin of the step. `values`: one for each column; null: nothing to measure."""

    at: str
    values: list[float | None]


class MetricWire(msgspec.Struct, kw_only=True):
    """`read_since`: older holds or runs exist and were not read, so that earlier points are too low."""

    name: str
    unit: str
    step_seconds: float
    columns: list[str]
    points: list[MetricPoint]
    read_since: str | None = None


@routes.get("/metrics/{metric}", needs=Right.manage, raises=(InputError, NotFoundError))
async def get_metric(call: ApiCall, metric: str, query: ReadMetric) -> MetricWire:
    """One series of the tenant, computed from its newest holds or runs.

    `time_to_decision`: p50 and p95 in seconds, and the number of decisions by people. `backlog`: open holds
    by age, at the end of each step. `breaches`: deadlines that passed before the decision. `runs`: runs that
    completed, failed and were cancelled. For long series, collect the metrics of `--metrics`."""
    store = await call.hf.open()
    window = _window(query, store.now())
    return _wire(metric, await series_of(store, metric, call.tenant, window), window)


def _window(query: ReadMetric, now: int) -> SeriesWindow:
    end = now if query.to is None else require_moment(query.to, "to")
    start = max(START_OF_TIME, end - _DAY) if query.from_ is None else require_moment(query.from_, "from")
    if query.step is None:
        return window_of(start, end, max(1, -(-(end - start) // _POINTS)))
    return window_of(start, end, parse_duration(query.step) // timedelta(microseconds=1))


def _wire(name: str, found: Series, window: SeriesWindow) -> MetricWire:
    return MetricWire(
        name=name,
        unit=found.unit,
        step_seconds=window.step / MICROS,
        columns=list(found.columns),
        points=[
            MetricPoint(at=moment(window.start + place * window.step) or "", values=values)
            for place, values in enumerate(found.values)
        ],
        read_since=moment(found.since),
    )
