"""Signed links: every holder of a link may open it, any number of times; it decides once.

`/l/TOKEN` replaces the token by a cookie at once, so that the token is in no address that is shown, copied or
sent as a referrer. GET and HEAD only show. POST needs the cookie, and the CSRF token of the page.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.rights import Access
from holdfast.api.pages.decision_form import FormDraft, draft_with_errors, require_known_fields, submission
from holdfast.api.pages.hold import CHOOSE, HoldQuery, hold_context
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.render import page, redirect
from holdfast.api.problems import HttpError, status_of
from holdfast.api.routing import ApiCall
from holdfast.errors import AnswerInvalidError, HoldfastError, LinkInvalidError
from holdfast.holds.links.open import Links, OpenedLink, link_actor
from holdfast.types.hold import HoldRow
from holdfast.types.redaction import enter_tenant
from holdfast.types.terms import Actor

routes = pages()
COOKIE: Final = "holdfast_link"
COOKIE_SECONDS: Final = 3600
"""Seconds for which a browser keeps the token; a link that is valid longer has to be opened again."""
PRIVATE: Final = {"Referrer-Policy": "no-referrer"}


# Mail systems add parameters of their own to links.
@routes.get("/l/{token}", needs=Access.link, reads_query=True)
async def open_link(call: ApiCall, token: str) -> Response:
    """Replaces a signed link by a cookie and shows its hold. It decides nothing."""
    links = Links((await call.holds()).ctx)
    _, row = await links.find(token)
    answer = redirect(f"/link/{row.id}", call.request)
    root = call.request.scope.get("root_path", "")
    answer.set_cookie(
        COOKIE,
        token,
        max_age=COOKIE_SECONDS,
        # Only for this hold: links to several holds can be open in one browser.
        path=f"{root}/link/{row.id}",
        secure=_is_https(call),
        httponly=True,
        samesite="lax",
    )
    answer.headers.update(PRIVATE)
    return answer


@routes.get("/link/{hold}", needs=Access.link)
async def link_page(call: ApiCall, hold: str, query: HoldQuery) -> Response:
    """The hold of a link that was opened here."""
    token = _token(call)
    links = Links((await call.holds()).ctx)
    looked = await links.look(token)
    _require_same(looked.row, hold)
    enter_tenant(looked.row.tenant)
    return await _show(call, looked, token, FormDraft(), decided=query.decided == "1")


@routes.post("/link/{hold}", needs=Access.link)
async def decide_link_page(call: ApiCall, hold: str) -> Response:
    """Decides by a link, once."""
    service = await call.holds()
    token = _token(call)
    links = Links(service.ctx)
    claims, row = await links.find(token)
    _require_same(row, hold)
    enter_tenant(row.tenant)
    form = await call.form()
    if not hmac.compare_digest(str(form.get("csrf_token") or "").encode(), csrf_value(token).encode()):
        raise HttpError(
            403,
            "the request did not come from the page of the link.",
            code="csrf",
            hint="Open the link again.",
        )
    signed_in = _signed_in(call)
    answer, draft = await submission(service, signed_in or link_actor(claims), row, form)
    try:
        require_known_fields(row, form)
        if draft.wrong:
            raise AnswerInvalidError("a file was not accepted.")
        if row.options and answer.decision is None:
            raise AnswerInvalidError(CHOOSE)
        await links.decide(token, answer, actor=signed_in)
    except HoldfastError as error:
        claims, row = await links.find(token)
        looked = OpenedLink(row=row, claims=claims, way="over" if row.status != "pending" else "decide")
        return await _show(call, looked, token, draft_with_errors(draft, error), error)
    return redirect(f"/link/{row.id}?decided=1", call.request)


@routes.get("/links", needs=Access.public)
async def fragment_page(call: ApiCall) -> Response:
    """Links with their token after a #, which no server sees: a script sends it, or a person pastes it."""
    return page(call.request, "links.html")


@routes.post("/links", needs=Access.public)
async def typed_link(call: ApiCall) -> Response:
    """A pasted link."""
    given = str((await call.form("link")).get("link") or "").strip()
    token = given.rpartition("#")[2] if "#" in given else given.rpartition("/")[2]
    if not token:
        return redirect("/links", call.request)
    return redirect(f"/l/{quote(token, safe='')}", call.request)


def csrf_value(token: str) -> str:
    """The CSRF token of a POST: derived from the link's token, and other sites cannot read our page."""
    return hmac.new(token.encode(), b"holdfast page", sha256).hexdigest()


def _is_https(call: ApiCall) -> bool:
    """Whether browsers use https, which a proxy in front may hide."""
    authenticator: object = call.request.app.state.authenticator
    return (
        authenticator.cookies.is_https(call.request)
        if isinstance(authenticator, Authenticator)
        else call.request.url.scheme == "https"
    )


def _token(call: ApiCall) -> str:
    token = call.request.cookies.get(COOKIE)
    if not token:
        raise LinkInvalidError(
            "the link is no longer open in this browser.", hint="Open it again from your message."
        )
    return token


def _require_same(row: HoldRow, hold: str) -> None:
    if row.id != hold:
        raise LinkInvalidError("this link is for another question.", hint="Open it again from your message.")


def _signed_in(call: ApiCall) -> Actor | None:
    return None if call.principal is None else call.principal.actor


async def _show(
    call: ApiCall,
    looked: OpenedLink,
    token: str,
    draft: FormDraft,
    error: HoldfastError | None = None,
    *,
    decided: bool = False,
) -> Response:
    service = await call.holds()
    row = looked.row
    way = "decide" if looked.way == "login" and call.principal is not None else looked.way
    answer = page(
        call.request,
        "hold.html",
        who=call.principal,
        status=200 if error is None else status_of(error),
        may=way == "decide",
        error=error,
        decided=decided,
        history=[],
        comments=[],
        votes=[],
        shadow=None,
        sees_run=False,
        action=f"/link/{row.id}",
        csrf=csrf_value(token),
        act=False,
        kept=None,
        link={"to": looked.claims.to, "way": way, "decisions": looked.claims.decisions},
        **hold_context(row, service.store.now(), draft, error),
    )
    answer.headers.update(PRIVATE)
    return answer
