"""Settings of a server: sizes, rates, allowed origins, folders from which flows may be loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.api.inbound.settings import InboundSettings

RequestObserver = Callable[[str, str, int, float], None]


class ApiSettings(msgspec.Struct, kw_only=True):
    """Sizes are bytes, rates are requests per second."""

    most_body: int = 1 << 20
    most_file: int = 32 << 20
    most_document: int = 10 << 20
    """a request with documents as text inside of JSON: a flow document of at most 4 MB, or a pipeline with
    files of at most 8 MB"""
    origins: tuple[str, ...] = ()
    """other origins whose pages may call it (CORS)"""
    hosts: tuple[str, ...] = ()
    """allowed host names; none: any"""
    roots: tuple[Path, ...] = ()
    """folders whose files may be started as a flow; loading a file executes it"""
    tenant_roots: dict[str, tuple[Path, ...]] = {}
    """for each tenant, folders with flow documents that its runs may be started from"""
    allow_code: bool = False
    """submitted pipelines may contain commands"""
    pace: float = 1000.0
    """requests per second of one credential; `burst` times as many at once. 0: no limit"""
    anonymous_pace: float = 50.0
    """the same for each address without a valid credential"""
    burst: float = 2.0
    heartbeat: float = 15.0
    """seconds between keep-alive messages of an idle stream"""
    stream_life: float = 3600.0
    """seconds after which a stream ends; a client that reconnects sends its credential again"""
    most_streams: int = 5000
    """maximum number of open streams"""
    observed: RequestObserver | None = None
    """called with each answer: method, route ('' for an unknown path), status, seconds"""
    inbound: InboundSettings = InboundSettings()
    """the inbound channels (HOLDFAST_INBOUND)"""
    web_app: Path | None = None
    """the folder of the built web app; none: the plain pages answer at its addresses"""
