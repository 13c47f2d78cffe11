"""Runs on their way from one instance to another."""

from __future__ import annotations

from typing import Any

from holdfast import Flow, Holdfast
from holdfast.runs.service import RunService
from holdfast.store.rows import RunFilter
from holdfast.types.status import RunStatus
from tests.flows.refunds import GIVEN, refund_flow

NOTHING: list[Any] = [[], [], [], [], []]


async def contents(service: RunService) -> list[Any]:
    """Everything in a store: runs with their histories, flows, holds, blobs that nobody names."""
    store = service.store
    runs = await store.list_runs(RunFilter(), after=None, limit=99)
    histories = [await store.history(run.id) for run in runs]
    blobs = await store.condemn_blobs(older_than=2**62, limit=99)
    return [runs, histories, await store.flows(), await store.holds(), blobs]


async def waiting(hf: Holdfast, flow: Flow, given: Any = GIVEN) -> str:
    result = await flow.run(given, on=hf)
    assert result.status is RunStatus.pending_input
    return result.run_id


async def exported(hf: Holdfast, run: str) -> bytes:
    return await (await hf.service()).export_run(run)


async def a_file() -> bytes:
    """A run that waits, from another machine."""
    async with Holdfast("memory:") as far:
        return await exported(far, await waiting(far, refund_flow()))
