"""Forks and rewinds of runs on a cluster start on it."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("temporalio")

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from holdfast import Holdfast
from holdfast.cli.fork_options import BranchOptions, create_branch
from holdfast.runs.fork.fork import fork_once
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.temporal.runs import assert_same, engine_of, run, settled, workers
from tests.temporal.test_runs import asks

pytestmark = pytest.mark.anyio


@pytest.mark.covers("TD-3")
async def test_fork_and_rewind_start_on_the_cluster_and_the_source_of_a_rewind_ends(
    sqlite: str, engine: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = asks()
    monkeypatch.setenv("HOLDFAST_ENGINE", engine)
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        service, found = await hf.service(), await engine_of(hf)
        source = await run(flow, hf, {"from": "source"})
        row = await service.get(source.run_id)
        forked, _ = await fork_once(service, row, None, patch={"scratch": {"from": "fork"}})
        assert forked.worker == found.name
        copied = await settled(flow, hf, forked.id)
        assert copied.state["from"] == "fork"
        await service.answer(copied.holds[0].id, "yes")
        done = await settled(flow, hf, forked.id)
        # What the source had recorded before is not repeated.
        assert (done.state["answer"], done.state["fetched"]) == ("yes", 5)
        await assert_same(hf, forked.id)

        again, _ = await fork_once(service, row, None, supersede=True)
        assert again.worker == found.name
        assert (await service.get(source.run_id)).status is RunStatus.cancelled
        handle = (await found.client()).get_workflow_handle(source.run_id)
        async with asyncio.timeout(HANG):
            with pytest.raises(WorkflowFailureError) as ended:
                await handle.result()
        cause = ended.value.cause.cause if ended.value.cause is not None else None
        assert isinstance(cause, ApplicationError)
        assert (cause.type, cause.message) == (
            "RunEndedError", f"run {source.run_id} was superseded by run {again.id}."
        )  # fmt: skip
        waiting = await settled(flow, hf, again.id)
        await service.answer(waiting.holds[0].id, "no")
        assert (await settled(flow, hf, again.id)).state["answer"] == "no"
        await assert_same(hf, again.id)

        await create_branch(
            BranchOptions(again.id, None, (), None, resume=False, flow=None, rewinds=False),
            store=sqlite,
            json=False,
        )
        assert f"A worker of {found.name} advances it." in capsys.readouterr().err
