"""Lists of holds: views of what an actor may see, filtered, with stable pages (LI-1 to LI-3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from holdfast.errors import ForbiddenError, InputError
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.permissions.actor import ActorMemberships, assignees_of
from holdfast.holds.permissions.assignees import DELEGATED, UNROUTED, person_key
from holdfast.model.breakpoints import TYPE as BREAKPOINT
from holdfast.types.cursor import decode_cursor, encode_cursor
from holdfast.types.hold import UNASKED, HoldFilter, HoldOrder, HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE, VIEW, Actor

VIEWS: Final = ("mine", "groups", "asked", "unassigned", "watching", "snoozed", "done", "breakpoints", "all")
EARLIER: Final = {"unrouted": "unassigned"}
"""Names of views that are still accepted."""
OPEN_VIEWS: Final = frozenset({"mine", "groups", "asked", "unassigned", "snoozed", "breakpoints"})
MAX_LIMIT: Final = 500
_PAGE = 200
_COUNTED = 10_000
_COUNTED_BY_STORE = 1_000_000
"""An index counts so many in a moment; rows that are checked one by one are not."""

_replace = msgspec.structs.replace


class HoldPage(msgspec.Struct, frozen=True):
    """`cursor`: for the next page; None: this is the last one."""

    rows: tuple[HoldRow, ...]
    cursor: str | None = None


class HoldListView(msgspec.Struct, frozen=True):
    """A query. `exact`: everything found may be seen; else each row is checked. `snoozed_by`: only holds that
    this person has snoozed."""

    where: HoldFilter
    order: HoldOrder
    exact: bool
    snoozed_by: str | None = None


async def list_holds(
    ctx: HoldContext,
    actor: Actor,
    *,
    view: str = "mine",
    where: HoldFilter | None = None,
    order: HoldOrder | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> HoldPage:
    """Of the actor's tenant, and only what they may see. `where` restricts the view.

    Raises InputError for an unknown view or an invalid cursor, OtherCellError for that of another cell."""
    if not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"limit must be 1 to {MAX_LIMIT}, not {limit}.")
    now = ctx.now()
    standing = await ctx.standing(actor, now)
    found = await _view(ctx, standing, view, where or HoldFilter(), now)
    found = found if order is None else _replace(found, order=order)
    rows: list[HoldRow] = []
    place: Any = None
    # One more than asked for, to see whether there is a next page.
    async for row, at in _visible_rows(
        ctx, standing, found, now, after=_read_cursor(ctx.cell, cursor), limit=limit + 1
    ):
        if len(rows) == limit:
            return HoldPage(tuple(rows), encode_cursor(ctx.cell, place))
        rows.append(row)
        place = at
    return HoldPage(tuple(rows))


async def count_holds(
    ctx: HoldContext, actor: Actor, *, view: str = "mine", where: HoldFilter | None = None
) -> int:
    """How many the list has; counting ends at a million, or at 10,000 if each row has to be checked."""
    now = ctx.now()
    standing = await ctx.standing(actor, now)
    found = await _view(ctx, standing, view, where or HoldFilter(), now)
    if found.exact:
        return await ctx.store.count_holds(found.where, limit=_COUNTED_BY_STORE)
    total = 0
    async for _ in _visible_rows(ctx, standing, found, now, after=None, limit=_PAGE):
        total += 1
        if total >= _COUNTED:
            break
    return total


async def iterate_holds(
    ctx: HoldContext, actor: Actor, where: HoldFilter, *, most: int
) -> AsyncIterator[HoldRow]:
    """All that the actor may see, oldest first, up to `most`."""
    now = ctx.now()
    standing = await ctx.standing(actor, now)
    found = _replace(view_of(standing, "all", where, now), order=HoldOrder.oldest)
    async for row, _ in _visible_rows(ctx, standing, found, now, after=None, limit=_PAGE):
        if most <= 0:
            return
        most -= 1
        yield row


async def _visible_rows(
    ctx: HoldContext, standing: ActorMemberships, view: HoldListView, now: int, *, after: Any, limit: int
) -> AsyncIterator[tuple[HoldRow, tuple[Any, ...]]]:
    """Those that may be seen, page after page."""
    size = min(limit, _PAGE)
    while True:
        page = await ctx.store.list_holds(view.where, order=view.order, after=after, limit=size)
        for row, place in page:
            if await _shows(ctx, standing, view, row, now):
                yield row, place
        if len(page) < size:
            return
        after = page[-1][1]


async def _shows(
    ctx: HoldContext, standing: ActorMemberships, view: HoldListView, row: HoldRow, now: int
) -> bool:
    if view.snoozed_by is not None:
        notes = await ctx.store.hold_notes(row.id, kinds=("snooze",))
        if not any(note.slot == view.snoozed_by and (note.until or 0) > now for note in notes):
            return False
    return view.exact or await ctx.may(standing, "view", row, now)


# ---------------------------------------------------------------------- views


async def _view(
    ctx: HoldContext, standing: ActorMemberships, view: str, where: HoldFilter, now: int
) -> HoldListView:
    """Holds for a delegated user are treated as unassigned while the delegation is not in force (AS-9)."""
    found = view_of(standing, view, where, now)
    if EARLIER.get(view, view) != "unassigned":
        return found
    lost = await ctx.deployments.astray(standing.actor.tenant, now)
    whose = (*(found.where.assignees or ()), *((DELEGATED, ref) for ref in sorted(lost)))
    return _replace(found, where=_replace(found.where, assignees=whose))


def view_of(standing: ActorMemberships, view: str, where: HoldFilter, now: int) -> HoldListView:
    """Raises InputError for an unknown view, ForbiddenError for one that the actor may not use."""
    view = EARLIER.get(view, view)
    if view not in VIEWS:
        raise InputError(f"there is no view {view!r}.", hint=f"Choose one of: {', '.join(VIEWS)}.")
    if standing.barred is not None:
        raise ForbiddenError(f"{standing.barred}.")
    me = person_key(standing.actor.id)
    # Notes of other people are private and must not be searchable.
    base = _replace(where, tenant=standing.actor.tenant, noted=None, not_noted=None)
    unasked = [each for each in UNASKED if each not in where.type]
    if view != "breakpoints":
        base = _replace(base, not_type=(*where.not_type, *unasked))
    if view in OPEN_VIEWS and not where.status:
        base = _replace(base, status=(HoldStatus.pending,))
    if view in ("mine", "groups"):
        own = tuple(each for each in _own(standing, view) if _wanted(where, each))
        awake = _replace(base, assignees=own, not_noted=("snooze", me, now))
        return HoldListView(awake, HoldOrder.inbox, exact=True)
    return _other(standing, view, base, me, now)


def _other(standing: ActorMemberships, view: str, base: HoldFilter, me: str, now: int) -> HoldListView:
    if view == "unassigned":
        if not standing.has(MANAGE):
            raise ForbiddenError(
                "only admins can list unassigned holds.", hint=f"This requires the right {MANAGE}."
            )
        return HoldListView(_replace(base, assignees=((UNROUTED, ""),)), HoldOrder.inbox, exact=True)
    if view == "asked":
        return HoldListView(_replace(base, noted=("asked", me)), HoldOrder.inbox, exact=False)
    if view == "watching":
        return HoldListView(_replace(base, noted=("watch", me)), HoldOrder.newest, exact=False)
    if view == "snoozed":
        return HoldListView(_replace(base, noted=("snooze", me)), HoldOrder.inbox, exact=False, snoozed_by=me)
    if view == "done":
        others = base.resolved_by and standing.actor.id not in base.resolved_by
        mine = _replace(base, resolved_by=(standing.actor.id,), assignees=() if others else base.assignees)
        return HoldListView(mine, HoldOrder.newest, exact=False)
    if view == "breakpoints":
        return HoldListView(_replace(base, type=(BREAKPOINT,)), HoldOrder.oldest, exact=False)
    return _everything(standing, base)


def _everything(standing: ActorMemberships, base: HoldFilter) -> HoldListView:
    """For an actor without further rights only assigned holds are read, instead of checking all."""
    if any(standing.has(right) for right in (MANAGE, RESOLVE, OVERRIDE, VIEW)):
        return HoldListView(base, HoldOrder.inbox, exact=standing.has(MANAGE))
    own = tuple(each for each in assignees_of(standing) if _wanted(base, each))
    return HoldListView(_replace(base, assignees=own), HoldOrder.inbox, exact=True)


def _own(standing: ActorMemberships, view: str) -> tuple[tuple[str, str], ...]:
    kinds = ("user", DELEGATED) if view == "mine" else ("group", "role")
    return tuple(each for each in assignees_of(standing) if each[0] in kinds)


def _wanted(where: HoldFilter, each: tuple[str, str]) -> bool:
    return where.assignees is None or each in where.assignees


# ---------------------------------------------------------------------- cursors


def _read_cursor(cell: str, cursor: str | None) -> Any:
    if cursor is None:
        return None
    try:
        return decode_cursor(cell, cursor)
    except ValueError:
        raise InputError(
            "this is not a cursor of a list of holds.", hint="Start again without a cursor."
        ) from None
