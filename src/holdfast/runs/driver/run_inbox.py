"""The driver's side of the inbox: each row becomes one message to the engine.

When a run is loaded, this also checks whether the code has changed since: that matters only for nodes which
the run may still reach (D-34).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from holdfast.engine.messages import (
    BreakpointsSet,
    CancelRequested,
    CodeChanged,
    EvidenceArrived,
    EvidenceBySeq,
    HoldAnswered,
    HoldUnanswered,
    Message,
    ResumeRequested,
    RunRecovered,
    TimerFired,
)
from holdfast.errors import VersionMismatchError
from holdfast.model.hold_declaration import decision_for_flow
from holdfast.runs.driver.evidence_outbox import decode_evidence
from holdfast.runs.driver.record_writer import RecordWriter
from holdfast.runs.driver.session import RunSession
from holdfast.runs.recorder.queue import retry_while_unavailable
from holdfast.store.protocols import Store
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.record import InboxRow
from holdfast.types.status import HoldStatus
from holdfast.types.value import freeze


class DriverInbox:
    def __init__(self, session: RunSession, writer: RecordWriter) -> None:
        self.session = session
        self.writer = writer
        self.urgent = False
        # Whether there may be rows, up to `session.inbox_seen`, that were not read.
        self.unread = True
        self._taken: set[int] = set()
        self._late: EvidenceBySeq = {}

    async def first(self, inbox_seq: int) -> list[Message]:
        """When a run is loaded: compare the code, judge what was running, then read the inbox."""
        messages = await self._first(inbox_seq)
        # Term 1 is the first claim: such a run starts, it does not resume.
        if self.session.row.term > 1:
            self.writer.announce(self._still_asked(messages))
        return messages

    def announce_resume(self, messages: list[Message]) -> None:
        """A run that is resumed while it waits in memory asks again, as a parked one does (R-17)."""
        asked = self._still_asked(messages)
        if asked and any(isinstance(message, ResumeRequested) for message in messages):
            self.writer.announce(asked)

    def _still_asked(self, messages: list[Message]) -> list[str]:
        """The open questions that these messages do not answer; none for a run that is cancelled."""
        if any(isinstance(message, CancelRequested) for message in messages):
            return []
        answered = {
            message.hold for message in messages if isinstance(message, HoldAnswered | HoldUnanswered)
        }
        return [hold for hold in self.session.pos.holds if hold not in answered]

    async def _first(self, inbox_seq: int) -> list[Message]:
        session = self.session
        session.inbox_seen = inbox_seq
        self.unread = inbox_seq > 0
        # A new run: nothing was running, no step of it depends on other code, and its inbox is empty. Saves
        # all reads.
        if session.row.term <= 1 and session.pos.head <= 1 and not inbox_seq:
            return [RunRecovered()]
        changed = await self._code_changed()
        # The sweep of another worker may not have come yet: without this a run that is claimed for another
        # reason would overlook its own due timer.
        if session.pos.timers and await session.store.fire_timers(limit=100, run=session.run):
            inbox_seq += 1
        # Only the question: RunRecovered would start handlers of the new code before a person has accepted
        # it.
        if changed is not None and session.graph.spec.code_change == "ask":
            await self._sweep([])
            return [changed]
        if any(e.intent >= 0 or e.step_intents for e in session.pos.execs.values()):
            self._late = await self._late_reports()
        messages: list[Message] = [] if changed is None else [changed]
        if not self._asks_about_code():
            messages.append(RunRecovered(late=self._late))
        read = await self.take() if inbox_seq else []
        if await self._sweep(read):
            read += await self.take()
        return [*_breaks_in(read), *messages, *read]

    async def _sweep(self, read: list[Message]) -> bool:
        """Whether a deadline of the open questions has passed."""
        session = self.session
        return bool(self._still_asked(read)) and await session.services.sweep_holds(session.run)

    async def _code_changed(self) -> CodeChanged | None:
        """The code differs from the code that last advanced this run, if that matters to nodes ahead. Raises
        VersionMismatchError if the flow refuses it."""
        session = self.session
        old, new = session.pos.code or session.row.code, session.program.code_digest
        if old == new:
            return None
        from holdfast.runs.driver.code_change import changed_ahead, require_same_substeps

        require_same_substeps(session)
        store, program = session.store, session.program
        nodes = await changed_ahead(store, program, session.pos, old)
        if nodes == []:
            return None
        if session.graph.spec.code_change == "refuse":
            of = f" (of {', '.join(nodes)})" if nodes else ""
            raise VersionMismatchError(
                f"the code of flow {session.graph.name!r}{of} has changed since run {session.run} was last "
                "advanced, and the flow refuses changed code.",
                hint="Load the old code; the run waits until then.",
                flow=session.graph.name,
            )
        waiting = [hold for hold in session.pos.holds.values() if hold.why == "code" and hold.key == new]
        # This question is open already: a worker that loads the run again must not ask it twice.
        if waiting:
            return None
        # Stored before the record that names it, so that the next change can be compared with this code.
        await store.put_code(new, program.code_marks)
        return CodeChanged(old=old, new=new, nodes=nodes or [])

    def _asks_about_code(self) -> bool:
        return any(hold.why == "code" for hold in self.session.pos.holds.values())

    async def _late_reports(self) -> EvidenceBySeq:
        """What a fenced worker reported about effects that were running (D-17)."""
        session = self.session
        reports = await session.store.late_reports(session.run)
        return {seq: decode_evidence(raw, session.codec.registry) for seq, raw in reports}

    async def take(self) -> list[Message]:
        self.urgent = False
        session = self.session
        pending = partial(session.store.pending, session.run)
        session.inbox_seen, rows = await retry_while_unavailable(pending, session.queue)
        # A row stays pending until the record that consumes it is committed: until then it is read again.
        fresh = [row for row in rows if row.id not in self._taken]
        self.unread = self._asks_about_code()
        if self.unread:
            # Nothing continues before a person has accepted the changed code; the other rows wait.
            fresh = [row for row in fresh if row.kind == "cancel" or self._is_about_code(row)]
        self._taken.update(row.id for row in fresh)
        # An answer counts even if the time limit beside the question was noticed after it.
        fresh.sort(key=lambda row: row.kind == "timer")
        return [message for row in fresh if (message := await self._read(row)) is not None]

    def _is_about_code(self, row: InboxRow) -> bool:
        about_hold = row.kind in ("answer", "lapse")
        hold = self.session.pos.holds.get(row.payload.decode()) if about_hold else None
        return hold is not None and hold.why == "code"

    async def _read(self, row: InboxRow) -> Message | None:
        if row.kind == "late":
            intent = int(row.payload)
            return EvidenceArrived(
                intent=intent, evidence=(await self._late_reports()).get(intent), inbox=row.id
            )
        return await message_of(self.session.store, row, self._late)


async def message_of(store: Store, row: InboxRow, late: EvidenceBySeq | None = None) -> Message | None:
    """The message of an inbox row; None for an unknown kind."""
    if row.kind == "timer":
        return TimerFired(token=row.payload.decode(), inbox=row.id)
    if row.kind == "resume":
        kept: dict[str, Any] = msgspec.json.decode(row.payload) if row.payload else {}
        return ResumeRequested(inbox=row.id, late=late or {}, **kept)
    if row.kind == "cancel":
        request: dict[str, Any] = msgspec.json.decode(row.payload) if row.payload else {}
        return CancelRequested(
            reason=request.get("reason") or "cancelled", by=request.get("by") or "", inbox=row.id
        )
    return await _outcome(store, row) if row.kind in ("answer", "lapse") else None


async def _outcome(store: Store, row: InboxRow) -> Message | None:
    """The outcome of a hold, from its row: it is decided once, whichever inbox row led here."""
    # The inbox row has no answer in it. So a repeated, late or wrongly named row cannot contradict the hold.
    hold = await store.hold(HoldId(row.payload.decode()))
    if hold is None or hold.status is HoldStatus.pending:
        return None
    if hold.resolution is None:
        return _undecided_message(hold, row)
    resolution = freeze(decision_for_flow(msgspec.json.decode(hold.resolution)))
    return HoldAnswered(
        hold=hold.id,
        resolution=resolution,
        by=hold.resolved_by or "",
        at=hold.resolved_at or 0,
        inbox=row.id,
    )


def _undecided_message(hold: HoldRow, row: InboxRow) -> HoldUnanswered:
    withdrawn = hold.status is HoldStatus.cancelled
    by = f" by {hold.closed_by}" if hold.closed_by else ""
    reason = hold.closed_reason or f"hold {hold.id} was cancelled{by}"
    return HoldUnanswered(
        hold=hold.id,
        withdrawn=withdrawn,
        raises=withdrawn and hold.terms.on_cancel == "raise",
        reason=reason,
        inbox=row.id,
    )


def _breaks_in(read: list[Message]) -> list[Message]:
    """Breakpoints first: otherwise what was running would continue before they are known."""
    asked = [message for message in read if isinstance(message, ResumeRequested)]
    return [BreakpointsSet(breaks=each.breaks, off=each.off) for each in asked if each.breaks or each.off]
