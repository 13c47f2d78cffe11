"""How queues behave: a TOML file of the operator (HOLDFAST_QUEUES).

    strict = true                  # only the queues that are listed here can be used

    [queues."support/reviews"]
    claim_ttl = "5m"               # how long a claim lasts, unless the worker asks for another time
    max_attempts = 5               # claims without completion until a message is a dead letter
    retention = "7d"               # how long an ended message is kept
    backend = "nats"               # the broker it is bound to (default: database, no broker)
    direction = "both"             # out: messages go to it; in: messages and completions come from it

    [backends.nats]                # read by its transport; `kind`, if that is not the name
    actor = "service:review-tool"  # who decides by its completions (default: whom they name)
    servers = ["nats://127.0.0.1:4222"]

`${NAME}` is an environment variable, so that the file contains no secret.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.errors import InputError, SettingsError
from holdfast.holds.notify.settings import toml_of, with_variables
from holdfast.types.clock import MICROS
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.queue_message import OWN_SCOPES, QUEUE_NAME, is_queue_address

VARIABLE: Final = "HOLDFAST_QUEUES"
DATABASE: Final = "database"
"""The backend of a queue that is bound to no broker."""
_MICRO: Final = timedelta(microseconds=1)


class QueueSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One queue. Durations as people write them. `backend`: the broker that it is bound to, by name;
    `direction`: whether messages go out to it, completions come in, or both. `tenant`: whose messages the
    broker brings."""

    claim_ttl: str = "5m"
    max_attempts: int = 5
    retention: str = "7d"
    backend: str = DATABASE
    direction: str = "both"
    tenant: str = "default"

    @property
    def claim_micros(self) -> int:
        return parse_duration(self.claim_ttl) // _MICRO

    @property
    def retention_micros(self) -> int:
        return parse_duration(self.retention, allow_zero=True) // _MICRO

    @property
    def sends(self) -> bool:
        return self.direction in ("out", "both")

    @property
    def receives(self) -> bool:
        return self.direction in ("in", "both")


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`backends`: the settings of each broker by its name; the transport reads them."""

    strict: bool = False
    queues: dict[str, QueueSpec] = {}
    backends: dict[str, dict[str, Any]] = {}
    base_url: str = ""  # of the server, for the links in review requests

    def of(self, scope: str, queue: str) -> QueueSpec:
        """Raises InputError for a wrong name, and for a queue that is not listed where that is required."""
        require_queue_name(scope, "scope")
        require_queue_name(queue, "queue")
        if scope in OWN_SCOPES:
            raise InputError(
                f"the scope {scope} is for messages that Holdfast makes.",
                hint="Send an event (`holdfast events send`), or use another scope.",
            )
        found = self.queues.get(f"{scope}/{queue}")
        if found is None and self.strict:
            raise InputError(
                f"the queue {scope}/{queue} is not listed in the settings of queues.",
                hint=f'Add [queues."{scope}/{queue}"] to the file of {VARIABLE}, or correct the name.',
                queue=f"{scope}/{queue}",
            )
        return found or DEFAULT_QUEUE

    def claim_time(self, scope: str, queue: str) -> int:
        """Of a claim by a run that waits there, in microseconds."""
        return (DEFAULT_QUEUE if scope in OWN_SCOPES else self.of(scope, queue)).claim_micros

    def actor_of(self, backend: str) -> str | None:
        """Who decides by the completions that this broker brings; None: the settings name nobody."""
        return self.backends.get(backend, {}).get("actor")

    def receives(self, address: str, tenant: str, backend: str | None) -> bool:
        """Whether completions of this tenant's messages there may come from this broker."""
        spec = self.queues.get(address)
        if spec is None or spec.backend == DATABASE:
            return False
        return spec.receives and (spec.tenant, spec.backend) == (tenant, backend)


DEFAULT_QUEUE: Final = QueueSpec()


def require_queue_name(name: str, what: str) -> str:
    """Raises InputError."""
    if not QUEUE_NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not the name of a {what}.",
            hint="Use 1 to 63 lower-case letters, digits and hyphens; begin with a letter or a digit.",
        )
    return name


def queue_settings(given: QueueSettings | str | Path | None) -> QueueSettings:
    """Those given, or of the file that HOLDFAST_QUEUES names. Raises SettingsError."""
    if isinstance(given, QueueSettings):
        return checked(given, "the settings of queues")
    path = given or os.environ.get(VARIABLE)
    return read_queue_settings(path) if path else QueueSettings()


def read_queue_settings(path: str | os.PathLike[str]) -> QueueSettings:
    source = os.fspath(path)
    raw = with_variables(toml_of(path, f"Check {VARIABLE}."), os.environ, "$", source)
    try:
        return checked(msgspec.convert(raw, QueueSettings), source)
    except msgspec.ValidationError as error:
        raise SettingsError(
            f"{source}: {error}.", hint="docs/reference/queues.md shows all fields."
        ) from None


def checked(settings: QueueSettings, source: str) -> QueueSettings:
    for name in settings.backends:
        actor = settings.actor_of(name)
        if actor is not None and not re.fullmatch(r"(user|service):\S{1,200}", str(actor)):
            raise SettingsError(
                f"{source}: [backends.{name}]: actor is not a person or a service.",
                hint='Write actor = "service:review-tool" or "user:dana@acme".',
            )
    for name, spec in settings.queues.items():
        where = f'{source}: [queues."{name}"]'
        if not is_queue_address(name):
            raise SettingsError(f"{where} is not scope/queue.", hint='Write [queues."support/reviews"].')
        for field in ("claim_ttl", "retention"):
            _require_duration(getattr(spec, field), f"{where}: {field}")
        if spec.max_attempts < 0:
            raise SettingsError(f"{where}: max_attempts is negative.", hint="0 means without limit.")
        if spec.backend != DATABASE and spec.backend not in settings.backends:
            raise SettingsError(
                f"{where}: there is no backend {spec.backend!r}.",
                hint=f"Add [backends.{spec.backend}] with its settings, or write backend = {DATABASE!r}.",
            )
        if spec.direction not in ("out", "in", "both"):
            raise SettingsError(f"{where}: direction is {spec.direction!r}.", hint="Write out, in or both.")
    return settings


def _require_duration(text: str, where: str) -> None:
    try:
        length = parse_duration(text)
    except DurationError as error:
        raise SettingsError(f"{where}: {error}.") from None
    if length // _MICRO > 3650 * 86_400 * MICROS:
        raise SettingsError(f"{where} is longer than ten years.")
