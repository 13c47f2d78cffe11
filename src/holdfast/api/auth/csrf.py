"""Cross-site request forgery: a change with a session's cookie must come from our own page.

Both are checked: the browser's headers about the origin, and the token of the session (`csrf_token`). On the
paths of the runtime document the headers are enough if they say that our own page sent it: its sample calls
`fetch` with no header of its own.
"""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from holdfast.api.aliases import alias_in
from holdfast.api.auth.principal import Principal
from holdfast.api.problems import HttpError
from holdfast.api.request_body import read_form

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
FIELD: Final = "csrf_token"
HEADER: Final = "x-csrf-token"


async def require_own(
    request: Request, principal: Principal, origins: frozenset[str], *, most_form: int
) -> None:
    """Raises HttpError if another site may have made the browser send it. `most_form`: bytes of a form."""
    # Besides the token, since either check alone has gaps in some browser.
    if not same_origin(request, origins, proven=True):
        raise HttpError(403, "the request came from a page of another site.", code="cross_site")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if _is_runtime_path(request) and _is_own_fetch(request, origins):
        return
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    # Other types, such as text/plain, can be sent by a form of another site without a CORS preflight.
    if has_body and kind not in ("application/json", "application/octet-stream", *FORMS):
        raise HttpError(
            415, "with a session, a body must be JSON or a form.", code="unsupported_media_type",
            hint="Send `Content-Type: application/json`.",
        )  # fmt: skip
    shown = request.headers.get(HEADER)
    if shown is None and kind in FORMS:
        # The handler then gets the same parsed form.
        value = (await read_form(request, most_form)).get(FIELD)
        shown = value if isinstance(value, str) else None
    # `not shown` first: an empty token would equal the empty default of a principal without one.
    if not shown or not hmac.compare_digest(shown.encode(), (principal.csrf or "").encode()):
        raise HttpError(
            403,
            "the CSRF token is missing or wrong.",
            code="csrf",
            hint=f"Send it as X-CSRF-Token, or as {FIELD} of a form; GET /v1/session returns it.",
        )


def same_origin(connection: HTTPConnection, origins: frozenset[str], *, proven: bool = False) -> bool:
    """Whether our own page sent it, by the browser's headers. An origin of `null` (hidden by the referrer
    policy) is accepted if Sec-Fetch-Site says same-origin; over plain http browsers do not send that header,
    and then a request is accepted that is `proven` by the CSRF token."""
    site = connection.headers.get("sec-fetch-site")
    # "none" is a request that the person made directly, by the address bar or a bookmark.
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = connection.headers.get("origin")
    if origin is None or (origin == "null" and (site == "same-origin" or (proven and site is None))):
        return True
    return origin.lower() in origins


def _is_runtime_path(request: Request) -> bool:
    alias = alias_in(request.scope)
    return alias is not None and alias.runtime


def _is_own_fetch(request: Request, origins: frozenset[str]) -> bool:
    """Whether the browser says that a script of our own page sent it. No page can set or remove its headers
    about that, but an older browser, or any over plain http, sends only `Origin`; without it nothing is said.
    A form is not enough: somebody may get one into our page who cannot run a script there."""
    headers = request.headers
    return (
        headers.get("origin", "").lower() in origins
        and headers.get("sec-fetch-site", "same-origin") == "same-origin"
        and headers.get("sec-fetch-mode", "cors") in ("cors", "same-origin", "no-cors")
        and headers.get("sec-fetch-dest", "empty") == "empty"
        and not _is_form(headers.get("content-type", ""))
    )


def _is_form(content_type: str) -> bool:
    """Whether a form can have this type. One of plain text can spell JSON; `fetch` adds the charset to a
    text, a form does not."""
    kind, _, more = content_type.partition(";")
    kind = kind.strip().lower()
    return kind in FORMS or (kind == "text/plain" and "charset" not in more.lower())


def own_origins(connection: HTTPConnection, public_url: str | None) -> frozenset[str]:
    """The addresses under which our own pages are served."""
    scheme = "https" if connection.url.scheme in ("https", "wss") else "http"
    found = {f"{scheme}://{connection.headers.get('host', '')}".lower()}
    if public_url:
        parts = urlsplit(public_url)
        found.add(f"{parts.scheme}://{parts.netloc}".lower())
    return frozenset(found)
