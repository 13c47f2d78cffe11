"""The application: routes, authentication, and the headers of every answer."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Protocol

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Router
from starlette.routing import Route as Place

from holdfast.api import problems
from holdfast.api.aliases import ROOT, AliasPaths, alias_in
from holdfast.api.auth.header_guard import HeaderGuard
from holdfast.api.auth.host_guard import HostGuard
from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import DOCUMENT_NAMES, Access, Right
from holdfast.api.compression import compress
from holdfast.api.cors import cors
from holdfast.api.live.websocket import sockets
from holdfast.api.mask import TenantScopes, mask
from holdfast.api.openapi import document
from holdfast.api.pages.all import APP_PAGES, PAGES, PLAIN
from holdfast.api.pages.kept_form import sign_in_and_back
from holdfast.api.pages.negotiation import TAG, error_page, internal_error_page, page_route, wants_page
from holdfast.api.problems import HttpError, no_right
from holdfast.api.rate_limit import RateLimiter
from holdfast.api.request_id import RequestIds, request_id
from holdfast.api.route_index import RouteIndex
from holdfast.api.routing import SIGN_IN, ApiCall, Route, Routes, handle
from holdfast.api.settings import ApiSettings as ApiSettings
from holdfast.app.holdfast import Holdfast
from holdfast.errors import HoldfastError
from holdfast.telemetry import log
from holdfast.types.redaction import enter_tenant

Endpoint = Callable[[Request], Awaitable[Response]]
_GONE = HttpError(400, "the connection ended before the request did.", code="bad_request")


class RequestAuthenticator(Protocol):
    async def authenticate(self, request: Request) -> Principal | None:
        """None: no credential. Raises HttpError: 401 for an invalid one, 403 for a change that another
        site may have sent."""
        ...

    async def note_refusal(
        self, request: Request, path: str, principal: Principal | None, error: HttpError, request_id: str
    ) -> None:
        """Called with each 401 and 403 because of the credential."""
        ...


def build(
    hf: Holdfast, authenticator: RequestAuthenticator, settings: ApiSettings, themes: Iterable[Routes]
) -> Starlette:
    found = [route for theme in themes for route in theme.found]
    paces = RateLimiter(settings)
    endpoints = [(route, _endpoint(route, hf, authenticator, settings, paces)) for route in found]

    @lru_cache(maxsize=8)
    def described(root: str) -> bytes:
        return msgspec.json.encode(document(found, root=root))

    async def openapi(request: Request) -> Response:
        answer = Response(described(_root_of(request)), media_type="application/json")
        return _with_common_headers(request, answer)

    places: list[BaseRoute] = [
        Place("/openapi.json", openapi),
        *sockets(hf, authenticator, settings, found, partial(_authenticate, authenticator, paces)),
        *_routes_by_path(endpoints),
    ]

    @asynccontextmanager
    async def living(_app: Starlette) -> AsyncGenerator[None]:
        await hf.open()
        yield

    def pages(found: Iterable[Route], *, shares_paths: bool) -> list[BaseRoute]:
        ordered = sorted(found, key=lambda route: _route_order(route.path))
        return [
            page_route(each, _endpoint(each, hf, authenticator, settings, paces), shares_paths=shares_paths)
            for each in ordered
        ]

    shown = pages(PAGES if settings.web_app is None else APP_PAGES, shares_paths=True)
    plain = Router([RouteIndex(pages(PAGES, shares_paths=False))], redirect_slashes=False)
    below = Router([RouteIndex(places)], redirect_slashes=False)
    app = Starlette(
        # Pages first: they share paths with routes and decide by the Accept header whether they answer.
        routes=[RouteIndex([*shown, *places]), Mount(PLAIN, app=plain), Mount(ROOT, app=below)],
        exception_handlers={HTTPException: _not_found, Exception: _internal_error},
        middleware=[*_middleware(settings), Middleware(AliasPaths, pages=RouteIndex(shown))],
        lifespan=living,
    )
    app.state.authenticator = authenticator
    app.state.observed = settings.observed
    app.state.has_web_app = settings.web_app is not None
    # No redirect for an extra slash: a redirect would lose the body.
    app.router.redirect_slashes = False
    return app


def _root_of(request: Request) -> str:
    """Where the application is mounted; its own `/api` is part of it."""
    return str(request.scope.get("root_path", "")).removesuffix(ROOT)


def _middleware(settings: ApiSettings) -> list[Middleware]:
    guards = [Middleware(HostGuard, hosts=settings.hosts)] if settings.hosts else []
    return [
        Middleware(RequestIds),
        Middleware(TenantScopes),
        Middleware(HeaderGuard),
        *guards,
        *cors(settings.origins),
    ]


def _routes_by_path(endpoints: list[tuple[Route, Endpoint]]) -> list[BaseRoute]:
    """One route per path, so that a 405 lists all methods of the path."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for route, endpoint in sorted(endpoints, key=lambda each: _route_order(each[0].path)):
        known = by_path.setdefault(route.path, {})
        # HTTP requires HEAD wherever there is GET.
        for method in ("GET", "HEAD") if route.method == "GET" else (route.method,):
            if method in known:
                raise TypeError(f"{method} {route.path} is declared twice")
            known[method] = endpoint
    return [Place(path, _dispatch_by_method(known), methods=list(known)) for path, known in by_path.items()]


def _dispatch_by_method(known: dict[str, Endpoint]) -> Endpoint:
    async def dispatch(request: Request) -> Response:
        return await known[request.method](request)

    return dispatch


def _route_order(path: str) -> list[int]:
    """`/holds/bulk` before `/holds/{hold}`, and `/x/{name:path}/next` before `/x/{name:path}`, whichever was
    declared first."""
    # Fixed parts sort before parameters, parameters before paths; 3 ends a shorter path after a longer one.
    parts = path.split("/")
    return [*(2 if part.endswith(":path}") else int(part.startswith("{")) for part in parts), 3]


def _endpoint(
    route: Route, hf: Holdfast, authenticator: RequestAuthenticator, settings: ApiSettings, paces: RateLimiter
) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        name = request_id(request.scope)
        began = time.perf_counter()
        principal: Principal | None = None
        try:
            # Before the right is checked, so that a refusal can name who was refused in the audit.
            principal = await _authenticate(authenticator, paces, request)
            require(route, request, principal)
            call = ApiCall(request, principal, hf, route, name, settings)
            response = await handle(route, call)
        except HoldfastError as error:
            if isinstance(error, HttpError) and error.given_status in (401, 403):
                await authenticator.note_refusal(request, route.path, principal, error, name)
            shown = problems.for_caller(error, principal, name)
            if route.tag == TAG:
                back = await _back_to_form(request, authenticator, shown)
                response = back or error_page(request, shown, principal, name)
            else:
                response = problems.problem_response(shown, name)
        except ClientDisconnect:
            # Before its body was complete, or too slowly: there is nobody to answer and nothing to repair.
            response = problems.problem_response(_GONE, name)
        except Exception as error:
            response = problems.internal_error(error, name)
            if route.tag == TAG:
                response = internal_error_page(request, principal, name)
        finally:
            await request.close()  # closes the temporary files of a form
        took = time.perf_counter() - began
        _log_request(request, route, response, principal, name, took)
        if settings.observed is not None:
            settings.observed(request.method, route.path, response.status_code, took)
        return _with_common_headers(request, response)

    return endpoint


async def _back_to_form(
    request: Request, authenticator: RequestAuthenticator, error: HoldfastError
) -> Response | None:
    return await sign_in_and_back(request, authenticator, error) if isinstance(error, HttpError) else None


async def _authenticate(
    authenticator: RequestAuthenticator, paces: RateLimiter, request: Request
) -> Principal | None:
    """The caller, within their rate limit. Failed credentials count against the address."""
    try:
        principal = await authenticator.authenticate(request)
    except HttpError:
        # By address, because a wrong credential names no caller; this slows down guessing.
        paces.count_failure(request)
        raise
    if principal is not None:
        enter_tenant(principal.tenant)
    paces.take(request, principal)
    return principal


def _with_common_headers(request: Request, response: Response) -> Response:
    """Mask known secrets, and add the headers of every answer."""
    mask(response)
    compress(request, response)
    # Here too: an error that no middleware saw is answered outside of them.
    response.headers["X-Request-Id"] = request_id(request.scope)
    # By default nothing is cached: most answers depend on who asks.
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    return response


def require(route: Route, request: Request, principal: Principal | None) -> None:
    """Raises HttpError if the credential does not have the right."""
    # Links carry their own proof, which the handler checks with the hold.
    if route.needs in (Access.public, Access.link):
        return
    if principal is None:
        raise HttpError(401, "this needs a credential.", code="unauthenticated", hint=SIGN_IN)
    alias = alias_in(request.scope)
    if alias is not None and alias.needs is not None:
        if not principal.may(alias.needs):
            raise no_right(DOCUMENT_NAMES[alias.needs])
    elif isinstance(route.needs, Right) and not principal.may(route.needs):
        raise no_right(str(route.needs))


def _log_request(
    request: Request,
    route: Route,
    response: Response,
    principal: Principal | None,
    request_id: str,
    took: float,
) -> None:
    log.debug(
        "%s %s %s",
        request.method,
        route.path,
        response.status_code,
        extra={
            "request": request_id,
            "by": principal.actor.id if principal else None,
            "ms": round(took * 1000, 1),
        },
    )


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        refusal = HttpError(
            405, f"{request.method} is not allowed for this path.", code="method_not_allowed",
            hint=f"Allowed: {(error.headers or {}).get('Allow', 'see /openapi.json')}.",
        )  # fmt: skip
    else:
        refusal = HttpError(
            error.status_code, "this path does not exist.", code="not_found", hint="See /openapi.json."
        )
    name = request_id(request.scope)
    observed = request.app.state.observed
    if observed is not None:
        # Without the path: each unknown path would be a new time series in the metrics.
        observed(request.method, "", error.status_code, 0.0)
    if error.status_code == 404 and wants_page(request.headers.get("accept", "").encode()):
        return _with_common_headers(request, error_page(request, refusal, None, name))
    return _with_common_headers(request, problems.problem_response(refusal, name, error.headers))


async def _internal_error(request: Request, error: Exception) -> Response:
    name = request_id(request.scope)
    return _with_common_headers(request, problems.internal_error(error, name))
