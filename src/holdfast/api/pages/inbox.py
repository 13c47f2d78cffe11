"""`/`: the inbox of the signed-in person, and recent runs. `/holds`: every hold that they may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Access, Right
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.render import page, redirect
from holdfast.api.pagination import Cursor
from holdfast.api.routing import ApiCall
from holdfast.holds.queries.list import EARLIER, VIEWS
from holdfast.runs.run_view import ShownRun, shown_runs
from holdfast.store.rows import RunFilter
from holdfast.types.hold import HoldFilter, HoldRow
from holdfast.types.status import HoldStatus

routes = pages()
SHOWN: Final = 20
TITLES: Final = {
    "mine": "Mine",
    "groups": "My groups",
    "unassigned": "Unassigned",
    "asked": "Questions to me",
    "watching": "Watched",
    "snoozed": "Snoozed",
    "breakpoints": "Breakpoints",
    "done": "Decided by me",
    "all": "All",
}


class HomeQuery(msgspec.Struct, kw_only=True):
    """`needs`: the page that was asked for, which there is only in the app."""

    needs: str = ""


NEED_SCRIPT: Final = {"operations": "Operations", "editor": "The editor of flow documents"}


class HoldsQuery(msgspec.Struct, kw_only=True):
    view: str = "mine"
    cursor: Cursor | None = None


@routes.get("/", needs=Access.signed_in)
async def home(call: ApiCall, query: HomeQuery) -> Response:
    """What waits for me, and recent runs."""
    service = await call.holds()
    absent = NEED_SCRIPT.get(query.needs, "")
    if not call.who.may(Right.holds_read):
        return page(
            call.request, "home.html", who=call.who, now=service.store.now(), mine=[], unassigned=[],
            others=0, runs=await recent_runs(call), absent=absent,
        )  # fmt: skip
    mine = await open_of(call, "mine")
    groups = await open_of(call, "groups")
    unassigned = await open_of(call, "unassigned") if call.who.may(Right.manage) else []
    known = {row.id for row in (*mine, *groups, *unassigned)}
    others = await service.count(call.actor, view="all", where=_open()) - len(known)
    return page(
        call.request,
        "home.html",
        who=call.who,
        now=service.store.now(),
        mine=_in_order([*mine, *groups]),
        unassigned=unassigned,
        others=max(others, 0),
        runs=await recent_runs(call),
        absent=absent,
    )


@routes.get("/holds", needs=Right.holds_read)
async def list_holds_page(call: ApiCall, query: HoldsQuery) -> Response:
    """Holds by view, page by page."""
    service = await call.holds()
    view = EARLIER.get(query.view, query.view)
    view = view if view in VIEWS else "mine"
    found = await service.list(call.actor, view=view, cursor=query.cursor, limit=SHOWN)
    views = [name for name in TITLES if name != "unassigned" or call.who.may(Right.manage)]
    return page(
        call.request,
        "holds.html",
        who=call.who,
        now=service.store.now(),
        rows=found.rows,
        next=found.cursor,
        view=view,
        views=[(name, TITLES[name]) for name in views],
    )


# The app has parameters of its own at these addresses.
@routes.get("/inbox", needs=Access.public, reads_query=True)
async def inbox_page(call: ApiCall) -> Response:
    """The target of notifications in shared channels."""
    return redirect("/", call.request)


@routes.get("/inbox/{hold}", needs=Access.public, reads_query=True)
async def inbox_hold_page(call: ApiCall, hold: str) -> Response:
    """The same for one hold, whose page checks the permission; or a view, as in the address of the app."""
    return redirect(f"/holds?view={hold}" if hold in TITLES else f"/holds/{hold}", call.request)


@routes.get("/inbox/{view}/{hold}", needs=Access.public, reads_query=True)
async def inbox_view_hold_page(call: ApiCall, view: str, hold: str) -> Response:
    """The address of a hold in the app."""
    return redirect(f"/holds/{hold}", call.request)


async def open_of(call: ApiCall, view: str) -> list[HoldRow]:
    service = await call.holds()
    return list((await service.list(call.actor, view=view, limit=SHOWN)).rows)


async def recent_runs(call: ApiCall, limit: int = 10) -> Sequence[ShownRun]:
    """None for a person without the right to see runs."""
    if not call.who.may(Right.runs_read):
        return []
    service = await call.runs()
    return await shown_runs(service.store, await service.list(RunFilter(tenant=call.tenant), limit=limit))


def _open() -> HoldFilter:
    return HoldFilter(status=(HoldStatus.pending,))


def _in_order(rows: list[HoldRow]) -> list[HoldRow]:
    """In the order of the inbox: by priority, then by deadline, then by age."""
    far = 1 << 62
    return sorted(rows, key=lambda row: (-row.rank, row.expires_at or far, row.created_at))
