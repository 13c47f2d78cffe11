"""Answers that are files."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from holdfast.checkpoint.json_view import jsonable
from holdfast.model.forms.visible_text import show_invisible

BYTES = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
_KEPT_APART = "sandbox; default-src 'none'"
"""A browser must not show an artifact of a run as a page."""
_DRAWN = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def as_file(value: Any) -> tuple[str, bytes]:
    """(media type, content): bytes unchanged, text as text, everything else as JSON."""
    if isinstance(value, (bytes, bytearray)):
        return BYTES, bytes(value)
    if isinstance(value, str):
        return TEXT, value.encode("utf-8", "replace")
    return "application/json", msgspec.json.encode(jsonable(value))


def disposition(name: str) -> str:
    """A file to save. Its name has no characters that turn it: one that ends in `exe` must not read as if it
    ended in `txt`."""
    seen = show_invisible(name)
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in seen) or "file"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(seen, safe='')}"


def attachment(data: bytes, media: str, name: str) -> Response:
    """A download: browsers must not display it."""
    headers = {
        "Content-Disposition": disposition(name),
        "Content-Security-Policy": _KEPT_APART,
    }
    return Response(data, media_type=media, headers=headers)


def text_reply(text: str) -> Response:
    """A text to read: known secrets in it are masked, and a browser does not show it as a page."""
    headers = {"Content-Security-Policy": _KEPT_APART}
    return Response(text.encode("utf-8", "replace"), media_type=TEXT, headers=headers)


def drawing(svg: str) -> Response:
    return Response(svg, media_type="image/svg+xml", headers={"Content-Security-Policy": _DRAWN})
