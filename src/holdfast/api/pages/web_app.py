"""The web app: its page at the addresses of the app, and its hashed assets.

The app is built into `holdfast/_ui` (docs/how-to/web-app.md). Without it the plain pages answer at the same
addresses.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.responses import HTMLResponse, Response

from holdfast.api.auth.rights import Access
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.render import HEADERS
from holdfast.api.problems import HttpError
from holdfast.api.routing import ApiCall

routes = pages()
PACKAGED: Final = Path(__file__).parent.parent.parent / "_ui"
SKIP: Final = "HOLDFAST_SKIP_UI"
_IMMUTABLE: Final = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_KINDS: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
_ENCODINGS: Final = {"br": ".br", "gzip": ".gz"}
_PLAIN: Final = (
    # The plain page of an address of the app.
    (re.compile(r"/(?:inbox/[^/]+|holds)/([^/]+)"), "/plain/holds/{}"),
    (re.compile(r"/runs/([^/]+)"), "/plain/runs/{}"),
    (re.compile(r"/runs"), "/plain/runs"),
    (re.compile(r"/flows/(.+?)(?:/start)?"), "/plain/flows/{}"),
    (re.compile(r"/flows"), "/plain/flows"),
    (re.compile(r"/settings"), "/plain/absence"),
    # These have no plain page: the inbox says so.
    (re.compile(r"/(operations|editor)(?:/.*)?"), "/plain/?needs={}"),
)


class WebAsset(msgspec.Struct, frozen=True):
    """`encoded`: the same bytes, compressed at the build."""

    kind: str
    data: bytes
    encoded: Mapping[str, bytes]


class WebApp(msgspec.Struct, frozen=True):
    page: str
    release: str
    assets: Mapping[str, WebAsset]


def packaged_app() -> Path | None:
    """The folder of the built app; None if it is not built, or left out by choice."""
    built = (PACKAGED / "index.html").is_file() and os.environ.get(SKIP) != "1"
    return PACKAGED if built else None


@cache
def read_app(folder: Path) -> WebApp:
    """Read once, so that an upgrade of the files does not affect a running server."""
    assets: dict[str, WebAsset] = {}
    for file in sorted((folder / "assets").iterdir()):
        kind = _KINDS.get(file.suffix)
        if kind is not None:
            packed = {name: Path(f"{file}{end}") for name, end in _ENCODINGS.items()}
            encoded = {name: path.read_bytes() for name, path in packed.items() if path.is_file()}
            assets[file.name] = WebAsset(kind, file.read_bytes(), encoded)
    page = (folder / "index.html").read_text(encoding="utf-8")
    # The entry's name has the digest of everything that it imports.
    entry = re.search(r"assets/[\w.-]+?-([\w-]+)\.js", page)
    return WebApp(page, entry.group(1) if entry else "", assets)


def app_page(call: ApiCall) -> Response:
    """`index.html` with the path prefix of this server, its release and a nonce for styles."""
    folder = call.settings.web_app
    assert folder is not None
    app, root, nonce = (
        read_app(folder),
        str(call.request.scope.get("root_path", "")),
        secrets.token_urlsafe(16),
    )
    prefix = quote(root, safe="/")
    text = app.page.replace('"./assets/', f'"{prefix}/assets/').replace('"./static/', f'"{prefix}/static/')
    text = text.replace(
        "url=./plain/", f"url={escape(prefix + plain_address(call.request.url.path[len(root) :]))}"
    )
    text = text.replace('name="holdfast-root" content=""', f'name="holdfast-root" content="{escape(prefix)}"')
    text = text.replace(
        'name="holdfast-release" content=""', f'name="holdfast-release" content="{app.release}"'
    )
    text = text.replace('<script type="module"', f'<script type="module" nonce="{nonce}"')
    return HTMLResponse(text, headers=HEADERS | {"Content-Security-Policy": _POLICY.format(nonce=nonce)})


def plain_address(path: str) -> str:
    for pattern, target in _PLAIN:
        if found := pattern.fullmatch(path):
            return target.format(*(quote(part, safe="/") for part in found.groups()))
    return "/plain/"


async def show_app(call: ApiCall) -> Response:
    """The app; its address says what it shows."""
    return app_page(call)


async def show_app_at(call: ApiCall, rest: str) -> Response:
    """The app, at an address below one of its areas."""
    return app_page(call)


# The app reads its parameters itself.
for _path in ("/", "/inbox", "/holds", "/runs", "/flows", "/operations", "/settings"):
    routes.get(_path, needs=Access.signed_in, reads_query=True)(show_app)
_BELOW: Final = (
    "inbox/{rest:path}",
    "holds/{rest}",
    "runs/{rest}",
    "flows/{rest:path}",
    "editor/{rest:path}",
)
for _path in (*_BELOW, "operations/{rest}"):
    routes.get(f"/{_path}", needs=Access.signed_in, reads_query=True)(show_app_at)


@routes.get("/assets/{name}", needs=Access.public, reads_query=True)
async def web_asset(call: ApiCall, name: str) -> Response:
    """A file of the app. Its name has the digest of its content."""
    folder = call.settings.web_app
    found = None if folder is None else read_app(folder).assets.get(name)
    if found is None:
        raise HttpError(
            404, "this release of the web app has no such file.", code="not_found", hint="Reload the page."
        )
    accepted = {
        each.partition(";")[0].strip() for each in call.request.headers.get("accept-encoding", "").split(",")
    }
    for encoding, data in found.encoded.items():
        if encoding in accepted:
            return Response(data, media_type=found.kind, headers=_IMMUTABLE | {"Content-Encoding": encoding})
    return Response(found.data, media_type=found.kind, headers=dict(_IMMUTABLE))
