"""Large graphs over HTTP: what a picture may cost, and that other requests are answered meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest

from holdfast import Worker
from holdfast.api import draw
from tests.api.conftest import Server
from tests.api.documents import REFUND
from tests.api.flows import refund
from tests.api.sign_in import bearer, token

pytestmark = pytest.mark.anyio

ARRANGE = "/v1/flows/arrange"


def dense(count: int, edges: int) -> dict[str, Any]:
    """A document with edges between any two of its nodes."""
    dice = random.Random(2)
    pairs = {(i, i + 1) for i in range(count - 1)}
    while len(pairs) < edges:
        pairs.add((dice.randrange(count), dice.randrange(count)))
    nodes = [{"id": f"n{i}", "type": "set", "config": {"values": {"a": 1}}} for i in range(count)]
    links = [{"source": f"n{a}", "target": f"n{b}"} for a, b in sorted(pairs)]
    whole = {"holdfast": "1.0", "name": "dense", "nodes": nodes, "edges": links}
    return {"source": json.dumps(whole), "format": "json"}


@contextmanager
def drawing() -> Iterator[None]:
    """Until the end, a picture is being made that takes long."""
    begun, end = Event(), Event()

    def work() -> None:
        begun.set()
        end.wait(60)

    job = draw._PICTURES._threads.submit(work)  # pyright: ignore[reportPrivateUsage]
    begun.wait(60)
    try:
        yield
    finally:
        end.set()
        job.result(60)


def waiting_now() -> int:
    return sum(draw._PICTURES._waiting.values())  # pyright: ignore[reportPrivateUsage]


async def test_other_requests_are_answered_while_large_layouts_run(server: Server) -> None:
    body = dense(600, 3600)
    large = [asyncio.create_task(server.client.post(ARRANGE, json=body, timeout=120)) for _ in range(8)]
    while waiting_now() < 3:
        await server.json("GET", "/v1/flows")
    for _ in range(4):
        found = await server.json("POST", "/v1/flows/validate", json={"source": REFUND})
        assert found["valid"]
    assert not all(each.done() for each in large)
    for each in large:
        answer = await each
        assert answer.status_code == 200
        assert len(answer.json()["nodes"]) == 600


async def test_every_picture_is_made_beside_other_requests(server: Server) -> None:
    async with Worker(refund(), on=server.hf):
        started = await server.json(
            "POST", "/v1/runs", 201, json={"flow": "refund", "input": {"order": "o", "amount": 1}, "wait": 60}
        )
        dot = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; start -> exit }"
        piped = await server.json("POST", "/v1/pipelines", 201, json={"dot": dot})
        paths = [
            "/v1/flows/refund/versions/latest/drawing",
            "/flows/refund/drawing.svg",
            f"/v1/runs/{started['id']}/graph",
            f"/v1/runs/{started['id']}/drawing",
            f"/v1/runs/{started['id']}/postmortem?format=html",
            f"/runs/{started['id']}/drawing.svg",
            f"/v1/pipelines/{piped['id']}/graph",
        ]
        with drawing():
            waiting = [asyncio.create_task(server.client.get(path)) for path in paths]
            while waiting_now() < len(paths):
                await server.json("GET", "/v1/flows")
            for _ in range(20):
                await server.json("GET", "/v1/flows")
            assert not any(each.done() for each in waiting)
        assert [(await each).status_code for each in waiting] == [200] * len(paths)


async def test_pictures_of_one_tenant_that_wait_are_limited(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw._PICTURES, "_most", 2)
    eve = bearer(await token(server, "user:eve@other", "admin", tenant="other"))
    body = {"source": REFUND}
    with drawing():
        waiting = [asyncio.create_task(server.client.post(ARRANGE, json=body)) for _ in range(2)]
        while waiting_now() < 2:
            await server.json("GET", "/v1/flows")
        refused = await server.client.post(ARRANGE, json=body)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert int(refused.headers["retry-after"]) > 0
        theirs = asyncio.create_task(server.client.post(ARRANGE, json=body, headers=eve))
        while waiting_now() < 3:
            await server.json("GET", "/v1/flows")
    assert [(await each).status_code for each in (*waiting, theirs)] == [200] * 3
    assert (await server.client.post(ARRANGE, json=body)).status_code == 200
    assert waiting_now() == 0


async def test_graph_whose_bodies_are_too_much_to_draw_is_refused(server: Server) -> None:
    graph: dict[str, Any] = {
        "name": "g0", "start": ["n0"], "edges": [], "nodes": [{"id": f"n{i}"} for i in range(10)],
    }  # fmt: skip
    for depth in range(1, 9):
        body = {"over": "items", "into": "found", "body": graph["name"]}
        nodes = [{"id": f"n{i}", "kind": "map", "map": body} for i in range(10)]
        graph = {"name": f"g{depth}", "start": ["n0"], "edges": [], "nodes": nodes, "subgraphs": [graph]}
    found = await server.json("POST", ARRANGE, 422, json={"graph": graph})
    assert "20,000 nodes and edges" in found["detail"]


async def test_nodes_inside_of_too_many_others_are_a_problem_and_still_have_places(server: Server) -> None:
    over = {"over": "items", "into": "found"}
    nodes = [{"id": f"m{i}", "type": "map", "parent": f"m{i - 1}", "config": over} for i in range(1, 400)]
    whole = {"holdfast": "1.0", "name": "deep", "edges": []}
    whole["nodes"] = [{"id": "m0", "type": "map", "config": over}, *nodes]  # type: ignore[assignment]
    body = {"source": json.dumps(whole), "format": "json"}
    assert len((await server.json("POST", ARRANGE, json=body))["nodes"]) == 400
    found = await server.json("POST", "/v1/flows/validate", json=body)
    deep = [each["node"] for each in found["problems"] if each["rule"] == "document-depth"]
    assert deep[0] == "m33"
