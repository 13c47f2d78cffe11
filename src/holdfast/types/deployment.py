"""Deployments: a flow with settings, in a tenant. The runtime document calls it a Core: `core_id` is its
id."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.types.ids import derived_id


class Mode(StrEnum):
    plain = "plain"
    entity = "entity"  # each run belongs to an entity, which `instance_key` names


class Delegation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The person on whose behalf a deployment runs: `to`, from `since` until `until` (exclusive), unless
    revoked. Instants in microseconds."""

    to: str  # as an assignee is written: user:dana@acme
    since: int | None = None
    until: int | None = None
    revoked: bool = False
    revoked_at: int | None = None
    revoked_by: str = ""
    # Who set it through a server, with everyone in the chain of their credential.
    made_by: tuple[str, ...] = ()

    def is_active(self, now: int) -> bool:
        started = self.since is None or self.since <= now
        return not self.revoked and started and (self.until is None or now < self.until)


class Binding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A skill that the runs of a deployment use; `versions`: which (`^1.2`, `>=1,<3`, `1.2.0`; all: any)."""

    skill: str
    versions: str = ""

    def __str__(self) -> str:
        return f"{self.skill}@{self.versions}" if self.versions else self.skill


class Defaults(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Defaults for holds that do not set these themselves. Durations as written."""

    assignee: str | None = None
    priority: str | None = None
    calendar: str | None = None
    timeout: str | None = None
    on_timeout: str | None = None
    reminder: str | None = None


class Deployment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A flow under a name. Runs that are started with it have its id and are pinned to its skills."""

    id: str
    name: str
    flow: str
    version: str = ""  # of the flow; empty: any version
    mode: Mode = Mode.plain
    delegation: Delegation | None = None  # the person that `delegated_user` stands for; kept while revoked
    skills: tuple[Binding, ...] = ()
    on_changed_skill: str = (
        "warn"  # or fail: what happens if the content of a pinned version has changed (SK-9)
    )
    defaults: Defaults = Defaults()
    policies: tuple[str, ...] = ()  # only these apply to its holds; empty: all
    created_at: int = 0
    created_by: str = ""
    # Who wrote its settings through a server last, with everyone in the chain of their credential.
    made_by: tuple[str, ...] = ()


def deployment_id(tenant: str, name: str) -> str:
    """The same name in the same tenant is the same deployment."""
    return derived_id("deployment", tenant, name)
