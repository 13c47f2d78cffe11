"""The settings in an address: servers, schema, number of connections."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from holdfast.errors import SettingsError
from holdfast.store.errors import settings_error

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,47}\Z")


class PostgresSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`pooled`: whether a pooling proxy may be in between, so that nothing can be kept in a session. None:
    detected when the store is opened."""

    dsn: str
    schema: str = "holdfast"
    pool: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8  # connections for each event loop
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 10.0  # seconds to connect, and to wait for a connection
    statement_timeout: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    silence: Annotated[float, msgspec.Meta(gt=0)] = 10.0  # seconds, in an open transaction: see `session`
    poll: Annotated[float, msgspec.Meta(gt=0)] = 0.25  # seconds, where there are no notifications
    pooled: Literal["yes", "no"] | None = None
    look: Annotated[float, msgspec.Meta(gt=0)] = 5.0  # seconds between two checks of the other servers
    settling: Annotated[float, msgspec.Meta(ge=0)] = 3.0  # seconds without claims after a failover

    @property
    def shown(self) -> str:
        """The address as messages show it: without the password."""
        return _without_password(self.dsn)


def _without_password(dsn: str) -> str:
    parts = urlsplit(dsn)
    who, at, hosts = parts.netloc.rpartition("@")
    user = who.partition(":")[0]
    return urlunsplit((parts.scheme, f"{user}{at}{hosts}", parts.path, "", ""))


OWN_SETTINGS = frozenset(PostgresSettings.__struct_fields__) - {"dsn"}


def settings_for(address: str, given: dict[str, Any], forms: str) -> PostgresSettings:
    """Our own settings are taken from the query; the rest is passed to the driver (sslmode, ...). Raises
    SettingsError."""
    try:
        parts = urlsplit(address)
        asked = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError as error:
        raise SettingsError(f"{address!r} is not the address of a database: {error}.", hint=forms) from error
    theirs = [(name, value) for name, value in asked if name not in OWN_SETTINGS]
    ours = {name: value for name, value in asked if name in OWN_SETTINGS} | given
    dsn = urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(theirs), ""))
    try:
        settings = msgspec.convert({**ours, "dsn": dsn}, PostgresSettings, strict=False)
    except msgspec.ValidationError as error:
        raise settings_error(error, _without_password(dsn), sorted(OWN_SETTINGS), forms) from error
    if not _NAME.match(settings.schema):
        raise SettingsError(
            f"{settings.schema!r} is not a valid name for a schema.",
            hint="Use at most 48 lower-case letters, digits and underscores.",
        )
    return settings
