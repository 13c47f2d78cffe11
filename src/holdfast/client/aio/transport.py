"""Requests over HTTP, retried if that is useful and safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import sleep

from holdfast.client.library import connection_owner, library, options, timeout_of, unreachable_error
from holdfast.client.problems import problem_of
from holdfast.client.requests import Reply, Request
from holdfast.client.retries import pause_before
from holdfast.client.settings import Settings, retry_after
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    import httpx2


class AsyncTransport:
    """One pool of connections to one server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._http: httpx2.AsyncClient | None = None
        self._home: object = None

    async def send(self, request: Request) -> Reply:
        """Raises HoldfastError: the server's error, or UnreachableError."""
        attempt = 1
        while True:
            try:
                response = await self.open(request)
                return await self._whole(request, response)
            except HoldfastError as error:
                wait = pause_before(request, error, attempt, self.settings.retries)
                if wait is None:
                    raise
            await sleep(wait)
            attempt += 1

    async def open(self, request: Request, *, silence: float | None = None) -> httpx2.Response:
        """The head of an answer whose body is read later. `silence`: maximum seconds without data of the
        body. Raises HoldfastError."""
        http = self._pool()
        seconds = silence or self.settings.timeout + request.longer
        try:
            response = await http.send(
                http.build_request(
                    request.method,
                    request.path,
                    params=tuple(request.query) or None,
                    headers={**self.settings.headers(), **request.headers},
                    content=request.content,
                    files=request.files,
                    timeout=timeout_of(seconds),
                ),
                stream=True,
            )
        except (library().RequestError, library().InvalidURL) as error:
            raise unreachable_error(error, self.settings, request.name) from None
        if response.status_code >= 300:
            raise await self._refusal(request, response)
        return response

    async def _whole(self, request: Request, response: httpx2.Response) -> Reply:
        try:
            body = await response.aread()
        except library().RequestError as error:
            raise unreachable_error(error, self.settings, request.name) from None
        finally:
            await response.aclose()
        return Reply(status=response.status_code, headers=dict(response.headers), body=body)

    async def _refusal(self, request: Request, response: httpx2.Response) -> HoldfastError:
        reply = await self._whole(request, response)
        error = problem_of(reply.status, reply.body, request.name, reply.headers)
        if (asked := retry_after(reply.headers)) is not None:
            error.facts["retry_after"] = asked
        return error

    def _pool(self) -> httpx2.AsyncClient:
        # Connections belong to an event loop; a program may run several, one after the other.
        home = connection_owner(library().AsyncClient)
        if self._http is not None and self._home is home:
            return self._http
        made: httpx2.AsyncClient = library().AsyncClient(**options(self.settings))
        self._http, self._home = made, home
        return made

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None
