"""What goes through the cluster: encrypted where the store is, large values in blobs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("temporalio")

from temporalio.worker import Replayer

from holdfast import Context, Flow, Holdfast
from holdfast.checkpoint import encode_body
from holdfast.checkpoint.keys import EVERYBODY
from holdfast.drivers.temporal.activities import LARGEST, Activities
from holdfast.drivers.temporal.client import TERM
from holdfast.drivers.temporal.payload_codec import converter_for
from holdfast.drivers.temporal.payloads import NODE_APART
from holdfast.drivers.temporal.workflow import RunWorkflow
from holdfast.drivers.temporal.workflow_runner import RUNNER
from holdfast.runs.collect_blobs import collect_blobs
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.runs.engine_moves import move_from_engine, move_to_engine
from tests.deadlines import HANG
from tests.services import temporal
from tests.storage.canary import CANARY, ring, turned, without
from tests.temporal.runs import assert_same, engine_of, run, settled, workers
from tests.temporal.test_runs import asks

pytestmark = pytest.mark.anyio


def secret(name: str) -> Flow:
    flow = Flow(name)

    @flow.script
    async def script(state: Any, ctx: Context) -> dict[str, Any]:
        said = await ctx.step("say", lambda: f"{CANARY} said", effect="external")
        reply = await ctx.ask(f"May {CANARY} go?", options=["yes", "no"])
        return {"said": said, "large": CANARY * 9000, "answer": reply.comment}

    @flow.node(effect="pure")
    async def fail(state: Any) -> None:
        raise ValueError(f"{CANARY} went wrong")

    flow.edge("script", "fail")
    return flow


def dump(server: temporal.TemporalServer) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(server.folder.glob("temporal.db*")))


@pytest.mark.covers("TD-30", "TD-32")
async def test_server_has_no_input_answer_or_error_of_an_encrypted_store(tmp_path: Path) -> None:
    server = temporal.TemporalServer(tmp_path / "server")
    server.start()
    try:
        engine = server.address()
        for name, keys in (("closed", ring("acme", EVERYBODY)), ("open", None)):
            flow = secret(name)
            async with (
                Holdfast(f"sqlite:{tmp_path / name}.db", engine=engine, keys=keys) as hf,
                workers(hf, flow, cached=0),
            ):
                waiting = await run(flow, hf, {"given": CANARY}, tenant="acme")
                assert waiting.holds, waiting
                service = await hf.service()
                await service.answer(waiting.holds[0].id, "yes", comment=f"{CANARY} may")
                done = await settled(flow, hf, waiting.run_id)
                assert f"{CANARY} went wrong" in done.error.message
                assert (done.state["said"], done.state["answer"]) == (f"{CANARY} said", f"{CANARY} may")
                await assert_same(hf, waiting.run_id)
            # The second store is not encrypted: there the same search finds it.
            assert (CANARY.encode() in dump(server)) == (keys is None), name
            assert waiting.run_id.encode() in dump(server)
    finally:
        server.kill()


@pytest.mark.covers("TD-30")
async def test_large_value_goes_through_a_blob_and_stays_while_the_run_is_there(
    sqlite: str, engine: str
) -> None:
    flow, noise = Flow("large", effect="pure"), os.urandom(3_000_000)

    @flow.node
    async def make(state: Any) -> dict[str, Any]:
        return {"noise": noise}

    @flow.node
    async def measure(state: Any) -> dict[str, Any]:
        return {"size": len(state["noise"])}

    flow.edge("make", "measure")
    flow.hold("ask", prompt="Large?", options=["yes"])
    flow.edge("measure", "ask")
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow, cached=0):
        waiting = await run(flow, hf)
        service = await hf.service()
        await collect_blobs(service, grace=-60.0)
        await service.answer(waiting.holds[0].id, "yes")
        done = await settled(flow, hf, waiting.run_id)
        assert (done.state["size"], done.state["noise"]) == (3_000_000, noise)
        await assert_same(hf, waiting.run_id)
        found = await engine_of(hf)
        handle = (await found.client()).get_workflow_handle(waiting.run_id)
        history = await handle.fetch_history()
        assert sum(event.ByteSize() for event in history.events) < 64_000
        converter = converter_for(service.runtime.blobs)
        await Replayer(
            workflows=[RunWorkflow], workflow_runner=RUNNER, data_converter=converter
        ).replay_workflow(history)


@pytest.mark.covers("TD-31")
async def test_result_over_the_limit_fails_its_node(sqlite: str, engine: str) -> None:
    flow = Flow("too_large", effect="pure")

    @flow.node
    async def make(state: Any) -> dict[str, Any]:
        return {"noise": bytes(LARGEST)}

    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        done = await run(flow, hf)
        assert done.error is not None
        assert done.error.code == "value_too_large"
        assert "with what node 'make' returns" in done.error.message
        await assert_same(hf, done.run_id)


async def logged(caplog: pytest.LogCaptureFixture, hf: Holdfast, text: str) -> None:
    store = await hf.open()
    async with asyncio.timeout(HANG):
        while text not in caplog.text:
            await store.wait_change(0.1)


@pytest.mark.covers("TD-30")
async def test_encrypted_store_refuses_what_is_not_encrypted_and_loses_nothing(
    tmp_path: Path, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    """By someone who may write to the namespace and has no key: a signal is dropped, and a run that does not
    begin with what we have written does not begin."""
    flow = asks()
    address = f"sqlite:{tmp_path / 'closed.db'}"
    async with Holdfast(address, engine=engine, keys=ring(EVERYBODY)) as hf, workers(hf, flow):
        service, found = await hf.service(), await engine_of(hf)
        plain = await found.cluster.connect()
        waiting = await run(flow, hf)
        await plain.get_workflow_handle(waiting.run_id).signal("holdfast.mail", 1)
        row = await service.get(waiting.run_id)
        start, graph = await found._start_of(row, serial=False)
        start.run = forged = str(uuid4())
        await plain.start_workflow(
            "holdfast.run", args=[encode_body(start), graph], id=forged, task_queue=await found.queues.of(row)
        )
        for each in (waiting.run_id, forged):
            await logged(caplog, hf, f"a payload of run {each} is refused")
            await logged(caplog, hf, f"run {each}: a payload from the cluster is not encrypted")
        await plain.get_workflow_handle(forged).terminate()
        await service.answer(waiting.holds[0].id, "yes")
        done = await settled(flow, hf, waiting.run_id)
        assert done.completed, done
        await assert_same(hf, waiting.run_id)


@pytest.mark.covers("TD-30")
async def test_run_that_began_before_its_store_was_encrypted_continues_where_its_workers_are_told_so(
    tmp_path: Path, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    flow, address = asks(), f"sqlite:{tmp_path / 'later.db'}"
    async with Holdfast(address, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
    keys = ring(EVERYBODY)
    async with Holdfast(address, engine=engine, keys=keys) as hf, workers(hf, flow, cached=0):
        await (await hf.service()).answer(waiting.holds[0].id, "yes")
        await logged(caplog, hf, "?unencrypted=true")
        assert (await (await hf.service()).get(waiting.run_id)).status == "pending_input"
    async with (
        Holdfast(address, engine=f"{engine}&unencrypted=true", keys=keys) as hf,
        workers(hf, flow, cached=0),
    ):
        assert (await settled(flow, hf, waiting.run_id)).completed
        await assert_same(hf, waiting.run_id)


@pytest.mark.covers("TD-29", "TD-30")
async def test_items_of_a_map_are_not_each_given_a_large_input_of_their_run(sqlite: str, engine: str) -> None:
    flow, texts = Flow("wide", effect="pure"), [os.urandom(150).hex() for _ in range(100)]

    async def shorten(item: str, ctx: Context) -> str:
        return item[:4] + ctx.run_input["items"][0][:4]

    flow.map("each", over="items", body=shorten, into="short", concurrency=20)
    flow.hold("ask", prompt="Enough?", options=["yes"])
    flow.edge("each", "ask")
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow, cached=0):
        waiting = await run(flow, hf, {"items": texts})
        assert list(waiting.state["short"]) == [text[:4] + texts[0][:4] for text in texts]
        await assert_same(hf, waiting.run_id)
        client = await (await engine_of(hf)).client()
        history = await client.get_workflow_handle(waiting.run_id).fetch_history()
        given = [
            event.activity_task_scheduled_event_attributes
            for event in history.events
            if event.HasField("activity_task_scheduled_event_attributes")
        ]
        sizes = [each.input.ByteSize() for each in given if each.activity_type.name == NODE_APART]
        assert len(sizes) == 100
        assert max(sizes) < 6_000 < len("".join(texts))


async def _failures(handle: Any) -> list[str]:
    return [
        event.activity_task_failed_event_attributes.failure.application_failure_info.type
        for event in (await handle.fetch_history()).events
        if event.HasField("activity_task_failed_event_attributes")
    ]


@pytest.mark.covers("TD-29", "TD-34")
async def test_worker_of_an_older_release_leaves_what_it_would_misread_to_a_newer_one(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, texts = Flow("mixed", effect="pure"), [os.urandom(3000).hex() for _ in range(2)]

    async def shorten(item: str, ctx: Context) -> str:
        return item[:4] + ctx.run_input["items"][0][:4]

    flow.map("each", over="items", body=shorten, into="short")
    every = Activities.all
    with monkeypatch.context() as older:
        older.setattr(
            Activities, "all", lambda self: [each for each in every(self) if each != self.node_apart]
        )
        async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow, cached=0):
            row, _ = await (await hf.service()).create(flow.program(), {"items": texts})
            handle = (await (await engine_of(hf)).client()).get_workflow_handle(row.id)
            async with asyncio.timeout(HANG):
                while not (found := await _failures(handle)):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert set(found) == {"NotFoundError"}
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow, cached=0):
        done = await settled(flow, hf, row.id)
        assert list(done.state["short"]) == [text[:4] + texts[0][:4] for text in texts]
        await assert_same(hf, row.id)


@pytest.mark.covers("TD-30", "TD-41")
async def test_histories_keep_older_keys_until_their_runs_have_moved_out_and_back(
    sqlite: str, engine: str
) -> None:
    flow, old = asks(), ring(EVERYBODY)
    new = turned(old)
    alone = without(new, old.file.scopes[EVERYBODY].current)
    async with Holdfast(sqlite, engine=engine, keys=old) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
    async with Holdfast(sqlite, engine=engine, keys=new) as hf, workers(hf, flow) as (found,):
        service = await hf.service()
        assert (await reencrypt(service)).on_engines == {found.name: 1}
        await move_from_engine(service, await service.get(waiting.run_id))
        assert (await reencrypt(service)).on_engines == {}
        row = await move_to_engine(service, await service.get(waiting.run_id), found.name)
        handle = (await found.client()).get_workflow_handle(waiting.run_id)
        async with asyncio.timeout(HANG):
            while await (await handle.describe()).memo_value(TERM, 1) < row.term:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    async with Holdfast(sqlite, engine=engine, keys=alone) as hf, workers(hf, flow):
        await (await hf.service()).answer(waiting.holds[0].id, "yes")
        assert (await settled(flow, hf, waiting.run_id)).completed
