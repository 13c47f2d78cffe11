"""Live events of pipelines, in the form of section 9.6 of the specification."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Final

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.live.credential import while_valid
from holdfast.api.live.follower import follow_run
from holdfast.api.live.hub import hub_of
from holdfast.api.live.sse import (
    BEAT,
    HEADERS,
    MEDIA,
    RETRY,
    EventStream,
    chunks,
    event_frame,
    require_known_event,
    resume_position,
)
from holdfast.api.pipelines import find_pipeline
from holdfast.api.routes.event_streams import stream_timeouts
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.common import moment
from holdfast.attractor.event_mapper import EventMapper
from holdfast.attractor.event_stream import stored_events
from holdfast.attractor.events import PipelineEvent
from holdfast.errors import RunNotFoundError
from holdfast.runs.events import reader_of
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.status import ENDED

routes = Routes("pipelines")

PARTS: Final = 1000
"""Maximum number of pipeline events per stored event, so that their ids can be whole numbers."""
LAST: Final = 1 << 50
PAGE: Final = 5000


class FollowPipeline(msgspec.Struct, kw_only=True):
    after: Annotated[int, msgspec.Meta(ge=0, le=LAST, description="Only events with a higher id.")] = 0


@routes.get(
    "/pipelines/{run}/events", needs=Right.runs_read, more=(204,), media=(MEDIA,), raises=(RunNotFoundError,)
)
async def stream_pipeline(call: ApiCall, run: str, query: FollowPipeline) -> Response:
    """A pipeline's events as server-sent events, in the form of section 9.6, from its stored log.

    A client that connects later gets every event from the first; one that reconnects with `Last-Event-ID`
    misses and repeats nothing. The stream ends after the last event of an ended run; 204: there is and will
    be nothing after that id."""
    after = resume_position(call.request, query.after, LAST)
    service, row = await find_pipeline(call, run)
    if row.status in ENDED and not await stored_events(service, row.id, after=_place(after)):
        return Response(status_code=204)
    require_known_event(after // PARTS, row.event_seq)
    if call.request.method == "HEAD":
        return Response(media_type=MEDIA, headers=HEADERS)
    hub_of(call.hf).require_room(call.settings.most_streams)
    return EventStream(_framed(call, service, row, after))


def _place(after: int) -> str:
    return f"{after // PARTS}.{after % PARTS}" if after else ""


async def _framed(call: ApiCall, service: RunService, row: RunRow, after: int) -> AsyncGenerator[bytes]:
    """Maps from the first stored event, even if the client has some already: the meaning of an event depends
    on those before it."""
    yield RETRY
    mapper, seen, heard = EventMapper((await reader_of(service, row)).graph), 0, _place(after)
    source = while_valid(call, follow_run(hub_of(call.hf), service, row, 0, stream_timeouts(call)))
    async with aclosing(source):
        async for batch in source:
            frames: list[bytes] = []
            while batch and (found := await service.events(row.id, after=seen, limit=PAGE)):
                seen = found[-1].number
                frames += [_frame(each) for each in mapper.map_all(found, heard)]
            for chunk in chunks(frames):
                yield chunk
            if not batch:
                yield BEAT


def _frame(event: PipelineEvent) -> bytes:
    body = {**event.fields, "at": moment(event.at)}
    number = event.number * PARTS + min(event.part, PARTS - 1)
    return event_frame(number, type(event).__name__, msgspec.json.encode(body))
