from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.api.app import ApiSettings
from tests.api.conftest import Server, serving

pytestmark = pytest.mark.anyio

FILE = """
from holdfast import Flow

small = Flow("small", effect="pure")


@small.node
async def only(s):
    return {"done": True}
"""


@pytest.mark.covers("SERVER-API-07")
async def test_flows_have_versions_graphs_and_drawings(shop: Server) -> None:
    listed = (await shop.json("GET", "/v1/flows"))["items"]
    assert {"both", "refund"} <= {each["name"] for each in listed}
    flow = await shop.json("GET", "/v1/flows/refund")
    newest = flow["versions"][0]
    assert (newest["loaded"], newest["nodes"], newest["workers"]) == (True, 3, 1)
    answer = await shop.client.get("/v1/flows/refund/versions/latest")
    graph = answer.json()["graph"]
    assert [node["id"] for node in graph["nodes"]] == ["check", "approve", "pay"]
    same = f"/v1/flows/refund/versions/{newest['version']}"
    known = {"If-None-Match": answer.headers["etag"]}
    assert (await shop.client.get(same, headers=known)).status_code == 304
    assert (await shop.client.get(f"{same}/drawing")).text.startswith("<svg")
    for missing in ("/v1/flows/nothing", "/v1/flows/refund/versions/nothing"):
        assert (await shop.json("GET", missing, 404))["code"] == "flow_not_found"
    checked = await shop.json("GET", "/v1/flows/refund/check")
    assert (checked["version"], checked["runs"]) == (newest["version"], [])


@pytest.mark.covers("SERVER-API-07")
async def test_graph_is_validated_and_registered(shop: Server) -> None:
    graph = (await shop.json("GET", "/v1/flows/refund/versions/latest"))["graph"]
    fine = await shop.json("POST", "/v1/flows/validate", json={"graph": graph})
    assert fine["valid"] is True
    broken = {**graph, "edges": [{**graph["edges"][0], "target": "nowhere"}]}
    reply = await shop.json("POST", "/v1/flows/validate", json={"graph": broken})
    assert reply["valid"] is False
    assert all(each["message"] and each["rule"] for each in reply["problems"])
    refused = await shop.json("POST", "/v1/flows", 422, json={"graph": broken})
    assert refused["code"] == "flow_invalid"
    other = {**graph, "name": "refund-2"}
    made = await shop.client.post("/v1/flows", json={"graph": other})
    assert made.status_code == 201, made.text
    assert (await shop.json("GET", made.headers["location"]))["name"] == "refund-2"
    await shop.json("POST", "/v1/flows", 200, json={"graph": other})
    await shop.json("POST", "/v1/flows/validate", 422, json={"graph": {"nodes": 3}})
    await shop.json("POST", "/v1/flows/validate", 422, json={})


@pytest.mark.covers("SERVER-API-21", "R-67-http")
async def test_files_are_loaded_only_from_folders_that_the_operator_allows(tmp_path: Path) -> None:
    root = tmp_path / "flows"
    root.mkdir()
    (root / "small_of_server.py").write_text(FILE)
    (root / "broken_of_server.py").write_text("raise KeyError('mend me')")
    (tmp_path / "outside.py").write_text("raise SystemExit('loaded')")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    store = f"sqlite:{tmp_path / 's.db'}"
    async with Holdfast(store) as hf, serving(hf) as closed:
        body = {"flow": "small_of_server.py"}
        assert (await closed.json("POST", "/v1/runs", 403, json=body))["code"] == "forbidden"
        assert (await closed.json("POST", "/v1/flows", 403, json=body))["code"] == "forbidden"
    async with Holdfast(store) as hf, serving(hf, ApiSettings(roots=(root,))) as server:
        made = await server.json("POST", "/v1/runs", 201, json=body)
        assert made["flow"] == "small"
        broken = {"flow": "broken_of_server.py"}
        result = (await server.json("POST", "/v1/flows/validate", 422, json=broken))["detail"]
        assert "KeyError: 'mend me'" in result
        assert str(tmp_path) not in result
        (root / "small.dot").write_text("digraph {}")
        await server.json("POST", "/v1/runs", 422, json={"flow": "small.dot"})
        for outside in ("../outside.py", "link.py", str(tmp_path / "outside.py"), "/etc/passwd", "none.py"):
            problem = await server.json("POST", "/v1/runs", 404, json={"flow": outside})
            assert problem["code"] == "flow_not_found"


@pytest.mark.covers("R-67-http", "SERVER-API-02")
async def test_server_without_the_code_starts_runs_that_workers_have_run_before(
    tmp_path: Path, greeting: Flow
) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    async with Holdfast(store) as hf:
        done = await greeting.run({"name": "you"}, on=hf)
    async with Holdfast(store) as hf, serving(hf) as server:
        body = {"flow": "greeting", "input": {"name": "me"}}
        run = await server.json("POST", "/v1/runs", 201, json=body)
        assert run["version"] == (await server.json("GET", f"/v1/runs/{done.run_id}"))["version"]
    async with Holdfast(store) as hf:
        result = await greeting.resume(run["id"], on=hf)
        assert result.expect().state["said"] == "hello me"


@pytest.mark.covers("SERVER-API-07")
async def test_flow_with_a_slash_in_its_name_is_reached_by_its_address(server: Server) -> None:
    flow = Flow("team/refund", effect="pure")
    flow.node(id="only")(lambda s: {"done": True})
    async with Worker(flow, on=server.hf):
        await (await server.hf.service()).store_flow(flow.program())
        for name in ("team/refund", "team%2Frefund"):
            assert (await server.json("GET", f"/v1/flows/{name}"))["name"] == "team/refund"
            newest = await server.json("GET", f"/v1/flows/{name}/versions/latest")
            assert [node["id"] for node in newest["graph"]["nodes"]] == ["only"]
            drawn = await server.client.get(f"/v1/flows/{name}/versions/latest/drawing")
            assert drawn.text.startswith("<svg")
            assert (await server.json("GET", f"/v1/flows/{name}/check"))["runs"] == []
            page = await server.client.get(f"/flows/{name}", headers={"Accept": "text/html"})
            assert page.status_code == 200
            assert "/flows/team/refund/drawing.svg" in page.text
            picture = await server.client.get(f"/flows/{name}/drawing.svg")
            assert picture.headers["content-type"].startswith("image/svg")
            begun = await server.client.post(f"/flows/{name}", data={"input": "{}"})
            assert begun.status_code == 303, begun.text
        other = {**newest["graph"], "name": "team/other"}
        made = await server.client.post("/v1/flows", json={"graph": other})
        assert (await server.json("GET", made.headers["location"]))["name"] == "team/other"
        missing = await server.json("GET", "/v1/flows/team/nothing", 404)
        assert missing["code"] == "flow_not_found"
