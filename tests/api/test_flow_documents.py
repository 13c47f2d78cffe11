"""Flow documents over HTTP: deployed, started without code, decided, drawn and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml

from holdfast import Flow, Holdfast, Worker
from holdfast.api.app import ApiSettings
from holdfast.model.fingerprint import encode_graph
from tests.api.conftest import Server, serving
from tests.api.documents import OTHER, REFUND, YAML, deploy, working
from tests.api.sign_in import bearer, token

pytestmark = pytest.mark.anyio

__all__ = ["working"]


@pytest.mark.covers("CV-40", "CV-41", "PLATFORM-DOC-05")
async def test_posted_document_starts_is_decided_and_completes_without_code(working: Server) -> None:
    sent = await deploy(working)
    assert sent["version"].startswith("canvas-")
    assert sent["current"] is True

    run = await working.json(
        "POST", "/v1/runs", 201, json={"flow": "refund", "input": {"amount": 12}, "wait": 60}
    )
    assert (run["status"], run["version"]) == ("pending_input", sent["version"])
    [hold] = (await working.json("GET", "/v1/holds"))["items"]
    assert hold["prompt"] == "Refund 12?"
    await working.json("POST", f"/v1/holds/{hold['id']}/resolve", json={"decision": "approve"})

    ended = await working.json("GET", f"/v1/runs/{run['id']}/result?wait=60")
    assert ended["status"] == "completed"
    assert ended["state"]["decision"] == "approve"
    assert ended["state"]["paid"] == 12
    drawn = await working.client.get(f"/v1/flows/refund/versions/{sent['version']}/drawing")
    assert "ask" in drawn.text
    assert (await working.json("GET", f"/v1/runs/{run['id']}"))["version"] == sent["version"]


@pytest.mark.covers("CV-40")
async def test_document_has_one_version_in_every_form_that_it_is_sent_in(server: Server) -> None:
    first = await deploy(server)
    for body in (
        {"document": yaml.safe_load(REFUND)},
        {"source": REFUND, "format": "yaml"},
        {"source": msgspec.json.encode(yaml.safe_load(REFUND)).decode(), "format": "json"},
    ):
        again = await server.json("POST", "/v1/flows", 200, json=body)
        assert again["version"] == first["version"]
        checked = await server.json("POST", "/v1/flows/validate", json=body)
        assert (checked["valid"], checked["version"]) == (True, first["version"])


@pytest.mark.covers("CV-40", "PLATFORM-HOLD-02")
async def test_document_with_problems_is_refused_with_all_of_them_and_nothing_is_stored(
    server: Server,
) -> None:
    wrong = REFUND.replace("queue: reviews, ", "").replace("type: set", "type: sett")
    refused = await deploy(server, wrong, 422)
    assert refused["code"] == "flow_invalid"
    rules = {each["rule"]: each for each in refused["errors"]}
    missing = next(each for each in refused["errors"] if each["node"] == "ask")
    assert (missing["fix"], missing["line"]) == ("add 'queue'", 10)
    assert any(each["node"] == "paid" for each in rules.values())
    checked = await server.json("POST", "/v1/flows/validate", content=wrong.encode(), headers=YAML)
    assert checked["valid"] is False
    assert {each["rule"] for each in checked["problems"]} >= set(rules)
    assert (await server.json("GET", "/v1/flows"))["items"] == []
    not_text = await server.json("POST", "/v1/flows", 422, content=b"name: \xff", headers=YAML)
    assert [each["rule"] for each in not_text["errors"]] == ["utf-8"]


@pytest.mark.covers("CV-40")
@pytest.mark.parametrize("way", ["query", "body"])
async def test_dry_run_stores_nothing(server: Server, way: str) -> None:
    if way == "query":
        sent = await deploy(server, status=200, query="?dry_run=true")
    else:
        sent = await server.json("POST", "/v1/flows", 200, json={"source": REFUND, "dry_run": True})
    assert (sent["stored"], sent["current"]) == (False, False)
    await server.json("GET", "/v1/flows/refund", 404)
    assert await (await server.hf.open()).flows() == []


@pytest.mark.parametrize(
    "body", [{}, {"source": REFUND, "flow": "refund"}, {"source": REFUND, "format": "toml"}]
)
async def test_request_that_names_no_one_thing_to_deploy_is_refused(
    server: Server, body: dict[str, Any]
) -> None:
    for path in ("/v1/flows", "/v1/flows/validate"):
        refused = await server.json("POST", path, 422, json=body)
        assert refused["code"] == "invalid_input"


@pytest.mark.covers("CV-41")
@pytest.mark.parametrize("name", ["flow", "workflow_uri"])
async def test_run_starts_on_the_version_that_it_names(server: Server, name: str) -> None:
    first = await deploy(server)
    second = await deploy(server, OTHER)
    assert first["version"] != second["version"]
    given = {"input": {"amount": 1}}
    for wanted, version in (
        ("refund", second["version"]),
        (f"refund@{first['version']}", first["version"]),
        (f"refund@{first['version'][:14]}", first["version"]),
        (f"refund@{second['version'].removeprefix('canvas-')[:8]}", second["version"]),
    ):
        run = await server.json("POST", "/v1/runs", 201, json={name: wanted, **given})
        assert (run["status"], run["version"]) == ("pending", version)
    for wanted in ("refund@canvas", "refund@canvas-", "refund@ffffffffffff"):
        refused = await server.json("POST", "/v1/runs", 404, json={name: wanted, **given})
        assert refused["code"] == "flow_not_found"


@pytest.mark.covers("CV-41")
async def test_input_that_does_not_fit_is_refused_when_the_run_starts(server: Server) -> None:
    await deploy(server)
    refused = await server.json("POST", "/v1/runs", 422, json={"flow": "refund", "input": {"amount": "x"}})
    assert "amount" in refused["detail"]


@pytest.mark.covers("CV-41")
async def test_posted_graph_whose_code_no_worker_has_needs_its_code(server: Server) -> None:
    flow = Flow("coded", effect="pure")

    @flow.node
    async def work(s: dict) -> dict:
        return {}

    graph = msgspec.json.decode(encode_graph(flow.program().graph.spec))
    await server.json("POST", "/v1/flows", 201, json={"graph": graph})
    refused = await server.json("POST", "/v1/runs", 409, json={"flow": "coded"})
    assert refused["code"] == "code_required"
    assert "file" in refused["hint"]


async def test_document_that_names_a_function_of_another_process_starts_with_a_warning(
    server: Server,
) -> None:
    text = REFUND.replace(
        'type: set, config: {values: {paid: "{{amount}}"}}', "type: python, config: {function: pay}"
    )
    sent = await deploy(server, text)
    assert [each["rule"] for each in sent["problems"]] == ["function-missing"]
    await server.json("POST", "/v1/runs", 201, json={"flow": "refund", "input": {"amount": 1}})


@pytest.mark.covers("CV-42")
async def test_document_does_not_take_the_name_of_code(server: Server) -> None:
    flow = Flow("refund", effect="pure")

    @flow.node
    async def work(s: dict) -> dict:
        return {}

    async with Worker(flow, on=server.hf):
        refused = await deploy(server, status=409)
    assert refused["code"] == "name_taken"
    await deploy(server, REFUND.replace("name: refund", "name: refund-2"))


@pytest.mark.covers("CV-40")
@pytest.mark.parametrize("path", ["/v1/flows", "/v1/flows/validate"])
async def test_document_with_another_content_type_is_answered_with_how_to_send_it(
    server: Server, path: str
) -> None:
    document = msgspec.json.encode(yaml.safe_load(REFUND))
    for content, sent, status in (
        (REFUND.encode(), {}, 400),
        (REFUND.encode(), {"content-type": "application/x-www-form-urlencoded"}, 400),
        (REFUND.encode(), {"content-type": "application/json"}, 400),
        (document, {"content-type": "application/json"}, 422),
    ):
        refused = await server.json("POST", path, status, content=content, headers=sent)
        assert "Content-Type to application/yaml" in refused["hint"]
        assert '{"document": {...}}' in refused["hint"]
    assert (await server.json("GET", "/v1/flows"))["items"] == []


async def test_graph_that_pretends_to_be_a_document_is_refused(server: Server) -> None:
    graph = (await deploy(server))["graph"]
    refused = await server.json("POST", "/v1/flows", 422, json={"graph": {**graph, "name": "other"}})
    assert "document" in refused["hint"]


@pytest.mark.covers("PLATFORM-DOC-06")
async def test_file_of_an_allowed_folder_starts_as_the_sample_says(tmp_path: Path) -> None:
    place = tmp_path / "roots" / "workflows" / "agent.yaml"
    place.parent.mkdir(parents=True)
    place.write_text(REFUND.replace("name: refund", "name: agent"))
    settings = ApiSettings(roots=(tmp_path / "roots",))
    start = {"workflow_uri": "workflows/agent.yaml", "input": {"amount": 3}, "wait": 60}
    async with Holdfast("memory:") as hf, serving(hf, settings) as server, Worker(on=hf):
        run = await server.json("POST", "/v1/runs", 201, json=start)
        assert (run["flow"], run["status"]) == ("agent", "pending_input")
        place.write_text("holdfast: '1.0'\nname: agent\nnodes: []\n")
        refused = await server.json("POST", "/v1/runs", 422, json=start)
        assert refused["errors"]
        assert str(tmp_path) not in str(refused)
    async with Holdfast("memory:") as hf, serving(hf) as server:
        await server.json("POST", "/v1/runs", 403, json=start)


async def test_folder_of_a_tenant_serves_documents_to_it_alone(tmp_path: Path) -> None:
    for tenant in ("acme", "other"):
        (tmp_path / tenant).mkdir()
        (tmp_path / tenant / "agent.yaml").write_text(REFUND.replace("name: refund", f"name: of-{tenant}"))
    (tmp_path / "acme" / "code.py").write_text("raise SystemExit('loaded')")
    roots = {tenant: (tmp_path / tenant,) for tenant in ("acme", "other")}
    async with Holdfast("memory:") as hf, serving(hf, ApiSettings(tenant_roots=roots)) as server:
        who = {
            each: bearer(await token(server, tenant=each, rights=("runs:write",))) for each in ("acme", "b")
        }
        start = {"workflow_uri": "agent.yaml", "input": {"amount": 3}}
        run = await server.client.post("/v1/runs", json=start, headers=who["acme"])
        assert (run.status_code, run.json()["flow"]) == (201, "of-acme")
        for uri in ("agent.yaml", "../acme/agent.yaml"):
            no = await server.client.post("/v1/runs", json={**start, "workflow_uri": uri}, headers=who["b"])
            assert no.status_code == 403
        for uri in ("../other/agent.yaml", "code.py"):
            no = await server.client.post(
                "/v1/runs", json={**start, "workflow_uri": uri}, headers=who["acme"]
            )
            assert no.status_code in (403, 404), uri


SUBFLOW: Final = """\
holdfast: "1.0"
name: outer
nodes:
  - {id: start, type: start}
  - {id: inner, type: subflow, config: {flow: refund, inputs: {amount: 7}}}
  - {id: done, type: end}
edges:
  - {source: start, target: inner}
  - {source: inner, target: done}
"""


async def test_document_runs_another_document_of_its_tenant_as_a_sub_flow(working: Server) -> None:
    refused = await deploy(working, SUBFLOW, 422)
    assert [each["rule"] for each in refused["errors"]] == ["flow-unknown"]
    await deploy(working)
    outer = await deploy(working, SUBFLOW)
    # It is pinned: a later version of the inner flow changes nothing.
    await deploy(working, OTHER)
    run = await working.json("POST", "/v1/runs", 201, json={"flow": "outer", "wait": 60})
    assert (run["status"], run["version"]) == ("pending_input", outer["version"])
    [hold] = (await working.json("GET", "/v1/holds"))["items"]
    assert hold["prompt"] == "Refund 7?"


@pytest.mark.covers("CV-42")
async def test_tenant_sees_only_its_own_documents_and_may_use_the_same_name(server: Server) -> None:
    first = (await deploy(server))["version"]
    other = bearer(await token(server, "user:eve@other", "admin", tenant="other"))
    start = {"flow": "refund", "input": {"amount": 5}}
    base = f"/v1/flows/refund/versions/{first}"
    for method, path, body in (
        ("GET", "/v1/flows/refund", None),
        ("GET", base, None),
        ("GET", f"{base}/document", None),
        ("GET", f"{base}/layout", None),
        ("PUT", f"{base}/layout", {}),
        ("POST", "/v1/flows/refund/activate", {"version": first}),
        ("POST", "/v1/flows/refund/diff", {"to": first}),
        ("POST", "/v1/runs", start),
        ("POST", "/v1/runs", {**start, "version": first}),
    ):
        refused = await server.json(method, path, 404, json=body, headers=other)
        assert refused["code"] == "flow_not_found", path
    assert (await server.json("GET", "/v1/flows", headers=other))["items"] == []

    sent = await server.json("POST", "/v1/flows", 201, json={"source": OTHER}, headers=other)
    run = await server.json("POST", "/v1/runs", 201, json=start, headers=other)
    assert run["version"] == sent["version"] != first
    assert (await server.json("POST", "/v1/runs", 201, json=start))["version"] == first
    mine = await server.json("GET", "/v1/flows/refund")
    assert [each["version"] for each in mine["versions"]] == [first]


@pytest.mark.covers("CV-41", "PLATFORM-DOC-05")
async def test_run_of_a_document_is_done_by_a_worker_that_has_no_files(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 's.db'}"
    async with Holdfast(address) as hf, serving(hf) as server, Holdfast(address) as elsewhere:
        await deploy(server)
        run = await server.json("POST", "/v1/runs", 201, json={"flow": "refund", "input": {"amount": 5}})
        async with Worker(on=elsewhere):
            waiting = await server.json("GET", f"/v1/runs/{run['id']}/result?wait=60")
            assert waiting["status"] == "pending_input"
            [hold] = waiting["open_holds"]
            await server.json("POST", f"/v1/holds/{hold}/resolve", json={"decision": "reject"})
            ended = await server.json("GET", f"/v1/runs/{run['id']}/result?wait=60")
    assert (ended["status"], ended["state"]["decision"]) == ("completed", "reject")


@pytest.mark.covers("CV-24", "PLATFORM-HOLD-02")
async def test_document_that_names_an_unknown_connection_is_not_deployed(server: Server) -> None:
    call = "type: http, config: {connection: bank, path: /refunds}"
    text = REFUND.replace('type: set, config: {values: {paid: "{{amount}}"}}', call)
    refused = await deploy(server, text, 422)
    [found] = refused["errors"]
    assert (found["rule"], found["node"], found["field"]) == ("connection-unknown", "paid", "connection")
    assert found["fix"]


@pytest.mark.parametrize("size", [70_000, 200_000, 1_000_000])
async def test_document_of_any_allowed_size_is_taken(server: Server, size: int) -> None:
    """A request that arrived in one piece was refused as a head that is too long."""
    await deploy(server)
    for _ in range(4):
        await deploy(server, f"{REFUND}# {'x' * size}\n", 200)
