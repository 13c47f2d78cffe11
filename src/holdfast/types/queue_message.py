"""A message of a queue: an item of work for people or programs, kept as a row of the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from hmac import compare_digest
from typing import Final, TypeAlias

import msgspec

from holdfast.types.backoff import Backoff
from holdfast.types.clock import MICROS
from holdfast.types.ids import derived_id
from holdfast.types.outbox import OutboxMessage
from holdfast.types.terms import PRIORITIES

HITL_REQUEST: Final = "hitl_request"
"""The type of a message that asks the question of a hold."""

COMPLETED_EVENT: Final = "scaiqueue.message.completed"
"""The type of the event that a foreign queue sends when a message is completed."""

REJECTED: Final = "rejected"
"""The type of a dead message that says what a broker brought and could not be taken."""

QUEUE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
"""A scope or a queue: a lower-case slug, which is also valid in an address and in a subject of a broker."""


def is_queue_address(text: str) -> bool:
    """Whether it is `scope/queue`."""
    scope, slash, queue = text.partition("/")
    return bool(slash and QUEUE_NAME.fullmatch(scope) and QUEUE_NAME.fullmatch(queue))


EVENTS: Final = "holdfast-events"
"""The scope of events: a queue for each name and key."""
RUNS: Final = "holdfast-runs"
"""The scope of the ends of runs: a queue for each run that another one waits for."""
OWN_SCOPES: Final = (EVENTS, RUNS)
"""Their messages are made by Holdfast alone."""


def event_queue(name: str, key: str | None, run: str | None = None) -> str:
    """Where events of this name and key are; those that are sent to one run have a queue of their own."""
    return derived_id("event", name, "" if key is None else f"={key}", run or "")


LONGEST_EVENT_NAME: Final = 100
LONGEST_EVENT_KEY: Final = 200
"""Characters. No event has a longer one, or an empty one."""


def event_tag(queue: str) -> str:
    """By which the holds are found that wait for an event."""
    return f"event:{queue}"


MESSAGE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

LONGEST_CLAIM: Final = 365 * 86_400 * MICROS
"""Claims of workers are shorter; a longer one is that of a run that keeps the message until it ends."""

RELEASE_BACKOFF: Final = Backoff(first=MICROS, longest=300 * MICROS)
"""How long a released message waits, after its first to its last attempt."""


class MessageState(StrEnum):
    ready = "ready"  # can be claimed, from `visible_at` on
    claimed = "claimed"
    completed = "completed"
    dead = "dead"  # given up after its last attempt, or by a person; can be requeued
    withdrawn = "withdrawn"
    expired = "expired"


OPEN_MESSAGES: Final = (MessageState.ready, MessageState.claimed)


class NewMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to publish. `digest`: of its content, so that a repeat is told from another message with the
    same id. `max_attempts` 0: without limit. `retention`: microseconds for which it is kept after its end."""

    id: str
    tenant: str
    scope: str
    queue: str
    payload: bytes
    digest: str
    type: str = "message"
    correlation_id: str | None = None
    priority: str = "normal"
    visible_at: int = 0  # not claimable before; a time in the past: from now on
    expires_at: int | None = None
    group_key: str | None = None  # messages of one group are claimed one at a time, in the order of arrival
    hold: str | None = None  # whose question it asks
    run: str | None = None  # that published it
    node: str | None = None
    max_attempts: int = 5
    retention: int = 7 * 86_400 * MICROS


class MessageRow(NewMessage, frozen=True, kw_only=True):
    """A message as stored. `attempts`: claims that ended without completion. `claim_token`: of its last
    claim, larger than those before it (`new_token`); 0: it was never claimed."""

    number: int  # the order of arrival
    state: MessageState = MessageState.ready
    attempts: int = 0
    claimed_by: str | None = None
    claim_token: int = 0
    claim_until: int | None = None
    result: bytes | None = None
    completed_by: str | None = None
    error: str | None = None
    created_at: int = 0
    updated_at: int = 0
    ended_at: int | None = None

    @property
    def address(self) -> str:
        return f"{self.scope}/{self.queue}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_MESSAGES

    def is_kept(self, now: int) -> bool:
        """Whether a run keeps it until it ends: its claim does not lapse."""
        return self.state is MessageState.claimed and (self.claim_until or 0) > now + LONGEST_CLAIM

    def has_token(self, token: int | None) -> bool:
        """Whether this is the token of the last claim. Takes the same time for every wrong token."""
        if token is None or not 0 < token < MOST_TOKENS:
            return False
        return compare_digest(token.to_bytes(8), self.claim_token.to_bytes(8))

    @property
    def urgency(self) -> int:
        """0 is claimed first."""
        return urgency_of(self.priority)

    @property
    def place(self) -> MessagePlace:
        return self.urgency, self.visible_at, self.number

    @property
    def drop_at(self) -> int | None:
        """When the row may be deleted. A dead letter is kept until a person withdraws or requeues it."""
        if self.ended_at is None or self.state is MessageState.dead:
            return None
        return self.ended_at + self.retention


MOST_TOKENS: Final = 2**62
_TOKEN_STEP: Final = 2**48


def new_token(last: int = 0) -> int:
    """Of the claim that follows the one with the token `last`. It is larger, so that a reader of both tells
    the newer one, by a step that cannot be guessed, so that only the worker that has claimed a message
    acts on it. After thousands of claims there is no room for a larger one: then it is any."""
    import secrets

    step = 1 + secrets.randbelow(_TOKEN_STEP)
    return last + step if last + step < MOST_TOKENS else step


def urgency_of(priority: str) -> int:
    return len(PRIORITIES) - 1 - PRIORITIES.index(priority)


class MessageAct(StrEnum):
    """What is done to a message. `extend`, `complete` and `release` need the token of the claim."""

    extend = "extend"
    complete = "complete"
    settle = "settle"  # complete it without a claim: the answer came another way
    release = "release"
    dead = "dead"
    requeue = "requeue"
    withdraw = "withdraw"
    expire = "expire"  # with its hold
    update = "update"  # new content; a claim ends, unless `frees` is False
    move = "move"  # to another queue; a claim ends, the priority is never lowered


class MessageChange(msgspec.Struct, frozen=True, kw_only=True):
    """One act on one message, applied as a whole or not at all.

    `frees`: whether an update, or giving up without a token, ends a claim of another worker.
    `counted`: whether a release counts as an attempt. `delay`: microseconds until a released message can be
    claimed again; None: a back-off."""

    tenant: str
    id: str
    act: MessageAct
    token: int | None = None
    by: str | None = None
    ttl: int = 0
    delay: int | None = None
    counted: bool = True
    frees: bool = True
    result: bytes | None = None
    error: str | None = None
    payload: bytes | None = None
    priority: str | None = None
    expires_at: int | None = None
    scope: str | None = None
    queue: str | None = None


class MessageRefusal(StrEnum):
    """Why an act was refused; nothing of it was written."""

    unknown = "unknown"
    claim_lost = "claim_lost"  # the claim ended or passed to another worker
    claimed = "claimed"  # by another worker, and its token was not given
    ended = "ended"  # the message is in a final state
    not_dead = "not_dead"  # only a dead letter can be requeued


EndNotice: TypeAlias = Callable[[MessageRow], Sequence[OutboxMessage]]
"""What is written with the end of a message, so that its broker hears of it."""


class MessageClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A request for messages of one queue: any (`limit`), or the one with this `id`. Without `reviews`: not
    those that ask the question of a hold."""

    tenant: str
    scope: str
    queue: str
    by: str
    ttl: int
    limit: int = 1
    id: str | None = None
    reviews: bool = True


MessagePlace = tuple[int, int, int]
"""(urgency, visible_at, number): the order in which messages of a queue are claimed."""


class MessageFilter(msgspec.Struct, frozen=True, kw_only=True):
    """AND across the fields. `claimed_beyond`: whose claim lasts longer than until this instant."""

    tenant: str | None = None
    scope: str | None = None
    queue: str | None = None
    states: tuple[MessageState, ...] = ()
    type: str | None = None
    correlation_id: str | None = None
    hold: str | None = None
    claimed_beyond: int | None = None


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One queue with the number of its messages by state. `oldest`: microseconds that the oldest ready
    message has been claimable; 0: there is none. `delayed`: of the ready ones, those not claimable yet."""

    tenant: str
    scope: str
    queue: str
    ready: int = 0
    delayed: int = 0
    claimed: int = 0
    dead: int = 0
    oldest: int = 0


class MessageSweep(msgspec.Struct, frozen=True, kw_only=True):
    """How many claims lapsed, messages expired and old rows were deleted."""

    lapsed: int = 0
    expired: int = 0
    dropped: int = 0

    @property
    def total(self) -> int:
        return self.lapsed + self.expired + self.dropped
