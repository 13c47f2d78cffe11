"""Live streams: the events of a run, and changes of holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated

import msgspec
from starlette.responses import Response

from holdfast.api.aliases import alias_in
from holdfast.api.auth.rights import Right
from holdfast.api.live.credential import while_valid
from holdfast.api.live.follower import StreamTimeouts, follow_holds, follow_run
from holdfast.api.live.hub import hub_of
from holdfast.api.live.sse import (
    BEAT,
    HEADERS,
    MEDIA,
    MOST,
    OPENED,
    RETRY,
    EventStream,
    chunks,
    event_frame,
    require_known_event,
    resume_position,
)
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.events import EncodedEvent, EventNames
from holdfast.errors import RunNotFoundError
from holdfast.types.status import ENDED

routes = Routes("streams")

Number = Annotated[int, msgspec.Meta(ge=0, le=MOST, description="Only events with a higher number.")]


class FollowRun(msgspec.Struct, kw_only=True):
    after: Number = 0
    after_sequence: Number = 0  # another name for the same
    names: EventNames | None = None


class FollowHolds(msgspec.Struct, kw_only=True):
    after: Number | None = None


@routes.get(
    "/runs/{run}/stream",
    needs=Right.runs_read,
    raises=(RunNotFoundError,),
    more=(204,),
    media=(MEDIA,),
)
async def stream_run(call: ApiCall, run: str, query: FollowRun) -> Response:
    """A run's events as server-sent events, from its stored log.

    The id of each is its number: a client that reconnects with `Last-Event-ID` (browsers do) misses and
    repeats nothing. The stream ends after the last event of an ended run; 204: there is and will be nothing
    after that number. `names=seed`: `checkpoint_created`, `checkpoint_resumed` and `approval` with the fields
    of the runtime proposal, as under `/runs/{run}/stream`."""
    after = resume_position(call.request, max(query.after, query.after_sequence))
    service = await call.runs()
    row = await service.get(run, tenant=call.tenant)
    if row.status in ENDED and after >= row.event_seq:
        return Response(status_code=204)
    require_known_event(after, row.event_seq)
    if call.request.method == "HEAD":
        return Response(media_type=MEDIA, headers=HEADERS)
    names = query.names or (EventNames.own if alias_in(call.request.scope) is None else EventNames.seed)
    hub = hub_of(call.hf)
    hub.require_room(call.settings.most_streams)
    source = follow_run(hub, service, row, after, stream_timeouts(call))
    return EventStream(_framed(while_valid(call, source), names))


@routes.get("/holds/stream", needs=Right.holds_read, media=(MEDIA,))
async def stream_holds(call: ApiCall, query: FollowHolds) -> Response:
    """Changes of the holds that you may see, as server-sent events.

    The id of each is its number in the tenant's audit; `Last-Event-ID` or `after` continues from
    there, without one it starts now, with the event `stream.opened` whose id is the current number. A number
    that is not there yet, because the store was restored from a backup, counts as none. The numbers have gaps
    where you may not see a change."""
    named = resume_position(call.request, -1)
    after = named if named >= 0 else query.after
    if call.request.method == "HEAD":
        return Response(media_type=MEDIA, headers=HEADERS)
    people = await call.holds()
    hub = hub_of(call.hf)
    hub.require_room(call.settings.most_streams)
    first, head = RETRY, (await people.store.audit_head(call.tenant))[0]
    # A number that is not there yet is of a store that was restored since: the changes up to it would be left
    # out without a word.
    if after is None or after > head:
        after = head
        first += event_frame(after, OPENED, msgspec.json.encode({"type": OPENED, "seq": after}))
    source = while_valid(call, follow_holds(hub, people, call.actor, after, stream_timeouts(call)))

    async def framed() -> AsyncGenerator[bytes]:
        yield first
        async with aclosing(source):
            async for batch in source:
                frames = (event_frame(each.seq, each.type, msgspec.json.encode(each)) for each in batch)
                yield b"".join(frames) or BEAT

    return EventStream(framed())


async def _framed(source: AsyncGenerator[Sequence[EncodedEvent]], names: EventNames) -> AsyncGenerator[bytes]:
    yield RETRY
    async with aclosing(source):
        async for batch in source:
            if not batch:
                yield BEAT
            for chunk in chunks(
                event_frame(each.number, each.name(names), each.body(names)) for each in batch
            ):
                yield chunk


def stream_timeouts(call: ApiCall) -> StreamTimeouts:
    return StreamTimeouts(beat=call.settings.heartbeat, life=call.settings.stream_life)
