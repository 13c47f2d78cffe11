"""`holdfast mcp`: an agent starts it and speaks over stdin and stdout, on a store or to a server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from holdfast import Holdfast
from holdfast.cli.main import Exit, run
from holdfast.integrations.mcp.bridge import StdioBridge
from holdfast.types.terms import operator
from tests.api.conftest import Server
from tests.api.sign_in import token
from tests.deadlines import HANG
from tests.integrations.mcp.session import WORKS, Agent, speaking

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-MCP-01")]

PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
FLOW = """
from holdfast import Flow
hello = Flow("hello", effect="pure")

@hello.node
async def greet(s):
    print("this goes anywhere but to the agent")
    return {"said": f"hello {s['name']}"}
"""


@asynccontextmanager
async def started(*words: str, mode: str = "auto", **environment: str) -> AsyncIterator[Agent]:
    way = StdioServerParameters(
        command=sys.executable, args=["-m", "holdfast", "mcp", *words], env=PLAIN | environment
    )
    with open(os.devnull, "w") as silence:  # noqa: ASYNC230, PTH123
        async with Client(stdio_client(way, errlog=silence), mode=mode) as client:
            yield Agent(client)


async def test_agent_on_a_store_asks_and_runs_without_a_server(tmp_path: Path) -> None:
    file, store = tmp_path / "flows.py", f"sqlite:{tmp_path / 'm.db'}"
    file.write_text(FLOW)
    async with started(str(file), "--store", store, "--as", "service:coder") as bot:
        done = await bot.does("start_run", flow="hello", input={"name": "you"}, wait_seconds=30)
        assert done["status"] == "completed"
        said = await bot.does("get_result", run=done["run"])
        assert said["state"]["said"] == "hello you"
        asked = await bot.does("ask_people", question="Merge?", choices=["yes", "no"])
        async with Holdfast(store) as hf:
            people = await hf.holds()
            row = (await people.resolve(operator("user:dana"), asked["id"], decision="yes")).row
        assert row.started_by == "service:coder"
        heard = await bot.does("check_answer", id=asked["id"], wait_seconds=30)
        assert (heard["status"], heard["decision"], heard["page"]) == ("resolved", "yes", None)


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Server]:
    async with speaking(f"sqlite:{tmp_path / 'm.db'}") as server:
        yield server


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_agent_is_carried_to_a_server(hall: Server, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.integrations.mcp.caller.BEAT", 0.1)
    secret = await token(hall, "service:bot", rights=WORKS)
    beats: list[str | None] = []

    async def beat(done: float, total: float | None, text: str | None) -> None:
        beats.append(text)

    async with started("--url", hall.serving.address, mode=mode, HOLDFAST_TOKEN=secret) as bot:
        asked = await bot.does("ask_people", question="Merge?", choices=["yes", "no"])
        given = {"id": asked["id"], "wait_seconds": 1}
        await bot.client.call_tool("check_answer", given, progress_callback=beat)
        assert beats[0] == "The question is not decided yet."
        await hall.json("POST", f"/v1/holds/{asked['id']}/resolve", json={"decision": "no"})
        assert (await bot.does("check_answer", id=asked["id"], wait_seconds=20))["decision"] == "no"


class Wire:
    """A bridge whose other end is here."""

    def __init__(self, client: httpx2.AsyncClient, address: str) -> None:
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.bridge = StdioBridge(client, f"{address}/mcp", self.lines.put_nowait)

    async def answer(self, message: Any) -> dict[str, Any]:
        self.bridge.take(message if isinstance(message, bytes) else msgspec.json.encode(message))
        async with asyncio.timeout(HANG):
            return msgspec.json.decode(await self.lines.get())


PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


async def test_what_goes_wrong_on_the_way_is_answered_as_an_error_of_the_message(hall: Server) -> None:
    secret = await token(hall, "service:bot", rights=WORKS)
    async with httpx2.AsyncClient(headers={"Accept": "application/json, text/event-stream"}) as client:
        wire = Wire(client, hall.serving.address)
        refused = await wire.answer(PING)
        assert refused["id"] == 7
        assert "holdfast tokens create" in refused["error"]["message"]
        client.headers["Authorization"] = f"Bearer {secret}"
        assert await wire.answer(PING) == {"jsonrpc": "2.0", "id": 7, "result": {}}
        assert (await wire.answer(b"{"))["error"]["code"] == -32700
        nowhere = Wire(client, "http://127.0.0.1:9")
        assert "does not answer" in (await nowhere.answer(PING))["error"]["message"]


async def test_odd_messages_do_not_end_the_bridge(hall: Server) -> None:
    secret = await token(hall, "service:bot", rights=WORKS)
    headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {secret}"}
    async with httpx2.AsyncClient(headers=headers, timeout=HANG) as client:
        wire = Wire(client, hall.serving.address)
        for params in ([1], {"requestId": [1]}, {"requestId": {}}, None):
            odd = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            wire.bridge.take(msgspec.json.encode(odd))
        for params in ([1], {"_meta": 7}):
            said = await wire.answer(PING | {"params": params})
            assert said["id"] == 7
        wire.bridge.take(b'{"jsonrpc": "2.0", "id": 3, "result": {}}')  # an answer is answered by nobody
        assert await wire.answer(PING) == {"jsonrpc": "2.0", "id": 7, "result": {}}
        await wire.bridge.close(20)
        assert wire.lines.empty()


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("text/event-stream", b": nothing\n\n", "without a reply to this message"),
        ("application/json", b"<html>", "an invalid message"),
        ("text/html", b"hello", "without a reply to this message"),
    ],
)
async def test_answer_that_is_none_is_reported(kind: str, body: bytes, why: str) -> None:
    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": kind}, content=body)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        assert why in (await Wire(client, "http://server").answer(PING))["error"]["message"]


async def test_message_that_is_cancelled_is_let_go(hall: Server) -> None:
    secret = await token(hall, "service:bot", rights=WORKS)
    headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {secret}"}
    async with httpx2.AsyncClient(headers=headers, timeout=HANG) as client:
        wire = Wire(client, hall.serving.address)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        asked = await wire.answer(call | {"params": {"name": "ask_people", "arguments": {"question": "?"}}})
        given = {"id": asked["result"]["structuredContent"]["id"], "wait_seconds": 50}
        wire.bridge.take(msgspec.json.encode(call | {"params": {"name": "check_answer", "arguments": given}}))
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": 1}}
        wire.bridge.take(msgspec.json.encode({"jsonrpc": "2.0", **cancelled}))
        assert (await wire.answer(PING))["id"] == 7
        assert wire.lines.empty()


def test_token_that_is_none_is_not_shown_to_the_agent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_TOKEN", "hush\nhush")
    assert run(["mcp", "--url", "http://127.0.0.1:9"]) == Exit.bad_input
    said = capsys.readouterr()
    assert "the token has invalid characters" in said.err
    assert "hush" not in said.err + said.out


def call(number: int, tool: str, **given: Any) -> bytes:
    params = {"name": tool, "arguments": given}
    said = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return msgspec.json.encode(said) + b"\n"


HELLO = b"""\
{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", \
"capabilities": {}, "clientInfo": {"name": "me", "version": "1"}}}
{"jsonrpc": "2.0", "method": "notifications/initialized"}
"""


def test_what_is_asked_right_before_the_end_of_stdin_is_answered(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "mcp", "--store", f"sqlite:{tmp_path / 'm.db'}"]
    asked = b"x" * (17 << 20) + b"\n" + HELLO + call(2, "ask_people", question="Merge?")
    done = subprocess.run(command, env=PLAIN, input=asked, capture_output=True, timeout=HANG, check=True)
    said = {each.get("id"): each for line in done.stdout.splitlines() for each in [msgspec.json.decode(line)]}
    assert said[2]["result"]["structuredContent"]["status"] == "pending"
    assert b"Traceback" not in done.stderr


def test_sigterm_lets_go_a_caller_who_waits_with_an_answer(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "mcp", "--store", f"sqlite:{tmp_path / 'm.db'}"]
    with subprocess.Popen(command, env=PLAIN, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(HELLO + call(2, "ask_people", question="Merge?"))
            process.stdin.flush()
            process.stdout.readline()
            question = msgspec.json.decode(process.stdout.readline())["result"]["structuredContent"]
            process.stdin.write(call(3, "check_answer", id=question["id"], wait_seconds=50))
            process.stdin.write(msgspec.json.encode(PING) + b"\n")
            process.stdin.flush()
            assert msgspec.json.decode(process.stdout.readline())["id"] == 7
            process.send_signal(signal.SIGTERM)
            let_go = msgspec.json.decode(process.stdout.readline())
            assert (let_go["id"], let_go["result"]["structuredContent"]["status"]) == (3, "pending")
            assert process.wait(HANG) == Exit.ok
        finally:
            process.kill()


def test_command_ends_on_a_signal_while_it_waits_for_the_agent(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "mcp", "--store", f"sqlite:{tmp_path / 'm.db'}"]
    with subprocess.Popen(command, env=PLAIN, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(PING) + b"\n")
        process.stdin.flush()
        assert msgspec.json.decode(process.stdout.readline())["id"] == 7
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(HANG) == Exit.interrupted
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--url", "http://127.0.0.1:9"], "HOLDFAST_TOKEN"),
        (["--as", "nobody"], "'nobody' is not a subject"),
        (["--url", "http://127.0.0.1:9", "--tenant", "acme"], "cannot be combined"),
    ],
)
def test_command_that_cannot_begin_says_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_TOKEN", raising=False)
    assert run(["mcp", *words]) == Exit.bad_input
    said = capsys.readouterr()
    assert said.out == ""
    assert why in said.err
