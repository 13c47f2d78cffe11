"""The HTTP library, loaded when the first request is made."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from typing import TYPE_CHECKING, Any

from holdfast.client.problems import UnreachableError
from holdfast.client.settings import Settings
from holdfast.errors import SettingsError

if TYPE_CHECKING:
    import httpx2

CONNECT = 10.0
UNSENT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol")


def library() -> Any:
    """Raises SettingsError if it is not installed."""
    try:
        import httpx2
    except ImportError:
        raise SettingsError(
            "the client needs the package httpx2, which is not installed.",
            hint="Install the extra `client`: pip install 'holdfast-flow[client]'.",
        ) from None
    return httpx2


@cache
def _ssl_context() -> ssl.SSLContext:
    """Created once: reading the certificates takes longer than a short request."""
    return library().create_ssl_context()


def options(settings: Settings) -> dict[str, Any]:
    """Redirects are not followed: the token must not be sent to another address."""
    return {"base_url": settings.url, "verify": _ssl_context(), "follow_redirects": False}


def connection_owner(kind: Any) -> object:
    """The owner of the connections: the running event loop, or none."""
    if kind is library().Client:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def timeout_of(seconds: float) -> httpx2.Timeout:
    return library().Timeout(seconds, connect=min(seconds, CONNECT))


def unreachable_error(error: Exception, settings: Settings, request: str) -> UnreachableError:
    kind = type(error).__name__
    text = str(error) or kind
    return UnreachableError(
        f"{settings.shown} gave no answer to {request}: {text}.",
        hint="Check that the server is running and that HOLDFAST_URL names it; `holdfast serve` starts one.",
        sent=kind not in UNSENT,
    )
