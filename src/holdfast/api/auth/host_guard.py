"""Checks the Host header. A page of another site can point its own name to our address (DNS rebinding), but
it cannot make a browser send another name than its own."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api import problems
from holdfast.api.problems import HttpError
from holdfast.api.request_id import request_id

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class HostGuard:
    """Refuses requests for other host names; `*.example.com` matches all names below it."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self.app = app
        self.hosts = frozenset(host.lower().rstrip(".") for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self.knows(Headers(scope=scope).get("host", "")):
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "Host name not allowed."})
            return
        refusal = HttpError(
            421,
            "this server is not configured for that host name.",
            code="wrong_host",
            hint="Use the address that it was started with; the operator can add names with --hosts.",
        )
        await problems.problem_response(refusal, request_id(scope))(scope, receive, send)

    def knows(self, header: str) -> bool:
        name = host_name(header)
        if name is None:
            return False
        return name in self.hosts or any(
            known.startswith("*.") and name.endswith(known[1:]) for known in self.hosts
        )


def host_name(header: str) -> str | None:
    """The name in a Host header, without its port. None if it is not a name."""
    try:
        parts = urlsplit(f"//{header}")
        # Parsed only when it is read: an invalid port raises here.
        _ = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.path or parts.query or parts.fragment or "@" in header:
        return None
    return parts.hostname.rstrip(".")


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def hosts_for(host: str, public_url: str | None, given: Iterable[str] = ()) -> tuple[str, ...]:
    """The allowed host names of a server that listens on `host`; none: any. Loopback has fixed names."""
    named = [*given, *([name] if public_url and (name := urlsplit(public_url).hostname) else [])]
    if is_loopback(host):
        return tuple(dict.fromkeys([*LOOPBACK, host.strip("[]"), *named]))
    # Without a configured name any is accepted: the server
    # cannot know the names that a proxy or DNS gives it.
    return tuple(dict.fromkeys([*LOOPBACK, *named])) if named else ()
