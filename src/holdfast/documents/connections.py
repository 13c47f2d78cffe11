"""Connections and secrets that documents name: a TOML file of the operator (HOLDFAST_CONNECTIONS).

    shared = false                       # [connections] and [secrets] serve the tenant default alone
    allow = ["localhost:8080"]           # hosts that are exempt from the egress rules
    tools = ["grep"]                     # tools that `tool` and `agent` nodes may use (default: none)

    [connections.bank]
    kind = "http"
    base_url = "https://bank.example.com/v1"
    headers = {Authorization = "env:BANK_AUTHORIZATION"}

    [connections.gpt]
    kind = "model"
    provider = "openai"
    model = "MODEL"

    [secrets]
    crm_key = "file:/run/secrets/crm"
    bank_key = {value = "env:BANK_KEY", hosts = ["bank.example.com"]}

    [tenants.acme.secrets]               # before those above; likewise [tenants.acme.connections.NAME]
    crm_key = "env:ACME_CRM_KEY"

The file is read again when it has changed, a secret with each use, so that both can be repaired while runs
retry. Only names stand in documents and in the journal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from holdfast.errors import ConnectionUnknownError, SettingsError
from holdfast.holds.notify.settings import toml_of
from holdfast.types.ids import DEFAULT_TENANT
from holdfast.types.redaction import redactor

VARIABLE: Final = "HOLDFAST_CONNECTIONS"
_HINT: Final = "docs/how-to/connect-a-flow-document.md shows such a file."


class SecretSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`value`: `env:NAME` or `file:PATH`. `hosts`: where it may be sent; none: anywhere."""

    value: str
    hosts: tuple[str, ...] = ()


class HttpConnection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind",
                     tag="http"):  # fmt: skip
    """`headers` and `query` go into each request; `env:NAME` and `file:PATH` stand for their content.
    `internal`: its host may be in the internal network, for this connection only."""

    base_url: str
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    internal: bool = False


class ModelConnection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind",
                      tag="model"):  # fmt: skip
    """`base_url`: by default that of the protocol's own service. `key`: `env:NAME` or `file:PATH`; empty: it
    needs none. `prices`: per million tokens, needed for a budget in money. `internal`: its host may be in the
    internal network, for this connection only."""

    model: str
    protocol: Literal["openai", "responses", "anthropic", "gemini"] = "openai"
    base_url: str = ""
    key: str = ""
    options: dict[str, Any] = {}
    timeout: float = 300.0
    attempts: int = 5
    prices: dict[str, str | float] | None = None
    internal: bool = False


Connection = HttpConnection | ModelConnection


def internal_hosts(of: Connection) -> tuple[str, ...]:
    """The host that this connection may use although it is internal, as `Egress.allow` takes it."""
    if not of.internal or not of.base_url:
        return ()
    parts = urlsplit(of.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return (f"{parts.hostname}:{port}", f"[{parts.hostname}]:{port}")


class TenantConnections(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    connections: dict[str, Connection] = {}
    secrets: dict[str, str | SecretSpec] = {}


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`shared`: whether the connections and secrets that belong to no tenant serve every tenant, or only the
    default one. `timeout`: seconds for a request of a node that has no timeout."""

    shared: bool = True
    allow: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    timeout: float = 30.0
    connections: dict[str, Connection] = {}
    secrets: dict[str, str | SecretSpec] = {}
    tenants: dict[str, TenantConnections] = {}

    def all_connections(self, tenant: str) -> dict[str, Connection]:
        """Those of the tenant count before the others."""
        return {**(self.connections if self._serves(tenant) else {}), **self._of(tenant).connections}

    def all_secrets(self, tenant: str) -> dict[str, str | SecretSpec]:
        return {**(self.secrets if self._serves(tenant) else {}), **self._of(tenant).secrets}

    def _serves(self, tenant: str) -> bool:
        return self.shared or tenant == DEFAULT_TENANT

    def _of(self, tenant: str) -> TenantConnections:
        return self.tenants.get(tenant) or TenantConnections()


class Connections:
    """Looks up names when a document is checked and when a node runs."""

    def __init__(
        self,
        given: ConnectionSettings | str | Path | None = None,
        models: Mapping[str, Any] | None = None,
    ) -> None:
        """Without settings or a path: the file that HOLDFAST_CONNECTIONS names. `models`: by the name of a
        connection, those of the program itself, such as `Scripted` in tests."""
        self.models = dict(models or {})
        self._given = checked(given, "the connections") if isinstance(given, ConnectionSettings) else None
        self._path = given if isinstance(given, (str, Path)) else None
        self._read: tuple[tuple[str, int, int], ConnectionSettings] | None = None

    @property
    def settings(self) -> ConnectionSettings:
        """Raises SettingsError."""
        path = self._path or os.environ.get(VARIABLE)
        if self._given is not None or not path:
            return self._given or ConnectionSettings()
        mark = _mark(path)
        if self._read is None or self._read[0] != mark:
            self._read = mark, read_connections(path)
        return self._read[1]

    def kinds(self, tenant: str = DEFAULT_TENANT) -> dict[str, str]:
        """The kind of each connection by its name."""
        found = self.settings.all_connections(tenant)
        kinds = {name: str(each.__struct_config__.tag) for name, each in found.items()}
        return {**kinds, **dict.fromkeys(self.models, "model")}

    def secret_names(self, tenant: str = DEFAULT_TENANT) -> frozenset[str]:
        return frozenset(self.settings.all_secrets(tenant))

    def http(self, tenant: str, name: str) -> HttpConnection:
        return self._required(tenant, name, HttpConnection)

    def model(self, tenant: str, name: str) -> ModelConnection:
        return self._required(tenant, name, ModelConnection)

    def _required(self, tenant: str, name: str, kind: Any) -> Any:
        found = self.settings.all_connections(tenant).get(name)
        if found is None:
            raise ConnectionUnknownError(
                f"there is no connection {name!r}.", hint=f"Add it to the file that {VARIABLE} names."
            )
        if not isinstance(found, kind):
            raise ConnectionUnknownError(
                f"the connection {name!r} is of kind {found.__struct_config__.tag}, "
                f"not {kind.__struct_config__.tag}.",
                hint=f"Correct it in the file that {VARIABLE} names.",
            )
        return found

    def secret(self, tenant: str, name: str, host: str) -> str:
        """Its value, for a request to this host. Raises ConnectionUnknownError."""
        found = self.settings.all_secrets(tenant).get(name)
        if found is None:
            raise ConnectionUnknownError(
                f"there is no secret {name!r}.", hint=f"Add it to the file that {VARIABLE} names."
            )
        spec = SecretSpec(value=found) if isinstance(found, str) else found
        if spec.hosts and host not in spec.hosts:
            raise ConnectionUnknownError(
                f"the secret {name!r} may not be sent to {host}.", hint="The operator lists its hosts."
            )
        return secret_text(spec.value, f"the secret {name!r}", tenant)


def secret_text(reference: str, what: str, tenant: str) -> str:
    """The content of `env:NAME` or `file:PATH`, masked from now on in logs and in what this tenant reads: its
    runs use it. Raises ConnectionUnknownError."""
    kind, _, place = reference.partition(":")
    text = os.environ.get(place, "") if kind == "env" else _content(place)
    if not text:
        raise ConnectionUnknownError(f"{what} is empty: {reference} has no value.", hint="Set it.")
    redactor.learn_for(tenant, text)
    return text


def is_reference(text: str) -> bool:
    return text.startswith(("env:", "file:"))


def _content(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _mark(path: str | Path) -> tuple[str, int, int]:
    try:
        found = Path(path).stat()
    except OSError as error:
        raise SettingsError(
            f"the file {path} cannot be read: {error.strerror}.", hint=f"Check {VARIABLE}."
        ) from None
    return os.fspath(path), found.st_mtime_ns, found.st_size


def read_connections(path: str | Path) -> ConnectionSettings:
    """Raises SettingsError, which names file and field."""
    source = os.fspath(path)
    try:
        return checked(msgspec.convert(toml_of(path, f"Check {VARIABLE}."), ConnectionSettings), source)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{source}: {error}.", hint=_HINT) from None


def checked(settings: ConnectionSettings, source: str) -> ConnectionSettings:
    """Raises SettingsError for a secret that stands in the file itself."""
    places = [settings, *settings.tenants.values()]
    for each in places:
        for name, spec in each.secrets.items():
            value = spec if isinstance(spec, str) else spec.value
            if not is_reference(value):
                raise SettingsError(
                    f"{source}: the secret {name!r} is neither env:NAME nor file:PATH.",
                    hint="Keep its value in a variable or a file of its own.",
                )
        for name, found in each.connections.items():
            base = found.base_url
            if (base or isinstance(found, HttpConnection)) and not base.startswith(("https://", "http://")):
                raise SettingsError(f"{source}: base_url of the connection {name!r} is not a URL.")
            if isinstance(found, ModelConnection) and found.key and not is_reference(found.key):
                raise SettingsError(
                    f"{source}: key of the connection {name!r} is neither env:NAME nor file:PATH."
                )
    return settings
