"""Follows a run for a front end until it ends, or waits for an answer of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from holdfast.api.ag_ui.events import AgUiEvent, AgUiRenderer
from holdfast.api.ag_ui.run_input import RunAgentInput
from holdfast.api.live.credential import while_valid
from holdfast.api.live.follower import StreamTimeouts, follow_run
from holdfast.api.live.hub import hub_of
from holdfast.api.live.sse import BEAT, chunks
from holdfast.api.problems import for_caller
from holdfast.api.routing import ApiCall
from holdfast.api.schemas.events import EncodedEvent
from holdfast.checkpoint.json_view import jsonable
from holdfast.errors import HoldfastError
from holdfast.runs.history.checkpoints import shown_state
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.clock import iso
from holdfast.types.hold import UNASKED, HoldRow
from holdfast.types.ids import RunId
from holdfast.types.redaction import redactor
from holdfast.types.status import RunStatus

FIRST_LOOK: Final = 0.02
"""Seconds after a question until the run is looked at: it parks a moment after it has asked."""
LONGEST_LOOK: Final = 2.0
Batch = Sequence[EncodedEvent]
# Made once: each event of a stream passes it.
_encode: Final = msgspec.json.Encoder().encode


def frames(events: Sequence[AgUiEvent], number: int | None = None) -> bytes:
    """Only the last event of a number has it as id: a client that is cut off before gets them all again."""
    found = [b"data: %s\n\n" % redactor.redact_json(_encode(event)) for event in events]
    if number is not None:
        found[-1] = b"id: %d\n%s" % (number, found[-1])
    return found[0] if len(found) == 1 else b"".join(found)


class AgUiStream:
    """One answer. `after`: the number of the event before the first that belongs to it. `seen`: the last that
    the client has (`Last-Event-ID`). `answers`: the holds that this request has answered."""

    def __init__(
        self,
        call: ApiCall,
        service: RunService,
        row: RunRow,
        given: RunAgentInput,
        *,
        after: int = 0,
        seen: int = 0,
        answers: frozenset[str] = frozenset(),
    ) -> None:
        self._call = call
        self._service = service
        self._row = row
        self._seen = seen
        self._number = self._after = after
        self._answers = answers
        self._renderer = AgUiRenderer(given.thread_id, given.run_id, row.id, given.messages)
        # After an answer another question may be open that was asked before: its event is not sent again.
        self._renderer.has_asked = after > 0

    async def events(self, patience: StreamTimeouts) -> AsyncGenerator[bytes]:
        call, renderer = self._call, self._renderer
        source = while_valid(
            call, follow_run(hub_of(call.hf), self._service, self._row, self._after, patience)
        )
        if not self._seen:
            yield frames([renderer.started()])
        try:
            # The batches are closed first: they may be waiting for the source.
            async with aclosing(source), aclosing(self._batches(source)) as batches:
                async for batch in batches:
                    for chunk in chunks(self._rendered(batch)):
                        yield chunk
                    end = await self._end()
                    if end:
                        yield frames(end)
                        return
                    if not batch:
                        yield BEAT
        except HoldfastError as error:
            shown = for_caller(error, call.principal, call.request_id)
            yield frames(renderer.failed(shown.message, shown.code))
            return
        yield frames(
            renderer.failed(
                "This stream has ended before its run. Send the same request again.", "stream_ended"
            )
        )

    async def _batches(self, source: AsyncGenerator[Batch]) -> AsyncGenerator[Batch]:
        """Those of the source, and an empty one in between while the run may be about to park."""
        look = FIRST_LOOK
        following = asyncio.ensure_future(anext(source, None))
        try:
            while True:
                quick = self._renderer.has_asked
                done, _ = await asyncio.wait({following}, timeout=look if quick else None)
                if not done:
                    look = min(2 * look, LONGEST_LOOK)
                    yield ()
                    continue
                batch = following.result()
                if batch is None:
                    return
                look = FIRST_LOOK
                following = asyncio.ensure_future(anext(source, None))
                yield batch
        finally:
            following.cancel()
            await asyncio.wait({following})

    def _rendered(self, batch: Batch) -> Iterable[bytes]:
        for each in batch:
            self._number = each.number
            events = self._renderer.render(each)
            if events and each.number > self._seen:
                yield frames(events, each.number)

    # ------------------------------------------------------------------ the end
    async def _end(self) -> list[AgUiEvent]:
        """Empty: it goes on."""
        renderer = self._renderer
        if renderer.over:
            row = await self._current()
            if row.status is RunStatus.failed:
                return renderer.failed(row.error or "The run has failed.", "run_failed")
            if row.status is RunStatus.cancelled:
                return renderer.finished(await self._state(row), {"type": "cancelled"})
            state = await self._state(row)
            return renderer.finished(state, {"type": "success"}, result=state)
        if not renderer.has_asked or not self._answers <= renderer.answered:
            return []
        row = await self._current()
        if row.status is not RunStatus.pending_input or self._number < row.event_seq:
            return []
        asked = await self._interrupts(row.id)
        if not asked:
            return []
        outcome = {"type": "interrupt", "interrupts": asked}
        return renderer.finished(await self._state(row), outcome)

    async def _current(self) -> RunRow:
        return await self._service.get(self._row.id, tenant=self._call.tenant)

    async def _state(self, row: RunRow) -> dict[str, Any]:
        """As `GET /v1/runs/{run}/result` shows it."""
        state, artifacts = await shown_state(self._service, row, row.head)
        return {**jsonable(state), **({"artifacts": jsonable(artifacts)} if artifacts else {})}

    async def _interrupts(self, run: RunId) -> list[AgUiEvent]:
        """The open questions that the caller may see. For others the stream waits: it is no attempt to read
        them, so that nothing is written to the audit each time that the run is looked at."""
        people = await self._call.holds()
        asked = [hold for hold in await self._service.holds(run) if hold.type not in UNASKED]
        return [interrupt_of(hold) for hold in await people.visible(self._call.actor, asked)]


def interrupt_of(hold: HoldRow) -> AgUiEvent:
    found: AgUiEvent = {"id": hold.id, "reason": hold.type, "message": hold.prompt}
    found["responseSchema"] = response_schema(hold)
    if hold.expires_at is not None:
        found["expiresAt"] = iso(hold.expires_at)
    found["metadata"] = {"holdfast": {"run": hold.run, "node": hold.node}}
    return found


def response_schema(hold: HoldRow) -> dict[str, Any]:
    """The JSON Schema of the `payload` that answers it."""
    decision: dict[str, Any] = {"type": "string"}
    if hold.options:
        decision = {"oneOf": [{"const": option.id, "title": option.text} for option in hold.options]}
    properties: dict[str, Any] = {"decision": decision, "comment": {"type": "string"}}
    if hold.schema is not None:
        properties["response_data"] = msgspec.json.decode(hold.schema)
    return {"type": "object", "properties": properties, "required": ["decision"]}
