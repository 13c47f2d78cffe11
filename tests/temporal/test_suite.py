"""The flows that run on every store run on a cluster, and end there as they do everywhere."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast
from holdfast.testing.conformance.flows import FLOWS, FlowCase
from tests.flows.conftest import address_of
from tests.temporal.runs import assert_same, run, workers

pytestmark = pytest.mark.anyio
# Which branch is first is decided by some hundredths of a second, less than an activity takes to begin.
BY_TIME = {"join_any_with_a_late_loser", "join_quorum"}


IN_TEST = {("sqlite", 1000, 1), ("postgres", 0, 3)}
"""Of the eight combinations; the others are part of the soak."""
COMBINED = [
    pytest.param(*each, marks=() if each in IN_TEST else pytest.mark.soak)
    for each in product(("sqlite", "postgres"), (0, 1000), (1, 3))
]


@pytest.mark.covers("TD-12", "TD-2", "TD-6", "TD-45")
@pytest.mark.parametrize(("store", "cached", "count"), COMBINED)
async def test_flows_of_every_store_end_the_same_on_a_cluster(
    store: str, cached: int, count: int, tmp_path: Path, engine: str
) -> None:
    flows = [case.build() for case in FLOWS]
    async with (
        Holdfast(await address_of(store, tmp_path), engine=engine) as hf,
        workers(hf, *flows, count=count, cached=cached),
    ):
        await asyncio.gather(*(_ends_as_expected(hf, *each) for each in zip(FLOWS, flows, strict=True)))


async def _ends_as_expected(hf: Holdfast, case: FlowCase, flow: Flow) -> None:
    result = await run(flow, hf, case.given)
    if case.error is not None:
        assert result.error is not None, case.name
        assert result.error.code == case.error, case.name
    else:
        assert result.completed, (case.name, result)
    if case.name in BY_TIME:
        assert len(result.state["log"]) == len((case.state or {})["log"]), case.name
    elif case.state is not None:
        assert dict(result.state) == case.state, case.name
    if case.artifacts is not None:
        assert result.artifacts == case.artifacts, case.name
    await assert_same(hf, result.run_id)
