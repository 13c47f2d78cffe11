"""Events on the wire: with our names, or with those of the runtime proposal."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.api.schemas.common import moment
from holdfast.checkpoint.json_view import jsonable
from holdfast.holds.queries.history import entry_of

if TYPE_CHECKING:
    from holdfast.types.audit import AuditRow
    from holdfast.types.event import Event
    from holdfast.types.hold import HoldRow


class EventNames(StrEnum):
    """`own`: `checkpoint.created`, `hold.opened`, ... `seed`: `checkpoint_created`, `approval`, ..."""

    own = "own"
    seed = "seed"


SEED: Final = {
    "checkpoint.created": "checkpoint_created",
    "run.resumed": "checkpoint_resumed",
    "hold.opened": "approval",
    "hold.asked_again": "approval",
}
"""Our names to the proposal's. Events without one keep ours."""
_QUESTIONS: Final = ("hold.opened", "hold.asked_again")


class EventWire(msgspec.Struct, kw_only=True):
    """`number` grows by one with each event of a run; it is the event's id in the stream."""

    run: str
    number: int
    at: str | None
    type: str
    node: str
    scope: str
    data: dict[str, Any]


def event_wire(event: Event) -> EventWire:
    return EventWire(
        run=event.run,
        number=event.number,
        at=moment(event.at),
        type=event.type,
        node=event.node,
        scope=event.scope,
        data=jsonable(event.data),
    )


def seed_data(wire: EventWire) -> dict[str, Any]:
    """The fields of the proposal in its places; plus those that identify the event."""
    shown = {"run_id": wire.run, "sequence": wire.number, "timestamp": wire.at, **wire.data}
    shown.setdefault("node_id", wire.node)
    if wire.type in _QUESTIONS:
        # The proposal calls a hold a checkpoint.
        shown["checkpoint_id"] = shown.pop("hold_id", None)
    return shown


class EncodedEvent:
    """An event that is encoded once for all followers, when the first of them needs it: streams of another
    protocol are rendered from its fields."""

    __slots__ = ("_at", "_own", "_seed", "data", "node", "number", "run", "scope", "type")

    def __init__(self, event: Event) -> None:
        self.run = event.run
        self.number = event.number
        self.type = event.type
        self.node = event.node
        self.scope = event.scope
        # Here and not later: it depends on the tenant whose event is read.
        self.data: dict[str, Any] = jsonable(event.data)
        self._at = event.at
        self._own: bytes | None = None
        self._seed: bytes | None = None

    @property
    def own(self) -> bytes:
        if self._own is None:
            self._own = msgspec.json.encode(self._wire())
        return self._own

    def _wire(self) -> EventWire:
        return EventWire(
            run=self.run, number=self.number, at=moment(self._at), type=self.type, node=self.node,
            scope=self.scope, data=self.data,
        )  # fmt: skip

    @property
    def size(self) -> int:
        return len(self.own)

    def name(self, names: EventNames) -> str:
        return self.type if names is EventNames.own else SEED.get(self.type, self.type)

    def body(self, names: EventNames) -> bytes:
        """JSON on one line."""
        if names is EventNames.own:
            return self.own
        if self._seed is None:
            self._seed = msgspec.json.encode(seed_data(self._wire()))
        return self._seed


class HoldEventWire(msgspec.Struct, kw_only=True):
    """A change of a hold. `seq` is its number in the tenant's audit, and its id in the stream; numbers are
    missing where the follower may not see a change."""

    id: str
    seq: int
    type: str
    tenant: str
    hold_id: str
    run: str | None
    at: str
    actor: str
    status: str
    version: int
    data: dict[str, Any]


def hold_event_wire(row: AuditRow, hold: HoldRow) -> HoldEventWire:
    """`status` and `version` are the hold's current ones."""
    entry = entry_of(row, hold)
    return HoldEventWire(
        id=entry.id,
        seq=entry.seq,
        type=f"checkpoint.{entry.action}",
        tenant=row.tenant,
        hold_id=hold.id,
        run=row.run,
        at=entry.at,
        actor=entry.actor,
        status=str(hold.status),
        version=hold.version,
        data=jsonable(entry.data),
    )
