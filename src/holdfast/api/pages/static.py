"""The one style sheet and the one script, which no page needs."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from starlette.responses import Response

from holdfast.api.auth.principal import Access
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.templates import HERE
from holdfast.api.problems import HttpError
from holdfast.api.routing import Call

routes = pages()
_KINDS: Final = {
    "css": "text/css",
    "js": "text/javascript",
    "json": "application/json",
    "svg": "image/svg+xml",
    "ts": "application/typescript",
}


class Kept(msgspec.Struct, frozen=True):
    data: bytes
    kind: str
    digest: str


@cache
def files_of(folder: Path) -> dict[str, Kept]:
    """Read once: a server that runs shows what it was installed with."""
    found: dict[str, Kept] = {}
    for file in sorted(folder.iterdir()):
        kind = _KINDS.get(file.suffix[1:])
        if kind is not None:
            data = file.read_bytes()
            found[file.name] = Kept(data, kind, sha256(data).hexdigest()[:16])
    return found


def told(call: Call, known: Kept | None, **headers: str) -> Response:
    """Raises HttpError where there is no such file."""
    if known is None:
        raise HttpError(404, "There is nothing at this path.", code="not_found")
    headers["ETag"] = f'"{known.digest}"'
    if headers["ETag"] in call.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(known.data, media_type=known.kind, headers=headers)


@routes.get("/static/{name}", needs=Access.public)
async def static_file(call: Call, name: str) -> Response:
    """A file of the pages."""
    known = files_of(HERE / "static").get(name)
    return told(call, known, **{"Cache-Control": "public, max-age=300"})
