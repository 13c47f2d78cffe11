"""Static files: the style sheet and the optional script of the pages, and the JavaScript client.

`/client/holdfast.js` is this server's version; `/client/DIGEST/holdfast.js` never changes and can be cached
forever.
"""

from __future__ import annotations

import base64
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.responses import Response

from holdfast._version import __version__
from holdfast.api.auth.rights import Access
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.render import HERE
from holdfast.api.problems import HttpError
from holdfast.api.routing import ApiCall

routes = pages()
_KINDS: Final = {
    "css": "text/css",
    "js": "text/javascript",
    "json": "application/json",
    "svg": "image/svg+xml",
    "ts": "application/typescript",
}


class AssetFile(msgspec.Struct, frozen=True):
    data: bytes
    kind: str
    digest: str


@cache
def files_of(folder: Path) -> dict[str, AssetFile]:
    """Read once, so that an upgrade of the files does not affect a running server."""
    found: dict[str, AssetFile] = {}
    for file in sorted(folder.iterdir()):
        kind = _KINDS.get(file.suffix[1:])
        if kind is not None:
            data = file.read_bytes()
            found[file.name] = AssetFile(data, kind, sha256(data).hexdigest()[:16])
    return found


def asset_response(call: ApiCall, known: AssetFile | None, **headers: str) -> Response:
    """Raises HttpError if there is no such file."""
    if known is None:
        raise HttpError(404, "there is nothing at this path.", code="not_found")
    headers["ETag"] = f'"{known.digest}"'
    if headers["ETag"] in call.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(known.data, media_type=known.kind, headers=headers)


@routes.get("/static/{name}", needs=Access.public, reads_query=True)
async def static_file(call: ApiCall, name: str) -> Response:
    """A file of the pages."""
    known = files_of(HERE / "static").get(name)
    return asset_response(call, known, **{"Cache-Control": "public, max-age=300"})


FOLDER: Final = Path(__file__).parent.parent / "javascript"
# Browsers run modules of another origin only if its server allows it; this code is public.
_SHARED: Final = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
_REVALIDATED: Final = _SHARED | {"Cache-Control": "public, no-cache"}
_IMMUTABLE: Final = _SHARED | {"Cache-Control": "public, max-age=31536000, immutable"}


@cache
def client_digest() -> str:
    """The digest of all files together: modules import each other, so they must change together."""
    found = sha256()
    for name, kept in files_of(FOLDER).items():
        found.update(f"{name} {len(kept.data)}\n".encode() + kept.data)
    return found.hexdigest()[:16]


@routes.get("/client/manifest.json", needs=Access.public, reads_query=True)
async def client_manifest(call: ApiCall) -> Response:
    """The files, their permanent addresses, and their integrity hashes."""
    root = call.request.scope.get("root_path", "")
    files: dict[str, Any] = {
        name: {
            "path": f"{root}/client/{client_digest()}/{name}",
            "bytes": len(kept.data),
            "integrity": f"sha256-{base64.b64encode(sha256(kept.data).digest()).decode()}",
        }
        for name, kept in files_of(FOLDER).items()
    }
    content = msgspec.json.encode({"version": __version__, "digest": client_digest(), "files": files})
    kept = AssetFile(content, "application/json", sha256(content).hexdigest()[:16])
    return asset_response(call, kept, **_REVALIDATED)


@routes.get("/client/{name}", needs=Access.public, reads_query=True)
async def client_file(call: ApiCall, name: str) -> Response:
    """A file of the JavaScript client."""
    return _client_response(call, name, _REVALIDATED)


@routes.get("/client/{digest}/{name}", needs=Access.public, reads_query=True)
async def client_file_for_good(call: ApiCall, digest: str, name: str) -> Response:
    """The same under a permanent address."""
    if digest != client_digest():
        raise HttpError(
            404,
            "this server has another version of the client.",
            code="not_found",
            hint="GET /client/manifest.json says which.",
        )
    return _client_response(call, name, _IMMUTABLE)


def _client_response(call: ApiCall, name: str, headers: dict[str, str]) -> Response:
    # Deno and similar runtimes find the types of a module by this header.
    types = {"X-TypeScript-Types": "./holdfast.d.ts"} if name == "holdfast.js" else {}
    return asset_response(call, files_of(FOLDER).get(name), **headers, **types)
