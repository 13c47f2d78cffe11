"""How a server answers: sizes, paces, who may call it from a browser, which files it may load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.api.inbound.settings import InboundSettings

RequestObserver = Callable[[str, str, int, float], None]


class ApiSettings(msgspec.Struct, kw_only=True):
    """Sizes are bytes, paces requests a second."""

    most_body: int = 1 << 20
    most_file: int = 32 << 20
    origins: tuple[str, ...] = ()
    """other origins whose pages may call it (CORS)"""
    hosts: tuple[str, ...] = ()
    """names that it answers to; none: any"""
    roots: tuple[Path, ...] = ()
    """folders whose files may be named as a flow; they are loaded, which runs them"""
    allow_code: bool = False
    """pipelines that are handed in may bring commands, and files out of the first of `roots`"""
    pace: float = 1000.0
    """requests a second of one credential; so many times `burst` may come at once. 0: as many as they like"""
    anonymous_pace: float = 50.0
    """the same for each address that shows no good credential"""
    burst: float = 2.0
    heartbeat: float = 15.0
    """seconds after which a silent stream shows that it lives"""
    stream_life: float = 3600.0
    """seconds after which a stream ends; a client that reconnects sends its credential again"""
    most_streams: int = 5000
    """streams that are open at once"""
    observed: RequestObserver | None = None
    """called with each answer: method, route ('' for a path that there is none for), status, seconds"""
    inbound: InboundSettings = InboundSettings()
    """the ways in beside the interface (HOLDFAST_INBOUND)"""
