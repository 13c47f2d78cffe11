"""From a deployed document to the bound decision: on the embedded default, and on MariaDB, NATS and S3."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, Worker
from holdfast.documents.deploy import DeployedFlows, SentDocument
from holdfast.documents.program import program_of
from holdfast.types.ids import RunId
from holdfast.types.terms import operator
from tests.api.documents import REFUND
from tests.queues.conftest import DANA, PLACE
from tests.queues.test_nats import Foreign, foreign, nats_server  # noqa: F401  # fixtures
from tests.queues.test_nats_story import bound_to, event, until
from tests.services import mariadb, s3
from tests.services.nats import OPEN, NatsServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("nats")]


async def started(hf: Holdfast, given: dict[str, Any]) -> RunId:
    """Deployed and invoked by name; no code is loaded."""
    service = await hf.service()
    deployed = DeployedFlows(service, "default")
    done = await deployed.deploy(SentDocument(raw=REFUND.encode(), format="yaml"), by="user:ops")
    program = program_of(await deployed.spec("refund", done.version.version))
    row, _ = await service.create(program, given)
    return row.id


async def state_at_end(hf: Holdfast, run: RunId) -> Any:
    service = await hf.service()

    async def ended() -> bool:
        return (await service.get(run)).status == "completed"

    await until(ended)
    return (await service.latest(run)).state


@pytest.mark.covers("PLATFORM-PROOF-02", "PLATFORM-QUEUE-01")
async def test_review_in_the_database_binds_the_decision(tmp_path: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf, Worker(on=hf):
        run = await started(hf, {"amount": 250})
        queues = await hf.queues()

        async def claimed() -> Any:
            return await queues.claim(operator(DANA.id), *PLACE)

        (message,) = await until(claimed)
        assert message.type == "hitl_request"
        await queues.complete(
            operator(DANA.id), *PLACE, message.id, token=message.claim_token, result={"decision": "approve"}
        )
        state = await state_at_end(hf, run)
        assert (state["decision"], state["paid"]) == ("approve", 250)


@pytest.mark.covers("PLATFORM-PROOF-02")
async def test_review_through_nats_on_mariadb_and_s3_binds_the_decision(
    nats_server: NatsServer,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> None:
    blobs = s3.server().blobs("story")
    address, queues = mariadb.fresh(), bound_to(nats_server)
    note = random.Random(1).randbytes(1_500_000).hex()  # more than a row takes
    async with Holdfast(address, objects=blobs, queues=queues) as hf, Worker(on=hf):
        run = await started(hf, {"amount": 250, "note": note})
        await until(lambda: foreign.subjects(OPEN))
        (seen,) = await foreign.seen()
        assert seen["payload"]["run"] == run  # pyright: ignore[reportIndexIssue]
    # Another process continues: nothing is left in memory.
    async with Holdfast(address, objects=blobs, queues=queues) as hf, Worker(on=hf):
        hold = str(seen["correlation_id"])
        await foreign.js.publish(f"hf.done.default.{hold}", event(hold))
        state = await state_at_end(hf, run)
        assert (state["decision"], state["paid"]) == ("approve", 250)
        assert state["note"] == note
    assert len([digest async for digest in blobs.of("default").list()]) == 1
