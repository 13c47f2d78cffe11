"""Flow documents on a cluster: they ask, repeat and end as they do on the built-in workers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from holdfast import Holdfast, Worker
from holdfast.app.flow import wait_until_idle
from holdfast.cli.document_run import run_document
from holdfast.cli.main import Exit
from holdfast.cli.options.output import OutputOptions
from holdfast.documents.program import DocumentDialect, program_for
from holdfast.drivers.temporal.payloads import NODE_APART
from holdfast.drivers.temporal.report import report_of
from tests.api.conftest import serving
from tests.api.documents import YAML
from tests.api.sign_in import bearer, token
from tests.deadlines import HANG
from tests.documents.corpus_functions import FUNCTIONS
from tests.documents.rule_examples import GOOD
from tests.documents.run import compiled, site_of
from tests.documents.test_corpus import CORPUS, NAMES, found_of
from tests.documents.test_lacking_functions import NEEDS
from tests.documents.test_subflows import INNER, OUTER
from tests.flows.conftest import address_of
from tests.temporal.runs import assert_same, engine_of, workers

pytestmark = pytest.mark.anyio

# Each way of waiting, branching, repeating and failing once.
FEW = (
    "breakpoint", "guardrail_sanitizes", "hitl_review", "loop_of_questions", "map_collect",
    "map_of_questions", "parallel_join", "python_retry_error", "reducers", "router_all",
)  # fmt: skip
# Which branch is first is decided by some hundredths of a second, less than an activity takes to begin.
BY_TIME = {"join_any", "join_quorum"}
# Both branches end, and which of them first is decided by time on a busy machine.
BRANCHED = {"parallel_join", "reducers", "router_all"}


@asynccontextmanager
async def worker_with(functions: dict[str, Any], store: str, engine: str) -> AsyncIterator[None]:
    """It has these functions, and of flows only what is stored."""
    async with Holdfast(store, engine=engine) as hf:
        hf.dialects = {**hf.dialects, "canvas": DocumentDialect(site_of(functions))}
        async with workers(hf):
            yield


@pytest.mark.covers("TD-39", "TD-33")
@pytest.mark.parametrize(
    ("store", "names"),
    [
        ("sqlite", FEW),
        pytest.param("postgres", sorted({*NAMES} - BY_TIME), marks=pytest.mark.soak),
    ],
)
async def test_documents_run_on_a_cluster_as_they_do_on_built_in_workers(
    store: str, names: tuple[str, ...], tmp_path: Path, engine: str
) -> None:
    address = await address_of(store, tmp_path)
    async with worker_with(FUNCTIONS, address, engine), Holdfast(address, engine=engine) as hf:
        async with asyncio.timeout(HANG):
            found = await asyncio.gather(*(found_of(hf, name) for name in names))
        for name, each in zip(names, found, strict=True):
            expected = json.loads((CORPUS / f"{name}.golden.json").read_text())
            if name in BRANCHED:
                each["trace"], expected["trace"] = sorted(each["trace"]), sorted(expected["trace"])
            assert each == expected, name


WIDE = """
holdfast: "1.0"
name: wide
input: {type: object, properties: {items: {type: array}}}
config: {scaiqueue: {scope: support}}
nodes:
  - {id: a, type: start}
  - {id: m, type: map, config: {over: items, into: out, item: it, concurrency: 5}}
  - {id: i, type: python, parent: m, config: {function: join, effect: read, args: {text: "{{it}}", first: "{{input.items.0}}"}}}
  - {id: z, type: end}
edges:
  - {source: a, target: m}
  - {source: m, target: z}
"""  # noqa: E501


@pytest.mark.covers("TD-29", "TD-39")
async def test_items_of_a_document_are_not_each_given_a_large_input_of_their_run(
    sqlite: str, engine: str
) -> None:
    functions: dict[str, Any] = {"join": lambda text, first: text[:4] + first[:4]}
    texts = [os.urandom(200).hex() for _ in range(20)]
    async with worker_with(functions, sqlite, engine), Holdfast(sqlite, engine=engine) as hf:
        service = await hf.service()
        row, _ = await service.create(
            program_for(compiled(WIDE, functions), site_of(functions)), {"items": texts}
        )
        async with asyncio.timeout(HANG):
            await wait_until_idle(service, row.id, None)
        checkpoint = await service.latest(row.id)
        assert [each["i"] for each in checkpoint.state["out"]] == [text[:4] + texts[0][:4] for text in texts]
        await assert_same(hf, row.id)
        client = await (await engine_of(hf)).client()
        history = await client.get_workflow_handle(row.id).fetch_history()
        sizes = [
            event.activity_task_scheduled_event_attributes.input.ByteSize()
            for event in history.events
            if event.activity_task_scheduled_event_attributes.activity_type.name == NODE_APART
        ]
        assert len(sizes) == 20
        assert max(sizes) < len("".join(texts)) / 4


@pytest.mark.covers("TD-39")
async def test_deployed_document_of_a_tenant_runs_on_the_cluster_with_its_sub_flow(
    sqlite: str, engine: str
) -> None:
    async with Holdfast(sqlite, engine=engine) as hf, serving(hf) as server, Worker(on=hf):
        mine = bearer(await token(server, "user:ada", "admin", tenant="acme"))
        for text in (INNER, OUTER):
            await server.json("POST", "/v1/flows", 201, content=text.encode(), headers={**YAML, **mine})
        start = {"flow": "order", "input": {"name": "Ada"}, "wait": 60}
        run = await server.json("POST", "/v1/runs", 201, json=start, headers=mine)
        row = await (await hf.service()).get(run["id"])
        assert (row.tenant, row.worker) == ("acme", (await engine_of(hf)).name)
        [hold] = (await server.json("GET", "/v1/holds", headers=mine))["items"]
        assert (run["status"], hold["prompt"]) == ("pending_input", "Trust Ada?")
        # Of another tenant: neither its flow nor its question.
        assert (await server.json("GET", "/v1/holds"))["items"] == []
        await server.json("POST", "/v1/runs", 404, json=start)
        await server.json("POST", f"/v1/holds/{hold['id']}/resolve", json={"decision": "yes"}, headers=mine)
        ended = await server.json("GET", f"/v1/runs/{run['id']}/result?wait=60", headers=mine)
        assert (ended["status"], ended["artifacts"]) == ("completed", {"trust": "yes", "sent": True})
        await assert_same(hf, run["id"])


@pytest.mark.covers("TD-39", "TD-33")
async def test_worker_without_a_function_leaves_a_document_to_one_that_has_it(
    sqlite: str, engine: str
) -> None:
    functions: dict[str, Any] = {"known": lambda: 1}
    needs = program_for(compiled(NEEDS, functions), site_of(functions))
    plain = program_for(compiled(GOOD), site_of())
    async with Holdfast(sqlite, engine=engine) as hf, asyncio.timeout(HANG):
        service = await hf.service()
        waiting, _ = await service.create(needs, {})
        async with worker_with({}, sqlite, engine):
            first, _ = await service.create(plain, {})
            await wait_until_idle(service, first.id, None)
            report = await report_of(await engine_of(hf), await service.get(waiting.id))
            assert report.problem.endswith("start one with function:known")
            # Its own queue: the worker without the function was never given it.
            assert report.queue != await (await engine_of(hf)).queues.of(await service.get(first.id))
            assert (await service.get(waiting.id)).head == waiting.head
            async with worker_with(functions, sqlite, engine):
                await wait_until_idle(service, waiting.id, None)
        assert [(await service.get(each.id)).status for each in (first, waiting)] == ["completed"] * 2


@pytest.mark.covers("TD-39", "TD-40")
async def test_file_is_run_by_the_command_line_with_a_worker_that_has_its_functions(
    sqlite: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, code = tmp_path / "greet.yaml", tmp_path / "known.py"
    file.write_text(NEEDS.replace("name: sample", "name: greet"))
    code.write_text(
        "from holdfast.documents.functions import document_function\n\n\n"
        "@document_function\ndef known() -> dict[str, str]:\n    return {'said': 'hello'}\n"
    )
    command = [sys.executable, "-m", "holdfast", "worker", "--functions", str(code)]
    command += ["--store", sqlite, "--engine", engine, "--lane", "night"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: ASYNC220
    try:
        async with asyncio.timeout(HANG):
            manner = OutputOptions(sqlite, False, True, engine)
            done = await run_document(
                str(file), {}, {"lane": "night"}, manner, functions=[str(code)], detach=False
            )
    finally:
        process.kill()
        process.wait()
    shown = json.loads(capsys.readouterr().out)
    assert (done, shown["status"]) == (Exit.ok, "completed"), shown
    async with Holdfast(sqlite, engine=engine) as hf:
        client = await (await engine_of(hf)).client()
        found = await client.get_workflow_handle(shown["id"]).describe()
        assert found.task_queue.startswith("holdfast/night+")
