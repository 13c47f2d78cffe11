"""A provider: its discovery document and keys, the exchange of codes, and the check of ID tokens.

The libraries come with the extra `oidc`, and are imported when the first person signs in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote_plus

import msgspec

from holdfast.api.auth.settings import OidcSettings
from holdfast.api.problems import HttpError
from holdfast.errors import SettingsError
from holdfast.telemetry import log

if TYPE_CHECKING:
    from joserfc.jwk import KeySet
    from joserfc.jwt import Token

CACHE_SECONDS: Final = 3600.0
"""Seconds for which the discovery document is cached."""
REFETCH_SECONDS: Final = 30.0
"""Minimum seconds between two requests for unknown keys: providers rotate keys, and attackers invent ids."""
LEEWAY: Final = 60
_MOST: Final = 1 << 20
_LOGOUT_TYPES: Final = ("logout+jwt", "JWT")
_LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
_MEANT_FOR_OTHERS: Final = {
    "nonce": "the ID token was issued for another sign-in",
    "azp": "the ID token was issued for another client",
}


class ProviderMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a provider's document that are used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Provider:
    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings
        self._about: tuple[float, ProviderMetadata] | None = None
        self._keys: tuple[float, KeySet] | None = None

    async def about(self) -> ProviderMetadata:
        """Raises HttpError 502 if it cannot be read."""
        if self._about is not None and time.monotonic() - self._about[0] < CACHE_SECONDS:
            return self._about[1]
        place = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            found = msgspec.json.decode(await self._get(place), type=ProviderMetadata)
        except msgspec.DecodeError as error:
            raise provider_error(f"its document at {place} cannot be read: {error}") from error
        # Required by OpenID Connect: another issuer's document must not be used for this one.
        if found.issuer != self.settings.issuer:
            raise provider_error(f"it calls itself {found.issuer}, not {self.settings.issuer}")
        self._about = (time.monotonic(), found)
        return found

    async def exchange_code(self, code: str, verifier: str, callback: str) -> tuple[str, str | None]:
        """The ID token, and the access token for /userinfo. Raises HttpError."""
        import httpx2
        from authlib.integrations.base_client import OAuthError

        about = await self.about()
        try:
            async with self.client(about) as client:
                answer: Any = await client.fetch_token(
                    about.token_endpoint,
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                    redirect_uri=callback,
                    auth=self._basic(about),
                )
        except OAuthError as error:
            log.info("the provider refused a code: %s", error)
            raise sign_in_error("the provider refused the code of this sign-in") from error
        except httpx2.HTTPError as error:
            place = about.token_endpoint
            raise provider_error(f"it does not answer at {place}: {error or type(error).__name__}") from error
        except ValueError as error:
            raise provider_error(f"{about.token_endpoint} did not answer with JSON") from error
        token, opens = answer.get("id_token"), answer.get("access_token")
        if not isinstance(token, str):
            raise provider_error("it sent no ID token")
        return token, opens if isinstance(opens, str) else None

    def client(self, about: ProviderMetadata) -> Any:
        """Authlib's client of the provider. It follows no redirect, so that an answer cannot send us or the
        client's secret elsewhere."""
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        secret = self.settings.client_secret
        return AsyncOAuth2Client(
            self.settings.client_id,
            secret,
            token_endpoint_auth_method="client_secret_post" if secret else "none",
            scope=" ".join(self.settings.scopes),
            code_challenge_method="S256",
            timeout=self.settings.timeout,
            follow_redirects=False,
        )

    def _basic(self, about: ProviderMetadata) -> Any:
        """Each part is encoded as a form would be (RFC 6749, 2.3.1), which Authlib leaves out. None: the
        client sends its secret in the form, or has none."""
        import httpx2

        secret = self.settings.client_secret
        if not secret or "client_secret_basic" not in about.token_endpoint_auth_methods_supported:
            return None
        return httpx2.BasicAuth(quote_plus(self.settings.client_id), quote_plus(secret))

    async def claims(self, id_token: str, nonce: str, access_token: str | None = None) -> dict[str, Any]:
        """The claims of the ID token, after all checks. Raises HttpError 401."""
        from authlib.oidc.core import CodeIDToken
        from joserfc.errors import ClaimError, JoseError

        settings = self.settings
        try:
            token = await self._decoded(id_token)
            claims: Any = CodeIDToken(
                token.claims,
                token.header,
                {"iss": {"essential": True, "value": settings.issuer}, "aud": {"value": settings.client_id}},
                {"nonce": nonce, "client_id": settings.client_id, "access_token": access_token},
            )
            claims.validate(leeway=LEEWAY)
        except (JoseError, ValueError) as error:
            log.info("an ID token was refused: %r", error)
            why = _MEANT_FOR_OTHERS.get(error.claim) if isinstance(error, ClaimError) else None
            raise sign_in_error(why or "the ID token is not valid") from error
        others = cast("list[Any]", claims["aud"]) if isinstance(claims["aud"], list) else []
        if len(others) > 1 and claims.get("azp") != settings.client_id:
            raise sign_in_error(_MEANT_FOR_OTHERS["azp"])
        return dict(claims)

    async def logout_claims(self, logout_token: str) -> dict[str, Any]:
        """The claims of a logout token (OpenID Connect Back-Channel Logout 1.0, 2.6), after all checks but
        that of its reuse. Raises HttpError 400."""
        from joserfc.errors import JoseError
        from joserfc.jwt import JWTClaimsRegistry

        asked: Any = {
            "iss": {"essential": True, "value": self.settings.issuer},
            "aud": {"essential": True, "value": self.settings.client_id},
            **{name: {"essential": True} for name in ("iat", "exp", "jti")},
        }
        try:
            token = await self._decoded(logout_token)
            JWTClaimsRegistry(leeway=LEEWAY, **asked).validate(token.claims)
        except (JoseError, ValueError) as error:
            log.info("a logout token was refused: %r", error)
            raise logout_error("it is not valid") from error
        _require_logout(token.header, token.claims)
        return token.claims

    async def userinfo(self, opens: str, subject: str) -> dict[str, Any]:
        """Further claims from /userinfo; empty if the provider has no such endpoint. Raises HttpError."""
        about = await self.about()
        if about.userinfo_endpoint is None:
            return {}
        data = await self._get(about.userinfo_endpoint, {"Authorization": f"Bearer {opens}"})
        try:
            found = msgspec.json.decode(data, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise provider_error("its /userinfo did not answer with JSON") from error
        # Required by OpenID Connect: an access token of another person must not add their claims.
        if found.get("sub") != subject:
            raise sign_in_error("the provider's /userinfo is about another person")
        return found

    async def _decoded(self, id_token: str) -> Token:
        """Only keys of the provider's list: other key headers of a token (jku, x5u) are ignored."""
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError

        # From the settings and never from the token: its header could ask for "none" or a weaker algorithm.
        algorithms = list(self.settings.algorithms)
        try:
            return jwt.decode(id_token, _chooser(await self._key_set(fresh=False)), algorithms)
        except InvalidKeyIdError:
            # The provider may have rotated its keys since we read them.
            return jwt.decode(id_token, _chooser(await self._key_set(fresh=True)), algorithms)

    async def _key_set(self, *, fresh: bool) -> KeySet:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        now = time.monotonic()
        if self._keys is not None and now - self._keys[0] < (REFETCH_SECONDS if fresh else CACHE_SECONDS):
            return self._keys[1]
        data = await self._get((await self.about()).jwks_uri)
        try:
            found = KeySet.import_key_set(cast("Any", msgspec.json.decode(data, type=dict[str, Any])))
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise provider_error(f"its keys cannot be read: {error}") from error
        self._keys = (now, found)
        return found

    # ------------------------------------------------------------------ the wire
    async def _get(self, place: str, headers: Mapping[str, str] | None = None) -> bytes:
        import httpx2

        try:
            async with httpx2.AsyncClient(timeout=self.settings.timeout, follow_redirects=False) as client:
                answer = await client.get(place, headers=dict(headers or {}))
        except httpx2.HTTPError as error:
            raise provider_error(f"it does not answer at {place}: {error or type(error).__name__}") from error
        if answer.status_code != 200 or len(answer.content) > _MOST:
            raise provider_error(f"{place} answered with {answer.status_code}")
        return answer.content


def _chooser(keys: KeySet) -> Callable[[Any], Any]:
    """The key that a token names; if it names none, the first one for its algorithm.
    Raises InvalidKeyIdError."""
    from joserfc.errors import InvalidKeyIdError

    def choose(token: Any) -> Any:
        header = token.headers()
        kinds: Any = keys.algorithm_keys.get(header["alg"], ())
        for key in keys.keys:
            named = "kid" not in header or key.kid == header["kid"]
            if named and key.key_type in kinds and key.get("use") in (None, "sig"):
                return key
        raise InvalidKeyIdError("its key is not among the provider's")

    return choose


def _require_logout(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """A token of the provider for another purpose must not sign anybody out. Raises HttpError 400."""
    events = claims.get("events")
    named = [claims[name] for name in ("sub", "sid") if name in claims]
    if header.get("typ", "JWT") not in _LOGOUT_TYPES or "nonce" in claims:
        raise logout_error("it is a token for another purpose")
    if not isinstance(events, dict) or not isinstance(cast("Any", events).get(_LOGOUT_EVENT), dict):
        raise logout_error("it is not about a sign-out")
    if not named or not all(isinstance(each, str) and each for each in named):
        raise logout_error("it names neither a person nor a session")


def logout_error(why: str) -> HttpError:
    return HttpError(400, f"the logout token was refused: {why}.", code="invalid_request")


def sign_in_error(why: str) -> HttpError:
    """An error of one sign-in: the person can try again."""
    return HttpError(
        401, f"the sign-in failed: {why}.", code="sign_in_refused", hint="Start again at /sign-in."
    )


def provider_error(why: str) -> HttpError:
    log.warning("the provider of sign-in: %s", why)
    return HttpError(
        502,
        "the sign-in provider does not work as expected.",
        code="provider_trouble",
        hint="Try again later; the server's log has the details.",
    )


def require_libraries() -> None:
    """Raises SettingsError if the extra is not installed: at the start of the server, not at the first
    sign-in."""
    try:
        for name in ("httpx2", "authlib", "cryptography"):
            import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"sign-in at a provider needs packages that are not installed: {error}.",
            hint="Install the extra `oidc`: pip install 'holdfast-flow[oidc]'.",
        ) from error
