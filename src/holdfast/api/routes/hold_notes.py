"""What people add to a hold: comments, questions, files, drafts, and presence."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page
from holdfast.api.presence import HoldPresence, HoldViewer
from holdfast.api.routes.holds import CHANGING, LOOKING, hold_reply
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.files import disposition
from holdfast.api.schemas.hold_query import Instant
from holdfast.api.schemas.holds import (
    Comment,
    DraftWire,
    FileWire,
    HoldWire,
    Name,
    NoteWire,
    draft_wire,
    file_wire,
    note_wire,
    notes_wire,
)
from holdfast.api.schemas.multipart import parts_of
from holdfast.errors import FormInvalidError, InputError, NotFoundError

routes = Routes("holds")

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class NewComment(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    text: Comment


class AskBack(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`to`: requester, agent, or a colleague as `user:NAME`."""

    text: Comment
    to: Name = "requester"


class ReplyToQuestion(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`question`: its id, if several are open."""

    text: Comment
    question: Name | None = None


class WithdrawQuestion(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    question: Name | None = None


class SnoozeHold(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    until: Instant


class PresenceBeat(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    editing: bool = False


class HoldViewerWire(msgspec.Struct, kw_only=True):
    person: str
    since: str | None
    until: str | None
    editing: bool


def _viewer_wire(look: HoldViewer) -> HoldViewerWire:
    return HoldViewerWire(
        person=look.person, since=moment(look.since), until=moment(look.until), editing=look.editing
    )


# ---------------------------------------------------------------------- comments and questions


@routes.get("/holds/{hold}/comments", needs=Right.holds_read, raises=LOOKING)
async def list_comments(call: ApiCall, hold: str) -> Page[NoteWire]:
    """Comments, questions back and their answers, oldest first."""
    return Page(items=notes_wire(await (await call.holds()).comments(call.actor, hold)))


@routes.post("/holds/{hold}/comments", needs=Right.holds_write, status=201, raises=CHANGING)
async def comment_on_hold(call: ApiCall, hold: str, body: NewComment) -> NoteWire:
    """Add a comment, visible to everyone who may see the hold, also after the decision."""
    return note_wire(await (await call.holds()).comment(call.actor, hold, body.text))


@routes.post("/holds/{hold}/ask-back", needs=Right.holds_write, raises=CHANGING)
async def ask_back(call: ApiCall, hold: str, body: AskBack) -> ApiReply[HoldWire]:
    """Ask a question before you decide; the deadline pauses until there is a reply."""
    service = await call.holds()
    return hold_reply(service, await service.ask_back(call.actor, hold, body.text, to=body.to))


@routes.post("/holds/{hold}/reply", needs=Right.holds_write, raises=CHANGING)
async def reply_to_question(call: ApiCall, hold: str, body: ReplyToQuestion) -> ApiReply[HoldWire]:
    """Reply to a question."""
    service = await call.holds()
    return hold_reply(service, await service.reply(call.actor, hold, body.text, question=body.question))


@routes.post("/holds/{hold}/withdraw-question", needs=Right.holds_write, raises=CHANGING)
async def withdraw_question(call: ApiCall, hold: str, body: WithdrawQuestion) -> ApiReply[HoldWire]:
    """Withdraw the question: no reply is needed, and the deadline continues."""
    service = await call.holds()
    return hold_reply(service, await service.withdraw_question(call.actor, hold, question=body.question))


# ---------------------------------------------------------------------- files


@routes.get("/holds/{hold}/files", needs=Right.holds_read, raises=LOOKING)
async def list_files(call: ApiCall, hold: str) -> Page[FileWire]:
    """The attached files, in the order of their upload."""
    return Page(items=[file_wire(each) for each in await (await call.holds()).files(call.actor, hold)])


@routes.post(
    "/holds/{hold}/files",
    needs=Right.holds_write,
    status=201,
    raises=(*CHANGING, FormInvalidError),
    media=("multipart/form-data",),
)
async def attach_file(call: ApiCall, hold: str, body: bytes) -> Page[FileWire]:
    """Attach files to fields of kind `file`: a form whose parts are named like the fields.

    Put the returned values into the `response_data` of the decision."""
    parts = await parts_of(call.request.headers.get("content-type", ""), body)
    if not parts:
        raise InputError("there is no file in this form.", hint="Name each part like its field.")
    service = await call.holds()
    found: list[FileWire] = []
    for part in parts:
        if part.file is None:
            raise InputError(f"{part.name!r} is not a file.", hint="Give each part a filename.")
        file = await service.attach(
            call.actor, hold, part.name, part.file, part.data, media_type=part.media_type
        )
        found.append(FileWire(field=part.name, file=file))
    return Page(items=found)


@routes.get(
    "/holds/{hold}/files/{digest}",
    needs=Right.holds_read,
    raises=(*LOOKING, NotFoundError),
    media=("application/octet-stream",),
)
async def read_file(call: ApiCall, hold: str, digest: str) -> Response:
    """Download a file; browsers do not display it. The access is in the audit."""
    file, data = await (await call.holds()).read_file(call.actor, hold, digest)
    return Response(
        data,
        media_type="application/octet-stream",
        headers={
            "Content-Disposition": disposition(str(file["name"])),
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-File-Type": file["media_type"],
        },
    )


# ---------------------------------------------------------------------- drafts, snooze, watch


@routes.get("/holds/{hold}/draft", needs=Right.holds_read, raises=LOOKING)
async def get_draft(call: ApiCall, hold: str) -> DraftWire:
    """Your draft; its fields are null if there is none."""
    found = await (await call.holds()).draft(call.actor, hold)
    return DraftWire() if found is None else draft_wire(found)


@routes.put("/holds/{hold}/draft", needs=Right.holds_write, raises=CHANGING)
async def save_draft(call: ApiCall, hold: str, body: DraftWire) -> None:
    """Save your draft; it is not checked."""
    draft = {name: value for name, value in msgspec.structs.asdict(body).items() if value is not None}
    await (await call.holds()).save_draft(call.actor, hold, draft)


@routes.delete("/holds/{hold}/draft", needs=Right.holds_write, raises=LOOKING)
async def delete_draft(call: ApiCall, hold: str) -> None:
    """Delete the draft."""
    await (await call.holds()).delete_draft(call.actor, hold)


@routes.put("/holds/{hold}/snooze", needs=Right.holds_write, raises=CHANGING)
async def snooze_hold(call: ApiCall, hold: str, body: SnoozeHold) -> None:
    """Snooze it until then. Its deadline stays."""
    await (await call.holds()).snooze(call.actor, hold, body.until)


@routes.delete("/holds/{hold}/snooze", needs=Right.holds_write, raises=LOOKING)
async def unsnooze_hold(call: ApiCall, hold: str) -> None:
    """End the snooze."""
    await (await call.holds()).unsnooze(call.actor, hold)


@routes.put("/holds/{hold}/watch", needs=Right.holds_write, raises=LOOKING)
async def watch_hold(call: ApiCall, hold: str) -> None:
    """Watch it."""
    await (await call.holds()).watch(call.actor, hold)


@routes.delete("/holds/{hold}/watch", needs=Right.holds_write, raises=LOOKING)
async def unwatch_hold(call: ApiCall, hold: str) -> None:
    """Stop watching it."""
    await (await call.holds()).unwatch(call.actor, hold)


@routes.put("/holds/{hold}/seen", needs=Right.holds_write, raises=LOOKING)
async def mark_seen(call: ApiCall, hold: str) -> None:
    """Mark it as seen; the first time is recorded in the audit and counts in the metrics."""
    await (await call.holds()).seen(call.actor, hold)


# ---------------------------------------------------------------------- presence


@routes.get("/holds/{hold}/presence", needs=Right.holds_read, raises=LOOKING)
async def list_presence(call: ApiCall, hold: str) -> Page[HoldViewerWire]:
    """Who is looking at it now."""
    service = await call.holds()
    row = await service.get(call.actor, hold)
    found = await HoldPresence(service.store).viewers(call.tenant, row.id, service.ctx.now())
    return Page(items=[_viewer_wire(each) for each in found])


@routes.put("/holds/{hold}/presence", needs=Right.holds_read, raises=LOOKING)
async def report_presence(call: ApiCall, hold: str, body: PresenceBeat) -> Page[HoldViewerWire]:
    """Report that you are looking at it, for 30 seconds: repeat it every 10 to 20. Returns all viewers."""
    service = await call.holds()
    row = await service.get(call.actor, hold)
    presence, now = HoldPresence(service.store), service.ctx.now()
    await presence.beat(call.actor, row.id, now, editing=body.editing)
    return Page(items=[_viewer_wire(each) for each in await presence.viewers(call.tenant, row.id, now)])


@routes.delete("/holds/{hold}/presence", needs=Right.holds_read, raises=LOOKING)
async def end_presence(call: ApiCall, hold: str) -> None:
    """Report that you no longer look at it."""
    service = await call.holds()
    row = await service.get(call.actor, hold)
    await HoldPresence(service.store).leave(call.actor, row.id)
