"""Answers that are files."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from holdfast.checkpoint.json_view import jsonable

BYTES = "application/octet-stream"
_KEPT_APART = "sandbox; default-src 'none'"
"""A browser must not show an artifact of a run as a page."""
_DRAWN = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def as_file(value: Any) -> tuple[str, bytes]:
    """(media type, content): bytes unchanged, text as text, everything else as JSON."""
    if isinstance(value, (bytes, bytearray)):
        return BYTES, bytes(value)
    if isinstance(value, str):
        return "text/plain; charset=utf-8", value.encode("utf-8", "replace")
    return "application/json", msgspec.json.encode(jsonable(value))


def attachment(data: bytes, media: str, name: str) -> Response:
    """A download: browsers must not display it."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name) or "file"
    headers = {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": _KEPT_APART,
    }
    return Response(data, media_type=media, headers=headers)


def drawing(svg: str) -> Response:
    return Response(svg, media_type="image/svg+xml", headers={"Content-Security-Policy": _DRAWN})
