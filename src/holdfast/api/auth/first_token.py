"""The first run: safe without being a chore. A server that has no token listens on its own machine only, and
whoever started it signs in by an address that is good once."""

from __future__ import annotations

from urllib.parse import quote

from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.host_guard import is_loopback
from holdfast.api.auth.local_token import LocalToken
from holdfast.errors import SettingsError
from holdfast.types.ids import DEFAULT_TENANT

ADMIN = ("admin",)


async def require_safe(door: Authenticator, host: str) -> None:
    """Raises SettingsError where others could reach a server that nobody can sign in at yet."""
    if is_loopback(host) or door.oidc is not None or await (await door.tokens()).has_valid():
        return
    raise SettingsError(
        f"There is no token yet, so the server listens on this machine only, and {host} is for others too.",
        hint="Make one first: holdfast tokens create user:YOU --role admin. Or leave --host out.",
    )


async def add_local_token(door: Authenticator, host: str) -> LocalToken | None:
    """A token of this process alone, for a program that started it: while there is no other, on loopback."""
    if is_loopback(host) and not await (await door.tokens()).has_valid():
        door.local = LocalToken()
    return door.local


async def sign_in_address(
    door: Authenticator,
    address: str,
    *,
    subject: str = "user:local",
    tenant: str = DEFAULT_TENANT,
    roles: tuple[str, ...] = ADMIN,
) -> str:
    """Good once, for ten minutes, and as much as its roles are."""
    code = await (await door.sessions()).new_code(
        CredentialGrant(subject=subject, tenant=tenant, roles=roles)
    )
    return f"{address.rstrip('/')}/sign-in?code={quote(code)}"
