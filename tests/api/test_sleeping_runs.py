"""A sleeping run says until when, in every view of runs that a server has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Flow
from holdfast.api.pages.render import run_status
from holdfast.runs.run_view import ShownRun, shown_run
from holdfast.types.clock import iso, to_micros
from tests.api.conftest import Server
from tests.integrations.mcp.session import agent, speaking

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-READ-09")]


def napping() -> Flow:
    flow = Flow("napping", effect="pure")
    flow.timer("nap", "2h")
    return flow


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Server]:
    async with speaking(f"sqlite:{tmp_path / 'm.db'}", works=False) as server:
        yield server


async def asleep(server: Server) -> tuple[ShownRun, str]:
    """The run, and when it wakes up."""
    result = await napping().run(on=server.hf, thread="t")
    assert (result.status, result.waiting) == ("waiting", True)
    assert result.wakes_at is not None
    service = await server.hf.service()
    row = await shown_run(service.store, await service.get(result.run_id))
    assert row.wakes_at == to_micros(result.wakes_at)
    return row, iso(to_micros(result.wakes_at))


async def test_every_answer_of_the_api_says_until_when(hall: Server) -> None:
    row, at = await asleep(hall)
    for path in (f"/v1/runs/{row.id}", f"/v1/runs/{row.id}/result", f"/runs/{row.id}"):
        assert (await hall.json("GET", path))["wakes_at"] == at, path
    for path in ("/v1/runs", "/v1/threads/t/runs", "/v2/runs"):
        (found,) = (await hall.json("GET", path))["items"]
        assert found["wakes_at"] == at, path
    forked = await hall.json("POST", f"/v1/runs/{row.id}/fork", 201, json={})
    assert forked["wakes_at"] is None, "it has not slept yet"


async def test_every_tool_for_agents_says_until_when(hall: Server) -> None:
    row, at = await asleep(hall)
    async with agent(hall) as bot:
        assert (await bot.does("get_run", run=row.id))["wakes_at"] == at
        assert (await bot.does("list_runs"))["items"][0]["wakes_at"] == at
        assert (await bot.does("get_result", run=row.id))["wakes_at"] == at


async def test_every_page_says_until_when(hall: Server) -> None:
    row, _ = await asleep(hall)
    words = run_status(row)
    assert words.startswith("sleeping until ")
    for path in ("/", "/runs", f"/runs/{row.id}", "/flows/napping"):
        answer = await hall.client.get(path, headers={"Accept": "text/html"})
        assert words in answer.text, path


async def test_run_that_does_not_sleep_says_nothing_of_it(hall: Server) -> None:
    flow = Flow("asks", effect="pure")
    flow.hold("gate", prompt="Well?", options=["yes"], timeout="2h", on_timeout="cancel")
    run = (await flow.run(on=hall.hf)).run_id
    found = await hall.json("GET", f"/v1/runs/{run}")
    assert (found["status"], found["wakes_at"]) == ("pending_input", None)
