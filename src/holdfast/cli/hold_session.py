"""The acting person, the hold that a command names, and the holds that a query finds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import HOLDS_SHOWN
from holdfast.errors import HoldNotFoundError, InputError, RunNotFoundError
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.ids import DEFAULT_TENANT, HoldId, is_id
from holdfast.types.status import HoldStatus, run_label
from holdfast.types.terms import AT_THE_STORE, Actor, operator

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.holds.queries.list import HoldPage
    from holdfast.holds.queries.search import Query
    from holdfast.holds.service import HoldService
    from holdfast.types.hold import HoldOrder, HoldRow

MIN_PREFIX: Final = 4
"""Characters of a hold's id that are shown."""
_PAGES: Final = 20
_PAGE: Final = 500
OPERATOR: Final = "user:local"
_LOOKED_THROUGH = 50
"""Pages that are read for one result: filters that the store cannot apply are checked per hold."""


class ActorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that every command has. `as_`: the acting person; none: the operator of the store."""

    as_: str | None = None
    tenant: str = DEFAULT_TENANT
    store: str | None = None
    json: bool = False


class HoldSession:
    """An acting person with the holds of a store."""

    def __init__(self, hf: Holdfast, holds: HoldService, actor: Actor) -> None:
        self.hf = hf
        self.holds = holds
        self.actor = actor

    @property
    def now(self) -> int:
        return self.holds.store.now()

    async def find(self, which: str) -> HoldRow:
        """A hold by its id or a prefix of it, or the only hold of a run. Raises HoldNotFoundError, and
        InputError if several match."""
        if is_id(which):
            try:
                return await self.holds.get(self.actor, which)
            except HoldNotFoundError:
                return await self._of_run(which)
        found = await self._begun(which)
        if len(found) > 1:
            raise _ambiguous(f"{which!r} is a prefix of {len(found)} hold ids.", found)
        return found[0] if found else await self._of_run(which)

    async def _begun(self, which: str) -> list[HoldRow]:
        """Open holds first: a prefix that people copy from a list is one of an open hold."""
        from holdfast.types.hold import HoldOrder

        if len(which) < MIN_PREFIX:
            return []
        for status, order in (((HoldStatus.pending,), None), ((), HoldOrder.newest)):
            found = [row async for row in self._all(status, order) if row.id.startswith(which)]
            if found:
                return found
        return []

    async def _all(self, status: tuple[HoldStatus, ...], order: HoldOrder | None) -> AsyncGenerator[HoldRow]:
        from holdfast.types.hold import HoldFilter

        for view in ("all", "breakpoints"):
            cursor = None
            for _ in range(_PAGES):
                page = await self.holds.list(
                    self.actor,
                    view=view,
                    where=HoldFilter(status=status),
                    order=order,
                    cursor=cursor,
                    limit=_PAGE,
                )
                for row in page.rows:
                    yield row
                cursor = page.cursor
                if cursor is None:
                    break

    async def _of_run(self, which: str) -> HoldRow:
        service = await self.hf.service()
        try:
            run = await service.get(which)
        except RunNotFoundError:
            raise _not_found(which) from None
        if run.tenant != self.actor.tenant:
            raise _not_found(which)
        known = await service.holds(run.id, open_only=False)
        opened = [row for row in known if row.status is HoldStatus.pending]
        found = opened or known
        if len(found) == 1:
            return await self.holds.get(self.actor, found[0].id)
        if not found:
            raise HoldNotFoundError(f"run {run.id} ({run_label(run.status)}) has no hold.")
        raise _ambiguous(f"run {run.id} has {len(found)} {'open ' if opened else ''}holds.", found)


async def find_in_any_tenant(hf: Holdfast, which: str) -> HoldRow:
    """A hold of any tenant by its id; by a prefix of it, or by its run, only of the default tenant.
    Raises like `HoldSession.find`."""
    known = await (await hf.open()).hold(HoldId(which)) if is_id(which) else None
    if known is not None:
        return known
    return await HoldSession(hf, await hf.holds(), operator(OPERATOR, channel="cli")).find(which)


def _not_found(which: str) -> HoldNotFoundError:
    return HoldNotFoundError(
        f"{which!r} is neither a hold nor a run in this store.",
        hint="`holdfast holds list` shows what is open.",
    )


def _ambiguous(what: str, found: list[HoldRow]) -> InputError:
    from holdfast.holds.queries.summary import title_of

    names = "; ".join(f"{row.id} ({title_of(row)})" for row in found[:HOLDS_SHOWN])
    return InputError(what, hint=f"Name one: {names}.")


def actor_of(holds: HoldService, options: ActorOptions, channel: str = "cli") -> Actor:
    """Without `--as` every right, because the caller has access to the store itself. With a directory, `--as`
    gives only the rights of that person. Raises InputError for a name that is not a person's."""
    if options.as_ is None:
        return operator(OPERATOR, tenant=options.tenant, channel=channel)
    name = _named(options.as_)
    # Without a directory rights cannot be looked up, and the caller
    # has the store itself anyway; `--as` then only names who acted.
    if holds.ctx.directory is None:
        return operator(name, tenant=options.tenant, channel=channel)
    return Actor(id=name, tenant=options.tenant, channel=channel, signed_in_at=AT_THE_STORE)


def _named(text: str) -> str:
    from holdfast.holds.permissions.assignees import parse_assignee

    if text.startswith(("service:", "agent:")):
        return text
    # These names mean that no person acted; the audit must not contain them for a command.
    if text.startswith(("system:", "policy:")):
        raise InputError(f"{text!r} cannot be used with --as.", hint="Write --as user:NAME.")
    found = parse_assignee(text)
    if found.type != "user":
        raise InputError(f"{text!r} is not one person.", hint="Write --as user:NAME.")
    return str(found)


@asynccontextmanager
async def open_hold_session(options: ActorOptions, channel: str = "cli") -> AsyncGenerator[HoldSession]:
    async with open_store_for_command(options.store, must_exist=True) as hf:
        holds = await hf.holds()
        yield HoldSession(hf, holds, actor_of(holds, options, channel))


async def act(
    options: ActorOptions,
    which: str,
    do: Callable[[HoldSession, HoldRow], Awaitable[HoldRow]],
    report: Callable[[HoldRow], str],
) -> Exit:
    """Perform one action on one hold, and print the result."""
    from holdfast.holds.queries.hold_view import hold_view

    async with open_hold_session(options) as session:
        after = await do(session, await session.find(which))
    if options.json:
        print_json(hold_view(after))
    else:
        print_line(report(after))
    return Exit.ok


def moment(text: str, what: str) -> datetime | timedelta:
    """A duration from now (`2d`, `4h`), or a time; without a zone, in this machine's zone."""
    try:
        return parse_duration(text)
    except DurationError:
        pass
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo is not None else found.astimezone()
    except (ValueError, OverflowError):
        raise InputError(
            f"{what}: {text!r} is not a time.", hint="Write 30m, 4h, 2d, or 2030-01-31T17:00."
        ) from None


def length(text: str | None, what: str) -> float | None:
    """Seconds."""
    if text is None:
        return None
    try:
        return parse_duration(text).total_seconds()
    except DurationError as error:
        raise InputError(f"{what}: {error}.") from None


def short(row: HoldRow) -> str:
    """A prefix of its id, and its question."""
    from holdfast.holds.queries.summary import title_of

    return f"{row.id[:8]} ({title_of(row)})"


class HoldListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The query options. `after`: the cursor of the previous page."""

    query: str = ""
    view: str = "all"
    after: str | None = None
    limit: int = 20


async def find_holds(session: HoldSession, wanted: HoldListOptions) -> HoldPage:
    """Open holds, unless the query names a status."""
    from holdfast.holds.queries.list import MAX_LIMIT, HoldPage
    from holdfast.holds.queries.search import read_query

    query = read_query(wanted.query, me=session.actor.id, now=session.now)
    where = query.where
    if wanted.view == "all" and not where.status:
        where = msgspec.structs.replace(where, status=(HoldStatus.pending,))
    kept: list[HoldRow] = []
    cursor = wanted.after
    for _ in range(_LOOKED_THROUGH):
        room = min(wanted.limit - len(kept), MAX_LIMIT)
        page = await session.holds.list(
            session.actor, view=wanted.view, where=where, cursor=cursor, limit=room
        )
        kept += [row for row in page.rows if await _has_notes(session, row, query)]
        cursor = page.cursor
        if cursor is None or len(kept) >= wanted.limit:
            break
    return HoldPage(tuple(kept), cursor)


async def _has_notes(session: HoldSession, row: HoldRow, query: Query) -> bool:
    """Whether the hold has notes of each requested kind."""
    found = [await session.holds.store.hold_notes(row.id, kinds=(kind,)) for kind in query.has]
    return all(found)
