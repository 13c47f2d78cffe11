"""A graph that was posted, submitted or imported never passes for a flow's code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

import holdfast
from holdfast import Flow, Holdfast, Worker
from holdfast.model.fingerprint import decode_graph, encode_graph
from holdfast.runs.flow_versions import newest_first, put_posted
from holdfast.runs.service import RunService
from holdfast.store.rows import FlowRow
from holdfast.testing.clock import FakeClock
from tests.api.conftest import Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-16")]


def guarded(version: str = "1") -> Flow:
    """With a hold before its effect."""
    flow = Flow("guarded", version=version, effect="pure")

    @flow.node
    async def pay(s: dict) -> dict:
        return {"paid": True}

    flow.edge(flow.hold("approve", prompt="Pay?", options=["yes", "no"]), pay)
    return flow


def without_hold(graph: dict[str, Any]) -> dict[str, Any]:
    """What a reader would be misled by."""
    nodes = [node for node in graph["nodes"] if node["id"] == "pay"]
    return {**graph, "nodes": nodes, "edges": [], "start": ["pay"]}


async def _graph(server: Server) -> dict[str, Any]:
    return (await server.json("GET", "/v1/flows/guarded/versions/latest"))["graph"]


async def test_posted_graph_does_not_take_the_name_of_a_flow_that_a_worker_has(server: Server) -> None:
    async with Worker(guarded(), on=server.hf):
        graph = await _graph(server)
        refused = await server.json("POST", "/v1/flows", 409, json={"graph": without_hold(graph)})
        assert refused["code"] == "name_taken"
        assert "'guarded'" in refused["detail"]
        assert "another name" in refused["hint"]
        assert await _graph(server) == graph
        # The graph of the code itself may be posted, and under another name any.
        await server.json("POST", "/v1/flows", 201, json={"graph": graph})
        other = {**without_hold(graph), "name": "other"}
        await server.json("POST", "/v1/flows", 201, json={"graph": other})
        # Another version of what was posted is fine.
        await server.json("POST", "/v1/flows", 201, json={"graph": {**other, "label": "2"}})


@pytest.mark.parametrize("known", ["loaded", "stored", "served elsewhere"])
async def test_name_is_taken_wherever_the_code_is(tmp_path: Path, known: str) -> None:
    address = f"sqlite:{tmp_path / 's.db'}"
    async with Holdfast(address) as elsewhere, Holdfast(address) as hf, serving(hf) as server:
        graph = guarded().program().graph.spec
        changed = {"graph": without_hold(_plain(encode_graph(graph)))}
        if known == "loaded":
            hf.register(guarded().program())
            await server.json("POST", "/v1/flows", 409, json=changed)
        elif known == "stored":
            await (await elsewhere.service()).store_flow(guarded().program())
            await server.json("POST", "/v1/flows", 409, json=changed)
        else:
            async with Worker(guarded(), on=elsewhere):
                await server.json("POST", "/v1/flows", 409, json=changed)


def _plain(graph: bytes) -> dict[str, Any]:
    return msgspec.json.decode(graph)


async def test_code_that_comes_after_a_posted_graph_is_the_current_version(server: Server) -> None:
    graph = _plain(encode_graph(guarded().program().graph.spec))
    await server.json("POST", "/v1/flows", 201, json={"graph": without_hold(graph)})
    assert [node["id"] for node in (await _graph(server))["nodes"]] == ["pay"], "there is no other"
    service = await server.hf.service()
    await service.store_flow(guarded().program())
    # A newer posted graph cannot come: the name is taken now. One from before does not become newer.
    await server.json("POST", "/v1/flows", 409, json={"graph": {**without_hold(graph), "label": "9"}})
    assert {node["id"] for node in (await _graph(server))["nodes"]} == {"approve", "pay"}
    flow = await server.json("GET", "/v1/flows/guarded")
    assert len(flow["versions"]) == 2
    assert flow["versions"][0]["version"] == guarded().program().version
    page = await server.client.get("/flows/guarded/drawing.svg")
    assert "approve" in page.text


async def test_name_is_taken_once_code_has_a_posted_version(server: Server) -> None:
    graph = _plain(encode_graph(guarded("2").program().graph.spec))
    await server.json("POST", "/v1/flows", 201, json={"graph": graph})
    service = await server.hf.service()
    await service.store_flow(guarded("1").program())
    assert (await _graph(server))["label"] == "1"
    async with Worker(guarded("2"), on=server.hf):
        labels = [each["label"] for each in (await server.json("GET", "/v1/flows/guarded"))["versions"]]
        assert sorted(labels) == ["1", "2"]
        await server.json("POST", "/v1/flows", 409, json={"graph": {**graph, "label": "3"}})


async def _versions(service: RunService) -> list[str]:
    rows = await newest_first(service, await service.store.flows())
    return [decode_graph(row.graph).label for row in rows]


async def test_version_that_is_stored_keeps_its_origin() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        service = await hf.service()
        for label in ("1", "2"):
            clock.advance(seconds=1)
            await service.store_flow(guarded(label).program())
        clock.advance(seconds=1)
        for label in ("1", "3"):
            program = guarded(label).program()
            row = FlowRow(
                name="guarded", version=program.version, graph=encode_graph(program.graph.spec),
                created_at=service.store.now(),
            )  # fmt: skip
            await put_posted(service.store, row)
            await put_posted(service.store, row)
        assert await _versions(service) == ["2", "1", "3"]


async def test_run_that_is_imported_brings_no_current_version(tmp_path: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'a.db'}") as hf:
        run = await guarded("9").submit({}, on=hf)
        data = await (await hf.service()).export_run(run)
    async with Holdfast(f"sqlite:{tmp_path / 'b.db'}") as hf, serving(hf) as server:
        service = await hf.service()
        await service.store_flow(guarded("1").program())
        await server.json("POST", "/v1/runs/import", 201, content=data)
        assert (await _graph(server))["label"] == "1"
        assert await _versions(service) == ["1", "9"]


async def test_submitted_pipeline_does_not_hide_the_code_of_its_name(server: Server) -> None:
    await (await server.hf.service()).store_flow(guarded().program())
    source = "digraph guarded { start [shape=Mdiamond]; done [shape=Msquare]; start -> done }"
    await server.json("POST", "/v1/pipelines", 201, json={"dot": source})
    assert {node["id"] for node in (await _graph(server))["nodes"]} == {"approve", "pay"}
    assert len((await server.json("GET", "/v1/flows/guarded"))["versions"]) == 2


NAMES_ONLY: Final = {
    "api/routes/schedules.py", "cli/commands/flows.py", "cli/commands/prune.py", "cli/commands/schedules.py",
    "cli/completion.py", "runs/flow_versions.py", "runs/worker/served_versions.py",
}  # fmt: skip
"""Modules that look for names, or list every version; none of them chooses one."""


def test_every_module_that_chooses_a_version_chooses_the_same() -> None:
    source = Path(holdfast.__file__).parent
    for file in source.rglob("*.py"):
        name, text = file.relative_to(source).as_posix(), file.read_text()
        if re.search(r"store\.flows\(\)|\)\.flows\(\)", text) and not name.startswith("testing/"):
            assert "newest_first(" in text or name in NAMES_ONLY, name
