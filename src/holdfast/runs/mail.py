"""The driver's side of the inbox: rows become messages to the engine, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.messages import Answered, CancelAsked, Message, Recovered, ResumeAsked, TimerFired
from holdfast.types.ids import HoldId
from holdfast.types.record import InboxRow
from holdfast.types.value import freeze

if TYPE_CHECKING:
    from holdfast.runs.driver import Driver


class Box:
    """`seen` is the inbox counter at the last look: parking is refused if it has grown since (D-29)."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.seen = 0
        self.urgent = False
        self._taken: set[int] = set()

    async def first(self, inbox_seq: int) -> list[Message]:
        """On loading a run: what was under way is judged, then the mail is read."""
        self.seen = inbox_seq
        messages: list[Message] = []
        driver = self.driver
        if driver.pos.head > 0 or driver.row.recoveries or driver.row.term > 1:
            messages.append(Recovered(late=await driver.runtime.late_results(driver)))
        else:
            messages.append(Recovered())
        return messages + (await self.take() if inbox_seq else [])

    async def take(self) -> list[Message]:
        self.urgent = False
        self.seen, rows = await self.driver.runtime.store.pending(self.driver.run)
        fresh = [row for row in rows if row.id not in self._taken]
        self._taken.update(row.id for row in fresh)
        return [message for row in fresh if (message := await self._read(row)) is not None]

    async def _read(self, row: InboxRow) -> Message | None:
        if row.kind == "timer":
            return TimerFired(token=row.payload.decode(), inbox=row.id)
        if row.kind == "resume":
            return ResumeAsked(inbox=row.id)
        if row.kind == "cancel":
            said: dict[str, Any] = msgspec.json.decode(row.payload) if row.payload else {}
            return CancelAsked(reason=said.get("reason") or "cancelled", by=said.get("by") or "", inbox=row.id)
        if row.kind == "answer":
            return await self._answer(row)
        return None

    async def _answer(self, row: InboxRow) -> Message | None:
        hold = await self.driver.runtime.store.hold(HoldId(row.payload.decode()))
        if hold is None or hold.resolution is None:
            return None
        resolution = freeze(msgspec.json.decode(hold.resolution))
        return Answered(
            hold=hold.id, resolution=resolution, by=hold.resolved_by or "", at=hold.resolved_at or 0, inbox=row.id
        )
