"""How people sign in: a TOML file of the operator (`holdfast serve --sign-in FILE`, or HOLDFAST_SIGN_IN).

public_url = "https://holdfast.example.com"    # as browsers see it; https makes cookies Secure

[sessions]
lives = "7d"                                   # maximum lifetime of a session
idle = "12h"                                   # it also ends after this long without use

[oidc]
issuer = "https://login.example.com"
client_id = "holdfast"
client_secret = "${OIDC_CLIENT_SECRET}"      # an environment variable; the file has no secret
user = "email"                                 # the claim that is the person's name here
groups = "groups"
default_roles = ["member"]

[oidc.roles]
admin = ["platform"]                           # our role: the groups that have it
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from holdfast.api.auth.host_guard import is_loopback
from holdfast.api.auth.rights import ROLES
from holdfast.errors import SettingsError
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.ids import DEFAULT_TENANT

VARIABLE: Final = "HOLDFAST_SIGN_IN"
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric signatures. `none` and shared secrets are never accepted."""
_NAMED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HINT: Final = "docs/how-to/sign-in.md shows all fields."


class OidcSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`user`, `groups`, `titles`, `tenant_claim` name claims; a nested claim is written a.b."""

    issuer: str
    client_id: str
    client_secret: str = ""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    algorithms: tuple[str, ...] = ("RS256", "ES256", "PS256", "EdDSA")
    user: str = "email"
    groups: str = "groups"
    titles: str = ""
    """the claim with the roles to which holds can be assigned (role:cfo)"""
    roles: dict[str, tuple[str, ...]] = {}
    """our role: the groups whose members have it"""
    default_roles: tuple[str, ...] = ("member",)
    tenant: str = DEFAULT_TENANT
    tenant_claim: str = ""
    tenants: dict[str, str] = {}
    """value of the claim: the tenant. A person with another value cannot sign in"""
    sign_out: bool = False
    """sign out at the provider too"""
    label: str = "Sign in"
    timeout: float = 10.0


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lives: str = "7d"
    idle: str = "12h"


class SignInSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    public_url: str = ""
    sessions: SessionSettings = SessionSettings()
    oidc: OidcSettings | None = None

    @property
    def lives(self) -> timedelta:
        return parse_duration(self.sessions.lives)

    @property
    def idle(self) -> timedelta:
        return parse_duration(self.sessions.idle)


def sign_in_from_environment() -> SignInSettings:
    """From the file that HOLDFAST_SIGN_IN names. Raises SettingsError."""
    path = os.environ.get(VARIABLE)
    return read_sign_in(path) if path else SignInSettings()


def read_sign_in(path: str | os.PathLike[str]) -> SignInSettings:
    """Raises SettingsError, which names the field."""
    source = os.fspath(path)
    try:
        raw = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise SettingsError(
            f"the file {source} cannot be read: {error.strerror}.", hint=f"Check {VARIABLE} or --sign-in."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{source} is not TOML: {error}.") from None
    return parse_sign_in(raw, source)


def parse_sign_in(
    raw: Any, source: str = "sign-in", environment: Mapping[str, str] | None = None
) -> SignInSettings:
    known = os.environ if environment is None else environment
    try:
        found = msgspec.convert(_substitute(raw, known, source), SignInSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{source}: {error}.", hint=_HINT) from None
    for name, text in (("lives", found.sessions.lives), ("idle", found.sessions.idle)):
        try:
            parse_duration(text)
        except DurationError as error:
            raise SettingsError(f"{source}: sessions.{name}: {error}.", hint=_HINT) from None
    if found.public_url and urlsplit(found.public_url).scheme not in ("http", "https"):
        raise SettingsError(f"{source}: public_url is not an address.", hint="Write https://host.")
    if found.oidc is not None:
        _check(found.oidc, source)
    return found


def _check(oidc: OidcSettings, source: str) -> None:
    parts = urlsplit(oidc.issuer)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise SettingsError(
            f"{source}: oidc.issuer must be an https:// address.",
            hint="Over plain http an attacker on the network could sign in as any person.",
        )
    wrong = [each for each in oidc.algorithms if each not in ALGORITHMS]
    if wrong or not oidc.algorithms:
        raise SettingsError(
            f"{source}: oidc.algorithms has {wrong[0] if wrong else 'nothing'!r}, which is not supported.",
            hint=f"Use some of: {', '.join(ALGORITHMS)}.",
        )
    for role in (*oidc.roles, *oidc.default_roles):
        if role not in ROLES:
            raise SettingsError(
                f"{source}: oidc names an unknown role {role!r}.", hint=f"Known: {', '.join(ROLES)}."
            )
    if oidc.tenants and not oidc.tenant_claim:
        raise SettingsError(f"{source}: oidc.tenants needs oidc.tenant_claim.", hint=_HINT)
    if "openid" not in oidc.scopes:
        raise SettingsError(f"{source}: oidc.scopes lacks openid.", hint=_HINT)


def _substitute(value: Any, environment: Mapping[str, str], source: str) -> Any:
    """With environment variables substituted."""
    if isinstance(value, str):
        return _NAMED.sub(lambda found: _variable(found[1], environment, source), value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _substitute(inner, environment, source) for key, inner in pairs}
    if isinstance(value, list):
        return [_substitute(inner, environment, source) for inner in cast("list[Any]", value)]
    return value


def _variable(name: str, environment: Mapping[str, str], source: str) -> str:
    found = environment.get(name)
    if not found:
        raise SettingsError(f"{source} names ${{{name}}}, which is not set.", hint=f"Set {name}.")
    return found
