"""The JavaScript client in a real browser: with a token, with a session, on pages of other sites."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast import Worker
from holdfast.api.app import ApiSettings
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.first_token import sign_in_address
from holdfast.api.pages.assets import FOLDER
from tests.api.conftest import Server, serving
from tests.api.live import asking
from tests.api.test_sse import started
from tests.services.browser import Tab, browsing

JS = Path(__file__).parent / "js"
pytestmark = pytest.mark.anyio
EXAMPLE = """
(async () => {
  %(page)s
  const { Holdfast } = await import(%(module)s);
  const told = [];
  const { fetch, EventSource } = new Holdfast(%(options)s);
  const ask = async () => true;
  const log = (each) => told.push(each);
  return { told, ...await page({ fetch, EventSource, runId: %(run)s, ask, storage: localStorage, log }) };
})()
"""
# The browser's own `fetch` and `EventSource`, with nothing of the client: the document's sample as it is.
NATIVE = """
(async () => {
  %(page)s
  const told = [];
  const [ask, log] = [async () => true, (each) => told.push(each)];
  const own = { fetch: (...given) => window.fetch(...given), EventSource: window.EventSource };
  return { told, ...await page({ ...own, runId: %(run)s, ask, storage: localStorage, log }) };
})()
"""
SOCKET = """
(async () => {
  const { Holdfast } = await import(%(module)s);
  const client = new Holdfast(%(options)s);
  const run = await client.createRun({ flow: "asking", input: {} });
  const socket = client.socket();
  const seen = [];
  for await (const { id, type } of socket.follow(run.id)) {
    seen.push(id);
    if (type === "hold.opened") await socket.answer(run.id, "approve");
  }
  socket.close();
  return { seen, status: (await client.getRun(run.id)).status };
})()
"""


def evaluated(tab: Tab, code: str, **given: Any) -> Any:
    named = {name: json.dumps(value) for name, value in given.items()}
    text = code % {"page": (JS / "example.js").read_text(), **named}
    found = tab.call("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
    assert "exceptionDetails" not in found, found["exceptionDetails"]
    return found["result"]["value"]


async def browse(work: Any) -> Any:
    """In a thread: the server answers in this one."""

    def whole() -> Any:
        with browsing(script=True) as tab:
            return work(tab)

    return await asyncio.to_thread(whole)


def follows(found: dict[str, Any]) -> None:
    assert {"prompt": "Pay 500?", "resumed": False} in found["told"]
    assert (found["status"], found["state"]) == ("completed", 2)
    assert found["kept"]


def talks(found: dict[str, Any]) -> None:
    assert found["seen"] == list(range(1, len(found["seen"]) + 1))
    assert found["status"] == "completed"


@pytest.mark.covers("SERVER-SDK-03")
async def test_page_works_with_a_token_and_with_a_session(server: Server) -> None:
    home = await sign_in_address(Authenticator(server.hf), server.serving.address)
    async with Worker(asking(), on=server.hf, poll=0.05):
        runs = [await started(server, asking()) for _ in range(2)]
        module, token = "/client/holdfast.js", {"token": server.token}

        def work(tab: Tab) -> None:
            tab.open(f"{server.serving.address}/sign-in")
            follows(evaluated(tab, EXAMPLE, module=module, options=token, run=runs[0]))
            talks(evaluated(tab, SOCKET, module=module, options=token))
            tab.open(home)
            follows(evaluated(tab, EXAMPLE, module=module, options={}, run=runs[1]))
            talks(evaluated(tab, SOCKET, module=module, options={}))

        await browse(work)


@pytest.mark.covers("SAFE-TOOLS-03")
async def test_sample_of_the_runtime_document_works_as_written_in_a_signed_in_browser(server: Server) -> None:
    home = await sign_in_address(Authenticator(server.hf), server.serving.address)
    async with Worker(asking(), on=server.hf, poll=0.05):
        run = await started(server, asking())

        def work(tab: Tab) -> None:
            tab.open(home)
            follows(evaluated(tab, NATIVE, run=run))

        await browse(work)


@asynccontextmanager
async def elsewhere() -> AsyncIterator[str]:
    """Another site: an empty page at an origin of its own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()  # browsers connect ahead, for requests that never come
            return
        page = b"<!doctype html><title>elsewhere</title>"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n" % len(page))
        writer.write(b"Connection: close\r\n\r\n" + page)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as site:
        yield f"http://127.0.0.1:{site.sockets[0].getsockname()[1]}"


@pytest.mark.covers("SERVER-SDK-03")
async def test_page_of_a_listed_origin_works_and_of_another_does_not(server: Server) -> None:
    async with (
        elsewhere() as site,
        Worker(asking(), on=server.hf, poll=0.05),
        serving(server.hf, ApiSettings(origins=(site,))) as listing,
    ):
        run = await started(server, asking())

        def options(of: Server) -> dict[str, Any]:
            given = {"url": of.serving.address, "token": of.token, "retries": 0}
            return {"module": f"{of.serving.address}/client/holdfast.js", "options": given}

        def work(tab: Tab) -> str:
            tab.open(site)
            follows(evaluated(tab, EXAMPLE, **options(listing), run=run))
            talks(evaluated(tab, SOCKET, **options(listing)))
            refused = SOCKET.replace("})()", "})().catch((error) => error.name)")
            return evaluated(tab, refused, **options(server))

        assert await browse(work) == "ConnectionError"


@pytest.mark.covers("SERVER-SDK-03")
async def test_server_hands_the_client_out_with_its_types_to_be_kept(server: Server) -> None:
    async with httpx2.AsyncClient(base_url=server.serving.address) as anybody:
        first = await anybody.get("/client/holdfast.js")
    assert first.status_code == 200
    assert first.headers["content-type"].startswith("text/javascript")
    assert first.headers["cache-control"] == "public, no-cache"
    assert first.headers["access-control-allow-origin"] == "*"
    assert first.headers["x-typescript-types"] == "./holdfast.d.ts"
    again = await server.client.get("/client/holdfast.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    manifest = await server.json("GET", "/client/manifest.json")
    assert set(manifest["files"]) == {file.name for file in FOLDER.iterdir()}
    for name, entry in manifest["files"].items():
        found = await server.client.get(entry["path"])
        assert found.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert found.content == (FOLDER / name).read_bytes()
        assert entry["integrity"] == f"sha256-{b64encode(sha256(found.content).digest()).decode()}"
        assert len(found.content) == entry["bytes"]
    assert "holdfast.d.ts" in manifest["files"]
    for path in ("/client/nothing.js", "/client/0123456789abcdef/holdfast.js", "/client/..%2Fapp.py"):
        assert (await server.client.get(path)).status_code == 404
