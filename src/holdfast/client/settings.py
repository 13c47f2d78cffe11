"""Settings of a client: address, token, timeouts and retries."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from secrets import randbelow
from urllib.parse import urlsplit

import msgspec

from holdfast._version import __version__
from holdfast.errors import SettingsError
from holdfast.types.backoff import Backoff

LOCAL = "http://127.0.0.1:8420"
Token = str | Callable[[], str] | None


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """The number of attempts, and the wait between them: doubled each time, up to `longest`, never less than
    the server's `Retry-After`. If that is more than `longest`, the call fails."""

    attempts: int = 4
    first: float = 0.25
    longest: float = 20.0

    def wait(self, attempt: int, asked: float | None = None) -> float:
        """Half of it is random, so that many refused clients do not retry at the same time."""
        backoff = Backoff(self.first, self.longest, jitter=0.5)
        return max(asked or 0.0, backoff.pause(attempt, randbelow(1000) / 1000))


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout`: seconds without data from the server. `patience`: seconds for which a stream tries to
    reconnect before it fails."""

    url: str
    token: Token = None
    timeout: float = 30.0
    retries: Retries = Retries()
    patience: float = 300.0

    def __repr__(self) -> str:
        return f"Settings({self.shown!r})"

    @property
    def shown(self) -> str:
        """The address for errors and logs."""
        return without_password(self.url)

    def headers(self) -> dict[str, str]:
        token = self.token() if callable(self.token) else self.token
        return {"User-Agent": f"holdfast/{__version__}"} | (_bearer(token) if token else {})


def _bearer(token: str) -> dict[str, str]:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            "the token has invalid characters.",
            hint="Check for a line break or a quote that was copied with it.",
        )
    return {"Authorization": f"Bearer {token}"}


def settings_of(
    url: str | None = None,
    token: Token = None,
    *,
    timeout: float = 30.0,
    retries: Retries | None = None,
    patience: float = 300.0,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The defaults are HOLDFAST_URL and HOLDFAST_TOKEN. Raises SettingsError."""
    given = os.environ if environ is None else environ
    address = (url or given.get("HOLDFAST_URL") or LOCAL).strip().rstrip("/")
    if not _is_address(address):
        raise SettingsError(
            f"{without_password(address)!r} is not an address of a server.",
            hint="Give http://HOST:PORT, or set HOLDFAST_URL.",
        )
    known = token if callable(token) else (token or given.get("HOLDFAST_TOKEN") or "").strip() or None
    return Settings(
        url=address, token=known, timeout=timeout, retries=retries or Retries(), patience=patience
    )


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False  # the port is out of range, or a bracket is missing


def without_password(address: str) -> str:
    return re.sub(r"//[^/]*@", "//", address)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number or a date."""
    header = headers.get("retry-after", "").strip()
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        until, since = parsedate_to_datetime(header), parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return None  # a date is useless without the server's clock
    return max(0.0, (until - since).total_seconds())
