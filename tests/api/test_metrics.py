"""Series for charts, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.runs import time_series
from tests.api.people import Hall, hall_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf, hall_of(hf) as found:
        yield found


@pytest.mark.covers("WB-67-metrics")
async def test_metrics_are_series_of_the_own_tenant(hall: Hall) -> None:
    hold = await hall.asks()
    for name, columns in {
        "time_to_decision": ["p50", "p95", "count"], "backlog": ["under_1h", "under_1d", "under_7d", "older"],
        "breaches": ["breaches"], "runs": ["completed", "failed", "cancelled"],
    }.items():  # fmt: skip
        found = await hall.ask("ada", "GET", f"/v1/metrics/{name}?step=1h")
        assert (found["name"], found["columns"], found["step_seconds"]) == (name, columns, 3600)
        assert len(found["points"]) == 24
        assert found["read_since"] is None
    assert await last(hall, "ada", "backlog") == [1, 0, 0, 0]
    assert await last(hall, "eve", "backlog") == [0, 0, 0, 0]
    await hall.ask("ada", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "approve"})
    assert (await last(hall, "ada", "time_to_decision"))[2] == 1
    assert (await last(hall, "eve", "time_to_decision"))[2] == 0
    assert await last(hall, "ada", "backlog") == [0, 0, 0, 0]


@pytest.mark.covers("WB-67-metrics")
async def test_newer_runs_of_other_tenants_displace_none_of_the_own(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_series, "MOST_ROWS", 2)
    flow = Flow("ends", effect="pure")

    @flow.node
    async def work(s: dict[str, Any]) -> None: ...

    await flow.run({}, on=hall.hf)
    for _ in range(3):
        await flow.run({}, on=hall.hf, tenant="elsewhere")
    assert await last(hall, "ada", "runs") == [1, 0, 0]
    whole = await hall.ask("ada", "GET", "/v1/metrics/runs")
    assert whole["read_since"] is None
    assert await last(hall, "eve", "runs") == [2, 0, 0]


async def last(hall: Hall, who: str, name: str) -> list[float | None]:
    return (await hall.ask(who, "GET", f"/v1/metrics/{name}"))["points"][-1]["values"]


@pytest.mark.covers("WB-67", "WB-67-metrics")
async def test_a_window_that_cannot_be_is_refused(hall: Hall) -> None:
    path = "/v1/metrics/runs"
    day = "from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z"
    assert len((await hall.ask("ada", "GET", f"{path}?{day}&step=6h"))["points"]) == 4
    for wrong in (f"{day}&step=1s", f"{day}&step=soon", "from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z",
                  "from=2026-11-01", "step=-1h"):  # fmt: skip
        await hall.ask("ada", "GET", f"{path}?{wrong}", status=422)
    assert "points" in (await hall.ask("ada", "GET", f"{path}?{day}&step=1s", status=422))["detail"]
    await hall.ask("ada", "GET", "/v1/metrics/nosuch", status=404)
    await hall.ask("dana", "GET", path, status=403)
