"""The first run: safe without being a chore. A server that has no token listens on its own machine only, and
whoever started it signs in by an address that is good once."""

from __future__ import annotations

from urllib.parse import quote

from holdfast.api.auth.authenticator import Door
from holdfast.api.auth.grants import Grant
from holdfast.api.auth.host_guard import is_loopback
from holdfast.api.auth.local_token import OneToken
from holdfast.errors import SettingsError
from holdfast.types.ids import DEFAULT_TENANT

ADMIN = ("admin",)


async def require_safe(door: Door, host: str) -> None:
    """Raises SettingsError where others could reach a server that nobody can sign in at yet."""
    if is_loopback(host) or door.oidc is not None or await (await door.tokens()).any_good():
        return
    raise SettingsError(
        f"There is no token yet, so the server listens on this machine only, and {host} is for others too.",
        hint="Make one first: holdfast tokens create user:YOU --role admin. Or leave --host out.",
    )


async def admit_starter(door: Door, host: str) -> OneToken | None:
    """A token of this process alone, for a program that started it: while there is no other, on loopback."""
    if is_loopback(host) and not await (await door.tokens()).any_good():
        door.local = OneToken()
    return door.local


async def sign_in_address(
    door: Door,
    address: str,
    *,
    subject: str = "user:local",
    tenant: str = DEFAULT_TENANT,
    roles: tuple[str, ...] = ADMIN,
) -> str:
    """Good once, for ten minutes, and as much as its roles are."""
    code = await (await door.sessions()).new_code(Grant(subject=subject, tenant=tenant, roles=roles))
    return f"{address.rstrip('/')}/sign-in?code={quote(code)}"
