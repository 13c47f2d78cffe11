"""Requests over HTTP, retried if that is useful and safe."""

# Written by tools/client.py from src/holdfast/client/aio/transport.py. Do not change it here.

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING

from holdfast.client.library import connection_owner, library, options, timeout_of, unreachable_error
from holdfast.client.problems import problem_of
from holdfast.client.requests import Reply, Request
from holdfast.client.retries import pause_before
from holdfast.client.settings import Settings, retry_after
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    import httpx2


class Transport:
    """One pool of connections to one server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._http: httpx2.Client | None = None
        self._home: object = None

    def send(self, request: Request) -> Reply:
        """Raises HoldfastError: the server's error, or UnreachableError."""
        attempt = 1
        while True:
            try:
                response = self.open(request)
                return self._whole(request, response)
            except HoldfastError as error:
                wait = pause_before(request, error, attempt, self.settings.retries)
                if wait is None:
                    raise
            sleep(wait)
            attempt += 1

    def open(self, request: Request, *, silence: float | None = None) -> httpx2.Response:
        """The head of an answer whose body is read later. `silence`: maximum seconds without data of the
        body. Raises HoldfastError."""
        http = self._pool()
        seconds = silence or self.settings.timeout + request.longer
        try:
            response = http.send(
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
            raise self._refusal(request, response)
        return response

    def _whole(self, request: Request, response: httpx2.Response) -> Reply:
        try:
            body = response.read()
        except library().RequestError as error:
            raise unreachable_error(error, self.settings, request.name) from None
        finally:
            response.close()
        return Reply(status=response.status_code, headers=dict(response.headers), body=body)

    def _refusal(self, request: Request, response: httpx2.Response) -> HoldfastError:
        reply = self._whole(request, response)
        error = problem_of(reply.status, reply.body, request.name, reply.headers)
        if (asked := retry_after(reply.headers)) is not None:
            error.facts["retry_after"] = asked
        return error

    def _pool(self) -> httpx2.Client:
        # Connections belong to an event loop; a program may run several, one after the other.
        home = connection_owner(library().Client)
        if self._http is not None and self._home is home:
            return self._http
        made: httpx2.Client = library().Client(**options(self.settings))
        self._http, self._home = made, home
        return made

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None
