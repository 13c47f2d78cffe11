"""A hold: a question to a person, for which the run waits."""

from __future__ import annotations

import json
import re
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
from holdfast.types.queue_message import MessageChange
from holdfast.types.status import HoldStatus
from holdfast.types.terms import PRIORITIES, HoldTerms

BREAKPOINT = "debug_breakpoint"
CONSUME = "queue_wait"  # a run waits for the next message of a queue
CALLBACK = "callback_wait"  # a run waits for the system that has the token of this hold
NO_HEARTBEAT = "no heartbeat came in time"
"""The reason for which such a hold is closed before its time."""
MACHINE_WAITS = (CONSUME, CALLBACK)
UNASKED = (BREAKPOINT, *MACHINE_WAITS)
"""The types of holds that no person is asked: no inbox shows them, no message is sent about them."""


class Option(msgspec.Struct, frozen=True):
    id: str
    label: str
    variant: str = "secondary"
    # Unset rather than false, so that older graphs keep their fingerprints.
    default: bool | msgspec.UnsetType = msgspec.UNSET  # the answer that `default_option` gives
    requires_comment: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def text(self) -> str:
        """Its label for people. The label itself is in hashes, and stays as the flow gave it."""
        return label_text(self.id, self.label)


_PLAIN_ID = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")


def label_text(id: str, label: str) -> str:  # noqa: A002
    """A label that is only the id reads as words: `needs_work` is "Needs work"."""
    if label != id or _PLAIN_ID.fullmatch(id) is None:
        return label
    words = re.sub("[_-]", " ", id)
    return words[:1].upper() + words[1:]


def label_of(options: Sequence[Option] | None, chosen: str) -> str:
    """What people read for a decision; the decision itself where no option has that id."""
    return next((each.text for each in options or () if each.id == chosen), chosen)


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
    state_key: str | None = None  # of the object with the run's state when it was asked


_canonical_json = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode


def facts_of(hold: NewHold) -> dict[str, Any]:
    """The fields with which a hold is asked and that are not content: evidence shows them, the audit has
    their digest. Only the priority may change: it may be raised, which the audit tells."""
    return {
        "block_index": hold.block,
        "created_at": iso(hold.created_at),
        "priority": hold.priority,
        "terms": msgspec.to_builtins(hold.terms),
    }


def facts_digest(hold: NewHold) -> str:
    """Encoded with the standard library, so that a verification script without our dependencies gets the
    same."""
    return sha256(_canonical_json(facts_of(hold)).encode()).hexdigest()


class HoldFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The run that opens a hold."""

    tenant: str
    run: str
    flow: str
    version: str = ""
    deployment: str | None = None
    instance_key: str | None = None
    started_by: str | None = None
    thread: str | None = None


class HoldClosed(msgspec.Struct, frozen=True):
    """The engine closes a hold that is no longer needed (its branch lost, its run ended)."""

    id: HoldId
    status: HoldStatus
    reason: str


class HoldRow(NewHold, frozen=True, kw_only=True):
    """A hold as stored: what is asked, by which run, and the state of the answer."""

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
    epoch: int = 1  # grows with each change of the assignee, which makes older links void
    escalation_count: int = 0
    notification_sent: bool = False
    notified_at: int | None = None
    reminder_count: int = 0
    claimed_by: str | None = None
    claim_until: int | None = None
    resumed_at: int | None = None  # when the run received the outcome
    message_id: str | None = None  # of the queue message that asks the same question
    # A decision that is made and can still be undone (the undo window).
    placed: bytes | None = None
    placed_by: str | None = None
    placed_until: int | None = None
    paused_at: int | None = None  # a question was asked back: the deadline is paused
    # Copied from its run.
    deployment: str | None = None
    instance_key: str | None = None
    started_by: str | None = None
    read_only: bool = False

    @property
    def rank(self) -> int:
        return PRIORITIES.index(self.priority) if self.priority in PRIORITIES else 1

    @property
    def time_limit(self) -> int | None:
        """When it ends although heartbeats come."""
        return None if self.original_timeout is None else self.created_at + self.original_timeout

    @property
    def core_id(self) -> str:
        """The deployment; without one, the flow takes its place."""
        return self.deployment or f"flow:{self.flow}"


OPEN_ONLY_FIELDS = (
    "claimed_by", "claim_until", "placed", "placed_by", "placed_until", "paused_at", "remind_at",
)  # fmt: skip
"""Fields that only an open hold has: closing it empties them."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A note that a person attached to a hold, one per (kind, slot): a later one replaces it.

    Kinds: comment (slot: an id), draft, vote, watch, snooze, seen (slot: the person), question and reply
    (slot: an id), asked (slot: the person who has a question to answer), recipient (slot: channel and
    address), file (slot: an id), filed (one, while the files of a hold are not yet sorted)."""

    hold: HoldId
    kind: str
    slot: str
    person: str
    at: int
    until: int | None = None
    body: bytes = b"{}"


class HoldKey(msgspec.Struct, frozen=True):
    """An idempotency key: its actor, and a digest of the request that used it."""

    actor: str
    key: str
    digest: str


class HoldChange(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one action changes of a hold, written in one transaction if the row is still as it was
    read.

    `fields` are columns of HoldRow; version + 1 and updated_at are the store's. A row that is not pending
    accepts only `resumed_at`. Without fields the version is not checked and does not grow: a comment or a
    refusal is written whatever happened to the row in the meantime."""

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
    more_events: tuple[EventRow, ...] = ()  # emitted right after it
    link: str | None = None  # the jti of a link that is used up with it
    key: HoldKey | None = None
    message: MessageChange | None = None  # of a queue, changed with it or not at all
    blobs: tuple[bytes, ...] = ()  # digests that the run refers to from now on; stored before this change
    released_blobs: tuple[bytes, ...] = ()  # digests that the run no longer refers to


class ChangeRefusal(StrEnum):
    """Why a change was not made; nothing of it was written."""

    unknown = "unknown"
    stale = "stale"  # the row has changed: read it again
    read_only = "read_only"
    link_used = "link_used"
    message_lost = "message_lost"  # the claim on the queue's message has ended
    key_used = "key_used"


class HoldFilter(msgspec.Struct, frozen=True, kw_only=True):
    """AND across the fields, OR within each."""

    tenant: str | None = None
    ids: tuple[str, ...] = ()
    status: tuple[HoldStatus, ...] = ()
    type: tuple[str, ...] = ()
    not_type: tuple[str, ...] = ()
    assignees: tuple[tuple[str, str], ...] | None = (
        None  # (type, value); emails in lower case; empty: matches no hold
    )
    priority: tuple[str, ...] = ()
    deployment: tuple[str, ...] = ()
    flow: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    instance_key: tuple[str, ...] = ()
    started_by: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    text: str | None = None  # in the prompt, or at the beginning of the id; ignoring case
    created_from: int | None = None
    created_to: int | None = None
    expires_from: int | None = None
    expires_to: int | None = None
    resolved_by: tuple[str, ...] = ()
    resolved_from: int | None = None
    resolved_to: int | None = None
    noted: tuple[str, str] | None = None  # (kind, slot): has such a note (watched, snoozed)
    not_noted: tuple[str, str, int] | None = None  # (kind, slot, now): has none that lasts beyond now
    live: bool = True  # without imported history


def has_text(hold: HoldRow, wanted: str) -> bool:
    """As `HoldFilter.text`; `wanted` is folded."""
    return wanted in hold.prompt.casefold() or hold.id.startswith(wanted)


class HoldOrder(StrEnum):
    inbox = "inbox"  # priority, then the earliest deadline, then the oldest
    oldest = "oldest"
    newest = "newest"


class Due(StrEnum):
    """What a sweep over holds looks for."""

    expiry = "expiry"  # pending, expires_at <= now, not paused
    reminder = "reminder"  # pending, remind_at <= now
    placed = "placed"  # pending, placed_until <= now
    resume = "resume"  # decided, not resumed, the run not ended; the caller passes `now` minus a minute
