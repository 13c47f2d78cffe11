"""Threads: runs that belong together, like the turns of a conversation."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, place_of
from holdfast.api.routes.run_list import page_of_runs
from holdfast.api.routes.runs import run_reply, send_input, start_from_request
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.common import Name
from holdfast.api.schemas.runs import CreateRun, RunDetail
from holdfast.errors import (
    AnswerInvalidError,
    ConflictError,
    FlowNotFoundError,
    ForbiddenError,
    HoldNotFoundError,
    InputError,
    KeyReusedError,
)
from holdfast.runs.answer_text import answered_under_key
from holdfast.runs.run_view import RunWire
from holdfast.runs.service import RunService
from holdfast.store.rows import RunFilter, RunRow, ThreadRow
from holdfast.types.clock import iso
from holdfast.types.ids import HoldId
from holdfast.types.status import RunStatus

routes = Routes("threads")

RECENT = 50
"""Runs of a thread that are searched for a repeated message."""


class ListThread(msgspec.Struct, kw_only=True):
    status: list[RunStatus] = []
    limit: Limit = 50
    cursor: Cursor | None = None


class ThreadRun(CreateRun, kw_only=True, forbid_unknown_fields=True):
    """`content`: the message. Without it, the `content` or `message` of the input, if that is a text."""

    content: str | dict[str, Any] | None = None
    request_id: Name | None = None


class ThreadQuery(msgspec.Struct, kw_only=True):
    auto_resume_pending: bool = True


class ThreadWire(msgspec.Struct, kw_only=True):
    """`open_runs`: those that have not ended; `pending_input_runs`: those that wait for a person."""

    id: str
    runs: int
    open_runs: int
    pending_input_runs: int
    created_at: str
    last_run_at: str
    updated_at: str


class ListThreads(msgspec.Struct, kw_only=True):
    limit: Limit = 50
    cursor: Cursor | None = None


@routes.get("/threads", needs=Right.runs_read)
async def list_threads(call: ApiCall, query: ListThreads) -> Page[ThreadWire]:
    """The tenant's threads, the one with the newest run first."""
    service = await call.runs()
    place = place_of(call.hf.cell, query.cursor, tuple[int, str])
    found = await service.threads(tenant=call.tenant, after=place, limit=query.limit + 1)
    shown = found[: query.limit]
    return Page(
        items=[_thread(row) for row in shown],
        next=cursor_of(call.hf.cell, shown[-1].last_run_at, shown[-1].id)
        if len(found) > len(shown)
        else None,
    )


def _thread(row: ThreadRow) -> ThreadWire:
    return ThreadWire(
        id=row.id,
        runs=row.runs,
        open_runs=row.open_runs,
        pending_input_runs=row.pending_input_runs,
        created_at=iso(row.created_at),
        last_run_at=iso(row.last_run_at),
        updated_at=iso(row.updated_at),
    )


@routes.get("/threads/{thread}/runs", needs=Right.runs_read)
async def list_thread_runs(call: ApiCall, thread: str, query: ListThread) -> Page[RunWire]:
    """The runs of a thread, newest first."""
    where = RunFilter(tenant=call.tenant, status=tuple(query.status), thread=thread)
    return await page_of_runs(await call.runs(), where, query.cursor, query.limit)


@routes.post(
    "/threads/{thread}/runs",
    needs=Right.runs_write,
    status=201,
    more=(200,),
    keyed=True,
    raises=(
        FlowNotFoundError,
        ForbiddenError,
        HoldNotFoundError,
        InputError,
        AnswerInvalidError,
        KeyReusedError,
        ConflictError,
    ),
)
async def create_thread_run(
    call: ApiCall, thread: str, query: ThreadQuery, body: ThreadRun
) -> ApiReply[RunDetail]:
    """Send a message to a thread.

    If a run of it waits for input, the message is the answer: 200 and that run, which resumes (409 if several
    questions are open and none is named; 404 or 409 if the named one is not there or was decided). Otherwise,
    and with `auto_resume_pending=false`, it starts a run of `flow` in the thread: 201."""
    message = _message(body)
    if query.auto_resume_pending and message is not None:
        service = await call.runs()
        if (before := await _earlier_run(call, service, thread)) is not None:
            await send_input(call, service, before, message, None)
            return await run_reply(call, service, before, new=False)
        waiting = await service.pending(tenant=call.tenant, thread=thread, limit=0)
        named = [each for each in waiting if body.request_id in (None, each.checkpoint)]
        if len(named) > 1:
            raise ConflictError(
                f"thread {thread!r} has {len(named)} open questions.",
                hint="Name the one that you answer as request_id.",
                holds=[each.checkpoint for each in named],
            )
        asked = named[0].checkpoint if named else body.request_id
        if asked is not None:
            row = await _run_that_asks(call, service, thread, asked)
            await send_input(call, service, row, message, asked)
            return await run_reply(call, service, await service.get(row.id), new=False)
    if body.request_id is not None:
        raise InputError(
            f"the question {body.request_id!r} is named, and nothing answers it.",
            hint="Send the answer as `content`, or leave request_id out to start a run.",
        )
    return await start_from_request(call, body, thread=thread)


async def _run_that_asks(call: ApiCall, service: RunService, thread: str, hold: str) -> RunRow:
    """Of an open or a decided question: who answers a certain one never means to start a run."""
    found = await service.store.hold(HoldId(hold))
    row = None if found is None else await service.store.get_run(found.run)
    if row is None or (row.tenant, row.thread) != (call.tenant, thread):
        raise HoldNotFoundError(
            f"thread {thread!r} has no question {hold!r}.",
            hint="GET /v1/runs/pending?thread= lists its open questions.",
        )
    return row


async def _earlier_run(call: ApiCall, service: RunService, thread: str) -> RunRow | None:
    """The run that the same message, with the same key, already answered. A repetition must not start a run,
    nor answer the next question."""
    if call.key is None:
        return None
    where = RunFilter(tenant=call.tenant, thread=thread)
    for row in await service.store.list_runs(where, after=None, limit=RECENT):
        if await answered_under_key(service, row.id, call.actor, call.key) is not None:
            return row
    return None


def _message(body: ThreadRun) -> str | dict[str, Any] | None:
    if body.content is not None:
        return body.content
    found = body.input.get("content", body.input.get("message"))
    return found if isinstance(found, str) else None
