"""Routes: declared once, with right, input and output. Dispatch and OpenAPI use the same declaration.

    routes = Routes("runs")

    @routes.get("/runs/{run}", needs=Right.runs_read)
    async def get_run(call: Call, run: str) -> RunWire: ...

    @routes.post("/runs", needs=Right.runs_write, status=201, raises=(StateError,))
    async def create_run(call: Call, body: CreateRun) -> Reply[RunWire]: ...

Parameters of the function: those in braces are of the path; `query` and `body` are msgspec structs, decoded
and checked before the call; a `body` of bytes is the raw body. The return value becomes JSON. `needs` is
required for every route.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from starlette.datastructures import FormData
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from holdfast.api.auth import csrf
from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import Access, Right
from holdfast.api.mask import VerbatimResponse
from holdfast.api.problems import HttpError
from holdfast.api.request_body import (
    invalid_input,
    read_body,
    read_bytes,
    read_form,
    repeated_name,
    require_no_body,
    require_strict,
)
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.api.settings import ApiSettings
    from holdfast.app.holdfast import Holdfast
    from holdfast.holds.service import HoldService
    from holdfast.runs.service import RunService
    from holdfast.types.terms import Actor

T = TypeVar("T")
Handler = Callable[..., Awaitable[Any]]
Needs = Right | Access


class ApiReply(msgspec.Struct, Generic[T], kw_only=True):
    """An answer with status and headers. `etag`: without quotes; a request that names it gets a 304.
    `verbatim`: a text that its author edits and sends back, so that no part of it may be masked."""

    body: T
    status: int | None = None
    headers: dict[str, str] = {}
    etag: str | None = None
    verbatim: bool = False


class ApiCall:
    """One request: the caller, and the services that a route uses."""

    __slots__ = ("hf", "principal", "request", "request_id", "route", "settings")

    def __init__(
        self,
        request: Request,
        principal: Principal | None,
        hf: Holdfast,
        route: Route,
        request_id: str,
        settings: ApiSettings,
    ) -> None:
        self.request = request
        self.principal = principal
        self.hf = hf
        self.route = route
        self.request_id = request_id
        self.settings = settings

    @property
    def who(self) -> Principal:
        """Only in routes that need a caller."""
        if self.principal is None:
            raise HttpError(401, "this needs a credential.", code="unauthenticated", hint=SIGN_IN)
        return self.principal

    @property
    def tenant(self) -> str:
        return self.who.tenant

    @property
    def actor(self) -> Actor:
        return self.who.actor

    @property
    def key(self) -> str | None:
        """The `Idempotency-Key`. Raises HttpError if it is empty or too long."""
        given = self.request.headers.get("idempotency-key")
        if given is None:
            return None
        if not 0 < len(given) <= LONGEST_KEY:
            raise HttpError(
                422, f"an Idempotency-Key must have 1 to {LONGEST_KEY} characters.", code="invalid_input"
            )
        return given

    def location(self, path: str) -> dict[str, str]:
        """The Location header of a new resource, below the root path that the caller used."""
        return {"Location": f"{self.request.scope.get('root_path', '')}{path}"}

    def require_match(self, etag: str, *, required: bool = False, exists: bool = True) -> None:
        """Raises HttpError 412 if the caller read another version than this one (`If-Match`), or if it wants
        any (`*`) and there is none yet (`exists`). `required`: 428 if it does not say which one it read."""
        given = self.request.headers.get("if-match")
        if not exists and given is not None and given.strip() == "*":
            raise HttpError(
                412,
                "there is none yet, and `If-Match: *` changes only what exists.",
                code="version_stale",
                hint="Leave If-Match out, or send `If-None-Match: *`, to create it.",
                etag=etag,
            )
        if given is None and required:
            raise HttpError(
                428,
                "this request needs the version that you have read: it may have been changed since.",
                code="version_required",
                hint="Get it, and send its ETag as If-Match; `If-Match: *` overwrites any version.",
                etag=etag,
            )
        if given is not None and not _listed_in(given, etag):
            raise HttpError(
                412,
                "it has changed since you read it.",
                code="version_stale",
                hint="Get it again, and send its ETag as If-Match.",
                etag=etag,
            )

    async def form(self, *known: str) -> FormData:
        """The form of a page. `known`: its fields; none: those of its question. Raises HttpError if it is too
        large, cannot be parsed, or has another field."""
        form = await read_form(self.request, self.settings.most_file)
        unknown = [name for name in form if name not in (*known, csrf.FIELD)] if known else []
        if unknown:
            raise HttpError(
                422,
                f"unknown field {unknown[0]!r}.",
                code="unknown_field",
                hint=f"Known: {', '.join(sorted(known))}.",
                errors=[{"field": name, "code": "unknown", "message": "Unknown field."} for name in unknown],
            )
        return form

    async def runs(self) -> RunService:
        return await self.hf.service()

    async def holds(self) -> HoldService:
        return await self.hf.holds()


LONGEST_KEY = 200
LONGEST_NAME = 4000
"""Maximum characters of a part of a path."""
SIGN_IN = "Send `Authorization: Bearer TOKEN`; `holdfast tokens create` creates one."


class Route(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str
    name: str  # the operation's id
    tag: str
    needs: Needs
    handler: Handler
    status: int
    summary: str
    about: str
    body: type | None
    query: type | None
    answer: Any  # the type of what it returns; None: an empty answer; Response: not JSON
    params: tuple[str, ...]
    raises: tuple[type[HoldfastError], ...]
    more: tuple[int, ...] = ()  # further statuses of the same answer
    media: tuple[str, ...] = ()  # of an answer that is not JSON, or of a body of bytes
    makes: str = ""  # the path parameter of other routes that takes its answer's `id`
    keyed: bool = False  # once per `Idempotency-Key`
    guarded: bool = False  # only the version that `If-Match` names
    must_match: bool = False  # `If-Match` must be sent for what exists
    reads_body: bool = False  # the handler reads the body itself: a form, or another protocol's message
    reads_query: bool = False  # the handler reads the parameters itself, or any may be there
    raw: tuple[str, ...] = ()  # media types of a body that is not JSON; see `Routes.route`
    document: bool = False  # the body contains documents and may be as large as one


class Routes:
    """The routes of one topic. Other paths of the same routes are in `api.aliases`."""

    def __init__(self, tag: str, prefix: str = "/v1", *, reads_body: bool = False) -> None:
        self.tag = tag
        self.prefix = prefix
        self.reads_body = reads_body
        self.found: list[Route] = []

    def get(self, path: str, **options: Any) -> Callable[[Handler], Handler]:
        return self.route("GET", path, **options)

    def post(self, path: str, **options: Any) -> Callable[[Handler], Handler]:
        return self.route("POST", path, **options)

    def put(self, path: str, **options: Any) -> Callable[[Handler], Handler]:
        return self.route("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Callable[[Handler], Handler]:
        return self.route("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Callable[[Handler], Handler]:
        return self.route("DELETE", path, **options)

    def route(
        self,
        method: str,
        path: str,
        *,
        needs: Needs,
        status: int = 200,
        raises: tuple[type[HoldfastError], ...] = (),
        more: tuple[int, ...] = (),
        media: tuple[str, ...] = (),
        makes: str = "",
        keyed: bool = False,
        guarded: bool = False,
        must_match: bool = False,
        reads_body: bool = False,
        reads_query: bool = False,
        raw: tuple[str, ...] = (),
        document: bool = False,
    ) -> Callable[[Handler], Handler]:
        """`more`: further success statuses besides `status`. `media`: media types of a file. `makes`: the
        path parameter of what it creates, for links in the OpenAPI document. `keyed`: the handler reads
        `call.key`, and performs a request with the same key only once. `guarded`: the handler calls
        `call.require_match` or an equivalent before it changes anything. `must_match`: the same, and 428
        without `If-Match`. `reads_body`, `reads_query`: the
        handler reads the body or the parameters itself; otherwise those that are not declared are refused.
        `raw`: media types that the body may have instead of JSON: `body` is then made by `of_raw` of its
        struct, of the bytes and of the parameters of the query in the form of its `raw_options`. `document`:
        the body contains documents, and its limit is theirs."""

        def declare(handler: Handler) -> Handler:
            whole = f"{self.prefix}{path}"
            declared = _declare(method, whole, self.tag, needs, status, raises, handler)
            self.found.append(
                msgspec.structs.replace(
                    declared,
                    more=more,
                    media=media,
                    makes=makes,
                    keyed=keyed,
                    guarded=guarded or must_match,
                    must_match=must_match,
                    reads_body=reads_body or self.reads_body,
                    reads_query=reads_query,
                    raw=raw,
                    document=document,
                )
            )
            return handler

        return declare


def _declare(
    method: str,
    path: str,
    tag: str,
    needs: Needs,
    status: int,
    raises: tuple[type[HoldfastError], ...],
    handler: Handler,
) -> Route:
    hints = get_type_hints(handler)
    answer = hints.pop("return", None)
    named = tuple(name for name in inspect.signature(handler).parameters if name not in _OURS)
    missing = [name for name in named if f"{{{name}}}" not in path and f"{{{name}:path}}" not in path]
    if missing:
        raise TypeError(f"{handler.__name__}: {', '.join(missing)} is not in the path {path}")
    require_strict(hints.get("body"), f"{method} {path}")
    summary, _, about = inspect.cleandoc(handler.__doc__ or "").partition("\n")
    return Route(
        method=method,
        path=path,
        name=handler.__name__,
        tag=tag,
        needs=needs,
        handler=handler,
        status=status,
        summary=summary,
        about=about.strip(),
        body=hints.get("body"),
        query=hints.get("query"),
        answer=_answer_of(answer),
        params=named,
        raises=raises,
    )


_OURS = ("call", "body", "query")


def _answer_of(hint: Any) -> Any:
    if get_origin(hint) is ApiReply:
        return get_args(hint)[0]
    return None if hint is type(None) else hint


async def handle(route: Route, call: ApiCall) -> Response:
    """Decode the request, call the handler, encode the answer. Raises HoldfastError."""
    given: dict[str, Any] = {name: call.request.path_params[name] for name in route.params}
    if any("\0" in str(value) or len(str(value)) > LONGEST_NAME for value in given.values()):
        # No name is that long or has a NUL; a database would raise a different error for them.
        raise HttpError(404, "this path does not exist.", code="not_found", hint="See /openapi.json.")
    require_single(call.request, _list_names(route.query))
    try:
        await _read(route, call, given)
        return write_response(call.request, route, await route.handler(call, **given))
    except RecursionError as error:
        # RecursionError: only an input can be nested that deeply.
        raise HttpError(
            422, "the body is nested too deeply.", code="too_deep", hint="Send a flatter value."
        ) from error


async def _read(route: Route, call: ApiCall, given: dict[str, Any]) -> None:
    raw = bool(route.raw) and media_type_of(call.request) in route.raw
    if route.query is not None:
        given["query"] = read_query(call.request, route.query)
    elif not raw and not route.reads_query:
        read_query(call.request, NoParameters)
    if route.body is bytes:
        given["body"] = await read_bytes(call.request, call.settings.most_file)
    elif raw:
        data = await read_bytes(call.request, call.settings.most_document)
        shape = cast("Any", route.body)
        given["body"] = shape.of_raw(data, read_query(call.request, shape.raw_options))
    elif route.raw:
        given["body"] = await _read_json_or_hint(route, call)
    elif route.body is not None:
        limit = call.settings.most_document if route.document else call.settings.most_body
        given["body"] = await read_body(call.request, route.body, limit)
    elif not route.reads_body:
        await require_no_body(call.request, call.settings.most_body)


async def _read_json_or_hint(route: Route, call: ApiCall) -> Any:
    """The body of a route that also takes a text as it is: a client that did not say so learns how."""
    try:
        return await read_body(call.request, cast("Any", route.body), call.settings.most_document)
    except HttpError as error:
        how = (
            f"To send the text itself, set Content-Type to {route.raw[0]}; "
            'in JSON, send {"document": {...}} or {"source": "..."}.'
        )
        error.hint = " ".join(filter(None, (error.hint, how)))
        raise


def media_type_of(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


class NoParameters(msgspec.Struct):
    """The parameters of a route that declares none."""


def read_query(request: HTTPConnection, shape: type[Any]) -> Any:
    """A list field takes a repeated parameter. Raises HttpError."""
    if any("\0" in value for value in request.query_params.values()):
        raise HttpError(422, "a parameter has a NUL character.", code="invalid_input")
    lists = _list_names(shape)
    known = {field.encode_name for field in msgspec.structs.fields(shape)}
    # A misspelled filter that is ignored would return more than the caller asked for.
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        raise HttpError(
            422,
            f"unknown parameter {unknown[0]!r}.",
            code="unknown_parameter",
            hint=f"Known: {', '.join(sorted(known)) or 'none'}.",
            errors=[{"field": name, "code": "unknown", "message": "Unknown parameter."} for name in unknown],
        )
    values = {
        name: request.query_params.getlist(name) if name in lists else request.query_params[name]
        for name in request.query_params
    }
    try:
        return msgspec.convert(values, shape, strict=False)
    except msgspec.ValidationError as error:
        raise invalid_input(error, "a parameter", shape) from error


@cache
def _list_names(shape: type[Any] | None) -> frozenset[str]:
    fields = () if shape is None else msgspec.structs.fields(shape)
    return frozenset(field.encode_name for field in fields if _is_list(field.type))


def require_single(connection: HTTPConnection, lists: Collection[str] = ()) -> None:
    """Raises HttpError for a parameter that is given twice and is not a list: what a proxy or a log takes for
    its value could be the other one."""
    name = repeated_name(name for name, _ in connection.query_params.multi_items() if name not in lists)
    if name is not None:
        raise HttpError(
            422,
            f"the parameter {name!r} is given more than once.",
            code="repeated_parameter",
            hint="Send it once.",
            errors=[{"field": name, "code": "repeated", "message": "The parameter is repeated."}],
        )


def _is_list(hint: Any) -> bool:
    return any(get_origin(each) in (list, tuple) for each in (hint, *get_args(hint)))


def write_response(request: Request, route: Route, result: Any) -> Response:
    if isinstance(result, Response):
        return result
    reply = cast("ApiReply[Any]", result) if isinstance(result, ApiReply) else ApiReply[Any](body=result)
    status = reply.status or route.status
    headers = dict(reply.headers)
    if reply.etag is not None:
        headers["ETag"] = f'"{reply.etag}"'
        if request.method in ("GET", "HEAD") and is_etag_match(request.headers, reply.etag):
            return Response(status_code=304, headers=headers)
    if reply.body is None:
        return Response(status_code=204 if status == 200 else status, headers=headers)
    kind = VerbatimResponse if reply.verbatim else Response
    return kind(msgspec.json.encode(reply.body), status, media_type="application/json", headers=headers)


def is_etag_match(headers: Mapping[str, str], etag: str) -> bool:
    return _listed_in(headers.get("if-none-match", ""), etag)


def _listed_in(given: str, etag: str) -> bool:
    return given.strip() == "*" or f'"{etag}"' in [
        each.strip().removeprefix("W/") for each in given.split(",")
    ]
