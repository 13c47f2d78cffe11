"""A hold: the run stands still until somebody decides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, cast

import msgspec

from holdfast.types.audit import NewAudit
from holdfast.types.clock import iso
from holdfast.types.event import EventRow
from holdfast.types.ids import HoldId, RunId
from holdfast.types.outbox import OutboxMessage
from holdfast.types.status import HoldStatus
from holdfast.types.terms import PRIORITIES, HoldTerms


class Option(msgspec.Struct, frozen=True):
    id: str
    label: str
    variant: str = "secondary"
    # Unset rather than false: options of older graphs keep their identity.
    default: bool | msgspec.UnsetType = msgspec.UNSET  # what `default_option` means by the default
    requires_comment: bool | msgspec.UnsetType = msgspec.UNSET


def options_json(options: Any) -> list[dict[str, Any]] | None:
    """Options as objects. Records have them as [id, label, variant], rows as `Option`."""
    return None if options is None else [_option_json(each) for each in options]


def _option_json(option: Any) -> dict[str, Any]:
    if isinstance(option, Option):
        return msgspec.to_builtins(option)
    if isinstance(option, Mapping):
        return dict(cast("Mapping[str, Any]", option))
    return msgspec.to_builtins(option_from_list(option))


def option_from_list(listed: Sequence[Any]) -> Option:
    """As a record has it: [id, label, variant], and two flags where one of them is set."""
    flags = dict(zip(("default", "requires_comment"), listed[3:], strict=False))
    return Option(*listed[:3], **{name: True for name, flag in flags.items() if flag})


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
    assignee: str | None  # as the program wrote it
    priority: str
    context: bytes
    schema: bytes | None
    created_at: int
    expires_at: int | None
    expiry_action: str | None
    request_hash: str
    block: int = 0  # the node's place in the compiled graph
    assignee_type: str = "unrouted"
    assignee_value: str = ""
    assignee_reason: str = ""
    escalation_target: str | None = None
    original_timeout: int | None = None  # microseconds
    reminder_interval: int | None = None  # minutes
    remind_at: int | None = None
    tags: tuple[str, ...] = ()
    terms: HoldTerms = HoldTerms()


_canonical_json = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode


def facts_of(hold: NewHold) -> dict[str, Any]:
    """What never changes of a hold and is no content: evidence shows it, and the audit has its digest."""
    return {
        "block_index": hold.block,
        "created_at": iso(hold.created_at),
        "priority": hold.priority,
        "terms": msgspec.to_builtins(hold.terms),
    }


def facts_digest(hold: NewHold) -> str:
    """By Python's own writer, so that a script without our libraries finds the same."""
    return sha256(_canonical_json(facts_of(hold)).encode()).hexdigest()


class HoldFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Whose hold it is about to be: of the run that asks."""

    tenant: str
    run: str
    flow: str
    version: str = ""
    deployment: str | None = None
    instance_key: str | None = None
    started_by: str | None = None
    thread: str | None = None


class HoldClosed(msgspec.Struct, frozen=True):
    """The engine closes a hold that nobody needs any more (its branch lost, its run ended)."""

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
    closed_by: str | None = None  # of a cancelled or expired hold
    closed_at: int | None = None
    updated_at: int = 0
    epoch: int = 1  # grows with each change of the assignee: older links are void
    escalation_count: int = 0
    notification_sent: bool = False
    notified_at: int | None = None
    reminder_count: int = 0
    claimed_by: str | None = None
    claim_until: int | None = None
    resumed_at: int | None = None  # when the run took the outcome in
    message_id: str | None = None  # of the queue message that asks the same
    # A decision that is placed and can still be taken back (the undo window).
    placed: bytes | None = None
    placed_by: str | None = None
    placed_until: int | None = None
    paused_at: int | None = None  # somebody asked back: the deadline stands still
    # Of its run.
    deployment: str | None = None
    instance_key: str | None = None
    started_by: str | None = None
    read_only: bool = False

    @property
    def rank(self) -> int:
        return PRIORITIES.index(self.priority) if self.priority in PRIORITIES else 1

    @property
    def core_id(self) -> str:
        """The deployment; a flow that was started without one is its own."""
        return self.deployment or f"flow:{self.flow}"


OPEN_ONLY_FIELDS = (
    "claimed_by", "claim_until", "placed", "placed_by", "placed_until", "paused_at", "remind_at",
)  # fmt: skip
"""What only an open hold has; whoever closes one empties them."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What people leave at a hold, one per (kind, slot): a later one replaces it.

    Kinds: comment (slot: an id), draft, vote, watch, snooze, seen (slot: the person), question and reply
    (slot: an id), asked (slot: whoever has a question to answer), recipient (slot: channel and address),
    file (slot: an id), filed (one, while a hold with files is not yet put in order)."""

    hold: HoldId
    kind: str
    slot: str
    person: str
    at: int
    until: int | None = None
    body: bytes = b"{}"


class HoldKey(msgspec.Struct, frozen=True):
    """An idempotency key: whose, and a digest of what was asked under it."""

    actor: str
    key: str
    digest: str


class HoldChange(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one act does to a hold, in one transaction, if the row is still as it was read.

    `fields` are columns of HoldRow; version + 1 and updated_at are the store's. A row that is not pending
    takes none but `resumed_at`. With no fields the version is not asked and does not grow: a comment or a
    refusal is written whatever became of the row meanwhile."""

    hold: HoldId
    version: int
    at: int
    fields: dict[str, Any] = {}
    audit: tuple[NewAudit, ...] = ()
    notes: tuple[Note, ...] = ()
    drop_notes: tuple[tuple[str, str], ...] = ()  # (kind, slot)
    outbox: tuple[OutboxMessage, ...] = ()
    mail: tuple[str, bytes] | None = None  # (kind, payload) for the run's inbox, with its wake-up
    event: EventRow | None = None
    more_events: tuple[EventRow, ...] = ()  # told right after it
    link: str | None = None  # the jti of a link that is used up with it
    key: HoldKey | None = None
    blobs: tuple[bytes, ...] = ()  # digests of what the run refers to from now on: put before
    let_go: tuple[bytes, ...] = ()  # of what it refers to no longer


class ChangeRefusal(StrEnum):
    """Why a change was not made; nothing of it was written."""

    unknown = "unknown"
    stale = "stale"  # somebody was first: read the row again
    read_only = "read_only"
    link_used = "link_used"
    key_used = "key_used"


class HoldFilter(msgspec.Struct, frozen=True, kw_only=True):
    """AND across the fields, OR within each."""

    tenant: str | None = None
    ids: tuple[str, ...] = ()
    status: tuple[HoldStatus, ...] = ()
    type: tuple[str, ...] = ()
    not_type: tuple[str, ...] = ()
    assignees: tuple[tuple[str, str], ...] | None = (
        None  # (type, value); emails in lower case; empty: nobody's
    )
    priority: tuple[str, ...] = ()
    deployment: tuple[str, ...] = ()
    flow: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    instance_key: tuple[str, ...] = ()
    started_by: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    text: str | None = None  # in the prompt, in any case
    created_from: int | None = None
    created_to: int | None = None
    expires_from: int | None = None
    expires_to: int | None = None
    resolved_by: tuple[str, ...] = ()
    noted: tuple[str, str] | None = None  # (kind, slot): with such a note (watched, snoozed)
    not_noted: tuple[str, str, int] | None = None  # (kind, slot, now): without one that lasts beyond now
    live: bool = True  # without imported history


class HoldOrder(StrEnum):
    inbox = "inbox"  # priority, then the earliest deadline, then the oldest
    oldest = "oldest"
    newest = "newest"


class Due(StrEnum):
    """What a sweep looks for."""

    expiry = "expiry"  # pending, expires_at <= now, not paused
    reminder = "reminder"  # pending, remind_at <= now
    placed = "placed"  # pending, placed_until <= now
    resume = "resume"  # decided, not resumed, the run not ended; `now` minus a minute is the caller's
