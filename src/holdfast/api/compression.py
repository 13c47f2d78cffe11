"""Compresses answers if the caller accepts that; not streams and not pages.

A page contains text that a person typed and the CSRF token of their session; compressed together, the length
would reveal the token (BREACH).
"""

from __future__ import annotations

import gzip
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from holdfast.checkpoint.compress import library

MIN_SIZE: Final = 1024
_MEDIA: Final = ("application/json", "application/problem+json", "image/svg+xml", "text/plain", "text/csv")


def compress(request: Request, response: Response) -> None:
    """In place. A strong ETag becomes weak, because the bytes differ."""
    headers = response.headers
    if isinstance(response, StreamingResponse) or "content-encoding" in headers:
        return
    if headers.get("content-type", "").partition(";")[0] not in _MEDIA or len(response.body) <= MIN_SIZE:
        return
    headers.add_vary_header("Accept-Encoding")
    wanted = _encoding_for(request.headers.get("accept-encoding", ""))
    if wanted is None:
        return
    data = bytes(response.body)
    response.body = library().compress(data, 3) if wanted == "zstd" else gzip.compress(data, 5)
    headers["Content-Encoding"] = wanted
    headers["Content-Length"] = str(len(response.body))
    if (etag := headers.get("etag")) is not None and not etag.startswith("W/"):
        headers["ETag"] = f"W/{etag}"


def _encoding_for(accepted: str) -> str | None:
    offers: dict[str, bool] = {}
    for each in accepted.split(","):
        name, _, quality = each.partition(";")
        offers[name.strip().lower()] = quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return next((name for name in ("zstd", "gzip") if offers.get(name)), None)
