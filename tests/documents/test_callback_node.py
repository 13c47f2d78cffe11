"""Nodes of documents that hand an address over and wait until it is called."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.documents.connections import ConnectionSettings
from tests.documents.run import flow_text, start
from tests.documents.test_http_node import allowing, connected
from tests.documents.test_queue_nodes import resumed
from tests.holds.notify.servers import http_server

pytestmark = pytest.mark.anyio

BODY = 'body: {order: "{{order}}", notify: "{{callback.url}}"}, timeout: 2d, heartbeat: 1h'


def waits(config: str) -> str:
    node = f"{{id: built, type: callback, config: {{{config}}}}}"
    head = "input: {properties: {order: {}}}"
    return flow_text(
        f"{{id: start, type: start}}\n{node}\n{{id: done, type: end}}", "start -> built -> done", head
    )


async def complete(hf: Holdfast, url: str, result: Any) -> None:
    await (await hf.callbacks()).complete(url.rpartition("/")[2], result)


@pytest.mark.covers("USERS-CALLBACK")
async def test_callback_node_sends_its_address_and_binds_the_result(hf: Holdfast) -> None:
    async with http_server() as server:
        server.says(503)
        server.says(202)
        text = waits(f"connection: crm, path: /jobs, {BODY}, retry: {{attempts: 2, delay: 0}}")
        waiting = await start(hf, text, {"order": 7}, settings=connected(server))
        first, second = [each.json for each in server.seen]
        assert (waiting.status, first, first["order"]) == ("pending_input", second, 7)
        await complete(hf, first["notify"], {"image": "a17"})
        ended = await resumed(hf, waiting)
    assert (ended.status, ended.state["built"], len(server.seen)) == ("completed", {"image": "a17"}, 2)


@pytest.mark.covers("USERS-CALLBACK")
async def test_callback_node_fails_when_its_request_is_refused(hf: Holdfast) -> None:
    async with http_server() as server:
        server.says(404, body="no such job")
        text = waits(f'url: "http://127.0.0.1:{server.port}/jobs", {BODY}, retry: {{attempts: 3}}')
        ended = await start(hf, text, {"order": 7}, settings=allowing(server))
    assert (ended.status, len(server.seen)) == ("failed", 1)
    assert "HTTP 404: no such job" in ended.error.message


@pytest.mark.covers("USERS-CALLBACK")
async def test_callback_node_without_a_request_waits_for_its_token(hf: Holdfast) -> None:
    waiting = await start(hf, waits("timeout: 2d"), {"order": 7}, settings=ConnectionSettings())
    ((_, token),) = await (await hf.callbacks()).of_run(waiting.run_id)
    await complete(hf, token, 5)
    assert (await resumed(hf, waiting)).state["built"] == 5


@pytest.mark.covers("USERS-CALLBACK")
@pytest.mark.parametrize("status", [400, 500, 503])
async def test_token_that_a_server_repeats_in_its_error_is_not_recorded(hf: Holdfast, status: int) -> None:
    """Of 500 the outcome is in doubt: the question about it has the error, and the callback is open."""
    async with http_server() as server:
        server.says(status, body="no: SENT")
        text = waits(f'url: "http://127.0.0.1:{server.port}/jobs", {BODY}')
        ended = await start(hf, text, {"order": 7}, settings=allowing(server))
    token = server.seen[0].json["notify"].rpartition("/")[2]
    service = await hf.service()
    holds = await (await hf.open()).holds(run=ended.run_id, limit=10)
    events = await service.events(ended.run_id)
    shown = repr([ended, holds, events])
    assert f"HTTP {status}: no: " in shown
    assert token not in shown
