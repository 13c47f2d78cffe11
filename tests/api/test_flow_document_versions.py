"""Versions of flow documents over HTTP: their bytes, their layout, which is current, and what differs."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import jsonschema_rs
import msgspec
import pytest
import yaml

from holdfast import Flow, Worker
from holdfast.api.routes import flows as flow_routes
from holdfast.errors import StoreError
from holdfast.frontends.document import upgrade
from holdfast.frontends.document.json_schema import flow_schema
from holdfast.model.fingerprint import decode_graph
from holdfast.model.graph import GraphSpec
from holdfast.runs import flow_versions
from tests.api.conftest import Server
from tests.api.documents import OTHER, REFUND, deploy, working

pytestmark = pytest.mark.anyio

__all__ = ["working"]


@pytest.mark.covers("CV-43")
async def test_version_keeps_the_bytes_that_were_sent_first(server: Server) -> None:
    version = (await deploy(server))["version"]
    moved = REFUND.replace("x: 240", "x: 300").replace("# Refunds", "# All refunds")
    assert (await deploy(server, moved, 200))["version"] == version
    place = f"/v1/flows/refund/versions/{version}/document"
    source = await server.client.get(place)
    assert (source.content, source.headers["content-type"]) == (REFUND.encode(), "application/yaml")
    as_json = await server.client.get(f"{place}?format=json")
    assert as_json.json() == yaml.safe_load(REFUND)
    as_yaml = await server.client.get(f"{place}?format=yaml")
    for text, form in ((as_json.text, "json"), (as_yaml.text, "yaml")):
        again = await server.json("POST", "/v1/flows", 200, json={"source": text, "format": form})
        assert again["version"] == version
    await server.json("GET", f"{place}?format=toml", 422)


@pytest.mark.covers("CV-43")
async def test_flow_of_code_has_no_document(server: Server) -> None:
    flow = Flow("coded", effect="pure")

    @flow.node
    async def work(s: dict) -> dict:
        return {}

    async with Worker(flow, on=server.hf):
        for path in ("document", "layout"):
            refused = await server.json("GET", f"/v1/flows/coded/versions/latest/{path}", 404)
            assert refused["code"] == "no_document"
        refused = await server.json("POST", "/v1/flows/coded/diff", 404, json={"to": "latest"})
        assert refused["code"] == "no_document"
        refused = await server.json("POST", "/v1/flows/coded/activate", 404, json={"version": "latest"})
        assert refused["code"] == "no_document"


@pytest.mark.covers("CV-43")
async def test_layout_changes_without_a_new_version_and_only_from_the_one_that_was_read(
    server: Server,
) -> None:
    version = (await deploy(server))["version"]
    place = f"/v1/flows/refund/versions/{version}/layout"
    read = await server.client.get(place)
    assert read.json()["nodes"] == {"ask": {"label": "Review", "position": {"x": 240, "y": 0}}}
    etag = read.headers["etag"]
    assert (await server.client.get(place, headers={"If-None-Match": etag})).status_code == 304
    changed = {
        "nodes": {"ask": {"position": {"x": 1, "y": 2}}, "done": {"label": "Done"}},
        "edges": {"start:out->ask": {"label": "first"}},
        "notes": [{"id": "n1", "text": "Policy 4.2"}],
    }
    written = await server.client.put(place, json=changed, headers={"If-Match": etag})
    assert (written.status_code, written.json()) == (200, changed)
    assert (await server.client.get(place)).headers["etag"] == written.headers["etag"] != etag
    stale = await server.client.put(place, json={}, headers={"If-Match": etag})
    assert (stale.status_code, stale.json()["code"]) == (412, "version_stale")
    base = f"/v1/flows/refund/versions/{version}/document"
    document = (await server.client.get(f"{base}?format=json")).json()
    assert document["notes"] == changed["notes"]
    assert [each.get("position") for each in document["nodes"]] == [None, {"x": 1, "y": 2}, None, None]
    assert document["edges"][0]["label"] == "first"
    assert (await server.client.get(base)).text == REFUND, "the bytes stay"
    again = await server.json("POST", "/v1/flows", 200, json={"document": document})
    assert again["version"] == version


@pytest.mark.parametrize(
    "body",
    [
        {"nodes": {"nobody": {"label": "x"}}},
        {"edges": {"start:out->done": {}}},
        {"nodes": {"ask": {"position": {"x": "far"}}}},
        {"nodes": {"ask": {"config": {}}}},
        {"groups": [{"label": "no id"}]},
    ],
)
async def test_layout_that_does_not_fit_the_document_is_refused(server: Server, body: dict[str, Any]) -> None:
    version = (await deploy(server))["version"]
    at = f"/v1/flows/refund/versions/{version}/layout"
    await server.json("PUT", at, 422, json=body, headers={"If-Match": '"layout-0"'})


@pytest.mark.covers("CV-43")
async def test_layout_is_not_replaced_by_an_editor_that_does_not_say_what_it_read(server: Server) -> None:
    at = f"/v1/flows/refund/versions/{(await deploy(server))['version']}/layout"
    moved = {"nodes": {"ask": {"label": "Moved"}}}
    refused = await server.json("PUT", at, 428, json=moved)
    assert (refused["code"], refused["etag"]) == ("version_required", "layout-0")
    assert "Moved" not in (await server.client.get(at)).text
    await server.json("PUT", at, json=moved, headers={"If-Match": '"layout-0"'})


@pytest.mark.covers("CV-44")
async def test_current_version_is_the_newest_or_the_one_that_was_activated(working: Server) -> None:
    first = (await deploy(working))["version"]
    start = {"flow": "refund", "input": {"amount": 5}, "wait": 60}
    live = await working.json("POST", "/v1/runs", 201, json=start)
    second = (await deploy(working, OTHER, query="?activate=false"))["version"]

    async def current() -> str:
        flow = await working.json("GET", "/v1/flows/refund")
        [found] = [each["version"] for each in flow["versions"] if each["current"]]
        return found

    assert await current() == first
    assert (await working.json("POST", "/v1/runs", 201, json=start))["version"] == first
    shown = await working.json("POST", "/v1/flows/refund/activate", json={"version": second})
    assert [each["version"] for each in shown["versions"] if each["current"]] == [second]
    assert await current() == second
    assert (await working.json("POST", "/v1/runs", 201, json=start))["version"] == second
    # The run that waits keeps its version, and is decided on it.
    [hold] = [each for each in (await working.json("GET", "/v1/holds"))["items"] if each["run"] == live["id"]]
    assert hold["prompt"] == "Refund 5?"
    await working.json("POST", f"/v1/holds/{hold['id']}/resolve", json={"decision": "approve"})
    ended = await working.json("GET", f"/v1/runs/{live['id']}/result?wait=60")
    assert ended["status"] == "completed"
    assert (await working.json("GET", f"/v1/runs/{live['id']}"))["version"] == first
    entries = (await working.json("GET", "/v1/audit"))["items"]
    found = [(each["action"], each["data"]["version"]) for each in entries if "flow" in each["action"]]
    assert found == [("flow_deployed", first), ("flow_activated", second)]
    await working.json("POST", "/v1/flows/refund/activate", 404, json={"version": "canvas-ffffff"})


@pytest.mark.covers("CV-43", "CV-44")
async def test_document_that_is_sent_again_becomes_current_only_if_the_caller_says_so(server: Server) -> None:
    first, second = await deploy(server), await deploy(server, OTHER)
    again = await deploy(server, status=200)
    assert (again["version"], again["current"]) == (first["version"], False)
    assert again["created_at"] == first["created_at"]
    given: dict[str, Any] = {"flow": "refund", "input": {"amount": 5}}
    assert (await server.json("POST", "/v1/runs", 201, json=given))["version"] == second["version"]
    # A caller that goes back on purpose stays there, whatever is sent again.
    assert (await deploy(server, status=200, query="?activate=true"))["current"] is True
    assert (await deploy(server, OTHER, status=200))["current"] is False
    assert (await server.json("POST", "/v1/runs", 201, json=given))["version"] == first["version"]


async def test_deployment_that_was_cut_off_is_finished_when_it_is_sent_again(server: Server) -> None:
    await deploy(server)
    store = await server.hf.open()
    put = store.put_document

    async def cut_off(row: Any, **more: Any) -> Any:
        if row.kind == "flow_current":
            raise StoreError("the connection broke.")
        return await put(row, **more)

    store.put_document = cut_off  # type: ignore[method-assign]
    await deploy(server, OTHER, status=503)
    store.put_document = put  # type: ignore[method-assign]
    assert (await deploy(server, OTHER, status=200))["current"] is True


async def test_flow_without_a_current_version_is_not_started_by_its_name(server: Server) -> None:
    version = (await deploy(server, query="?activate=false"))["version"]
    start: dict[str, Any] = {"flow": "refund", "input": {"amount": 5}}
    refused = await server.json("POST", "/v1/runs", 404, json=start)
    assert "activate" in refused["hint"]
    await server.json("POST", "/v1/runs", 201, json={**start, "version": version})


@pytest.mark.covers("CV-45", "PLATFORM-DOC-05")
async def test_versions_are_compared_by_node_and_edge_with_both_values(server: Server) -> None:
    first = (await deploy(server))["version"]
    changed = (
        OTHER.replace("x: 240", "x: 9")
        .replace("  - {id: done, type: end}", "  - {id: done, type: end}\n  - {id: late, type: end}")
        .replace("source_port: reject, target: done", "source_port: reject, target: late")
    )
    second = (await deploy(server, changed))["version"]
    for body in (
        {"from": first, "to": second},
        {"from": first, "source": changed},
        {"from": first, "to": "current"},
    ):
        found = await server.json("POST", "/v1/flows/refund/diff", json=body)
        assert found["same"] is False
        assert [(each["id"], each["change"]) for each in found["nodes"]] == [
            ("ask", "changed"),
            ("late", "added"),
        ]
        [prompt] = found["nodes"][0]["changes"]
        assert (prompt["path"], prompt["before"], prompt["after"]) == (
            "config.prompt",
            "Refund {{amount}}?",
            "Pay {{amount}} back?",
        )
        assert [(each["id"], each["change"]) for each in found["edges"]] == [
            ("ask:reject->done", "removed"),
            ("ask:reject->late", "added"),
        ]
        assert found["settings"] == []
        [moved] = found["layout"]
        assert (moved["path"], moved["before"], moved["after"]) == ("nodes.ask.position.x", 240, 9)
    same = await server.json("POST", "/v1/flows/refund/diff", json={"from": first, "to": first})
    assert (same["same"], same["nodes"], same["layout"]) == (True, [], [])
    refused = await server.json("POST", "/v1/flows/refund/diff", 422, json={"from": first, "source": "a: ["})
    assert refused["errors"]
    await server.json("POST", "/v1/flows/refund/diff", 422, json={"from": first})


@pytest.mark.covers("CV-43")
async def test_callers_that_deploy_at_once_get_one_version_and_one_of_their_texts(server: Server) -> None:
    as_json = msgspec.json.encode(yaml.safe_load(REFUND)).decode()
    bodies = [{"source": REFUND}, {"source": as_json, "format": "json"}] * 4
    answers = await asyncio.gather(*(server.client.post("/v1/flows", json=each) for each in bodies))
    assert sorted(each.status_code for each in answers) == [200] * 7 + [201]
    assert len({each.json()["version"] for each in answers}) == 1
    kept = await server.client.get("/v1/flows/refund/versions/current/document")
    media = {"application/yaml": REFUND, "application/json": as_json}
    assert kept.text == media[kept.headers["content-type"]]


@pytest.mark.covers("CV-7", "PLATFORM-DOC-01")
async def test_schema_of_documents_is_public_cacheable_and_versioned(server: Server) -> None:
    async with httpx2.AsyncClient(base_url=server.serving.address) as stranger:
        answer = await stranger.get("/v1/schemas/flow/1")
        assert answer.status_code == 200
        assert answer.json() == msgspec.json.decode(msgspec.json.encode(flow_schema()))
        assert answer.headers["cache-control"] == "public, max-age=3600"
        known = {"If-None-Match": answer.headers["etag"]}
        assert (await stranger.get("/v1/schemas/flow/1", headers=known)).status_code == 304
        missing = await stranger.get("/v1/schemas/flow/2")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
        checks = jsonschema_rs.validator_for(answer.json())
    assert checks.is_valid(yaml.safe_load(REFUND))
    assert not checks.is_valid(yaml.safe_load(REFUND.replace("queue: reviews, ", "")))


@pytest.mark.covers("CV-47", "PLATFORM-DOC-01")
async def test_document_of_an_older_format_runs_and_its_bytes_stay_as_they_were_sent(
    working: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = REFUND.replace('"1.0"', '"0.3"').replace("\nnodes:", "\nsteps:")
    await deploy(working, old, 422)
    monkeypatch.setattr(
        upgrade, "UPGRADES", {0: lambda data: {{"steps": "nodes"}.get(key, key): data[key] for key in data}}
    )
    sent = await deploy(working, old)
    run = await working.json(
        "POST", "/v1/runs", 201, json={"flow": "refund", "input": {"amount": 1}, "wait": 60}
    )
    assert (run["status"], run["version"]) == ("pending_input", sent["version"])
    place = f"/v1/flows/refund/versions/{sent['version']}/document"
    kept = await working.client.get(f"{place}?format=source")
    assert kept.text == old
    assert "nodes:" in (await working.client.get(f"{place}?format=yaml")).text
    again = await deploy(working, status=200)
    assert again["version"] == sent["version"]


async def test_list_of_flows_decodes_no_graph_that_it_has_seen(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in (REFUND, OTHER):
        await deploy(server, text)
    decoded = list[int]()

    def counted(raw: bytes) -> GraphSpec:
        decoded.append(len(raw))
        return decode_graph(raw)

    for module in (flow_versions, flow_routes):
        if hasattr(module, "decode_graph"):
            monkeypatch.setattr(module, "decode_graph", counted)
    first = await server.json("GET", "/v1/flows")
    # One for each version, not for each part of the answer.
    assert len(decoded) == 2
    assert await server.json("GET", "/v1/flows") == first
    assert await server.json("GET", "/v1/flows/refund") == first["items"][0]
    assert len(decoded) == 2
    assert [version["nodes"] for version in first["items"][0]["versions"]] == [4, 4]
    assert first["items"][0]["description"] == "Pays money back"
