"""Documents that people work on, over HTTP: saved drafts, how they are drawn, what they would break."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Worker
from holdfast.documents.deploy import MOST_CHECKED, checks
from tests.api.conftest import Server
from tests.api.documents import REFUND, deploy, working
from tests.api.sign_in import bearer, token

pytestmark = pytest.mark.anyio

__all__ = ["working"]

AT = "/v1/documents/refund"
HALF = REFUND.replace("type: set", "type: sett")
ANY = {"If-Match": "*"}


@pytest.mark.covers("WB-66")
async def test_draft_is_saved_as_it_is_and_deploys_nothing(server: Server) -> None:
    assert (await server.json("GET", AT, 404))["code"] == "flow_not_found"
    first = await server.client.put(AT, json={"source": HALF}, headers={"If-Match": '"new"'})
    assert first.status_code == 200, first.text
    read = await server.client.get(AT)
    assert (read.json()["source"], read.json()["version"]) == (HALF, None)
    assert read.json()["saved_by"]
    assert read.json()["saved_at"].endswith(("Z", "+00:00"))
    assert (await server.client.get(AT, headers={"If-None-Match": read.headers["etag"]})).status_code == 304
    assert (await server.json("GET", "/v1/flows"))["items"] == []
    # Another person read the same draft, and saves first.
    mine = {"If-Match": read.headers["etag"]}
    assert (await server.client.put(AT, json={"source": REFUND}, headers=mine)).status_code == 200
    late = await server.client.put(AT, json={"source": HALF}, headers=mine)
    assert (late.status_code, late.json()["code"]) == (412, "version_stale")
    assert (
        await server.client.put(AT, json={"source": HALF}, headers={"If-Match": '"new"'})
    ).status_code == 412
    assert (await server.json("GET", AT))["source"] == REFUND


@pytest.mark.covers("WB-66")
async def test_deployed_document_is_edited_from_its_own_bytes_until_the_draft_is_discarded(
    server: Server,
) -> None:
    version = (await deploy(server))["version"]
    read = await server.client.get(AT)
    assert read.json() == {
        "name": "refund", "format": "yaml", "saved_by": None, "saved_at": None, "version": version,
        "source": REFUND,
    }  # fmt: skip
    saved = await server.client.put(AT, json={"source": HALF}, headers={"If-Match": read.headers["etag"]})
    assert saved.json()["version"] == version
    listed = (await server.json("GET", "/v1/documents"))["items"]
    assert [(each["name"], each["version"], bool(each["saved_by"])) for each in listed] == [
        ("refund", version, True)
    ]
    assert (await server.client.delete(AT, headers=ANY)).status_code == 204
    assert (await server.client.delete(AT, headers=ANY)).status_code == 404
    again = await server.client.get(AT)
    assert (again.json()["source"], again.headers["etag"]) == (REFUND, read.headers["etag"])


@pytest.mark.covers("WB-66")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (AT, {"source": REFUND.replace("name: refund", "name: other")}),
        ("/v1/documents/Re%20fund", {"source": "x"}),
        (AT, {"source": "x" * 4_200_000}),
        (AT, {"source": REFUND, "format": "toml"}),
        (AT, {}),
    ],
)
async def test_draft_that_could_never_be_deployed_under_its_name_is_refused(
    server: Server, path: str, body: dict[str, Any]
) -> None:
    assert (await server.client.put(path, json=body)).status_code in (413, 422)
    assert (await server.json("GET", "/v1/documents"))["items"] == []


@pytest.mark.covers("WB-66")
async def test_draft_that_another_person_saved_since_is_not_discarded(server: Server) -> None:
    await server.json("PUT", AT, json={"source": HALF})
    mine = {"If-Match": (await server.client.get(AT)).headers["etag"]}
    await server.json("PUT", AT, json={"source": REFUND}, headers=mine)
    late = await server.client.delete(AT, headers=mine)
    assert (late.status_code, late.json()["code"]) == (412, "version_stale")
    assert (await server.json("GET", AT))["source"] == REFUND
    now = {"If-Match": (await server.client.get(AT)).headers["etag"]}
    assert (await server.client.delete(AT, headers=now)).status_code == 204
    assert (await server.client.delete(AT, headers=now)).status_code == 404


@pytest.mark.covers("WB-66")
async def test_editors_that_do_not_say_what_they_read_overwrite_nothing(server: Server) -> None:
    await server.json("PUT", AT, json={"source": HALF})  # nothing is there to overwrite
    refused = await server.json("PUT", AT, 428, json={"source": REFUND})
    assert (refused["code"], "If-Match" in refused["hint"]) == ("version_required", True)
    assert (await server.client.delete(AT)).status_code == 428
    new = await server.json("PUT", AT, 412, json={"source": REFUND}, headers={"If-None-Match": "*"})
    assert "already" in new["detail"]
    assert (await server.json("GET", AT))["source"] == HALF
    other = {"source": HALF.replace("name: refund", "name: other")}
    await server.json("PUT", "/v1/documents/other", json=other, headers={"If-None-Match": "*"})


@pytest.mark.covers("WB-66")
async def test_document_that_must_exist_is_not_created(server: Server) -> None:
    refused = await server.json("PUT", AT, 412, json={"source": HALF}, headers=ANY)
    assert (refused["code"], "If-None-Match" in refused["hint"]) == ("version_stale", True)
    await server.json("GET", AT, 404)
    await deploy(server)
    await server.json("PUT", AT, json={"source": HALF}, headers=ANY)
    assert (await server.json("GET", AT))["source"] == HALF


@pytest.mark.covers("WB-66")
async def test_documents_are_listed_by_pages_without_their_texts(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deploy(server)
    for name in ("a", "b", "refund", "z"):
        source = REFUND.replace("name: refund", f"name: {name}") + f"# {'x' * 100_000}\n"
        there = ANY if name == "refund" else {}
        await server.json("PUT", f"/v1/documents/{name}", json={"source": source}, headers=there)
    store, read = await server.hf.open(), list[int]()
    listed = store.documents

    async def counted(*args: Any, **more: Any) -> Any:
        found = await listed(*args, **more)
        read.append(sum(len(each.body) for each in found))
        return found

    monkeypatch.setattr(store, "documents", counted)
    found, query = list[str](), "?limit=2"
    while query:
        page = await server.json("GET", f"/v1/documents{query}")
        assert len(page["items"]) <= 2
        found += [f"{each['name']}:{each['format']}:{bool(each['version'])}" for each in page["items"]]
        query = f"?limit=2&cursor={page['next']}" if page["next"] else ""
    assert found == ["a:yaml:False", "b:yaml:False", "refund:yaml:True", "z:yaml:False"]
    assert 0 < sum(read) < 30_000
    assert (await server.client.get("/v1/documents?cursor=x")).status_code == 422


@pytest.mark.covers("WB-66")
async def test_drafts_of_a_person_and_of_a_tenant_are_limited(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(name: str) -> dict[str, str]:
        return {"source": REFUND.replace("name: refund", f"name: {name}")}

    monkeypatch.setattr("holdfast.documents.drafts.MOST_OF_PERSON", 2)
    monkeypatch.setattr("holdfast.documents.drafts.MOST_DRAFTS", 3)
    other = bearer(await token(server, "user:dana@acme", "admin"))
    for name in ("a", "b"):
        await server.json("PUT", f"/v1/documents/{name}", json=named(name))
    refused = await server.json("PUT", "/v1/documents/c", 422, json=named("c"))
    assert "a person has at most 2 drafts" in refused["detail"]
    assert "Discard" in refused["hint"]
    # What exists can still be saved, by this person and by others.
    await server.json("PUT", "/v1/documents/a", json=named("a"), headers=ANY)
    await server.json("PUT", "/v1/documents/c", json=named("c"), headers=other)
    refused = await server.json("PUT", "/v1/documents/d", 422, json=named("d"), headers=other)
    assert "a tenant has at most 3 drafts" in refused["detail"]
    assert (await server.client.delete("/v1/documents/b", headers=ANY)).status_code == 204
    await server.json("PUT", "/v1/documents/d", json=named("d"), headers=other)
    monkeypatch.setattr("holdfast.documents.drafts.MOST_BYTES", 3 * len(REFUND))
    longer = {"source": named("a")["source"] + "#" * 500}
    refused = await server.json("PUT", "/v1/documents/a", 422, json=longer, headers=ANY)
    assert "bytes together" in refused["detail"]


@pytest.mark.covers("WB-66")
async def test_drafts_are_the_tenants_own(server: Server) -> None:
    eve = bearer(await token(server, "user:eve@other", "admin", tenant="other"))
    await server.json("PUT", AT, json={"source": REFUND})
    assert (await server.client.get(AT, headers=eve)).status_code == 404
    assert (await server.client.delete(AT, headers=eve)).status_code == 404
    assert (await server.client.get("/v1/documents", headers=eve)).json()["items"] == []
    theirs = REFUND.replace("Pays money back", "Another")
    assert (await server.client.put(AT, json={"source": theirs}, headers=eve)).status_code == 200
    assert (await server.json("GET", AT))["source"] == REFUND
    reader = bearer(await token(server, "user:reader", "viewer"))
    assert (await server.client.put(AT, json={"source": HALF}, headers=reader)).status_code == 403


@pytest.mark.covers("WB-66")
async def test_checker_names_the_ports_of_every_node_also_of_those_that_are_not_connected(
    server: Server,
) -> None:
    loose = REFUND.replace(
        "edges:", '  - {id: loose, type: router, config: {cases: [{id: big, when: "amount > 9"}]}}\nedges:'
    )
    found = await server.json("POST", "/v1/flows/validate", json={"source": loose})
    assert found["ports"]["ask"] == ["out", "approve", "reject", "timeout", "error"]
    assert found["ports"]["loose"] == ["out", "big", "else", "error"]
    assert found["ports"]["done"] == ["error"]


MAPPED = """\
holdfast: "1.0"
name: mapped
nodes:
  - {id: start, type: start}
  - {id: each, type: map, config: {over: items, into: results}}
  - {id: one, type: set, parent: each, config: {values: {a: 1}}}
  - {id: two, type: set, parent: each, config: {values: {b: 1}}}
  - {id: lost, type: set, parent: lost, config: {values: {b: 1}}}
  - {id: done, type: end}
edges:
  - {source: start, target: each}
  - {source: one, target: two}
  - {source: each, target: done}
  - {source: each, target: nowhere}
"""


LOOP = """\
holdfast: "1.0"
name: turns
variables: {tries: {type: integer, default: 0}}
nodes:
  - {id: start, type: start}
  - {id: again, type: loop, config: {while: "tries < 3", max_turns: 9}}
  - {id: count, type: set, parent: again, config: {values: {tries: "{{tries}}"}}}
  - {id: done, type: end}
edges:
  - {source: start, target: again}
  - {source: again, source_port: done, target: done}
"""


async def test_server_arranges_the_graph_of_a_stored_version_without_the_nodes_behind_loops(
    server: Server,
) -> None:
    await deploy(server, LOOP)
    graph = (await server.json("GET", "/v1/flows/turns/versions/latest"))["graph"]
    assert "again__next" in {node["id"] for node in graph["nodes"]}
    places = (await server.json("POST", "/v1/flows/arrange", json={"graph": graph}))["nodes"]
    assert set(places) - {"__START__"} == {"start", "again", "count", "done"}


async def test_server_arranges_the_nodes_of_a_document_that_is_not_done(server: Server) -> None:
    places = (await server.json("POST", "/v1/flows/arrange", json={"source": MAPPED}))["nodes"]
    assert set(places) == {"start", "each", "one", "two", "lost", "done"}
    bottom = {name: place["y"] + place["height"] for name, place in places.items()}
    assert bottom["start"] < places["each"]["y"] < bottom["each"] < places["done"]["y"]
    # Inside of the node around them, from its corner.
    assert places["one"]["x"] > 0
    assert bottom["one"] < places["two"]["y"]
    assert bottom["two"] < places["each"]["height"]
    assert places == (await server.json("POST", "/v1/flows/arrange", json={"source": MAPPED}))["nodes"]
    assert (await server.json("POST", "/v1/flows/arrange", 422, json={"source": "a: ["}))["errors"]
    await server.json("POST", "/v1/flows/arrange", 422, json={"flow": "refund"})


async def test_server_arranges_a_graph_of_code(server: Server) -> None:
    flow = Flow("coded", effect="pure")

    @flow.node
    async def first(s: dict) -> dict:
        return {}

    @flow.node
    async def second(s: dict) -> dict:
        return {}

    flow.chain(first, second)
    async with Worker(flow, on=server.hf):
        graph = (await server.json("GET", "/v1/flows/coded/versions/latest"))["graph"]
        places = (await server.json("POST", "/v1/flows/arrange", json={"graph": graph}))["nodes"]
    assert places["first"]["y"] < places["second"]["y"]


@pytest.mark.covers("WB-41-check")
async def test_document_that_is_not_deployed_names_the_live_runs_that_it_would_break(
    working: Server,
) -> None:
    await deploy(working)
    run = await working.json(
        "POST", "/v1/runs", 201, json={"flow": "refund", "input": {"amount": 1}, "wait": 60}
    )
    assert run["status"] == "pending_input"
    without = REFUND.replace("id: ask", "id: demand").replace("source: ask", "source: demand")
    without = without.replace("target: ask", "target: demand")
    found = await working.json("POST", "/v1/flows/check", json={"source": without})
    assert (found["flow"], found["fits"], found["breaks"]) == ("refund", 0, 1)
    assert (found["runs"][0]["run"], found["runs"][0]["misfits"][0]["node"]) == (run["id"], "ask")
    more = REFUND.replace('{values: {paid: "{{amount}}"}}', '{values: {paid: "{{amount}}", late: true}}')
    assert (await working.json("POST", "/v1/flows/check", json={"source": more}))["fits"] == 1
    await working.json("POST", "/v1/flows/check", 422, json={"source": HALF})
    eve = bearer(await token(working, "user:eve@other", "admin", tenant="other"))
    theirs = await working.client.post("/v1/flows/check", json={"source": without}, headers=eve)
    assert theirs.json()["runs"] == []
    # Once it is deployed, it is what the flow is checked against, also before a run of it starts.
    await working.json("POST", "/v1/flows", 201, json={"source": without})
    found = await working.json("GET", "/v1/flows/refund/check")
    assert (found["fits"], found["breaks"], found["runs"][0]["run"]) == (0, 1, run["id"])


@pytest.mark.covers("WB-66", "CV-11")
async def test_draft_whose_aliases_nest_too_deep_is_saved_and_its_problem_has_a_place(server: Server) -> None:
    rows = ["ui:", "  a0: &a0 1"]
    rows += [f"  a{i}: &a{i} {'[' * 50}*a{i - 1}{']' * 50}" for i in range(1, 40)]
    deep = "\n".join([REFUND, *rows])
    saved = await server.client.put(AT, json={"source": deep}, headers={"If-Match": '"new"'})
    assert saved.status_code == 200, saved.text
    assert (await server.json("GET", AT))["source"] == deep
    found = await server.json("POST", "/v1/flows/validate", json={"source": deep})
    problem = found["problems"][0]
    assert (problem["rule"], problem["line"]) == ("document-depth", REFUND.count("\n") + 5)
    assert problem["fix"]
    refused = await server.json("POST", "/v1/flows", 422, json={"source": deep})
    assert refused["errors"][0]["rule"] == "document-depth"


@pytest.mark.covers("CV-51")
async def test_documents_of_a_tenant_wait_in_its_own_queue_whatever_reads_them(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = (await deploy(server))["version"]
    other = bearer(await token(server, "user:eve@other", "admin", tenant="other"))
    monkeypatch.setitem(checks._waiting, "default", MOST_CHECKED)  # pyright: ignore[reportPrivateUsage]
    base = f"/v1/flows/refund/versions/{version}"
    for method, path, body in (
        ("PUT", "/v1/documents/refund", {"source": HALF}),
        ("POST", "/v1/flows/refund/diff", {"from": version, "source": HALF}),
        ("POST", "/v1/flows/validate", {"source": HALF}),
        ("GET", f"{base}/document?format=json", None),
    ):
        refused = await server.json(method, path, 429, json=body, headers=ANY)
        assert refused["code"] == "rate_limited", path
    saved = await server.client.put(
        "/v1/documents/refund", json={"source": HALF}, headers={**other, "If-Match": '"new"'}
    )
    assert saved.status_code == 200, saved.text
