"""What was typed into a form whose session ended: kept in cookies of the browser until the person is back.

It is not kept on the server, where a caller who is not signed in must not store anything. Only our own page
can have sent it: its CSRF token is the one of the ended session, or the browser says that it was our page.
Only the person whom the form was made for gets it back.
"""

from __future__ import annotations

import hmac
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.auth import csrf
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.sessions import csrf_of
from holdfast.api.pages.render import redirect
from holdfast.api.problems import HttpError
from holdfast.api.request_body import read_form

COOKIES: Final = tuple(f"holdfast_form_{number}" for number in range(3))
COOKIE_SIZE: Final = 3500
"""Characters of one cookie: browsers keep up to 4096 bytes with its name and attributes."""
KEPT_SECONDS: Final = 1800
MOST_FORM: Final = 1 << 20
"""Bytes of a form that is read from a caller who is not signed in."""
MOST_TEXT: Final = 1 << 18
WHO: Final = "who"
"""The field of the form that names the person it was made for."""
_KEPT_ACTS: Final = (None, "", "decide", "comment")
_NOT_KEPT: Final = frozenset({csrf.FIELD, "key", WHO})


class KeptForm(msgspec.Struct, frozen=True, kw_only=True):
    """`cut`: fields that were too long, or files, which have to be given again."""

    path: str
    who: str
    fields: list[tuple[str, str]]
    cut: list[str] = []

    @property
    def form(self) -> FormData:
        return FormData(list[tuple[str, str | UploadFile]](self.fields))

    @property
    def act(self) -> str:
        """`decide` or `comment`: the form of the page that was sent."""
        return str(self.form.get("act") or "decide")

    @property
    def text(self) -> str:
        return str(self.form.get("text") or "")


async def sign_in_and_back(request: Request, authenticator: object, error: HttpError) -> Response | None:
    """For a form that a person sent without a session, or with the token of an earlier one: to the sign-in,
    or back to the page, with what was typed. None for other errors."""
    stale = error.given_status == 403 and error.given_code == "csrf"
    if request.method != "POST" or not (error.given_status == 401 or stale):
        return None
    path = request.url.path
    root = request.scope.get("root_path", "")
    response = redirect(path.removeprefix(root) if stale else f"/sign-in?next={path}", request)
    if isinstance(authenticator, Authenticator):
        kept = await _read(request, authenticator, path)
        if kept is not None:
            _write(request, response, authenticator, kept)
        elif stale:
            return None
    return response


async def _read(request: Request, authenticator: Authenticator, path: str) -> KeptForm | None:
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > MOST_FORM:
        return None
    try:
        form = await read_form(request, MOST_FORM)
    except HttpError:
        return None
    if form.get("act") not in _KEPT_ACTS or not form.get(WHO) or not _is_own(request, authenticator, form):
        return None
    texts = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    files = [name for name, value in form.multi_items() if not isinstance(value, str) and value.filename]
    fields = [(name, value) for name, value in texts if name not in _NOT_KEPT]
    return KeptForm(path=path, who=str(form.get(WHO) or ""), fields=fields, cut=files)


def _is_own(request: Request, authenticator: Authenticator, form: FormData) -> bool:
    """Whether our own page sent it: another site must not fill in a form that the person then sends."""
    origins = csrf.own_origins(request, authenticator.settings.public_url)
    if not csrf.same_origin(request, origins, proven=True):
        return False
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site == "same-origin" or (origin is not None and origin.lower() in origins):
        return True
    secret, shown = authenticator.cookies.get(request), form.get(csrf.FIELD)
    return bool(secret) and isinstance(shown, str) and hmac.compare_digest(shown, csrf_of(secret or ""))


def _write(request: Request, response: Response, authenticator: Authenticator, kept: KeptForm) -> None:
    text = _encoded(kept)
    # The longest fields are left out first: so as many as possible are kept.
    for name, _ in sorted(kept.fields, key=lambda pair: -len(pair[1])):
        if len(text) <= COOKIE_SIZE * len(COOKIES):
            break
        rest = [pair for pair in kept.fields if pair[0] != name]
        kept = msgspec.structs.replace(kept, fields=rest, cut=[*kept.cut, name])
        text = _encoded(kept)
    for number, cookie in enumerate(COOKIES):
        part = text[number * COOKIE_SIZE : (number + 1) * COOKIE_SIZE]
        authenticator.cookies.set(request, response, cookie, part, KEPT_SECONDS if part else 0)


def _encoded(kept: KeptForm) -> str:
    return urlsafe_b64encode(zlib.compress(msgspec.json.encode(kept), 9)).decode()


def kept_form(request: Request, who: str) -> KeptForm | None:
    """What this person typed into the form of this page before their session ended."""
    authenticator: object = request.app.state.authenticator
    if not isinstance(authenticator, Authenticator):
        return None
    text = "".join(authenticator.cookies.get(request, cookie) or "" for cookie in COOKIES)
    try:
        # Bounded: a cookie of a few bytes can stand for gigabytes.
        data = zlib.decompressobj().decompress(urlsafe_b64decode(text), MOST_TEXT) if text else b""
        kept = msgspec.json.decode(data, type=KeptForm) if data else None
    except (ValueError, zlib.error, msgspec.DecodeError, msgspec.ValidationError):
        return None
    return kept if kept is not None and (kept.path, kept.who) == (request.url.path, who) else None


def forget_form(request: Request, response: Response) -> Response:
    """After the form was sent."""
    authenticator: object = request.app.state.authenticator
    if isinstance(authenticator, Authenticator):
        for cookie in COOKIES:
            if authenticator.cookies.get(request, cookie):
                authenticator.cookies.delete(request, response, cookie)
    return response
