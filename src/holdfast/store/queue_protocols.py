"""What a store does for queues: messages as rows, each changed by one compare-and-set.

The rules of `store.protocols` apply: each method is one transaction and may be called twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.types.outbox import OutboxMessage
from holdfast.types.queue_message import (
    EndNotice,
    MessageChange,
    MessageClaim,
    MessageFilter,
    MessagePlace,
    MessageRefusal,
    MessageRow,
    MessageSweep,
    NewMessage,
    QueueCounts,
)


class Queues(Protocol):
    async def publish_message(
        self, new: NewMessage, *, outbox: Sequence[OutboxMessage] = ()
    ) -> tuple[MessageRow, bool] | None:
        """Returns (row, True), or the earlier message of the tenant with this id and False; the caller
        compares the digests. With `new.hold`: the message becomes that of the hold, unless it has one, which
        is returned; a message of that id which is not the hold's is returned as it is, and the hold does not
        name it. None, and nothing is written, if that hold is not open (any more). `outbox`: written only
        with a new message."""
        ...

    async def queue_message(self, tenant: str, message: str) -> MessageRow | None: ...

    async def list_messages(
        self, where: MessageFilter, *, after: int | None = None, limit: int = 50
    ) -> list[MessageRow]:
        """Newest first; `after`: the number of the last row seen."""
        ...

    async def ready_messages(
        self, want: MessageClaim, *, after: MessagePlace | None = None, since: int = 0
    ) -> list[MessageRow]:
        """The next `want.limit` messages behind `after` that `claim_messages` could claim now, in its order;
        with `since`, only those that became visible later than that."""
        ...

    async def claim_messages(self, want: MessageClaim) -> list[MessageRow]:
        """Claim ready messages by priority, `visible_at` and arrival; of a group only the first that is open,
        and only while none of it is claimed. The claim token grows."""
        ...

    async def change_message(
        self, change: MessageChange, *, outbox: Sequence[OutboxMessage] = ()
    ) -> MessageRow | MessageRefusal:
        """Returns the row as it is afterwards. Completing or withdrawing again what ended in that way returns
        the row unchanged."""
        ...

    async def sweep_messages(self, *, limit: int = 500, notice: EndNotice | None = None) -> MessageSweep:
        """Make messages whose claim has lapsed ready again (or dead after their last attempt), expire those
        whose time has passed, and delete those that ended long ago; at most `limit` of each. `notice`: gives
        the messages of the outbox that are written with each that ends so."""
        ...

    def queue_changes(self) -> int:
        """A number that grows when this process commits a message of a queue, or a hold that asks in one."""
        ...

    async def wait_queues(self, seen: int, timeout: float) -> None:
        """Wait until `queue_changes` is not `seen` (read before the caller looked), or until the timeout."""
        ...

    async def queue_counts(self, tenant: str | None = None) -> list[QueueCounts]:
        """The queues that have open or dead messages, in order of tenant, scope and name."""
        ...
