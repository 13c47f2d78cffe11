"""Documents that people work on: their saved texts."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, place_of
from holdfast.api.problems import HttpError
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.flows import EditableDocument, SavedDocument, SaveDocument
from holdfast.documents.deploy import DeployedFlows
from holdfast.documents.drafts import Drafts, WorkingDocument
from holdfast.errors import DocumentChangedError, FlowNotFoundError, InputError

routes = Routes("documents")
NEW: Final = "new"
"""The ETag of a document that is not there yet."""


async def _drafts(call: ApiCall) -> Drafts:
    return Drafts(DeployedFlows(await call.runs(), call.tenant))


class ListDocuments(msgspec.Struct, kw_only=True):
    limit: Limit = 50
    cursor: Cursor | None = None


@routes.get("/documents", needs=Right.flows_read)
async def list_documents(call: ApiCall, query: ListDocuments) -> Page[SavedDocument]:
    """The documents of the tenant, by name: drafts, and those that are deployed."""
    (after,) = place_of(call.hf.cell, query.cursor, tuple[str]) or ("",)
    found = await (await _drafts(call)).page(after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    return Page(
        items=[_saved(each) for each in shown],
        next=cursor_of(call.hf.cell, shown[-1].name) if len(found) > len(shown) else None,
    )


def _saved(found: WorkingDocument) -> SavedDocument:
    return SavedDocument(
        name=found.name,
        format=found.format,
        saved_by=found.saved_by,
        saved_at=moment(found.saved_at),
        version=found.version,
    )


def _reply(found: WorkingDocument) -> ApiReply[EditableDocument]:
    body = EditableDocument(
        source=found.raw.decode(errors="replace"), **msgspec.structs.asdict(_saved(found))
    )
    return ApiReply(body=body, etag=found.etag, verbatim=True)


@routes.get("/documents/{document}", needs=Right.flows_read, more=(304,), raises=(FlowNotFoundError,))
async def get_document(call: ApiCall, document: str) -> ApiReply[EditableDocument]:
    """The text that people work on: the draft that was saved last, else that of the current version."""
    return _reply(await (await _drafts(call)).get(document))


@routes.put(
    "/documents/{document}",
    needs=Right.flows_write,
    must_match=True,
    raises=(InputError, DocumentChangedError),
)
async def save_document(call: ApiCall, document: str, body: SaveDocument) -> ApiReply[EditableDocument]:
    """Save the text as it is, finished or not. Runs and the deployed version stay as they are; `POST
    /v1/flows` deploys it. 428 without `If-Match` if there is one; a new one needs none. With
    `If-None-Match: *` only a new one is saved, with `If-Match: *` only one that exists; else 412."""
    drafts = await _drafts(call)
    try:
        now = await drafts.get(document)
    except FlowNotFoundError:
        now = None
    if now is not None and call.request.headers.get("if-none-match", "").strip() == "*":
        raise HttpError(
            412,
            f"there is a document {document!r} already.",
            code="version_stale",
            hint="Get it, and send its ETag as If-Match, or choose another name.",
            etag=now.etag,
        )
    is_there = now is not None
    call.require_match(now.etag if now else NEW, required=is_there, exists=is_there)
    revision = 0 if now is None else now.revision
    return _reply(await drafts.put(document, body.sent, by=call.actor.id, expect=revision))


@routes.delete(
    "/documents/{document}",
    needs=Right.flows_write,
    must_match=True,
    raises=(FlowNotFoundError, DocumentChangedError),
)
async def discard_document(call: ApiCall, document: str) -> None:
    """Discard the draft. What is deployed stays, and is the text of the document again. 428 without
    `If-Match`."""
    drafts = await _drafts(call)
    now = await drafts.get(document)
    call.require_match(now.etag, required=True)
    await drafts.delete(document, expect=now.revision)
