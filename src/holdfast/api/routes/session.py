"""Sign-in and sign-out, the current session, and the tenant's tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, cast

import msgspec
from starlette.responses import RedirectResponse, Response

from holdfast._version import __version__
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.grants import CredentialGrant, made_for, require_within
from holdfast.api.auth.rights import Access, Right
from holdfast.api.auth.sessions import ProviderSession, local_path
from holdfast.api.auth.tokens import LIFETIME, ApiToken
from holdfast.api.pages.web_app import read_app
from holdfast.api.pagination import Page
from holdfast.api.problems import HttpError
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.errors import ForbiddenError, InputError, NotFoundError
from holdfast.types.clock import iso, require_moment
from holdfast.types.text import clean_text

routes = Routes("session")


class SessionWire(msgspec.Struct, kw_only=True):
    """The caller. `csrf`: required for each change with this session; none for tokens. `now`: the server's
    clock, which deadlines follow; `release`: the version that the server runs; `web_release`: the build of
    its web app, empty without one. `tenants`: those between which the session can switch. `directory`: where
    the server looks for people and groups: in the store, elsewhere, or nowhere."""

    subject: str
    tenant: str
    rights: list[Right]
    groups: list[str]
    roles: list[str]
    method: str
    now: str
    release: str
    web_release: str = ""
    tenants: list[str] = []
    directory: Literal["store", "other", "none"] = "none"
    csrf: str | None = None


class BeginSession(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    token: str


class SwitchTenant(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    tenant: str


class TokenWire(msgspec.Struct, kw_only=True):
    """`token`: its text, only in the answer that created it."""

    id: str
    subject: str
    tenant: str
    roles: list[str]
    rights: list[Right]
    groups: list[str]
    status: str
    note: str
    created_at: str
    created_by: str
    expires_at: str | None = None
    last_used_at: str | None = None
    token: str | None = None


class CreateToken(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    subject: str
    roles: list[str] = []
    rights: list[Right] = []
    groups: list[str] = []
    expires_at: Annotated[datetime | None, msgspec.Meta(description="Default: in 90 days.")] = None
    never_expires: bool = False
    note: str = ""


def authenticator_of(call: ApiCall) -> Authenticator:
    """Raises HttpError if this server has no sign-in."""
    found = cast("object", call.request.app.state.authenticator)
    if not isinstance(found, Authenticator):
        raise HttpError(404, "this server has no sign-in.", code="not_found")
    return found


# ---------------------------------------------------------------------- sessions


@routes.get("/session", needs=Access.signed_in)
async def get_session(call: ApiCall) -> SessionWire:
    """The caller and their rights."""
    who = call.who
    return SessionWire(
        subject=who.actor.id,
        tenant=who.tenant,
        rights=sorted(who.rights),
        groups=sorted(who.actor.groups),
        roles=sorted(who.actor.roles),
        method=who.method,
        now=iso((await call.hf.open()).now()),
        release=__version__,
        web_release=web_release(call),
        tenants=await _tenants(call),
        directory=call.hf.directory_in_use,
        csrf=who.csrf,
    )


@routes.post("/session", needs=Access.public, status=204)
async def begin_session(call: ApiCall, body: BeginSession) -> Response:
    """Sign in with a token in a browser: starts a session, which ends with the token."""
    authenticator = authenticator_of(call)
    require_own_page(call, authenticator)
    grant, credential = await token_grant(authenticator, body.token)
    return await sign_in_response(
        call, grant, how="token", credential=credential, response=Response(None, 204)
    )


@routes.post("/session/tenant", needs=Access.signed_in, status=204, raises=(ForbiddenError,))
async def switch_tenant(call: ApiCall, body: SwitchTenant) -> Response:
    """Continue in another of your tenants: a new session in place of this one. Only for browsers."""
    authenticator = authenticator_of(call)
    secret = authenticator.cookies.get(call.request) if call.who.method == "session" else None
    opened = await (await authenticator.sessions()).switch(secret, body.tenant) if secret else None
    if opened is None:
        raise ForbiddenError(
            f"this session has no tenant {clean_text(repr(body.tenant), 80)}.",
            hint="`tenants` of GET /v1/session has those that it can switch to.",
        )
    response = Response(None, 204)
    authenticator.cookies.set_session(call.request, response, opened)
    return response


async def _tenants(call: ApiCall) -> list[str]:
    if call.who.method != "session":
        return [call.tenant]
    authenticator = authenticator_of(call)
    secret = authenticator.cookies.get(call.request)
    # The caller was authenticated: whether that was use of the session is decided there.
    found = await (await authenticator.sessions()).find(secret, is_use=False) if secret else None
    return list(found.session.grant.tenants if found else ()) or [call.tenant]


def web_release(call: ApiCall) -> str:
    """The build of the app that this server hands out."""
    folder = call.settings.web_app
    return "" if folder is None else read_app(folder).release


@routes.delete("/session", needs=Access.public, status=204)
async def end_session(call: ApiCall) -> Response:
    """Sign out, here and everywhere this session is used."""
    return await sign_out_response(call, Response(None, 204))


async def sign_in_response(
    call: ApiCall,
    grant: CredentialGrant,
    *,
    how: str,
    response: Response,
    credential: str = "",
    provider: ProviderSession | None = None,
) -> Response:
    """A new session in place of the one that the browser had."""
    authenticator = authenticator_of(call)
    sessions = await authenticator.sessions()
    # The old session ends: a browser that signs in as another person must not leave the first one open.
    if before := authenticator.cookies.get(call.request):
        await sessions.end(before, for_subject=grant.subject)
    opened = await sessions.begin(grant, how=how, credential=credential, provider=provider)
    authenticator.cookies.set_session(call.request, response, opened)
    return response


async def sign_out_response(call: ApiCall, response: Response) -> Response:
    authenticator = authenticator_of(call)
    if secret := authenticator.cookies.get(call.request):
        await (await authenticator.sessions()).end(secret)
    authenticator.cookies.delete(call.request, response)
    return response


async def token_grant(authenticator: Authenticator, text: str) -> tuple[CredentialGrant, str]:
    """The grant of a token, and its public id. Raises HttpError 401."""
    principal = await authenticator.by_token(text)
    token = await (await authenticator.tokens()).find(principal.credential) if principal.credential else None
    if token is None:
        raise HttpError(
            401,
            "this token cannot start a session. On the server's machine, holdfast sign-in prints an address "
            "that signs a browser in.",
            code="unauthenticated",
        )
    return token.known_grant, token.id


async def sign_in_with_code(call: ApiCall, code: str, onwards: str | None) -> Response:
    """An operator's one-time code becomes a session. Raises HttpError 401."""
    grant = await (await authenticator_of(call).sessions()).take_code(code)
    if grant is None:
        raise HttpError(
            401,
            "this sign-in code is not valid: it was used, or is older than ten minutes.",
            code="unauthenticated",
            hint="`holdfast sign-in` prints a new one.",
        )
    # Below the path prefix of this server, if it has one; an address to go on to has it already.
    home = f"{call.request.scope.get('root_path', '')}/"
    where = local_path(onwards) if onwards else home
    return await sign_in_response(call, grant, how="code", response=RedirectResponse(where, 303))


def require_own_page(call: ApiCall, authenticator: Authenticator) -> None:
    """Raises HttpError: another site must not sign a person in as someone else."""
    if not authenticator.same_origin(call.request):
        raise HttpError(403, "the request came from a page of another site.", code="cross_site")


# ---------------------------------------------------------------------- tokens


@routes.get("/tokens", needs=Right.admin)
async def list_tokens(call: ApiCall) -> Page[TokenWire]:
    """The tenant's tokens, newest first, without their text."""
    tokens = await authenticator_of(call).tokens()
    found = await tokens.list(call.tenant)
    now = tokens.store.now()
    return Page(items=[_token_wire(token, used, now) for token, used in found], next=None)


@routes.post("/tokens", needs=Right.admin, status=201, raises=(InputError, ForbiddenError))
async def create_token(call: ApiCall, body: CreateToken) -> ApiReply[TokenWire]:
    """Create a token of this tenant, with at most your own rights. Its text is shown only now.

    It expires after 90 days, or at `expires_at`; with `never_expires` it does not expire."""
    tokens = await authenticator_of(call).tokens()
    grant = CredentialGrant(
        subject=body.subject,
        tenant=call.tenant,
        roles=tuple(body.roles),
        rights=tuple(body.rights),
        groups=tuple(body.groups),
    )
    # An administrator must not gain rights by creating a token that has more than they have.
    require_within(grant, call.who)
    grant = made_for(grant, "token", by=call.actor.id, through=call.actor.whole_chain)
    now = tokens.store.now()
    until = _until(body, now)
    token, text = await tokens.create(grant, by=call.actor.id, expires_at=until, note=body.note[:200])
    wire = _token_wire(token, None, now)
    wire.token = text
    return ApiReply(body=wire, headers=call.location(f"/v1/tokens/{token.id}"))


@routes.delete("/tokens/{token}", needs=Right.admin, raises=(NotFoundError,))
async def revoke_token(call: ApiCall, token: str) -> TokenWire:
    """Revoke it: on this server at once, on others within five seconds."""
    tokens = await authenticator_of(call).tokens()
    revoked = await tokens.revoke(token, by=call.actor.id, tenant=call.tenant)
    return _token_wire(revoked, None, tokens.store.now())


def _until(body: CreateToken, now: int) -> int | None:
    """None: it does not expire. Raises InputError."""
    moment = body.expires_at
    if moment is None:
        return None if body.never_expires else now + LIFETIME
    if body.never_expires:
        raise InputError("expires_at and never_expires exclude each other.", hint="Send one of them.")
    until = None if moment.tzinfo is None else require_moment(moment, "expires_at")
    if until is None or until <= now:
        raise InputError("expires_at is not in the future.", hint="Write 2027-01-31T00:00:00Z.")
    return until


def _token_wire(token: ApiToken, used: int | None, now: int) -> TokenWire:
    grant = token.grant
    return TokenWire(
        id=token.id,
        subject=grant.subject,
        tenant=grant.tenant,
        roles=list(grant.roles),
        rights=sorted(grant.all_rights),
        groups=list(grant.groups),
        status=token.status_at(now),
        note=token.note,
        created_at=iso(token.made_at),
        created_by=token.made_by,
        expires_at=None if token.expires_at is None else iso(token.expires_at),
        last_used_at=None if used is None else iso(used),
    )
