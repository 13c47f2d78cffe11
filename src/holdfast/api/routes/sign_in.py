"""Sign-in and sign-out in a browser: by an operator's one-time code, by a token, or at a provider (OpenID
Connect)."""

from __future__ import annotations

import msgspec
from starlette.responses import JSONResponse, RedirectResponse, Response

from holdfast.api.auth.oidc.flow import Oidc, SignInState
from holdfast.api.auth.oidc.provider import logout_error
from holdfast.api.auth.rights import Access
from holdfast.api.auth.sessions import local_path
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.sign_in import sign_in_page, signed_out_page
from holdfast.api.problems import HttpError
from holdfast.api.routes.session import (
    authenticator_of,
    require_own_page,
    sign_in_response,
    sign_in_with_code,
    sign_out_response,
    token_grant,
)
from holdfast.api.routing import ApiCall

routes = pages()
STATE_COOKIE = "holdfast_sign_in"


class SignInQuery(msgspec.Struct, kw_only=True):
    """`next`: the path to continue at; `fresh`: the person is to sign in again."""

    next: str | None = None
    fresh: str | None = None


class SignInPageQuery(SignInQuery, kw_only=True):
    code: str = ""


@routes.get("/sign-in", needs=Access.public)
async def sign_in(call: ApiCall, query: SignInPageQuery) -> Response:
    """The sign-in page; with `code`, an operator's one-time code becomes a session at once."""
    # A HEAD must not use up the code: mail scanners and chats preview links.
    if query.code and call.request.method == "GET":
        try:
            return await sign_in_with_code(call, query.code, query.next)
        except HttpError as error:
            return await _sign_in_failed(call, error, local_path(query.next))
    return _page(call, local_path(query.next))


@routes.post("/sign-in", needs=Access.public)
async def sign_in_with_token(call: ApiCall) -> Response:
    """The page's form: a token becomes a session."""
    authenticator = authenticator_of(call)
    require_own_page(call, authenticator)
    form = await call.form("token", "next")
    text, onwards = form.get("token"), form.get("next")
    where = local_path(onwards if isinstance(onwards, str) else None)
    try:
        grant, credential = await token_grant(authenticator, text.strip() if isinstance(text, str) else "")
    except HttpError as error:
        return await _sign_in_failed(call, error, where)
    return await sign_in_response(
        call, grant, how="token", credential=credential, response=RedirectResponse(where, 303)
    )


@routes.post("/sign-out", needs=Access.public)
async def sign_out(call: ApiCall) -> Response:
    """End the session, on every server; if configured, at the provider too."""
    provider = await _provider_sign_out_url(call)
    if provider is not None:
        return await sign_out_response(call, signed_out_page(call.request, provider))
    return await sign_out_response(call, RedirectResponse("/sign-in", 303))


async def _provider_sign_out_url(call: ApiCall) -> str | None:
    """Only for a session that was started at the provider."""
    authenticator = authenticator_of(call)
    secret = authenticator.cookies.get(call.request)
    if authenticator.oidc is None or not secret:
        return None
    found = await (await authenticator.sessions()).find(secret)
    if found is None or found.session.how != "oidc":
        return None
    public = authenticator.settings.public_url.rstrip("/")
    return await authenticator.oidc.sign_out_url(f"{public}/sign-in" if public else None)


@routes.get("/sign-in/oidc", needs=Access.public)
async def sign_in_at_provider(call: ApiCall, query: SignInQuery) -> Response:
    """Send the browser to the provider; the state to check on return is kept in a cookie. `fresh`: the
    provider has to ask the person again, for a hold with `step_up`."""
    authenticator, oidc = authenticator_of(call), _oidc(call)
    journey = SignInState.begin(local_path(query.next))
    try:
        again = query.fresh is not None
        response = RedirectResponse(await oidc.address(journey, _callback(call), again=again), 303)
    except HttpError as error:
        return await _sign_in_failed(call, error, journey.onwards)
    authenticator.cookies.set(call.request, response, STATE_COOKIE, journey.text(), 600)
    return response


# Providers send parameters of their own.
@routes.get("/sign-in/oidc/callback", needs=Access.public, reads_query=True)
async def back_from_provider(call: ApiCall) -> Response:
    """The return from the provider: its claims about the person become a session."""
    authenticator, oidc = authenticator_of(call), _oidc(call)
    if call.request.method == "HEAD":
        return Response(None, 204)
    onwards = local_path(None)
    try:
        journey = SignInState.read(authenticator.cookies.get(call.request, STATE_COOKIE))
        onwards = journey.onwards
        grant, provider = await oidc.finish(journey, dict(call.request.query_params), _callback(call))
    except HttpError as error:
        return await _sign_in_failed(call, error, onwards)
    response = await sign_in_response(
        call, grant, how="oidc", response=RedirectResponse(onwards, 303), provider=provider
    )
    authenticator.cookies.delete(call.request, response, STATE_COOKIE)
    return response


@routes.post("/sign-in/oidc/logout", needs=Access.public)
async def signed_out_at_provider(call: ApiCall) -> Response:
    """The provider itself tells that a person has signed out there (back-channel logout)."""
    oidc = _oidc(call)
    given = (await call.form()).get("logout_token")
    try:
        if not isinstance(given, str):
            raise logout_error("there is none in the field logout_token")
        await oidc.signed_out(given, await authenticator_of(call).sessions())
    except HttpError as error:
        name = "invalid_request" if error.given_status == 400 else "temporarily_unavailable"
        return JSONResponse(
            {"error": name, "error_description": error.message},
            error.given_status,
            {"Cache-Control": "no-store"},
        )
    return Response(None, 200, {"Cache-Control": "no-store"})


async def _sign_in_failed(call: ApiCall, error: HttpError, onwards: str) -> Response:
    """The page again, with the error and the way back; a refusal is recorded as usual."""
    if error.given_status in (401, 403):
        await authenticator_of(call).note_refusal(call.request, call.route.path, None, error, call.request_id)
    wrong = f"{error.message} {error.hint or ''}".replace("`", "").strip()
    return _page(call, onwards, wrong=wrong, status=error.given_status)


def _oidc(call: ApiCall) -> Oidc:
    found = authenticator_of(call).oidc
    if found is None:
        raise HttpError(404, "this server has no sign-in provider.", code="not_found")
    return found


def _callback(call: ApiCall) -> str:
    """Our address as browsers see it. It is registered with the provider, so a request cannot change it."""
    public = authenticator_of(call).settings.public_url
    base = public.rstrip("/") if public else f"{call.request.url.scheme}://{call.request.url.netloc}"
    return f"{base}/sign-in/oidc/callback"


def _page(call: ApiCall, onwards: str, *, wrong: str = "", status: int = 200) -> Response:
    authenticator, who = authenticator_of(call), call.principal
    return sign_in_page(
        call.request,
        who=who,
        provider=None if authenticator.oidc is None else authenticator.oidc.settings.label,
        onwards=onwards,
        wrong=wrong,
        fresh="fresh" in call.request.query_params,
        status=status,
    )
