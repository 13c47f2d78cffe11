"""The cookies of signed-in browsers: their names, and how they are read, set and deleted."""

from __future__ import annotations

from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from holdfast.api.auth.sessions import OpenSession

SESSION: Final = "holdfast_session"


class Cookies:
    """`public_url`: the server's address as browsers see it, which a proxy in front may hide."""

    def __init__(self, public_url: str) -> None:
        self._public_url = public_url

    def is_https(self, connection: HTTPConnection) -> bool:
        if self._public_url:
            return self._public_url.startswith("https:")
        return connection.url.scheme in ("https", "wss")

    def get(self, connection: HTTPConnection, name: str = SESSION) -> str | None:
        return connection.cookies.get(self._full_name(connection, name))

    def set(
        self, connection: HTTPConnection, response: Response, name: str, value: str, seconds: int
    ) -> None:
        response.set_cookie(
            self._full_name(connection, name),
            value,
            max_age=seconds,
            path="/",
            secure=self.is_https(connection),
            httponly=True,
            # Not "strict": a link in a notification opens a page here, and must find the person signed in.
            samesite="lax",
        )

    def set_session(self, connection: HTTPConnection, response: Response, opened: OpenSession) -> None:
        seconds = (opened.session.expires_at - opened.session.began_at) // 1_000_000
        self.set(connection, response, SESSION, opened.id, seconds)

    def delete(self, connection: HTTPConnection, response: Response, name: str = SESSION) -> None:
        self.set(connection, response, name, "", 0)

    def _full_name(self, connection: HTTPConnection, name: str) -> str:
        """With https, a `__Host-` name, which no sibling host can set for us."""
        return f"__Host-{name}" if self.is_https(connection) else name
