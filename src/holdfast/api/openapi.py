"""The OpenAPI document, generated from the same route declarations that are dispatched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, cast

import msgspec
from starlette.responses import Response

from holdfast._version import __version__
from holdfast.api.auth.rights import Access, Right
from holdfast.api.problems import MEDIA, Problem
from holdfast.api.routing import LONGEST_KEY, LONGEST_NAME, Route

_REF = "#/components/schemas/{name}"
_TYPED = re.compile(r"\{(\w+):\w+\}")
_FILE: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_NAME: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
_FORM: dict[str, Any] = {"schema": {"type": "object", "additionalProperties": _FILE["schema"]}}
_ABOUT = (
    "Runs of durable flows, and the questions that they ask people. Errors are `application/problem+json`; "
    "every answer has `X-Request-Id`. Where no field of a body is needed, send `{}`."
)
_TOKEN = "A token of `holdfast tokens create`."
_SESSION = "The cookie of a browser that is signed in. Changes also need a header against other sites."
ALWAYS = (400, 401, 403, 408, 429, 431, 500, 503)
"""Statuses of every route: an invalid credential is refused everywhere, and so are requests whose headers are
too long or come too slowly."""
TAGS = {
    "admin": "Figures, workers, limits, dead letters, tokens",
    "arrangements": "Calendars, policies, substitutes and other settings of holds",
    "audit": "The audit log and its verification",
    "callbacks": "Places of runs that other systems complete with a token",
    "checkpoints": "Holds under the names of the checkpoint document",
    "deployments": "Deployments and skills",
    "directory": "People, groups and rights",
    "documents": "Flow documents that are edited, before they are deployed",
    "flows": "Flows, their versions and checks",
    "graph": "Checkpoints of the graph document",
    "holds": "Questions to people, and their decisions",
    "inbound": "Answers that come by chat, mail and webhook",
    "mcp": "The Model Context Protocol, for agents",
    "pipelines": "Pipelines in DOT",
    "queues": "Queues and their messages",
    "runs": "Runs, their history and files",
    "schedules": "Schedules",
    "session": "The caller",
    "streams": "Events as they happen",
    "threads": "Runs of one conversation",
    "views": "Saved views of the inbox",
}


def document(routes: Iterable[Route], *, title: str = "Holdfast", root: str = "") -> dict[str, Any]:
    """`root`: the path below which the application is mounted."""
    shown = list(routes)
    types = [each for route in shown for each in (route.body, route.answer, route.query) if _is_json(each)]
    found, components = msgspec.json.schema_components([Problem, *types], ref_template=_REF)
    schemas = dict(zip([Problem, *types], found, strict=True))
    paths: dict[str, Any] = {}
    for route in shown:
        path = _TYPED.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, schemas)
    _link(shown, paths)
    tags = sorted({route.tag for route in shown})
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": root or "/"}, {"url": f"{root}/api"}],
        "tags": [{"name": each, "description": TAGS.get(each, each)} for each in tags],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": _TOKEN},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "holdfast_session",
                    "description": _SESSION,
                },
            },
        },
    }
    prepare_schemas(whole)
    return whole


def _link(routes: list[Route], paths: dict[str, Any]) -> None:
    """Links from an answer that creates something to the routes that use it."""
    for route in routes:
        if not route.makes:
            continue
        response = paths[route.path][route.method.lower()]["responses"][str(route.status)]
        response["links"] = {
            other.name: {"operationId": other.name, "parameters": {route.makes: "$response.body#/id"}}
            for other in routes
            if route.makes in other.params
        }


def _is_json(each: Any) -> bool:
    return each is not None and not (isinstance(each, type) and issubclass(each, (Response, bytes)))


def _operation(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "responses": _responses(route, schemas),
    }
    if route.about:
        operation["description"] = route.about
    parameters = [*map(_in_path, route.params), *_in_query(route), *_in_header(route)]
    if parameters:
        operation["parameters"] = parameters
    if route.body is bytes:
        operation["requestBody"] = {"required": True, "content": _files(route.media)}
    elif route.body is not None or route.reads_body:
        # Always required, although the server takes a missing body as an empty object: otherwise generated
        # clients let callers forget the body of an operation whose fields have two names, such as `flow`.
        content = {"application/json": {"schema": schemas.get(route.body, {"type": "object"})}}
        content |= {each: {"schema": {"type": "string"}} for each in route.raw}
        operation["requestBody"] = {"required": True, "content": content}
    operation["security"] = (
        [] if route.needs in (Access.public, Access.link) else [{"token": []}, {"session": []}]
    )
    if isinstance(route.needs, Right):
        operation["x-holdfast-right"] = str(route.needs)
    return operation


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _NAME}


def _in_header(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if route.keyed:
        text = "A repeated request with the same key has no further effect."
        found.append(_header("Idempotency-Key", text, minLength=1, maxLength=LONGEST_KEY))
    if route.guarded:
        without = " Without it: 428 if it exists." if route.must_match else ""
        found.append(_header("If-Match", f"The ETag that you read: 412 if it has changed since.{without}"))
    return found


def _header(name: str, text: str, **limits: int) -> dict[str, Any]:
    shape = {"type": "string", **limits}
    return {"name": name, "in": "header", "required": False, "description": text, "schema": shape}


def _in_query(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    (schema,), components = msgspec.json.schema_components([route.query], ref_template=_REF)
    whole = components[schema["$ref"].rpartition("/")[2]]
    required = set(whole.get("required", ()))
    return [
        {"name": name, "in": "query", "required": name in required, "schema": shape}
        for name, shape in whole.get("properties", {}).items()
    ]


def _responses(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    right: dict[str, Any] = {"description": HTTPStatus(route.status).phrase}
    status = route.status
    if route.answer is None:
        status = 204 if status == 200 else status
        right["description"] = HTTPStatus(status).phrase
    elif _is_json(route.answer):
        right["content"] = {"application/json": {"schema": schemas[route.answer]}}
    elif route.media and route.body is not bytes:
        right["content"] = _files(route.media)
    found: dict[str, Any] = {str(status): _with_headers(status, right)}
    for each in route.more:
        further = {**right, "description": HTTPStatus(each).phrase}
        if each in (204, 304):
            further.pop("content", None)
        found[str(each)] = _with_headers(each, further)
    problem = {"content": {MEDIA: {"schema": schemas[Problem]}}}
    for each in sorted({*_statuses(route)}):
        found.setdefault(str(each), {"description": HTTPStatus(each).phrase, **problem})
    return found


def _files(media: tuple[str, ...]) -> dict[str, Any]:
    """A JSON file has no schema, nor has a stream: tools would take it to be that of each event. The parts of
    a form are files."""
    other: dict[str, dict[str, Any]] = {
        "application/json": {"schema": {}}, "text/event-stream": {"schema": {}}, "multipart/form-data": _FORM
    }  # fmt: skip
    return {each: other.get(each, _FILE) for each in media}


def _with_headers(status: int, right: dict[str, Any]) -> dict[str, Any]:
    if status != 201:
        return right
    where = {"description": "The address of the new resource.", "schema": {"type": "string"}}
    return {**right, "headers": {"Location": where}}


def _statuses(route: Route) -> Iterable[int]:
    yield from (error.status for error in route.raises)
    yield from ALWAYS
    if route.params:
        yield 404
    if route.guarded:
        yield 412
    if route.must_match:
        yield 428
    if route.body is not None:
        yield from (400, 413, 415, 422)
    if route.query is not None:
        yield 422


Schema = dict[str, Any]
PREFIX = "#/components/schemas/"
GIVEN_DEFAULT = "x-default"
"""The default of a field that a caller may leave out. Generators of TypeScript take `default` as a promise
that the value is there, and would require every such field of a caller."""


def prepare_schemas(document: Schema) -> None:
    """Changes the document: no schema that nothing uses, objects of any shape say so, and what callers send
    has no `default` but `x-default`."""
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    components: dict[str, Schema] = document["components"]["schemas"]
    used = reached(components, operations)
    for name in [name for name in components if name not in used]:
        del components[name]
    for part in _objects(document):
        # Without it, generators make an object that may have no property at all.
        if part.get("type") == "object" and "properties" not in part:
            part.setdefault("additionalProperties", True)
    for name in reached(components, [each.get("requestBody", {}) for each in operations]):
        for field in components[name].get("properties", {}).values():
            _mark_default(field)


def _mark_default(field: Schema) -> None:
    if "default" not in field:
        return
    default = field[GIVEN_DEFAULT] = field.pop("default")
    if default not in (None, [], (), {}, ""):
        about = field.get("description", "").rstrip(".")
        field["description"] = f"{about}{'. ' if about else ''}Default: {_shown(default)}."


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def reached(components: dict[str, Schema], roots: Iterable[Any]) -> set[str]:
    """The names of all schemas that those refer to, directly or through others."""
    found: set[str] = set()
    waiting = [name for root in roots for name in _references(root)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(components[name])
    return found


def _references(part: Any) -> Iterator[str]:
    for each in _objects(part):
        reference = each.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(PREFIX)


def _objects(part: Any) -> Iterator[Schema]:
    """Every JSON object in it."""
    if isinstance(part, dict):
        whole = cast("Schema", part)
        yield whole
        for each in whole.values():
            yield from _objects(each)
    elif isinstance(part, list):
        for each in cast("list[Any]", part):
            yield from _objects(each)
