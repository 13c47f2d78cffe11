"""The address of a Temporal cluster: `temporal://host:7233/namespace?tls=true`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from holdfast.errors import EngineError
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.text import clean_text

SCHEME: Final = "temporal"
PORT: Final = 7233
NAMESPACE: Final = "default"
EXAMPLE: Final = "temporal://localhost:7233/default"


class EngineAddress(msgspec.Struct, frozen=True, kw_only=True):
    """`heartbeat`: seconds after which a worker that is silent has lost its node. `activities`: most nodes at
    work in one worker. `pollers`: connections that wait for work, for each queue. `profile`: of the vendor's
    settings (TEMPORAL_CONFIG_FILE), with keys and certificates. `unencrypted`: of an encrypted store, plain
    payloads are taken as well."""

    host: str
    port: int = PORT
    namespace: str = NAMESPACE
    tls: bool = False
    heartbeat: float = 30.0
    activities: int = 100
    pollers: int = 2
    profile: str = ""
    unencrypted: bool = False

    @property
    def target(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def name(self) -> str:
        """The same for every spelling of one address and namespace; it holds the leases of its runs."""
        at = f"localhost:{self.port}" if self.is_local else self.target
        return f"{SCHEME}://{at}/{self.namespace}"

    @property
    def is_local(self) -> bool:
        return self.host in ("localhost", "127.0.0.1", "::1")


def parse_address(text: str) -> EngineAddress:
    """Raises EngineError."""
    shown = clean_text(repr(text), 200)
    try:
        parts = urlsplit(text)
        port = parts.port or PORT
    except ValueError as error:
        raise EngineError(f"the engine {shown} cannot be read: {error}.", hint=f"Write {EXAMPLE}.") from None
    if parts.scheme != SCHEME or not parts.hostname:
        raise EngineError(f"the engine {shown} is not the address of a cluster.", hint=f"Write {EXAMPLE}.")
    if parts.username or parts.password:
        raise EngineError(
            "the address of the engine has a credential in it, which logs would show.",
            hint="Keys and certificates come from a profile: ?profile=NAME, of TEMPORAL_CONFIG_FILE.",
        )
    namespace = unquote(parts.path.strip("/")) or NAMESPACE
    if "/" in namespace or parts.fragment:
        raise EngineError(f"the engine {shown} has more than one namespace.", hint=f"Write {EXAMPLE}.")
    given = parse_qsl(parts.query, keep_blank_values=True)
    options = {name: _read(name, value) for name, value in given}
    if len(options) < len(given):
        raise EngineError(f"the engine {shown} has an option twice.", hint="Give each option once.")
    return EngineAddress(host=parts.hostname, port=port, namespace=namespace, **options)


def _read(name: str, value: str) -> Any:
    read = _OPTIONS.get(name)
    if read is None:
        known = ", ".join(_OPTIONS)
        raise EngineError(
            f"the engine has no option {clean_text(repr(name), 80)}.", hint=f"Its options are: {known}."
        )
    try:
        return read(value)
    except (ValueError, DurationError) as error:
        raise EngineError(
            f"the option {name} of the engine is {clean_text(repr(value), 80)}: {clean_text(error)}."
        ) from None


def _flag(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError("give true or false")
    return value == "true"


def _seconds(value: str) -> float:
    seconds = parse_duration(value).total_seconds()
    if seconds < 1:
        raise ValueError("give 1s or more")
    return seconds


def _count(value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= 10_000:
        raise ValueError("give a whole number from 1 to 10000")
    return int(value)


def _profile(value: str) -> str:
    if not value:
        raise ValueError("give the name of a profile")
    return value


_OPTIONS: Final[dict[str, Callable[[str], Any]]] = {
    "tls": _flag,
    "heartbeat": _seconds,
    "activities": _count,
    "pollers": _count,
    "profile": _profile,
    "unencrypted": _flag,
}
