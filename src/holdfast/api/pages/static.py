"""The one style sheet and the one script, which no page needs."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Final

from starlette.responses import Response

from holdfast.api.auth.principal import Access
from holdfast.api.pages.places import pages
from holdfast.api.pages.rendering import HERE
from holdfast.api.problems import HttpError
from holdfast.api.routing import Call

routes = pages()
_KINDS: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Read once: a server that runs shows what it was installed with."""
    found: dict[str, tuple[bytes, str, str]] = {}
    for file in sorted((HERE / "static").iterdir()):
        kind = _KINDS.get(file.suffix[1:])
        if kind is not None:
            data = file.read_bytes()
            found[file.name] = (data, kind, sha256(data).hexdigest()[:16])
    return found


@routes.get("/static/{name}", needs=Access.public)
async def static_file(call: Call, name: str) -> Response:
    """A file of the pages."""
    known = _files().get(name)
    if known is None:
        raise HttpError(404, "There is nothing at this path.", code="not_found")
    data, kind, digest = known
    headers = {"Cache-Control": "public, max-age=300", "ETag": f'"{digest}"'}
    if f'"{digest}"' in call.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=kind, headers=headers)
