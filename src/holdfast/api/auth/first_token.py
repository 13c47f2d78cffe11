"""The first start is safe without any set-up: a server without a token listens only on loopback, and the
person who started it signs in by an address that is valid once."""

from __future__ import annotations

from urllib.parse import quote

from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.host_guard import is_loopback
from holdfast.api.auth.local_token import LocalToken
from holdfast.errors import SettingsError
from holdfast.types.ids import DEFAULT_TENANT

ADMIN = ("admin",)


async def require_safe(authenticator: Authenticator, host: str) -> None:
    """Raises SettingsError if other machines could reach a server that has no valid credential yet."""
    if (
        is_loopback(host)
        or authenticator.oidc is not None
        or await (await authenticator.tokens()).has_valid()
    ):
        return
    raise SettingsError(
        f"there is no token yet, so the server may listen only on loopback, not on {host}.",
        hint="Create one first: holdfast tokens create user:YOU --role admin. Or leave --host out.",
    )


async def add_local_token(authenticator: Authenticator, host: str) -> LocalToken | None:
    """A token of this process only, for the program that started it: on loopback, while there is no other."""
    if is_loopback(host) and not await (await authenticator.tokens()).has_valid():
        authenticator.local = LocalToken()
    return authenticator.local


async def sign_in_address(
    authenticator: Authenticator,
    address: str,
    *,
    subject: str = "user:local",
    tenant: str = DEFAULT_TENANT,
    roles: tuple[str, ...] = ADMIN,
) -> str:
    """Valid once, for ten minutes, with the rights of its roles."""
    code = await (await authenticator.sessions()).new_code(
        CredentialGrant(subject=subject, tenant=tenant, roles=roles)
    )
    return f"{address.rstrip('/')}/sign-in?code={quote(code)}"
