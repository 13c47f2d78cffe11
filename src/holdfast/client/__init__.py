"""A Holdfast server over HTTP: `AsyncClient`, `Client` without an event loop, and `RuntimeClient`.

It needs the extra `client`, and none of the engine: `docs/how-to/use-the-client.md`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.client.aio.client import AsyncClient
    from holdfast.client.aio.pages import AsyncPages
    from holdfast.client.aio.run import AsyncRun
    from holdfast.client.aio.streams import AsyncEventStream
    from holdfast.client.frames import StreamEvent
    from holdfast.client.page import Page
    from holdfast.client.problems import (
        AnswerUnreadableError,
        ServerError,
        StillRunningError,
        UnauthenticatedError,
        UnreachableError,
    )
    from holdfast.client.runtime import RuntimeClient
    from holdfast.client.settings import Retries
    from holdfast.client.sync.client import Client
    from holdfast.client.sync.pages import Pages
    from holdfast.client.sync.run import Run
    from holdfast.client.sync.streams import EventStream

__all__ = [
    "AnswerUnreadableError",
    "AsyncClient",
    "AsyncEventStream",
    "AsyncPages",
    "AsyncRun",
    "Client",
    "EventStream",
    "Page",
    "Pages",
    "Retries",
    "Run",
    "RuntimeClient",
    "ServerError",
    "StillRunningError",
    "StreamEvent",
    "UnauthenticatedError",
    "UnreachableError",
]

_PLACES = {
    "aio.client": ("AsyncClient",),
    "aio.pages": ("AsyncPages",),
    "aio.run": ("AsyncRun",),
    "aio.streams": ("AsyncEventStream",),
    "frames": ("StreamEvent",),
    "page": ("Page",),
    "problems": tuple(name for name in __all__ if name.endswith("Error")),
    "runtime": ("RuntimeClient",),
    "settings": ("Retries",),
    "sync.client": ("Client",),
    "sync.pages": ("Pages",),
    "sync.run": ("Run",),
    "sync.streams": ("EventStream",),
}


def __getattr__(name: str) -> Any:
    """Loaded on first use: importing one form does not load the other."""
    for place, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{place}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
