"""A hold: the run stands still until somebody decides. First form; its whole life has a room of its own."""

from __future__ import annotations

import msgspec

from holdfast.types.ids import HoldId, RunId
from holdfast.types.status import HoldStatus


class Option(msgspec.Struct, frozen=True):
    id: str
    label: str
    variant: str = "secondary"


class NewHold(msgspec.Struct, frozen=True, kw_only=True):
    """The row that an `asked` record opens."""

    id: HoldId
    seq: int
    node: str
    scope: str
    visit: int
    ordinal: int
    type: str
    prompt: str
    options: tuple[Option, ...] | None
    assignee: str | None
    priority: str
    context: bytes
    schema: bytes | None
    created_at: int
    expires_at: int | None
    expiry_action: str | None
    request_hash: str


class HoldClosed(msgspec.Struct, frozen=True):
    """The engine closes a hold that nobody needs any more (expired, its branch lost, its run ended)."""

    id: HoldId
    status: HoldStatus
    reason: str


class HoldRow(NewHold, frozen=True, kw_only=True):
    """A hold as it stands: what was asked, by which run, and what became of it."""

    run: RunId
    tenant: str
    flow: str
    status: HoldStatus
    version: int
    resolution: bytes | None = None
    resolved_by: str | None = None
    resolved_at: int | None = None
    closed_reason: str | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A decision on its way to a hold: written by one compare-and-set together with the run's inbox row."""

    hold: HoldId
    resolution: bytes
    resolved_by: str
    at: int
