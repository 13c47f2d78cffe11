"""The settings in an address: server, database, number of connections."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from holdfast.errors import SettingsError
from holdfast.store.errors import settings_error


class MariadbSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tls`: `on` encrypts without checking who answers; `verify` also checks the certificate, by `ca` or by
    the authorities of this machine."""

    host: str
    port: int
    user: str
    password: str
    database: str
    socket: str | None = None
    tls: Literal["off", "on", "verify"] = "off"
    ca: str | None = None
    pool: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8  # connections for each event loop
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 10.0  # seconds to connect, and to wait for a connection
    statement_timeout: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    silence: Annotated[float, msgspec.Meta(gt=0)] = 10.0  # seconds, in an open transaction: see `session`
    lock_wait: Annotated[int, msgspec.Meta(ge=1, le=600)] = 5  # seconds that a statement waits for a row
    settling: Annotated[float, msgspec.Meta(ge=0)] = 3.0  # seconds after a failover without claims
    poll: Annotated[float, msgspec.Meta(gt=0)] = 0.2  # seconds: the server does not notify

    @property
    def shown(self) -> str:
        """The address as messages show it: without the password."""
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORT else f":{self.port}"
        return f"mariadb://{user}{host}{port}/{self.database}"


_PORT = 3306
_PARTS = frozenset({"host", "port", "user", "password", "database"})
OWN_SETTINGS = frozenset(MariadbSettings.__struct_fields__) - _PARTS


def settings_for(address: str, given: dict[str, Any], forms: str) -> MariadbSettings:
    """Raises SettingsError."""
    try:
        parts = urlsplit(address)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        port = parts.port or _PORT
    except ValueError as error:
        raise SettingsError(f"{address!r} is not the address of a database: {error}.", hint=forms) from error
    where = f"mariadb://{parts.hostname or ''}{parts.path}"
    database = unquote(parts.path.lstrip("/"))
    if not database or "/" in database:
        raise SettingsError(f"the address {where} names no database.", hint=forms)
    wrong = sorted((asked.keys() | given.keys()) & _PARTS)
    if wrong:
        raise SettingsError(f"{wrong[0]!r} is part of the address {where}, not a setting.", hint=forms)
    fixed = {
        "host": parts.hostname or "127.0.0.1",
        "port": port,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": database,
    }
    try:
        return msgspec.convert({**asked, **given, **fixed}, MariadbSettings, strict=False)
    except msgspec.ValidationError as error:
        raise settings_error(error, where, sorted(OWN_SETTINGS), forms) from error
