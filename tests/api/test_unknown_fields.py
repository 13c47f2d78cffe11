"""A field that an operation does not have is refused, in every operation of the route table."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import msgspec.inspect as shapes
import pytest

from holdfast import Holdfast
from holdfast.api.auth.rights import Right
from holdfast.api.pages.all import PAGES
from holdfast.api.pages.negotiation import TAG
from holdfast.api.routes.all import THEMES
from holdfast.api.routing import Route, Routes
from holdfast.integrations.mcp import question_tools, run_tools
from holdfast.integrations.mcp.http import routes as mcp_routes
from holdfast.integrations.mcp.tool_registry import ToolRegistry, schema_of
from tests.api.conftest import Server, serving
from tests.api.test_matrix import filled, name_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-02")]

ROUTES: Final = [route for theme in THEMES for route in theme.found]
SIGNED: Final = {
    "POST /v1/inbound/slack/{way}", "POST /v1/inbound/webhooks/{way}", "POST /v1/inbound/mail/{way}",
}  # fmt: skip
"""Messages of other systems, which add fields as they like; each is authenticated by its signature."""
FILES: Final = {"POST /v1/runs/import", "POST /v1/holds/{hold}/files"}
UNKNOWN: Final = "no_such_field"


async def test_every_operation_refuses_a_field_that_it_does_not_have(server: Server) -> None:
    wrong: list[str] = []
    for route in ROUTES:
        if route.body is bytes:
            assert name_of(route) in SIGNED | FILES, f"{name_of(route)} takes bytes: who checks its fields?"
            continue
        answer = await _sent(server.client, route, {UNKNOWN: 1})
        named = UNKNOWN in answer.text or (route.body is None and "no body" in answer.text)
        if answer.status_code != 422 or not named:
            wrong.append(f"{name_of(route)}: {answer.status_code} {answer.text[:200]}")
    assert not wrong, "\n".join(wrong)


async def test_every_operation_refuses_a_field_inside_its_fields(server: Server) -> None:
    wrong: list[str] = []
    tried = 0
    for route in ROUTES:
        if route.body in (None, bytes):
            continue
        for place, body in _nested(shapes.type_info(route.body)):
            tried += 1
            answer = await _sent(server.client, route, body)
            if answer.status_code != 422 or UNKNOWN not in answer.text:
                wrong.append(f"{name_of(route)} {place}: {answer.status_code} {answer.text[:200]}")
    assert tried >= 5
    assert not wrong, "\n".join(wrong)


async def test_every_operation_refuses_a_parameter_that_it_does_not_have(server: Server) -> None:
    wrong: list[str] = []
    for route in ROUTES:
        params = {} if route.query is None else least(shapes.type_info(route.query))
        answer = await server.client.request(
            route.method, filled(route.path), params={**params, UNKNOWN: "1"}, content=b"{}"
        )
        if answer.status_code != 422 or answer.json()["code"] != "unknown_parameter":
            wrong.append(f"{name_of(route)}: {answer.status_code} {answer.text[:200]}")
    assert not wrong, "\n".join(wrong)


ANY_QUERY: Final = {
    # Files, and redirects to addresses that the app has with parameters of its own.
    "GET /static/{name}", "GET /client/manifest.json", "GET /client/{name}", "GET /client/{digest}/{name}",
    "GET /inbox", "GET /inbox/{hold}", "GET /inbox/{view}/{hold}",
    # Mail systems and providers add parameters.
    "GET /l/{token}", "GET /sign-in/oidc/callback",
}  # fmt: skip


async def test_every_page_refuses_a_parameter_that_it_does_not_have(server: Server) -> None:
    wrong: list[str] = []
    assert {name_of(route) for route in (*PAGES, *mcp_routes.found) if route.reads_query} == ANY_QUERY
    for route in (each for each in PAGES if not each.reads_query):
        answer = await server.client.request(
            route.method,
            filled(route.path),
            params={UNKNOWN: "1"},
            data={"csrf_token": "any"} if route.method == "POST" else None,
            headers={"Accept": "text/html"},
        )
        if answer.status_code != 422 or f"Unknown parameter {UNKNOWN!r}" not in unescape(answer.text):
            wrong.append(f"{name_of(route)}: {answer.status_code} {answer.text[:200]}")
    assert not wrong, "\n".join(wrong)


async def test_the_address_for_agents_refuses_a_parameter(tmp_path: Path) -> None:
    async with (
        Holdfast(f"sqlite:{tmp_path / 'm.db'}") as hf,
        serving(hf, themes=(*THEMES, mcp_routes)) as server,
    ):
        answer = await server.client.post("/mcp", params={"tenant": "acme"}, json={})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_parameter")


@pytest.mark.parametrize("path", ["/absence", "/flows/refund", "/links", "/sign-in"])
async def test_form_of_a_page_with_a_field_that_it_does_not_have_is_refused(
    server: Server, path: str
) -> None:
    answer = await server.client.post(path, data={UNKNOWN: "1"}, headers={"Accept": "text/html"})
    assert answer.status_code == 422, answer.text
    assert f"Unknown field {UNKNOWN!r}" in unescape(answer.text)


def test_every_tool_of_agents_says_that_it_takes_no_other_argument() -> None:
    found = [*question_tools.tools.found.values(), *run_tools.tools.found.values()]
    assert len(found) > 10
    for tool in found:
        assert schema_of(tool.takes)["additionalProperties"] is False, tool.name

    class Loose(msgspec.Struct):
        a: int = 0

    async def made(agent: Any, given: Any, progress: Any) -> None: ...

    made.__annotations__ = {"given": Loose, "return": None}
    with pytest.raises(TypeError, match="forbid_unknown_fields"):
        ToolRegistry().tool(needs=Right.admin)(made)


async def test_operation_without_a_body_accepts_an_empty_one(server: Server) -> None:
    route = next(each for each in ROUTES if each.path == "/v1/dead/{run}/retry")
    path = filled(route.path)
    for body in ({}, {"content": b"{}"}, {"content": b" {}\n"}):
        assert (await server.client.post(path, **body)).status_code == 404
    assert (await server.client.post(path, content=b"[1]")).status_code == 422


def test_route_whose_body_ignores_fields_cannot_be_declared() -> None:
    class Loose(msgspec.Struct):
        a: int = 0

    async def made(call: Any, body: Any) -> None: ...

    made.__annotations__ = {"body": Loose, "return": None}
    with pytest.raises(TypeError, match="forbid_unknown_fields"):
        Routes("x").post("/x", needs=Right.admin)(made)


def test_only_pages_and_mcp_read_their_bodies_themselves() -> None:
    assert [name_of(route) for route in ROUTES if route.reads_body] == []
    assert all(route.reads_body for route in mcp_routes.found)
    assert TAG not in {route.tag for route in ROUTES}


async def _sent(client: httpx2.AsyncClient, route: Route, body: Any) -> httpx2.Response:
    params = {} if route.query is None else least(shapes.type_info(route.query))
    data = msgspec.json.encode(body)
    return await client.request(route.method, filled(route.path), params=params, content=data)


def _nested(kind: shapes.Type) -> Iterator[tuple[str, Any]]:
    """Bodies that are valid but for one unknown field in a struct below the first."""
    assert isinstance(kind, (shapes.StructType, shapes.DictType)), kind
    if isinstance(kind, shapes.DictType):
        return
    for field in kind.fields:
        for place, value in _with_unknown(field.type):
            yield f"{field.encode_name}{place}", {**least(kind), field.encode_name: value}


def _with_unknown(kind: shapes.Type) -> Iterator[tuple[str, Any]]:
    if isinstance(kind, shapes.StructType):
        yield "", {UNKNOWN: 1, **least(kind)}
        for place, value in _nested(kind):
            yield f".{place}", value
    elif isinstance(kind, shapes.Metadata):
        yield from _with_unknown(kind.type)
    elif isinstance(kind, shapes.UnionType):
        for inner in kind.types:
            yield from _with_unknown(inner)
    elif isinstance(kind, shapes.CollectionType):
        yield from ((f"[]{place}", [value]) for place, value in _with_unknown(kind.item_type))
    elif isinstance(kind, shapes.DictType):
        yield from ((f"{{}}{place}", {"k": value}) for place, value in _with_unknown(kind.value_type))


def least(kind: shapes.StructType) -> dict[str, Any]:
    return {field.encode_name: sample(field.type) for field in kind.fields if field.required}


def sample(kind: shapes.Type) -> Any:
    if isinstance(kind, shapes.Metadata):
        return sample(kind.type)
    if isinstance(kind, shapes.UnionType):
        return sample(kind.types[0])
    if isinstance(kind, shapes.StructType):
        return least(kind)
    if isinstance(kind, shapes.LiteralType):
        return kind.values[0]
    if isinstance(kind, shapes.EnumType):
        return next(iter(kind.cls)).value
    plain = {
        shapes.StrType: "a", shapes.IntType: 1, shapes.FloatType: 1.0, shapes.BoolType: True,
        shapes.DateTimeType: "2099-01-01T00:00:00Z", shapes.AnyType: {}, shapes.DictType: {},
    }  # fmt: skip
    return [] if isinstance(kind, shapes.CollectionType) else plain[type(kind)]


@pytest.mark.anyio
async def test_what_is_not_known_is_refused_with_what_is_known(server: Server) -> None:
    misspelt = await server.json("POST", "/v1/runs", 422, json={"flwo": "refund"})
    assert "unknown field `flwo`" in misspelt["detail"]
    assert {"flow", "input", "idempotency_key"} <= set(misspelt["hint"][len("Known: ") : -1].split(", "))
    nested = await server.json(
        "POST", "/v1/tokens", 422, json={"subject": "user:a", "roles": ["member"], "expires": 1}
    )
    assert "expires_at" in nested["hint"]
    status = await server.json("GET", "/v1/runs?status=asleep", 422)
    assert ("unknown value 'asleep'" in status["detail"], "pending_input" in status["hint"]) == (True, True)
    assert "snoozed" in (await server.json("GET", "/v1/holds?view=nope", 422))["hint"]
