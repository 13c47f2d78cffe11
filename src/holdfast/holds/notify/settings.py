"""Which channels there are: a TOML file of the operator (HOLDFAST_NOTIFY), and documents of tenants.

    base_url = "https://holdfast.example.com"      # for links in notices; without it they have none
    allow = ["hooks.internal:8080"]                # hosts that are exempt from the egress rules

    [[channel]]
    name = "mail"
    kind = "smtp"
    host = "smtp.example.com"
    sender = "Holdfast <holdfast@example.com>"
    user = "holdfast"
    password = "${SMTP_PASSWORD}"

`${NAME}` is an environment variable, so that the file contains no secret.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

from holdfast.errors import SettingsError
from holdfast.holds.notify.channel import ChannelScope
from holdfast.types import outbox
from holdfast.types.terms import PRIORITIES

VARIABLE: Final = "HOLDFAST_NOTIFY"
TOPICS: Final = (
    outbox.CREATED, outbox.ASSIGNED, outbox.REMINDED, outbox.ESCALATED, outbox.ASKED_BACK, outbox.LINK,
    outbox.CLOSED,
)  # fmt: skip

_NAMED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ChannelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """The fields of all channels. `tenant`: only for its holds. `topics`, `assignees`, `priorities`: only for
    these. `outcomes`: also notify how a hold ended; None: the default of the kind."""

    name: str
    tenant: str | None = None
    topics: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    outcomes: bool | None = None

    def scope(self, *, outcomes: bool) -> ChannelScope:
        result = self.outcomes if self.outcomes is not None else outcomes
        return ChannelScope(
            topics=self.topics, assignees=self.assignees, priorities=self.priorities, outcomes=result
        )


class SmtpSpec(ChannelSpec, frozen=True, kw_only=True, tag="smtp"):
    host: str
    sender: str
    port: int = 587
    security: str = "starttls"
    user: str = ""
    password: str = ""
    timeout: float = 30.0
    ca: str = ""
    admins: tuple[str, ...] = ()
    reply: str = ""


class SlackSpec(ChannelSpec, frozen=True, kw_only=True, tag="slack"):
    url: str
    admin: bool = False
    buttons: bool = False


class TeamsSpec(ChannelSpec, frozen=True, kw_only=True, tag="teams"):
    url: str
    admin: bool = False


class WebhookSpec(ChannelSpec, frozen=True, kw_only=True, tag="webhook"):
    url: str
    secrets: tuple[str, ...]
    admin: bool = False
    format: Literal["json", "cloudevents", "cloudevents-binary"] = "json"


class AppriseSpec(ChannelSpec, frozen=True, kw_only=True, tag="apprise"):
    urls: tuple[str, ...]
    admin: bool = False


Spec = SmtpSpec | SlackSpec | TeamsSpec | WebhookSpec | AppriseSpec
# Kinds that a tenant may set up: only those to which the egress rules apply.
TenantSpec = SlackSpec | TeamsSpec | WebhookSpec


class NotifySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`timeout`: seconds for one message to a webhook."""

    channel: tuple[Spec, ...] = ()
    base_url: str = ""
    allow: tuple[str, ...] = ()
    timeout: float = 15.0


def settings_from_environment() -> NotifySettings | None:
    """From the file that HOLDFAST_NOTIFY names; None: there are no notifications. Raises SettingsError."""
    path = os.environ.get(VARIABLE)
    return read_settings(path) if path else None


def read_settings(path: str | os.PathLike[str]) -> NotifySettings:
    """Raises SettingsError, which names the field."""
    return parse_settings(toml_of(path, f"Check {VARIABLE}."), os.fspath(path))


def read_tenant_spec(path: str | os.PathLike[str]) -> TenantSpec:
    """A channel of a tenant, from a file. Raises SettingsError."""
    raw = toml_of(path, "Give a file with the channel's fields.")
    return _tenant_spec(raw, os.fspath(path))


def toml_of(path: str | os.PathLike[str], hint: str) -> dict[str, Any]:
    source = os.fspath(path)
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"the file {source} cannot be read: {error.strerror}.", hint=hint) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{source} is not TOML: {error}.") from None


def parse_settings(
    raw: Any, source: str = "the channels", environment: Mapping[str, str] | None = None
) -> NotifySettings:
    known = os.environ if environment is None else environment
    given = with_variables(raw, known, "$", source)
    found = _converted(given, NotifySettings, source)
    names = [spec.name for spec in found.channel]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SettingsError(f"{source} has two channels named {twice[0]!r}.", hint="Give each its own name.")
    for place, spec in enumerate(found.channel):
        check_spec(spec, f"{source}: channel[{place}] ({spec.name!r})")
    if found.base_url and not found.base_url.startswith(("https://", "http://")):
        raise SettingsError(f"{source}: base_url is not a URL.", hint="Write https://host/path.")
    return found


def tenant_spec(body: bytes, name: str) -> TenantSpec:
    """From a document. It is taken literally: a tenant must not read environment variables of this
    process."""
    return _tenant_spec(msgspec.json.decode(body), f"the channel {name!r}")


def _tenant_spec(raw: Any, source: str) -> TenantSpec:
    found = _converted(raw, TenantSpec, source)
    check_spec(found, source)
    return found


def check_spec(spec: ChannelSpec, where: str) -> None:
    """Raises SettingsError for values that no hold can match."""
    if not spec.name or not spec.name.isprintable() or len(spec.name) > 100:
        raise SettingsError(f"{where} needs a name of at most 100 printable characters.")
    for field, given, known in (("topics", spec.topics, TOPICS), ("priorities", spec.priorities, PRIORITIES)):
        wrong = [each for each in given if each not in known]
        if wrong:
            raise SettingsError(
                f"{where}: {field} has {wrong[0]!r}.", hint=f"Choose from: {', '.join(known)}."
            )


def _converted(raw: Any, kind: Any, source: str) -> Any:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise SettingsError(
            f"{source}: {error}.", hint="docs/how-to/notify-people.md shows all fields."
        ) from None


def with_variables(value: Any, environment: Mapping[str, str], path: str, source: str) -> Any:
    """With the values of the variables in place of their names."""
    if isinstance(value, str):
        return _NAMED.sub(lambda found: _variable(found[1], environment, path, source), value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: with_variables(inner, environment, f"{path}.{key}", source) for key, inner in pairs}
    if isinstance(value, list):
        items = enumerate(cast("list[Any]", value))
        return [with_variables(inner, environment, f"{path}[{place}]", source) for place, inner in items]
    return value


def _variable(name: str, environment: Mapping[str, str], path: str, source: str) -> str:
    found = environment.get(name)
    if not found:
        raise SettingsError(
            f"{source}: {path} names the environment variable {name}, which is not set.", hint=f"Set {name}."
        )
    return found
