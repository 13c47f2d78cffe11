"""A provider: what it says about itself, its keys, and how codes are swapped and tokens are checked there.

The libraries come with the extra `oidc`, and are imported when the first person signs in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from holdfast.api.auth.settings import OidcSettings
from holdfast.api.problems import HttpError
from holdfast.errors import SettingsError
from holdfast.telemetry import log

if TYPE_CHECKING:
    import jwt

CACHE_SECONDS: Final = 3600.0
"""Seconds for which what a provider says about itself is believed."""
REFETCH_SECONDS: Final = 30.0
"""A key that is not known is asked for no more often: providers rotate keys, and strangers make up names."""
LEEWAY: Final = 60
_MOST: Final = 1 << 20


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
        self._keys: tuple[float, jwt.PyJWKSet] | None = None

    async def about(self) -> ProviderMetadata:
        """Raises HttpError 502 where it cannot be had."""
        if self._about is not None and time.monotonic() - self._about[0] < CACHE_SECONDS:
            return self._about[1]
        place = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            found = msgspec.json.decode(await self._get(place), type=ProviderMetadata)
        except msgspec.DecodeError as error:
            raise provider_error(f"its document at {place} cannot be read: {error}") from error
        if found.issuer != self.settings.issuer:
            raise provider_error(f"it calls itself {found.issuer}, not {self.settings.issuer}")
        self._about = (time.monotonic(), found)
        return found

    async def exchange_code(self, code: str, verifier: str, callback: str) -> tuple[str, str | None]:
        """The ID token, and the token that opens /userinfo. Raises HttpError."""
        about = await self.about()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": verifier,
            "client_id": self.settings.client_id,
        }
        answer = await self._post(about.token_endpoint, form, about)
        token, opens = answer.get("id_token"), answer.get("access_token")
        if not isinstance(token, str):
            raise provider_error("it gave no ID token")
        return token, opens if isinstance(opens, str) else None

    async def claims(self, id_token: str, nonce: str) -> dict[str, Any]:
        """What the ID token says, once all of it is checked. Raises HttpError 401."""
        import jwt

        settings = self.settings
        try:
            key = await self._key(jwt.get_unverified_header(id_token))
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key,
                algorithms=list(settings.algorithms),
                audience=settings.client_id,
                issuer=settings.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            log.info("an ID token was refused: %s", error)
            raise sign_in_error("what the provider sent is not good") from error
        if claims.get("nonce") != nonce:
            raise sign_in_error("what the provider sent was meant for another sign-in")
        others = cast("list[Any]", claims["aud"]) if isinstance(claims["aud"], list) else []
        if (len(others) > 1 or "azp" in claims) and claims.get("azp") != settings.client_id:
            raise sign_in_error("what the provider sent was made for another client")
        return claims

    async def userinfo(self, opens: str, subject: str) -> dict[str, Any]:
        """What more it tells; nothing where it has no such place. Raises HttpError."""
        about = await self.about()
        if about.userinfo_endpoint is None:
            return {}
        data = await self._get(about.userinfo_endpoint, {"Authorization": f"Bearer {opens}"})
        try:
            found = msgspec.json.decode(data, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise provider_error("what it tells about people is no JSON") from error
        if found.get("sub") != subject:
            raise sign_in_error("the provider told about somebody else")
        return found

    async def _key(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        """Only keys of the provider's own list: what else a token says about its key is ignored."""
        import jwt

        if header.get("alg") not in self.settings.algorithms:
            raise jwt.InvalidAlgorithmError(f"{header.get('alg')!r} is not allowed")
        found = _key_for(await self._key_set(fresh=False), header)
        if found is None:
            found = _key_for(await self._key_set(fresh=True), header)
        if found is None:
            raise jwt.InvalidKeyError("its key is not among the provider's")
        return found

    async def _key_set(self, *, fresh: bool) -> jwt.PyJWKSet:
        import jwt

        now = time.monotonic()
        if self._keys is not None and now - self._keys[0] < (REFETCH_SECONDS if fresh else CACHE_SECONDS):
            return self._keys[1]
        data = await self._get((await self.about()).jwks_uri)
        try:
            found = jwt.PyJWKSet.from_dict(msgspec.json.decode(data, type=dict[str, Any]))
        except (jwt.PyJWTError, msgspec.DecodeError) as error:
            raise provider_error(f"its keys cannot be read: {error}") from error
        self._keys = (now, found)
        return found

    # ------------------------------------------------------------------ the wire
    async def _get(self, place: str, headers: Mapping[str, str] | None = None) -> bytes:
        import httpx2

        try:
            async with _client(self.settings.timeout) as client:
                answer = await client.get(place, headers=dict(headers or {}))
        except httpx2.HTTPError as error:
            raise provider_error(f"it does not answer at {place}: {error or type(error).__name__}") from error
        if answer.status_code != 200 or len(answer.content) > _MOST:
            raise provider_error(f"{place} answered with {answer.status_code}")
        return answer.content

    async def _post(self, place: str, form: dict[str, str], about: ProviderMetadata) -> dict[str, Any]:
        import httpx2

        secret, more = self.settings.client_secret, {}
        if secret and "client_secret_basic" in about.token_endpoint_auth_methods_supported:
            more["auth"] = _basic(self.settings.client_id, secret)
        elif secret:
            form = {**form, "client_secret": secret}
        try:
            async with _client(self.settings.timeout) as client:
                answer = await client.post(place, data=form, **more)
        except httpx2.HTTPError as error:
            raise provider_error(f"it does not answer at {place}: {error or type(error).__name__}") from error
        try:
            said = msgspec.json.decode(answer.content[:_MOST], type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise provider_error(f"{place} answered with {answer.status_code} and no JSON") from error
        if answer.status_code != 200:
            log.info("the provider swapped no code: %s", said.get("error"))
            raise sign_in_error("the provider takes this sign-in no more")
        return said


def _client(timeout: float) -> Any:
    """Without following anything: no answer of a provider sends us or the client's secret elsewhere."""
    import httpx2

    return httpx2.AsyncClient(timeout=timeout, follow_redirects=False)


def _basic(name: str, secret: str) -> tuple[str, str]:
    """Each part is encoded as a form would be (RFC 6749, 2.3.1)."""
    from urllib.parse import quote_plus

    return quote_plus(name), quote_plus(secret)


def _key_for(keys: jwt.PyJWKSet, header: Mapping[str, Any]) -> jwt.PyJWK | None:
    fit = [key for key in keys.keys if key.public_key_use in (None, "sig")]
    if "kid" in header:
        fit = [key for key in fit if key.key_id == header["kid"]]
    fit = [key for key in fit if _suits(key, header["alg"])]
    return fit[0] if fit else None


def _suits(key: jwt.PyJWK, algorithm: str) -> bool:
    """A key that names no algorithm signs with any of its type."""
    kinds = {"R": "RSA", "P": "RSA", "E": "OKP" if algorithm == "EdDSA" else "EC"}
    return key.key_type == kinds[algorithm[0]]


def sign_in_error(why: str) -> HttpError:
    """The person can try again; nothing is wrong with the server."""
    return HttpError(
        401, f"Signing in did not work: {why}.", code="sign_in_refused", hint="Begin again at /sign-in."
    )


def provider_error(why: str) -> HttpError:
    log.warning("the provider of sign-in: %s", why)
    return HttpError(
        502,
        "The provider that people sign in at does not answer as it should.",
        code="provider_trouble",
        hint="Try again soon; the server's log says more.",
    )


def require_libraries() -> None:
    """Raises SettingsError where the extra is not there: said when the server starts, not to the first who
    signs in."""
    try:
        for name in ("httpx2", "jwt", "cryptography"):
            import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"signing in at a provider needs what is not installed: {error}.",
            hint="Install the extra `oidc`: pip install 'holdfast-flow[oidc]'.",
        ) from error
