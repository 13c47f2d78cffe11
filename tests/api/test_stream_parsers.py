"""Parsers of other projects read the streams: every message that they hand on is an event with data."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast, Worker
from holdfast.api.app import ApiSettings
from holdfast.api.routes.all import THEMES
from tests.api.conftest import Server, serving
from tests.api.live import asking
from tests.attractor.run import dot
from tests.deadlines import HANG
from tests.services import sse

pytestmark = pytest.mark.anyio
GATED = dot('gate [shape=hexagon, label="Ship?"];', 'start -> gate; gate -> done [label="[A] Approve"]')


async def until_silent(server: Server, path: str) -> bytes:
    """What comes until it has shown three times that it lives."""
    whole = b""
    async with asyncio.timeout(HANG), server.client.stream("GET", path) as answer:
        assert answer.status_code == 200
        async for part in answer.aiter_raw():
            whole += part
            if whole.count(b"\n: ") + whole.startswith(b": ") >= 3:
                break
    return whole


async def streams(server: Server) -> dict[str, bytes]:
    """The bytes of one stream of each kind, by route."""
    async with Worker(asking(), on=server.hf, poll=0.05):
        run = (await asking().run({}, on=server.hf)).run_id
        sent = {"dot": GATED, "simulate": True}
        pipeline = (await server.json("POST", "/v1/pipelines", 201, json=sent))["id"]
        paths = {
            "/v1/runs/{run}/stream": f"/v1/runs/{run}/stream",
            "/v1/pipelines/{run}/events": f"/v1/pipelines/{pipeline}/events",
            "/v1/holds/stream": "/v1/holds/stream",
        }
        return {route: await until_silent(server, path) for route, path in paths.items()}


def dispatched(stream: bytes) -> list[dict[str, Any]]:
    """The events of complete blocks, read field by field."""
    blocks = stream.decode().split("\n\n")[:-1]
    found: list[dict[str, Any]] = []
    for block in blocks:
        lines = [line.partition(": ") for line in block.split("\n") if not line.startswith(":")]
        fields = {name: value for name, _, value in lines if name != "retry"}
        found.append({"id": fields.get("id"), "event": fields.get("event"), "data": fields.get("data")})
    return found


@pytest.fixture
async def recorded(tmp_path: Path, anyio_backend: str) -> dict[str, bytes]:
    async with (
        Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf,
        serving(hf, ApiSettings(heartbeat=0.05)) as server,
    ):
        return await streams(server)


@pytest.mark.covers("SAFE-TOOLS-03")
async def test_every_block_of_every_stream_is_an_event_with_data(recorded: dict[str, bytes]) -> None:
    declared = {route.path for theme in THEMES for route in theme.found if "text/event-stream" in route.media}
    # That of AG-UI has the form of its protocol, and is read by its own client (test_ag_ui.py).
    assert set(recorded) == declared - {"/v1/flows/{flow:path}/ag-ui"}
    for route, stream in recorded.items():
        assert stream.startswith(b"retry: 1000\n"), route
        found = dispatched(stream)
        assert found, route
        for each in found:
            assert each["id"], (route, each)
            assert each["event"], (route, each)
            assert isinstance(msgspec.json.decode(each["data"] or ""), dict), (route, each)


@pytest.mark.covers("SAFE-TOOLS-03")
async def test_parsers_of_other_projects_report_the_events_and_nothing_else(
    recorded: dict[str, bytes],
) -> None:
    for route, stream in recorded.items():
        told = await asyncio.to_thread(sse.parsed, stream)
        assert set(told) == {"eventsource-parser", "fetch-event-source"}
        for name, events in told.items():
            assert events == dispatched(stream), (route, name)
