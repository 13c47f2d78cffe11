"""The store of a command, and the last known locations of the code of its flows."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.cli.options.telemetry import observe
from holdfast.errors import FlowNotFoundError, SettingsError, StoreUnavailableError
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.retention import parse_retention

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.checkpoint.keys import KeyRing
    from holdfast.runs.driver.settings import RunSettings

DEFAULT_LEASE = 10.0
_BEFORE_HOST = re.compile(r"(://[^:/?#@]*):[^/?#]*@")
_PASSWORD = re.compile(r"([?&]password=)[^&#]*")


def address_of(store: str | None) -> str:
    from holdfast.app.holdfast import DEFAULT_STORE

    return store or os.environ.get("HOLDFAST_STORE") or DEFAULT_STORE


def shown_address(store: str | None) -> str:
    """The address for output: without a password."""
    whole = _BEFORE_HOST.sub(r"\1:***@", address_of(store))
    return _PASSWORD.sub(r"\1***", whole)


def open_store_for_command(
    store: str | None,
    *,
    must_exist: bool,
    lease: float = DEFAULT_LEASE,
    wanted_lease: float | None = None,
    keys: KeyRing | None = None,
    allow_code: bool = False,
    engine: str | None = None,
) -> Holdfast:
    """`must_exist`: fail if there is no store, instead of creating one. `lease`: the default if
    HOLDFAST_LEASE is not set; `wanted_lease`: overrides it."""
    from holdfast.app.holdfast import Holdfast

    address = address_of(store)
    file = _file_of(address)
    if must_exist and file is not None and not file.exists():
        raise StoreUnavailableError(
            f"there is no store at {address}.",
            hint="`holdfast run` creates one; --store or HOLDFAST_STORE names another.",
        )
    named = f"sqlite:{address}" if address == str(file) else address
    settings = _settings(lease, wanted_lease, allow_code)
    return observe(Holdfast(named, settings=settings, keys=keys, engine=engine))


def store_exists(store: str | None) -> bool:
    """Whether the store's file exists; a store that is not a file is assumed to exist."""
    file = _file_of(address_of(store))
    return file is None or file.exists()


def _settings(lease: float, wanted: float | None, allow_code: bool) -> RunSettings:
    """A short lease: after a crash, the next `holdfast resume` has to wait until it expires."""
    from holdfast.runs.driver.settings import RunSettings

    seconds = _seconds("HOLDFAST_LEASE", lease) if wanted is None else wanted
    rule = os.environ.get("HOLDFAST_RETENTION")
    return RunSettings(
        lease_ttl=seconds,
        lease_margin=min(2.0, seconds / 4),
        poll=0.2,
        retention=parse_retention(rule) if rule else None,
        allow_code=allow_code or os.environ.get("HOLDFAST_ALLOW_CODE") == "1",
        stored_log_level=os.environ.get("HOLDFAST_STORED_LOG_LEVEL") or RunSettings().stored_log_level,
        state_blobs=os.environ.get("HOLDFAST_STATE_BLOBS") != "0",
        plain_directories=os.environ.get("HOLDFAST_PLAIN_DIRECTORIES") == "1",
        feed_kept=_seconds("HOLDFAST_FEED_KEPT", RunSettings().feed_kept),
    )


def _seconds(variable: str, otherwise: float) -> float:
    text = os.environ.get(variable)
    try:
        return parse_duration(text).total_seconds() if text else otherwise
    except DurationError as error:
        raise SettingsError(f"{variable}: {error}.") from error


def _file_of(address: str) -> Path | None:
    if address.startswith("sqlite:"):
        return Path(address.removeprefix("sqlite:").partition("?")[0])
    return Path(address) if address.endswith(".db") and ":" not in address else None


def remember_source(store: str | None, version: str, spec: str) -> None:
    """Lets `resume RUN` find the code without an argument. Only a hint: it may be lost."""
    place = _sources_file(store)
    if place is None:
        return
    known = _sources(place)
    if known.get(version) != spec:
        known[version] = spec
        # Replaced as a whole: several commands may write it at the same time.
        fresh = place.with_name(f"{place.name}.{os.getpid()}")
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(known), indent=2))
        fresh.replace(place)


def recall_source(store: str | None, flow: str, version: str) -> str:
    place = _sources_file(store)
    spec = _sources(place).get(version) if place is not None else None
    if spec is None:
        raise FlowNotFoundError(
            f"the location of the code of flow {flow!r} ({version}) is unknown here.",
            hint="Name it: holdfast resume RUN path/to/file.py.",
        )
    return spec


def file_of_store(store: str | None) -> Path | None:
    """None if the store is not a file."""
    return _file_of(address_of(store))


def known_sources(store: str | None) -> dict[str, str]:
    """Version -> last known location of its code."""
    place = _sources_file(store)
    return {} if place is None else _sources(place)


def _sources_file(store: str | None) -> Path | None:
    file = _file_of(address_of(store))
    return None if file is None else file.with_name(f"{file.name}-flows.json")


def _sources(place: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(place.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}
