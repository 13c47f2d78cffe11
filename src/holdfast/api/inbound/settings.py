"""The inbound channels: a TOML file of the operator (HOLDFAST_INBOUND). Each has a name, which is in its
address, and a tenant: an incoming message cannot choose its tenant.

    [[way]]
    name = "support"
    kind = "slack"                                  # POST /v1/inbound/slack/support
    secrets = ["${SLACK_SIGNING_SECRET}"]
    people = { U024BE7LH = "user:dana@acme" }

    [[way]]
    name = "erp"
    kind = "webhook"                                # POST /v1/inbound/webhooks/erp
    secrets = ["${ERP_WEBHOOK_SECRET}"]
    actor = "service:erp"
    rights = ["holds:resolve"]

    [[way]]
    name = "mail"
    kind = "mail"                                   # POST /v1/inbound/mail/mail
    secrets = ["${MAIL_WEBHOOK_SECRET}"]
    address = "reply@in.example.com"
    authserv_id = "mx.example.com"

`${NAME}` is an environment variable. With several secrets each is accepted, so that one can be rotated.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from holdfast.api.problems import HttpError
from holdfast.errors import SettingsError
from holdfast.holds.notify.settings import toml_of, with_variables
from holdfast.holds.notify.webhook import secret_of
from holdfast.holds.permissions.assignees import looks_like_email, parse_assignee
from holdfast.types.ids import DEFAULT_TENANT
from holdfast.types.redaction import redactor
from holdfast.types.terms import MANAGE, RESOLVE, right_name

VARIABLE: Final = "HOLDFAST_INBOUND"
SHORTEST: Final = 16
RIGHTS: Final = (RESOLVE, MANAGE)


class _InboundSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    name: str
    secrets: tuple[str, ...]
    tenant: str = DEFAULT_TENANT

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class SlackSource(_InboundSource, frozen=True, kw_only=True, tag="slack"):
    """`people`: chat user to person; further ones are in the store. `teams`: only these workspaces; none: any
    workspace with the secret."""

    people: dict[str, str] = {}
    teams: tuple[str, ...] = ()


class WebhookSource(_InboundSource, frozen=True, kw_only=True, tag="webhook"):
    """`actor`: the deciding identity. `rights`: beyond holds that are assigned to it. `trusted`: it may name
    the person who decided (`completed_by`), for example a task queue in which people work."""

    actor: str
    rights: tuple[str, ...] = ()
    trusted: bool = False


class MailSource(_InboundSource, frozen=True, kw_only=True, tag="mail"):
    """`address`: the reply address of the channel. `authserv_id`: of the mail server whose SPF, DKIM and
    DMARC results are trusted; it must remove forged results in its name (RFC 8601, 5)."""

    address: str
    authserv_id: str


InboundSource = SlackSource | WebhookSource | MailSource
W = TypeVar("W", SlackSource, WebhookSource, MailSource)


class InboundSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`allow`: hosts that are exempt from the egress rules, for the answers to clicks."""

    way: tuple[InboundSource, ...] = ()
    allow: tuple[str, ...] = ()

    def named(self, name: str, kind: type[W]) -> W:
        """Raises HttpError 404."""
        for each in self.way:
            if each.name == name and isinstance(each, kind):
                return each
        raise HttpError(404, "there is no such inbound channel.", code="not_found")


def settings_from_environment() -> InboundSettings:
    """From the file that HOLDFAST_INBOUND names; none: no inbound channel. Raises SettingsError."""
    path = os.environ.get(VARIABLE)
    return parse_settings(toml_of(path, f"Check {VARIABLE}."), path) if path else InboundSettings()


def parse_settings(
    raw: Any, source: str = "the inbound channels", environment: Mapping[str, str] | None = None
) -> InboundSettings:
    """Raises SettingsError, which names the field."""
    given = with_variables(raw, os.environ if environment is None else environment, "$", source)
    try:
        found = msgspec.convert(given, InboundSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(
            f"{source}: {error}.", hint="docs/how-to/decide-over-http.md shows all fields."
        ) from None
    names = [(type(each), each.name) for each in found.way]
    if len(set(names)) < len(names):
        raise SettingsError(f"{source} has two channels of one kind and name.", hint="Rename one.")
    for place, way in enumerate(found.way):
        _check(way, f"{source}: way[{place}] ({way.name!r})")
    # A signature does not cover the address: a message for one channel would be accepted by the other.
    secrets = [secret for way in found.way for secret in set(way.secrets)]
    if len(set(secrets)) < len(secrets):
        raise SettingsError(f"{source}: two channels have the same secret.", hint="Give each its own.")
    return found


def _check(way: InboundSource, where: str) -> None:
    if not way.name or not way.name.isascii() or not way.name.replace("-", "").replace("_", "").isalnum():
        raise SettingsError(f"{where} needs a name of letters, digits, - and _.")
    if not way.secrets:
        raise SettingsError(f"{where} has no secret.", hint="Give secrets = [...].")
    for place, secret in enumerate(way.secrets):
        _check_secret(way, secret, f"{where}: secrets[{place}]")
    if isinstance(way, SlackSource):
        _check_people(way, where)
    elif isinstance(way, WebhookSource):
        _check_actor(way, where)
    elif not looks_like_email(way.address) or not way.authserv_id:
        raise SettingsError(f"{where} needs an address and an authserv_id.", hint="reply@in.example.com")


def _check_secret(way: InboundSource, secret: str, where: str) -> None:
    redactor.learn_for(None, secret)
    if not isinstance(way, SlackSource):
        secret_of(secret, where)
    elif len(secret) < SHORTEST:
        raise SettingsError(f"{where} is not a signing secret of Slack.", hint="Copy it from the app's page.")


def _check_people(way: SlackSource, where: str) -> None:
    for chat, person in way.people.items():
        if parse_assignee(person).type != "user" or not person.startswith("user:"):
            raise SettingsError(f"{where}: people.{chat} is not a person.", hint="Write user:dana@acme.")


def _check_actor(way: WebhookSource, where: str) -> None:
    if not way.actor.startswith(("service:", "user:")) or way.actor.endswith(":"):
        raise SettingsError(f"{where}: actor {way.actor!r} is not a subject.", hint="Write service:NAME.")
    wrong = [right for right in way.rights if right_name(right) not in RIGHTS]
    if wrong:
        raise SettingsError(f"{where}: unknown right {wrong[0]!r}.", hint=f"Known: {', '.join(RIGHTS)}.")
