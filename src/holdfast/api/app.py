"""The application: routes, who is asking, and what every answer has."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Place

from holdfast.api import problems
from holdfast.api.auth.principal import Access, Principal, Right
from holdfast.api.openapi import document
from holdfast.api.problems import HttpError
from holdfast.api.routing import SIGN_IN, Call, Route, Routes, handle
from holdfast.app.house import Holdfast
from holdfast.errors import HoldfastError
from holdfast.telemetry import log
from holdfast.types.ids import new_id

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
Endpoint = Callable[[Request], Awaitable[Response]]


class Authenticator(Protocol):
    async def who(self, request: Request) -> Principal | None:
        """None: no credential. Raises HttpError 401 for one that is not good."""
        ...


class ApiSettings(msgspec.Struct, kw_only=True):
    """How the server answers; sizes in bytes."""

    most_body: int = 1 << 20
    most_file: int = 32 << 20
    origins: tuple[str, ...] = ()
    """other origins whose pages may call it (CORS)"""
    hosts: tuple[str, ...] = ()
    """names that it answers to; none: any"""
    allow_code: bool = False
    """whether submitted documents may run shell tools or import code"""


def build(
    house: Holdfast, authenticator: Authenticator, settings: ApiSettings, themes: Iterable[Routes]
) -> Starlette:
    found = [route for theme in themes for route in theme.found]
    said = msgspec.json.encode(document(found))
    places: list[BaseRoute] = [
        Place(route.path, _endpoint(route, house, authenticator, settings), methods=_methods(route))
        for route in _specific_first(found)
    ]

    async def openapi(_request: Request) -> Response:
        return Response(said, media_type="application/json")

    @asynccontextmanager
    async def living(_app: Starlette) -> AsyncGenerator[None]:
        await house.open()
        yield

    return Starlette(
        routes=[Place("/openapi.json", openapi), *places],
        exception_handlers={HTTPException: _missing, Exception: _slip},
        lifespan=living,
    )


def _methods(route: Route) -> list[str]:
    return ["GET", "HEAD"] if route.method == "GET" else [route.method]


def _specific_first(routes: list[Route]) -> list[Route]:
    """`/holds/bulk` before `/holds/{hold}`, whichever was declared first."""
    return sorted(routes, key=lambda route: [part.startswith("{") for part in route.path.split("/")])


def _endpoint(route: Route, house: Holdfast, authenticator: Authenticator, settings: ApiSettings) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        request_id = _request_id(request)
        began = time.perf_counter()
        principal: Principal | None = None
        try:
            principal = await authenticator.who(request)
            demand(route, request, principal)
            call = Call(request, principal, house, route, request_id)
            response = await handle(route, call, settings.most_body)
        except HoldfastError as error:
            response = problems.answer(error, request_id)
        except Exception as error:
            response = problems.unexpected(error, request_id)
        _note(request, route, response, principal, request_id, began)
        return _dressed(response, request_id)

    return endpoint


def _dressed(response: Response, request_id: str) -> Response:
    """What every answer has."""
    response.headers["X-Request-Id"] = request_id
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    return response


def demand(route: Route, request: Request, principal: Principal | None) -> None:
    """Raises HttpError where the credential is not enough."""
    if route.needs in (Access.public, Access.link):
        return
    if principal is None:
        raise HttpError(401, "This needs a credential.", code="unauthenticated", hint=SIGN_IN)
    if isinstance(route.needs, Right) and not principal.may(route.needs):
        raise HttpError(
            403, f"This credential has no right to {route.needs}.", code="forbidden", right=str(route.needs)
        )


def _request_id(request: Request) -> str:
    """The caller's own, where it is a decent one."""
    given = request.headers.get("x-request-id", "")
    return given if _REQUEST_ID.match(given) else new_id()


def _note(
    request: Request,
    route: Route,
    response: Response,
    principal: Principal | None,
    request_id: str,
    began: float,
) -> None:
    log.debug(
        "%s %s %s",
        request.method,
        route.path,
        response.status_code,
        extra={
            "request": request_id,
            "by": principal.actor.id if principal else None,
            "ms": round((time.perf_counter() - began) * 1000, 1),
        },
    )


async def _missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        said = HttpError(405, f"{request.method} is not for this path.", code="method_not_allowed")
    else:
        said = HttpError(
            error.status_code, "There is nothing at this path.", code="not_found", hint="See /openapi.json."
        )
    request_id = _request_id(request)
    return _dressed(problems.answer(said, request_id, error.headers), request_id)


async def _slip(request: Request, error: Exception) -> Response:
    request_id = _request_id(request)
    return _dressed(problems.unexpected(error, request_id), request_id)
