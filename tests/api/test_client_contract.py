"""The client and the OpenAPI document say the same: nothing is out of reach, nothing is made up."""

from __future__ import annotations

import asyncio
import copy
import inspect
import re
import subprocess
import sys
import types
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from holdfast.client import AsyncClient, Client, models
from holdfast.client.aio.group import AsyncGroup
from holdfast.client.aio.pages import AsyncPages
from holdfast.client.aio.streams import AsyncEventStream
from holdfast.client.model import Model
from holdfast.client.options import StartOptions
from holdfast.client.requests import Request
from holdfast.client.sync.group import Group
from holdfast.errors import SettingsError
from tests.deadlines import HANG
from tools import client as tool

SAME = {
    ("POST /v1/runs", "idempotency_key"),  # the header's
    ("POST /v1/threads/{thread}/runs", "idempotency_key"),
    ("POST /v1/threads/{thread}/runs", "thread"),  # the path's
    ("POST /v1/runs/{run}/resume", "checkpoint_id"),  # in the body and in the address
    ("POST /v1/runs/{run}/resume", "mode"),
}
"""What can be said in two places and is said in one."""


class Sent(NamedTuple):
    """What a method sends when it is given everything that it takes."""

    method: str
    request: Request


class Stop(Exception):
    pass


# ---------------------------------------------------------------------- what the client does
def methods(client: Any, kind: type) -> Iterator[tuple[str, Any]]:
    for theme, group in vars(client).items():
        if isinstance(group, kind):
            for name, method in inspect.getmembers(group, inspect.ismethod):
                if not name.startswith("_"):
                    yield f"{theme}.{name}", method


def anything(hint: Any, name: str) -> Any:
    """Some value of that type."""
    if get_origin(hint) in (Union, types.UnionType):
        hints = [each for each in get_args(hint) if each not in (type(None), msgspec.UnsetType)]
        return anything(next((each for each in hints if get_origin(each) is not None), hints[0]), name)
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if get_origin(hint) is not None:
        is_mapping = issubclass(get_origin(hint), Mapping)
        return {} if is_mapping else [anything(get_args(hint)[0], name)]
    known: dict[Any, Any] = {
        str: f"a-{name}", int: 1, float: 1.5, bool: True, bytes: b"{}", datetime: datetime.now(UTC)
    }  # fmt: skip
    return known.get(hint, {"any": "thing"})


def sent(client: AsyncClient) -> list[Sent]:
    seen: list[Request] = []
    found: list[Sent] = []

    async def record(request: Request, **_: Any) -> Any:
        seen.append(request)
        raise Stop

    client._transport.send = client._transport.open = record  # type: ignore[method-assign]
    for name, method in methods(client, AsyncGroup):
        hints = get_type_hints(method)
        hints.pop("return")
        asyncio.run(called(method(**{each: anything(hint, each) for each, hint in hints.items()})))
        found.append(Sent(name, seen.pop()))
    return found


async def called(made: Any) -> None:
    if isinstance(made, AsyncPages):
        made = made.page()
    elif isinstance(made, AsyncEventStream):
        made = anext(made)
    with pytest.raises(Stop):
        await made


# ---------------------------------------------------------------------- what the document says
def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            # Called by the clients of its own protocol.
            if said["operationId"] != "stream_ag_ui":
                yield f"{method.upper()} {path}", said


def fields(document: dict[str, Any], said: dict[str, Any]) -> set[str]:
    content = said.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return set(schema.get("properties", {}))


def params(said: dict[str, Any], place: str) -> set[str]:
    return {each["name"] for each in said.get("parameters", ()) if each["in"] == place}


def complaints(document: dict[str, Any], requests: list[Sent]) -> list[str]:
    """Every difference, in words."""
    found: list[str] = []
    met: dict[str, str] = {}
    for name, request in requests:
        operation = operation_of(document, request)
        if operation is None:
            found.append(f"{name}: there is no {request.name}")
        elif operation in met:
            found.append(f"{name} and {met[operation]} are both {operation}")
        else:
            met[operation] = name
    said = dict(operations(document))
    found += [f"{operation} has no method" for operation in said if operation not in met]
    by_name = {each.method: each.request for each in requests}
    for operation, name in met.items():
        found += differences(document, operation, said[operation], name, by_name[name])
    return found


def operation_of(document: dict[str, Any], request: Request) -> str | None:
    """By the path's parts, which are named for their parameters: `/v1/runs/a-run`."""
    template = re.sub(r"/a-(\w+)", r"/{\1}", request.path)
    methods = document["paths"].get(template, {})
    return f"{request.method} {template}" if request.method.lower() in methods else None


def differences(
    document: dict[str, Any], operation: str, said: dict[str, Any], name: str, request: Request
) -> Iterator[str]:
    body = msgspec.json.decode(request.content) if is_json(request) else {}
    fitting = {
        "query": (params(said, "query"), {each for each, _ in request.query}),
        "body": (fields(document, said), set(body) if fields(document, said) else set()),
    }
    for place, (known, given) in fitting.items():
        # A page's cursor is sent for the second page.
        for each in sorted(known - given - {"cursor"}):
            if (operation, each) not in SAME:
                yield f"{name} cannot say {each} in the {place} of {operation}"
        for each in sorted(given - known):
            yield f"{name} says {each} in the {place} of {operation}, which knows none"
    if ("requestBody" in said) != (request.content is not None or request.files is not None):
        yield f"{name} and {operation} do not agree about a body"
    for header in ("Idempotency-Key", "If-Match"):
        if (header in params(said, "header")) != (header in request.headers):
            yield f"{name} and {operation} do not agree about {header}"


def is_json(request: Request) -> bool:
    return request.content is not None and request.headers.get("Content-Type") == "application/json"


# ---------------------------------------------------------------------- tests
@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(tool.document()))


@pytest.fixture(scope="module")
def requests() -> list[Sent]:
    return sent(AsyncClient("http://127.0.0.1:1"))


@pytest.mark.covers("SERVER-SDK-01", "SERVER-SDK-04")
def test_client_and_document_agree(document: dict[str, Any], requests: list[Sent]) -> None:
    assert complaints(document, requests) == [], "run: python tools/client.py"
    assert len(requests) > 150


@pytest.mark.covers("SERVER-SDK-04")
def test_difference_is_found_on_either_side(document: dict[str, Any], requests: list[Sent]) -> None:
    other = copy.deepcopy(document)
    paths, schemas = other["paths"], other["components"]["schemas"]
    paths["/v1/news"] = {"get": {"operationId": "list_news", "tags": ["news"], "responses": {}}}
    del paths["/v1/flows/{flow}/check"]
    schemas["CancelRun"]["properties"] = {"why": {"type": "string"}}
    paths["/v1/limits"]["get"]["parameters"][0]["name"] = "begins"
    paths["/v1/runs/{run}/fork"]["post"]["parameters"] = [{"name": "run", "in": "path"}]
    assert sorted(complaints(other, requests)) == [
        "GET /v1/news has no method",
        "flows.check: there is no GET /v1/flows/a-flow/check",
        "limits.list cannot say begins in the query of GET /v1/limits",
        "limits.list says prefix in the query of GET /v1/limits, which knows none",
        "runs.cancel cannot say why in the body of POST /v1/runs/{run}/cancel",
        "runs.cancel says reason in the body of POST /v1/runs/{run}/cancel, which knows none",
        "runs.fork and POST /v1/runs/{run}/fork do not agree about Idempotency-Key",
        "runs.fork and POST /v1/runs/{run}/fork do not agree about If-Match",
    ]


def test_client_stands_without_the_engine_and_the_library_of_http() -> None:
    text = (
        "import sys; from holdfast.client import AsyncClient as A, Client as C; A(); C(); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=HANG
    )
    loaded = set(done.stdout.split())
    assert {name.split(".")[1] for name in loaded if name.startswith("holdfast.")} == {
        "_version", "client", "errors", "types"
    }  # fmt: skip
    assert not loaded & {"httpx2", "starlette", "apsw", "uvicorn"}


def test_every_model_can_be_read() -> None:
    """msgspec tells only when it is asked whether it can tell the types of a union apart."""
    kinds = [each for each in vars(models).values() if inspect.isclass(each) and issubclass(each, Model)]
    for kind in kinds:
        msgspec.json.Decoder(kind)
    assert len(kinds) > 50


def test_run_is_started_with_everything_that_it_can_be_created_with() -> None:
    create = inspect.signature(AsyncClient("http://127.0.0.1:1").runs.create).parameters
    assert set(StartOptions.__annotations__) == set(create) - {"workflow_uri", "flow", "input"}


def test_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(SettingsError, match="httpx2") as found, Client("http://127.0.0.1:1") as client:
        client.flows.list()
    assert "pip install 'holdfast-flow[client]'" in (found.value.hint or "")


@pytest.mark.covers("SERVER-SDK-02", "SERVER-SDK-04")
def test_files_are_what_the_tool_writes() -> None:
    made = tool.generated()
    wrong = [str(path.relative_to(tool.ROOT)) for path in [*tool.stale(made), *tool.orphan_files(made)]]
    assert wrong == [], "run: python tools/client.py"


@pytest.mark.covers("SERVER-SDK-02")
def test_sync_form_has_the_same_methods_with_the_same_arguments() -> None:
    loops = dict(methods(AsyncClient("http://127.0.0.1:1"), AsyncGroup))
    plain = dict(methods(Client("http://127.0.0.1:1"), Group))
    assert plain.keys() == loops.keys()
    for name, method in plain.items():
        assert not inspect.iscoroutinefunction(method)
        given = inspect.signature(method)
        assert given.parameters == inspect.signature(loops[name]).parameters, name
        assert given.return_annotation == str(inspect.signature(loops[name]).return_annotation).replace(
            "Async", ""
        )
