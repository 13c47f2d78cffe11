"""One sign-in at a provider: authorization code, PKCE, state and nonce; then claims become a grant."""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from time import time
from typing import Any, cast
from urllib.parse import urlencode

import msgspec

from holdfast.api.auth.grants import CredentialGrant, validate_grant
from holdfast.api.auth.oidc.provider import LEEWAY, Provider, logout_error, require_libraries, sign_in_error
from holdfast.api.auth.sessions import ProviderSession, Sessions, local_path
from holdfast.api.auth.settings import OidcSettings
from holdfast.api.problems import HttpError
from holdfast.errors import InputError
from holdfast.telemetry import log
from holdfast.types.clock import MICROS


class SignInState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a sign-in, in a cookie that no page can read: the server stores nothing for sign-ins that
    are never finished. A return without it, or with another `state`, did not start in this browser."""

    state: str
    nonce: str
    verifier: str
    onwards: str

    @classmethod
    def begin(cls, onwards: str) -> SignInState:
        fresh = [secrets.token_urlsafe(32) for _ in range(3)]
        return cls(state=fresh[0], nonce=fresh[1], verifier=fresh[2], onwards=onwards)

    @classmethod
    def read(cls, text: str | None) -> SignInState:
        """Raises HttpError 401."""
        try:
            found = msgspec.json.decode(urlsafe_b64decode((text or "").encode()), type=SignInState)
        except (ValueError, msgspec.DecodeError):
            raise sign_in_error(
                "it was not started in this browser, or took longer than ten minutes"
            ) from None
        # The cookie is not signed: its content is checked like any other input.
        return msgspec.structs.replace(found, onwards=local_path(found.onwards))

    def text(self) -> str:
        return urlsafe_b64encode(msgspec.json.encode(self)).decode()


class Oidc:
    def __init__(self, settings: OidcSettings) -> None:
        require_libraries()
        self.settings = settings
        self.provider = Provider(settings)

    async def address(self, journey: SignInState, callback: str, *, again: bool = False) -> str:
        """The provider's address to sign in. `again`: the provider must ask, also if it knows the person; it
        then says when it did (`auth_time`)."""
        more = {"prompt": "login", "max_age": "0"} if again else {}
        about = await self.provider.about()
        async with self.provider.client(about) as client:
            url, _ = client.create_authorization_url(
                about.authorization_endpoint,
                state=journey.state,
                code_verifier=journey.verifier,
                nonce=journey.nonce,
                redirect_uri=callback,
                **more,
            )
        return url

    async def sign_out_url(self, back: str | None) -> str | None:
        """The provider's address to sign out there too, and then go `back`; None if it has none."""
        if not self.settings.sign_out:
            return None
        try:
            place = (await self.provider.about()).end_session_endpoint
        except HttpError:
            return None  # the provider is unavailable: the session here has ended anyway
        if place is None:
            return None
        asked = {"client_id": self.settings.client_id}
        if back is not None:
            asked["post_logout_redirect_uri"] = back
        return f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}"

    async def finish(
        self, journey: SignInState, params: Mapping[str, str], callback: str
    ) -> tuple[CredentialGrant, ProviderSession]:
        """Raises HttpError: 401 if any check fails, 502 if the provider is unavailable."""
        # Before the code is used: a code that another person's
        # browser obtained must not sign in this one (login CSRF).
        if not hmac.compare_digest(params.get("state", "").encode(), journey.state.encode()):
            raise sign_in_error("it was not started in this browser")
        about = await self.provider.about()
        result = params.get("iss")
        # Mix-up attack: an answer of another provider must not be accepted (RFC 9207).
        if result != about.issuer and (result or about.authorization_response_iss_parameter_supported):
            raise sign_in_error("another provider answered")
        code = params.get("code")
        if not code:
            log.info("the provider refused a sign-in: %s", params.get("error", "")[:100])
            raise sign_in_error("the provider refused it")
        token, opens = await self.provider.exchange_code(code, journey.verifier, callback)
        claims = await self.provider.claims(token, journey.nonce, opens)
        more = await self.provider.userinfo(opens, claims["sub"]) if opens else {}
        # Claims of the signed ID token take precedence over those of /userinfo.
        sid = claims.get("sid")
        session = ProviderSession(sub=claims["sub"], sid=sid if isinstance(sid, str) else "")
        return grant_of(self.settings, {**more, **claims}), session

    async def signed_out(self, logout_token: str, sessions: Sessions) -> int:
        """The provider tells that a person has signed out there: how many sessions ended. Raises HttpError:
        400 for a token that is not valid or was used, 502 if the provider is unavailable."""
        claims = await self.provider.logout_claims(logout_token)
        ended = await sessions.end_at_provider(
            sub=claims.get("sub", ""),
            sid=claims.get("sid", ""),
            jti=claims["jti"],
            seconds=claims["exp"] + LEEWAY - time(),
        )
        if ended is None:
            raise logout_error("it was used before")
        return ended


def grant_of(settings: OidcSettings, claims: Mapping[str, Any]) -> CredentialGrant:
    """Raises HttpError 401 for a person without a usable name, or without a tenant here."""
    groups = _words(_claim(claims, settings.groups))
    given = {role for role, members in settings.roles.items() if set(members) & set(groups)}
    tenants = _tenants(settings, claims)
    grant = CredentialGrant(
        subject=f"user:{_name(settings, claims)}",
        tenant=tenants[0],
        tenants=tenants if len(tenants) > 1 else (),
        roles=tuple(sorted(given | set(settings.default_roles))),
        groups=tuple(sorted(groups)),
        titles=tuple(sorted(_words(_claim(claims, settings.titles)))),
        signed_in_at=_auth_time(claims),
    )
    try:
        return validate_grant(grant)
    except InputError as error:
        raise sign_in_error(error.message.rstrip(".")) from error


def _auth_time(claims: Mapping[str, Any]) -> int:
    """When the provider saw the person sign in. Without the claim it may be long ago: a provider that knows
    the browser asks nothing."""
    found = claims.get("auth_time")
    if isinstance(found, int) and not isinstance(found, bool) and 0 < found < 2**40:
        return found * MICROS
    return 0


def _name(settings: OidcSettings, claims: Mapping[str, Any]) -> str:
    found = _claim(claims, settings.user)
    if not isinstance(found, str) or not found.strip():
        raise sign_in_error(f"the provider did not send the claim {settings.user!r}, which names people here")
    if settings.user == "email" and claims.get("email_verified") is not True:
        # An unverified address proves nothing: at some providers a user can enter any address.
        raise sign_in_error("the provider has not verified this address")
    return found.strip().lower() if settings.user == "email" else found.strip()


def _tenants(settings: OidcSettings, claims: Mapping[str, Any]) -> tuple[str, ...]:
    """In the order of the settings. The session begins in the first; the web app names it and switches."""
    if not settings.tenant_claim:
        return (settings.tenant,)
    given = set(_words(_claim(claims, settings.tenant_claim)))
    found = dict.fromkeys(tenant for value, tenant in settings.tenants.items() if value in given)
    if not found:
        raise sign_in_error("you have no tenant on this server")
    return tuple(found)


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """`realm_access.roles` is a nested claim. A claim whose name itself has dots takes precedence."""
    if not path:
        return None
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
    return found


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        return []
    return [each for each in cast("Iterable[Any]", value) if isinstance(each, str)]
