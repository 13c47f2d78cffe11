"""Saved views of holds: each with an address and a live count."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.masked_values import require_unmasked
from holdfast.api.pagination import Cursor, Limit, Page
from holdfast.api.routes.holds import if_match
from holdfast.api.routes.holds import list_holds as _list
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.saved_views import SavedView, SavedViews, StoredView
from holdfast.api.schemas.hold_query import Filters, ListHolds, query_of
from holdfast.api.schemas.holds import HoldWire
from holdfast.errors import DocumentChangedError, ForbiddenError, InputError, NotFoundError
from holdfast.types.hold import HoldOrder

routes = Routes("views")

Title = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
CHANGING = (NotFoundError, ForbiddenError, DocumentChangedError, InputError)


class NewView(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`filters`: as for `GET /v1/holds`. `shared`: visible to the whole tenant."""

    title: Title
    filters: Filters
    order: HoldOrder | None = None
    shared: bool = False


class ViewWire(msgspec.Struct, kw_only=True):
    """`count`: its number of holds that you may see, if requested; counting stops at 10,000."""

    id: str
    title: str
    owner: str
    shared: bool
    filters: Filters
    order: HoldOrder | None
    url: str
    version: int
    count: int | None = None


class ListViews(msgspec.Struct, kw_only=True):
    counts: bool = False


class ListView(msgspec.Struct, kw_only=True):
    limit: Limit = 50
    cursor: Cursor | None = None


def _view_wire(kept: StoredView, count: int | None = None) -> ViewWire:
    view = kept.view
    return ViewWire(
        id=kept.id,
        title=view.title,
        owner=view.owner,
        shared=view.shared,
        filters=view.filters,
        order=view.order,
        url=f"/v1/views/{kept.id}/holds",
        version=kept.revision,
        count=count,
    )


def _view_reply(kept: StoredView, status: int | None = None) -> ApiReply[ViewWire]:
    return ApiReply(body=_view_wire(kept), etag=str(kept.revision), status=status)


async def _view_from(call: ApiCall, body: NewView) -> SavedView:
    """Raises InputError: an invalid filter is not stored."""
    query_of(body.filters, call.actor, (await call.hf.open()).now())
    return SavedView(
        title=body.title, owner=call.actor.id, filters=body.filters, order=body.order, shared=body.shared
    )


@routes.get("/views", needs=Right.holds_read)
async def list_views(call: ApiCall, query: ListViews) -> Page[ViewWire]:
    """Your views and shared ones, by title. `counts=true`: with the number of holds for you."""
    service = await call.holds()
    found = await SavedViews(service.store).all(call.actor)
    if not query.counts:
        return Page(items=[_view_wire(each) for each in found])
    return Page(items=[_view_wire(each, await _count(call, each)) for each in found])


async def _count(call: ApiCall, kept: StoredView) -> int | None:
    """None where it is not this person's to see (unassigned holds), or cannot be counted."""
    service = await call.holds()
    asked = query_of(kept.view.filters, call.actor, service.ctx.now())
    if asked.has:
        return None
    try:
        return await service.count(call.actor, view=kept.view.filters.view, where=asked.where)
    except ForbiddenError:
        return None


@routes.post("/views", needs=Right.holds_write, status=201, raises=(InputError,))
async def save_view(call: ApiCall, body: NewView) -> ApiReply[ViewWire]:
    """Save filters of holds under a title."""
    views = SavedViews(await call.hf.open())
    kept = await views.add(call.actor, await _view_from(call, body))
    reply = _view_reply(kept)
    return msgspec.structs.replace(reply, headers=call.location(f"/v1/views/{kept.id}"))


@routes.get("/views/{view}", needs=Right.holds_read, raises=(NotFoundError,))
async def get_view(call: ApiCall, view: str) -> ApiReply[ViewWire]:
    """One view."""
    return _view_reply(await SavedViews(await call.hf.open()).get(call.actor, view))


@routes.put("/views/{view}", needs=Right.holds_write, guarded=True, raises=CHANGING)
async def change_view(call: ApiCall, view: str, body: NewView) -> ApiReply[ViewWire]:
    """Change it, as its owner or an admin. `If-Match`: only the version that you read."""
    views = SavedViews(await call.hf.open())
    known = (await views.get(call.actor, view)).view
    require_unmasked((body.title, body.filters), (known.title, known.filters))
    changed = await views.change(call.actor, view, await _view_from(call, body), expect=if_match(call))
    return _view_reply(changed)


@routes.delete("/views/{view}", needs=Right.holds_write, raises=(NotFoundError, ForbiddenError))
async def delete_view(call: ApiCall, view: str) -> None:
    """Delete it; the holds stay."""
    await SavedViews(await call.hf.open()).delete(call.actor, view)


@routes.get("/views/{view}/holds", needs=Right.holds_read, raises=(NotFoundError, ForbiddenError))
async def list_view(call: ApiCall, view: str, query: ListView) -> Page[HoldWire]:
    """The holds of a view that you may see."""
    kept = await SavedViews(await call.hf.open()).get(call.actor, view)
    filters = {name: getattr(kept.view.filters, name) for name in Filters.__struct_fields__}
    return await _list(
        call, ListHolds(**filters, order=kept.view.order, limit=query.limit, cursor=query.cursor)
    )
