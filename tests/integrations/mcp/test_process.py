"""`holdfast serve` itself speaks MCP, carries what agents ask, and lets go whoever waits when it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.deadlines import HANG
from tests.integrations.mcp.session import Agent

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-MCP-01")]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    command = [sys.executable, "-m", "holdfast", "serve", "--store", f"sqlite:{tmp_path / 's.db'}"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--port", "0", "--json"], env=env, text=True, stdout=subprocess.PIPE, stderr=log
        )
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


async def test_server_process_answers_agents_and_lets_them_go_when_it_drains(
    served: tuple[subprocess.Popen[str], dict[str, Any]],
) -> None:
    process, text = served
    headers = {"Authorization": f"Bearer {text['token']}"}
    beating = asyncio.Event()

    async def beat(done: float, total: float | None, said: str | None) -> None:
        beating.set()

    async with (
        httpx2.AsyncClient(headers=headers, timeout=HANG) as http,
        Client(streamable_http_client(f"{text['address']}/mcp", http_client=http)) as client,
    ):
        described = (await http.get(f"{text['address']}/openapi.json")).json()
        assert "Model Context Protocol" in described["paths"]["/mcp"]["post"]["summary"]
        asked = await Agent(client).does("ask_people", question="Still there?", choices=["yes", "no"])
        assert asked["status"] == "pending"
        given = {"id": asked["id"], "wait_seconds": 55}
        waiting = asyncio.create_task(client.call_tool("check_answer", given, progress_callback=beat))
        async with asyncio.timeout(HANG):
            await beating.wait()
            process.send_signal(signal.SIGTERM)
            said = await waiting
        assert said.structured_content["status"] == "pending"
        assert await asyncio.to_thread(process.wait, HANG) == 0
