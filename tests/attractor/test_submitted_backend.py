"""A pipeline that is submitted to a server is answered by the backend that was chosen then, and no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast import Holdfast, Worker
from holdfast.app.flow import wait_until_idle
from holdfast.attractor import Runner
from holdfast.attractor.program import PipelineDialect, PipelineSetup
from holdfast.frontends.dot.lower import DIALECT
from tests.api.conftest import Server, serving
from tests.attractor.run import line

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-R1")]

PROMPT = line('a [prompt="one"];', "a")
ASKED: list[str] = []


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    ASKED.clear()


def first(prompt: str) -> str:
    ASKED.append(f"first {prompt}")
    return "of first"


def second(prompt: str) -> str:
    ASKED.append(f"second {prompt}")
    return "of second"


@asynccontextmanager
async def works(*setups: PipelineSetup) -> AsyncIterator[Server]:
    """A server without a backend, and a worker with each of these."""
    async with Holdfast("memory:") as hf, serving(hf) as found:
        plain = dict(hf.dialects)
        workers: list[Worker] = []
        for setup in setups:
            hf.dialects = {**plain, DIALECT: PipelineDialect(setup)}
            workers.append(Worker(on=hf))
            await workers[-1].__aenter__()
        try:
            yield found
        finally:
            for worker in workers:
                await worker.__aexit__(None, None, None)


async def outcome(server: Server, **more: str) -> str:
    run = (await server.json("POST", "/pipelines", 201, json={"dot": PROMPT, **more}))["id"]
    await wait_until_idle(await server.hf.service(), run, 20)
    return (await server.json("GET", f"/pipelines/{run}"))["outcome"]


async def test_backend_of_the_only_worker_is_stored_with_the_run() -> None:
    async with works(Runner(backend=first).pipeline_setup) as server:
        assert await outcome(server) == "success"
        assert ASKED == ["first one"]
        run = (await server.json("GET", "/v1/runs?limit=1"))["items"][0]
        stored = await (await server.hf.service()).store.flow(run["flow"], run["version"])
        assert stored is not None
        assert b"backend:function:tests.attractor.test_submitted_backend.first" in stored.graph


async def test_run_waits_for_the_backend_that_it_names() -> None:
    async with works(Runner(backend=first).pipeline_setup) as server:
        body = {"dot": PROMPT, "backend": "agent:codex"}
        made = await server.json("POST", "/pipelines", 201, json=body)
        assert made["missing"] == ["agent:codex"]
        assert not ASKED


async def test_backend_must_be_named_where_workers_differ() -> None:
    setups = [Runner(backend=each).pipeline_setup for each in (first, second)]
    async with works(*setups) as server:
        refused = await server.json("POST", "/pipelines", 400, json={"dot": PROMPT})
        assert refused["code"] == "backend_missing"
        named = "function:tests.attractor.test_submitted_backend.second"
        for _ in range(3):
            assert await outcome(server, backend=named) == "success"
        assert ASKED == ["second one"] * 3


async def test_backend_must_be_named_where_none_is_known() -> None:
    async with works() as server:
        refused = await server.json("POST", "/pipelines", 400, json={"dot": PROMPT})
        assert refused["code"] == "backend_missing"
        assert "'a'" in refused["detail"]
        both = {"dot": PROMPT, "backend": "model", "simulate": True}
        assert "both" in (await server.json("POST", "/pipelines", 422, json=both))["detail"]
        # A worker would choose a model of its own.
        unnamed = {"dot": PROMPT, "backend": "model"}
        assert (await server.json("POST", "/pipelines", 400, json=unnamed))["code"] == "model_missing"
        named = {"dot": line('a [prompt="one", llm_model="gpt-6.1-sol"];', "a"), "backend": "model"}
        await server.json("POST", "/pipelines", 201, json=named)
        assert (await server.json("GET", "/v1/runs"))["items"][1:] == []


@pytest.mark.parametrize("backend", ["agent:nobody", "cli:make", "jobs.py:answer"])
async def test_backend_that_no_worker_can_have_is_refused(backend: str) -> None:
    async with works(Runner(backend=first).pipeline_setup) as server:
        body = {"dot": PROMPT, "backend": backend}
        refused = await server.json("POST", "/pipelines", 400, json=body)
        assert refused["code"] == "backend_unknown"
        assert not (await server.json("GET", "/v1/runs?limit=1"))["items"]
