"""Masks known secrets in answers, whatever a route put into them. Files are left as they are: exports and
attachments have the values, and need their own rights."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response, StreamingResponse

from holdfast.types.redaction import redactor

_FILES: Final = ("application/octet-stream", "multipart/")


def mask(response: Response) -> None:
    """In place. Streams mask each event themselves (`live.sse`)."""
    if isinstance(response, StreamingResponse) or not hasattr(response, "body"):
        return
    headers = response.headers
    if "content-disposition" in headers or headers.get("content-type", "").startswith(_FILES):
        return
    data = bytes(response.body)
    hidden = redactor.redact_bytes(data)
    if hidden != data:
        response.body = hidden
        response.headers["Content-Length"] = str(len(hidden))
