"""The outbox: messages to be sent after a commit, and the state of their delivery."""

from __future__ import annotations

from enum import StrEnum

import msgspec

CREATED = "hold.created"
ASSIGNED = "hold.assigned"
REMINDED = "hold.reminded"
ESCALATED = "hold.escalated"
ASKED_BACK = "hold.asked_back"  # a question was asked before deciding
LINK = "hold.link"  # a link that a person asked for is sent to its recipient
CLOSED = "hold.closed"
JUDGE = "hold.judge"
QUEUE = "hold.queue"  # the message that asks the hold's question in a queue is to be published or changed

ENGINE_START = "engine.start"  # the run is to be started on the engine that drives it
QUEUE_OUT = "queue.out"  # a message of a queue that is bound to a broker has changed


class OutboxMessage(msgspec.Struct, frozen=True):
    """A message to send after the commit. Messages with the same `key` are sent once; the key of a message
    about a hold begins with the hold's id and a colon.
    Topics: hold.created, hold.assigned, hold.reminded, hold.escalated,
    hold.asked_back, hold.link, hold.closed, hold.judge, hold.queue, queue.out,
    engine.start."""

    topic: str
    key: str
    payload: bytes
    hold: str | None = None
    due_at: int | None = None  # not sent before; None: at once


class OutboxState(StrEnum):
    waiting = "waiting"
    done = "done"
    skipped = "skipped"  # no longer needed, or without a recipient
    dead = "dead"  # given up; can be replayed


class OutboxRow(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    tenant: str
    run: str | None
    hold: str | None
    at: int
    topic: str
    key: str
    payload: bytes
    state: OutboxState = OutboxState.waiting
    attempts: int = 0
    due_at: int = 0
    claimed_until: int | None = None
    error: str | None = None
