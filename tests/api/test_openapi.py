"""The OpenAPI document is complete, and true: what is answered fits what it says."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from holdfast.api.routes.all import THEMES
from tests.api.conftest import Server

pytestmark = pytest.mark.anyio

ORDER = {"order": "A1", "amount": 7}


class Described:
    """Sends requests, and holds each answer against the document."""

    def __init__(self, server: Server, document: dict[str, Any]) -> None:
        self.server = server
        self.document = document
        self.seen: set[tuple[str, str]] = set()

    async def send(self, method: str, template: str, status: int, **more: Any) -> Any:
        fills: dict[str, str] = more.pop("fills", {})
        operation = self.document["paths"][template][method.lower()]
        answer = await self.server.client.request(method, template.format(**fills), **more)
        assert answer.status_code == status, (method, template, answer.status_code, answer.text)
        said = operation["responses"][str(status)]
        media = answer.headers.get("content-type", "")
        if not answer.content:
            assert "content" not in said, (method, template)
            return None
        assert media in said["content"], (method, template, media)
        self.seen.add((method, template))
        if "json" not in media:
            return answer.content
        schema = {**said["content"][media]["schema"], "components": self.document["components"]}
        found = answer.json()
        problems = [str(each) for each in jsonschema_rs.Draft202012Validator(schema).iter_errors(found)]
        assert not problems, (method, template, problems[:3])
        return found


@pytest.fixture
async def described(shop: Server) -> Described:
    return Described(shop, await shop.json("GET", "/openapi.json"))


@pytest.mark.covers("SERVER-API-12")
async def test_every_route_is_described_once(described: Described) -> None:
    declared = {
        (route.method, route.path.replace(":path}", "}")) for theme in THEMES for route in theme.found
    }
    paths = described.document["paths"]
    listed = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert listed == declared
    operations = [each for methods in paths.values() for each in methods.values()]
    names = [each["operationId"] for each in operations]
    assert len(names) == len(set(names))
    assert all(each["summary"] for each in operations)
    # Every reference leads somewhere, and every schema is one.
    for name, schema in described.document["components"]["schemas"].items():
        jsonschema_rs.Draft202012Validator({**schema, "components": described.document["components"]})
        assert schema.get("type") or "anyOf" in schema or "enum" in schema, name


@pytest.mark.anyio
async def test_names_that_are_gone_are_no_fields(described: Described) -> None:
    schemas = described.document["components"]["schemas"].values()
    fields = {field for schema in schemas for field in schema.get("properties", ())}
    assert not fields & {"told", "trials", "hot", "in_line", "house", "desk", "clerk"}


@pytest.mark.covers("SERVER-API-12", "SERVER-BAD-01")
async def test_answers_about_runs_fit_their_schemas(described: Described) -> None:
    send = described.send
    body = {"flow": "refund", "input": ORDER, "thread": "t", "wait": 60}
    run = await send("POST", "/v1/runs", 201, json=body)
    of = {"run": run["id"], "thread": "t", "checkpoint": "latest", "name": "receipt.txt", "seq": "1"}
    await send("POST", "/v1/runs", 404, json={"flow": "nothing"})
    await send("POST", "/v1/runs", 422, json={"flow": "refund", "input": {"amount": "x"}})
    await send("POST", "/v1/runs/{run}/input", 422, fills=of, json={"content": "perhaps"})
    await send("GET", "/v1/runs/pending", 200)
    await send("POST", "/v1/runs/{run}/fork", 201, fills=of, json={"seq": 1})
    await send("POST", "/v1/runs/{run}/resume", 200, fills=of)
    await send("POST", "/v1/runs/{run}/input", 200, fills=of, json={"content": "approve"})
    await send("GET", "/v1/runs/{run}/result", 200, fills=of, params={"wait": 60})
    await send("POST", "/v1/runs/{run}/cancel", 409, fills=of, json={})
    await send("POST", "/v1/runs/{run}/steer", 409, fills=of, json={"text": "Be brief."})
    await send("POST", "/v1/runs/{run}/preview", 200, fills=of, json={"action": "fork"})
    shown = (
        "checkpoints",
        "checkpoints/{checkpoint}",
        "steps/{seq}",
        "timeline",
        "records",
        "postmortem",
        "drawing",
        "graph",
        "events",
        "artifacts",
        "callbacks",
    )
    for path in ("", *(f"/{part}" for part in shown)):
        await send("GET", f"/v1/runs/{{run}}{path}", 200, fills=of)
    await send("GET", "/v1/runs/{run}/artifacts/{name}", 200, fills=of)
    await send("GET", "/v1/runs/{run}/artifacts/{name}", 404, fills={**of, "name": "none"})
    await send("GET", "/v1/runs/{run}/export", 200, fills=of)
    await send("GET", "/v1/runs/{run}/diff", 200, fills=of, params={"to": run["id"]})
    await send("POST", "/v1/runs/{run}/rewind", 201, fills=of, json={"seq": 1})
    await send("POST", "/v1/threads/{thread}/runs", 201, fills=of, json={**body, "wait": 0})
    await send("GET", "/v1/threads/{thread}/runs", 200, fills=of)
    await send("GET", "/v1/threads", 200)
    await send("DELETE", "/v1/runs/{run}", 204, fills=of)
    await send("DELETE", "/v1/runs/{run}", 404, fills=of)
    await send("POST", "/v1/runs/import", 422, content=b"nothing")
    await send("GET", "/v1/runs", 200)
    await send("GET", "/v1/runs", 422, params={"limit": 0})
    await send("GET", "/v1/runs/count", 200, params={"q": "status:failed"})
    await send("POST", "/v1/runs/bulk", 200, json={"runs": [run["id"]], "action": "cancel"})
    assert {path for _, path in described.seen} >= {
        path for path in described.document["paths"] if path.startswith(("/v1/runs", "/v1/threads"))
    } - {"/v1/runs/{run}/stream"}


@pytest.mark.covers("SERVER-API-12")
async def test_answers_about_the_rest_fit_their_schemas(described: Described) -> None:
    send = described.send
    body = {"flow": "refund", "input": ORDER, "wait": 60}
    run = await send("POST", "/v1/runs", 201, json=body)
    of = {"flow": "refund", "version": "latest", "name": "flow:refund", "run": run["id"]}
    await send("GET", "/v1/flows", 200)
    await send("GET", "/v1/flows/{flow}", 200, fills=of)
    graph = (await send("GET", "/v1/flows/{flow}/versions/{version}", 200, fills=of))["graph"]
    await send("GET", "/v1/flows/{flow}/versions/{version}/drawing", 200, fills=of)
    await send("GET", "/v1/flows/{flow}/check", 200, fills=of)
    await send("POST", "/v1/flows/validate", 200, json={"graph": {**graph, "edges": []}})
    await send("POST", "/v1/flows", 201, json={"graph": {**graph, "name": "other"}})
    await send("PUT", "/v1/limits/{name}", 200, fills=of, json={"concurrency": 3})
    await send("GET", "/v1/limits", 200)
    await send("DELETE", "/v1/limits/{name}", 204, fills=of)
    of["name"] = "daily"
    plan = {"flow": "refund", "every": "1h", "input": ORDER}
    await send("PUT", "/v1/schedules/{name}", 201, fills=of, json=plan)
    await send("PUT", "/v1/schedules/{name}", 200, fills=of, json=plan)
    for act in ("pause", "resume"):
        await send("POST", f"/v1/schedules/{{name}}/{act}", 200, fills=of)
    await send("POST", "/v1/schedules/{name}/trigger", 201, fills=of)
    await send("GET", "/v1/schedules/{name}/next", 200, fills=of)
    await send("GET", "/v1/schedules/{name}", 200, fills=of)
    await send("GET", "/v1/schedules", 200)
    await send("DELETE", "/v1/schedules/{name}", 204, fills=of)
    for path in ("/v1/workers", "/v1/leases", "/v1/figures", "/v1/admin/status", "/v1/dead"):
        await send("GET", path, 200)
    await send("GET", "/v1/dead/{run}", 200, fills=of)
    for act in ("retry", "discard"):
        await send("POST", f"/v1/dead/{{run}}/{act}", 409, fills=of)
