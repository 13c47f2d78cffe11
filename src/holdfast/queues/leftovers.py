"""Messages that lie open at a broker although this store has nothing open there (ADR 102): their row has
ended, because a release before this one did not withdraw them, or the store has no such row at all."""

from __future__ import annotations

from collections.abc import Sequence
from random import sample
from typing import Final

import msgspec

from holdfast.queues.transport import PublishedMessage
from holdfast.store.protocols import Store
from holdfast.types.queue_message import MESSAGE_ID

MOST_LOOKED_UP: Final = 10_000
"""Messages at a broker that one look compares with the store; of more, a random choice."""


class Leftovers(msgspec.Struct, frozen=True, kw_only=True):
    """`ended`: their row has ended or moved to another queue. `unknown`: this store has no such message, or
    their place is not one that this release publishes to: they may be another store's, or of a release with
    other names, and are only reported."""

    ended: list[PublishedMessage]
    unknown: list[PublishedMessage]


async def leftovers(store: Store, published: Sequence[PublishedMessage]) -> Leftovers:
    found = Leftovers(ended=[], unknown=[])
    for each in published if len(published) <= MOST_LOOKED_UP else sample(published, MOST_LOOKED_UP):
        known = MESSAGE_ID.fullmatch(each.id)
        row = await store.queue_message(each.tenant, each.id) if known else None
        if row is None:
            found.unknown.append(each)
        elif not row.is_open or row.address != f"{each.scope}/{each.queue}":
            found.ended.append(each)
    return found
