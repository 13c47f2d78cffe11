"""What lies at a NATS server: open messages, dead letters, and streams with other settings than ours."""

from __future__ import annotations

from typing import cast

from nats.js import JetStreamContext
from nats.js.api import StreamInfo
from nats.js.errors import NotFoundError

from holdfast.errors import TransportError
from holdfast.queues.nats_connection import FAILURES, reason_of, streams, unfit_fields
from holdfast.queues.nats_names import NatsNames
from holdfast.queues.transport import BrokerContent
from holdfast.types.text import one_line


async def content_of(js: JetStreamContext, names: NatsNames, reason_header: str) -> BrokerContent:
    """Creates nothing. Raises TransportError."""
    found: dict[str, StreamInfo] = {}
    unfit: list[str] = []
    try:
        for wanted in streams(names, 1):
            name = str(wanted.name)
            try:
                found[name] = await js.stream_info(name, subjects_filter=names.streams[name])
            except NotFoundError:
                continue
            fields = unfit_fields(found[name].config, wanted)
            unfit += [f"the stream {name} has other settings: {', '.join(fields)}"] if fields else []
        dead = found.get(names.dead)
        newest = await _newest(js, names, dead.state.last_seq, reason_header) if dead is not None else ""
    except FAILURES as error:
        raise TransportError(f"NATS does not list its messages: {reason_of(error)}.") from error
    subjects = found[names.open].state.subjects or {} if names.open in found else {}
    return BrokerContent(
        published=[names.published(each) for each in sorted(subjects)],
        dead=0 if dead is None else dead.state.messages,
        newest=newest,
        unfit=unfit,
    )


async def _newest(js: JetStreamContext, names: NatsNames, sequence: int, reason_header: str) -> str:
    """Subject and reason of the newest dead letter; "": there is none, or it has just been deleted."""
    try:
        letter = await js.get_msg(names.dead, seq=sequence) if sequence else None
    except NotFoundError:
        return ""
    if letter is None:
        return ""
    headers = cast("dict[str, str]", letter.headers or {})  # pyright: ignore[reportUnknownMemberType]
    return one_line(f"{letter.subject}: {headers.get(reason_header, 'no reason')}", 300)
