"""Saved views: filters of holds under a name, stored for one person or for a whole tenant."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.api.schemas.hold_query import Filters, OldFilters
from holdfast.errors import DocumentChangedError, ForbiddenError, InputError, NotFoundError
from holdfast.holds.permissions.assignees import same_person
from holdfast.store.hold_protocols import Documents
from holdfast.types.document import Document
from holdfast.types.hold import HoldOrder
from holdfast.types.ids import is_id, new_id
from holdfast.types.terms import MANAGE, Actor

KIND: Final = "view"
MOST: Final = 100
"""Maximum number of views of one person."""


class SavedView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored view, with the filters of a list. `shared`: visible to the whole tenant; each person sees
    only the holds that they may see."""

    title: str
    owner: str
    filters: Filters
    order: HoldOrder | None = None
    shared: bool = False


class StoredView(msgspec.Struct, frozen=True):
    id: str
    revision: int
    view: SavedView


class SavedViews:
    def __init__(self, store: Documents) -> None:
        self._store = store

    async def all(self, actor: Actor) -> list[StoredView]:
        """The person's views and the shared ones, by title."""
        found: list[StoredView] = []
        after = ""
        while page := await self._store.documents(actor.tenant, KIND, after=after):
            found += [each for each in map(_stored_view, page) if _may_see(actor, each.view)]
            after = page[-1].name
        return sorted(found, key=lambda each: (each.view.title.lower(), each.id))

    async def get(self, actor: Actor, view: str) -> StoredView:
        """Raises NotFoundError if there is no such view, or it is another person's."""
        kept = await self._store.document(actor.tenant, KIND, view) if is_id(view) else None
        if kept is None or not _may_see(actor, _stored_view(kept).view):
            raise NotFoundError(f"there is no view {view!r}.", hint="GET /v1/views lists yours.")
        return _stored_view(kept)

    async def add(self, actor: Actor, view: SavedView) -> StoredView:
        """Raises InputError if the person has too many."""
        own = [each for each in await self.all(actor) if same_person(each.view.owner, actor.id)]
        if len(own) >= MOST:
            raise InputError(f"a person has at most {MOST} views.", hint="Delete one that you do not need.")
        return await self._put(actor, new_id(), view, 0)

    async def change(self, actor: Actor, view: str, new: SavedView, *, expect: int | None) -> StoredView:
        """The owner does not change. Raises DocumentChangedError if its revision has changed."""
        kept = await self.get(actor, view)
        _require_own(actor, kept.view)
        kept_owner = msgspec.structs.replace(new, owner=kept.view.owner)
        return await self._put(actor, view, kept_owner, kept.revision if expect is None else expect)

    async def delete(self, actor: Actor, view: str) -> None:
        _require_own(actor, (await self.get(actor, view)).view)
        await self._store.drop_document(actor.tenant, KIND, view)

    async def _put(self, actor: Actor, name: str, view: SavedView, expect: int) -> StoredView:
        document = Document(tenant=actor.tenant, kind=KIND, name=name, body=msgspec.json.encode(view))
        kept = await self._store.put_document(document, expect=expect)
        if kept is None:
            raise DocumentChangedError(
                f"view {view.title!r} was changed meanwhile.", hint="Get it again, and send its ETag."
            )
        return _stored_view(kept)


class _OldView(SavedView, frozen=True, kw_only=True, omit_defaults=True):
    filters: OldFilters


def _stored_view(document: Document) -> StoredView:
    kept = msgspec.json.decode(document.body, type=_OldView)
    filters = kept.filters.native()
    view = SavedView(
        title=kept.title, owner=kept.owner, filters=filters, order=kept.order, shared=kept.shared
    )
    return StoredView(document.name, document.revision, view)


def _may_see(actor: Actor, view: SavedView) -> bool:
    return view.shared or same_person(view.owner, actor.id)


def _require_own(actor: Actor, view: SavedView) -> None:
    """Raises ForbiddenError: only its owner and admins may change a shared view."""
    if not same_person(view.owner, actor.id) and MANAGE not in actor.rights:
        raise ForbiddenError(f"view {view.title!r} belongs to {view.owner}.", hint="Save your own view.")
