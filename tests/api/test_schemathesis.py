"""schemathesis over the whole interface: it makes requests from the OpenAPI document, good and bad, and holds
each answer against it. No answer is a 5xx, none has a status or a shape that is not described.

With all tests a few requests of each route, on SQLite. In the soak many, and chains of them, on every store.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast import Holdfast, Worker
from holdfast.api.app import ApiSettings
from tests.api.conftest import Server, serving
from tests.api.flows import both, refund
from tests.services import postgres

pytestmark = pytest.mark.anyio

CHECKS = "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance"
PACELESS = ApiSettings(pace=0, anonymous_pace=0)
# Streams do not end, mails have no serialiser there, and whoever signs out can ask nothing more.
LEFT_OUT = "stream|inbound/mail|/sign|/session"
SCHEMA = "server_fuzz"


@asynccontextmanager
async def shop_on(address: str) -> AsyncIterator[Server]:
    async with (
        Holdfast(address) as hf,
        serving(hf, PACELESS) as server,
        Worker(refund(), both(), on=hf),
    ):
        yield server


async def fuzz(server: Server, folder: Path, *options: str) -> str:
    """What it prints at the end, having found nothing."""
    body = {"flow": "refund", "input": {"order": "A1", "amount": 7}, "wait": 60}
    run = await server.json("POST", "/v1/runs", 201, json=body)
    asked = run["metadata"]["checkpoint_id"]
    known = {"run": run["id"], "hold": asked, "checkpoint": asked, "flow": "refund", "version": "latest"}
    lines = [f'"path.{name}" = "{value}"' for name, value in known.items()]
    (folder / "st.toml").write_text("\n".join(["[parameters]", *lines]))
    command = [
        *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
        *("--config-file", "st.toml", "run", f"{server.serving.address}/openapi.json"),
        *("-H", f"Authorization: Bearer {server.token}", "-c", CHECKS, "--exclude-path-regex", LEFT_OUT),
        *("--continue-on-failure", "--request-timeout", "20", "--no-color", *options),
    ]
    done = await anyio.run_process(command, check=False, cwd=folder)
    reply = done.stdout.decode()
    assert done.returncode == 0, (
        reply[max(0, reply.find("= FAILURES =")) :][:6000] + done.stderr.decode()[-2000:]
    )
    return reply


@pytest.mark.covers("SERVER-PROOF-01", "SERVER-API-12", "SERVER-BAD-01", "SERVER-BAD-02")
async def test_requests_of_all_kinds_are_answered_as_described(tmp_path: Path, anyio_backend: str) -> None:
    async with shop_on(f"sqlite:{tmp_path / 's.db'}") as server:
        result = await fuzz(server, tmp_path, "-n", "2", "--phases", "fuzzing")
    assert "Test cases:" in result


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
@pytest.mark.covers("SERVER-PROOF-01")
async def test_chains_of_requests_are_answered_as_described(
    tmp_path: Path, anyio_backend: str, kind: str
) -> None:
    address = {"memory": "memory:", "sqlite": f"sqlite:{tmp_path / 's.db'}"}.get(kind)
    if address is None:
        address = postgres.with_setting(postgres.database(), schema=SCHEMA)
        await postgres.empty(SCHEMA)
    async with shop_on(address) as server:
        result = await fuzz(server, tmp_path, "-n", "10", "--phases", "coverage,fuzzing,stateful")
    assert "Stateful" in result
