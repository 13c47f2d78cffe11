"""Names at a NATS server: subjects and streams (QU-22). PREFIX is `hf`, unless the settings say otherwise.

    hf.q.{tenant}.{scope}.{queue}.{priority}.{id}    a message of ours, until it ends
    hf.done.{tenant}.{correlation_id}                its completion; .{anything} for each of several votes
    hf.in.{tenant}.{scope}.{queue}.{id}              a message of a foreign producer
    hf.dead.{...}                                    what could not be taken, under the rest of its subject

Each message has a subject of its own, so that it can be looked up and purged without its place in a stream.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

from holdfast.queues.transport import PublishedMessage, QueueBinding, TransportMessage

DEFAULT_PREFIX: Final = "hf"
PREFIX: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


def token(text: str) -> str:
    """Text as one part of a subject: no dot, no wildcard, no space."""
    return quote(text, safe="").replace(".", "%2E") or "-"


class NatsNames:
    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        self.prefix = prefix
        stem = prefix.upper().replace("-", "_")
        self.open, self.done, self.inbound, self.dead = (
            f"{stem}_{kind}" for kind in ("Q", "DONE", "IN", "DEAD")
        )

    @property
    def streams(self) -> dict[str, str]:
        """The subjects of each stream."""
        kinds = {"q": self.open, "done": self.done, "in": self.inbound, "dead": self.dead}
        return {stream: f"{self.prefix}.{kind}.>" for kind, stream in kinds.items()}

    def message(self, message: TransportMessage, *, priority: str | None = None) -> str:
        """`priority`: another than its own; `*`: any."""
        parts = (message.tenant, message.scope, message.queue, priority or message.priority, message.id)
        return ".".join([self.prefix, "q", *(part if part == "*" else token(part) for part in parts)])

    def published(self, subject: str) -> PublishedMessage:
        """What the subject of an open message says."""
        parts = subject.split(".")
        if len(parts) != 7 or parts[:2] != [self.prefix, "q"]:
            return PublishedMessage(name=subject)
        tenant, scope, queue, _, id_ = map(unquote, parts[2:])
        return PublishedMessage(name=subject, tenant=tenant, scope=scope, queue=queue, id=id_)

    def completion(self, message: TransportMessage) -> str:
        return f"{self.prefix}.done.{token(message.tenant)}.{token(message.correlation_id or message.id)}"

    def completions_of(self, tenant: str) -> str:
        return f"{self.prefix}.done.{token(tenant)}.>"

    def inbound_to(self, binding: QueueBinding) -> str:
        parts = (binding.tenant, binding.scope, binding.queue)
        return ".".join([self.prefix, "in", *map(token, parts), ">"])

    def tenant_in(self, subject: str) -> str:
        """Of a completion or an inbound message; empty if it names none."""
        parts = subject.split(".")
        return unquote(parts[2]) if len(parts) > 2 else ""

    def dead_letter(self, subject: str) -> str:
        return f"{self.prefix}.dead.{subject.removeprefix(f'{self.prefix}.')}"
