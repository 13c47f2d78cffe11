"""What an inbox reads: a list, the figures beside it, and one hold with its comments.

What changed meanwhile, brought into an inbox without moving what is being read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from holdfast.cli.commands.holds.show import votes_of
from holdfast.cli.hold_session import HoldListOptions, HoldSession, find_holds
from holdfast.cli.inbox.decide import draft_submission, typed_so_far
from holdfast.cli.inbox.state import HoldDetails, InboxState, with_message
from holdfast.errors import ConflictError, ForbiddenError, HoldfastError, NotFoundError
from holdfast.holds.permissions.assignees import same_person
from holdfast.holds.queries.history import Entry
from holdfast.holds.queries.list import HoldPage
from holdfast.holds.queries.search import read_query
from holdfast.holds.queries.summary import assignee_of, outcome_of, placed_of
from holdfast.types.hold import HoldFilter, HoldRow
from holdfast.types.status import HoldStatus

_replace = msgspec.structs.replace


def merged(state: InboxState, found: Iterable[HoldRow], gone: Mapping[str, HoldRow | None]) -> InboxState:
    """Rows stay where they are and say what became of them; new ones wait until they are asked for.

    `gone`: what is not in the list any more, as it is now, where it can still be seen."""
    fresh: dict[str, HoldRow] = {row.id: row for row in found}
    kept = [each for row in state.rows if (each := _row_to_keep(state, row, fresh, gone)) is not None]
    known = {row.id for row in state.rows}
    unknown = [row for row in fresh.values() if row.id not in known]
    new = tuple(row for row in unknown if row.created_at > state.loaded_at)
    # What only moved up into what is read is no news: it goes to the end, where it moves nothing.
    kept += [row for row in unknown if row.created_at <= state.loaded_at and state.rows]
    if not state.rows:
        return _replace(state, rows=tuple(unknown), fresh=(), at=0)
    ids: list[str] = [row.id for row in kept]
    placed = tuple(each for each in state.placed if _is_placed(each, fresh))
    return _replace(
        state,
        rows=tuple(kept),
        fresh=new,
        at=_place_refreshing(state, ids),
        selected=state.selected & set(ids),
        placed=placed,
        # That a decision can be undone is shown no longer than it can.
        message=state.message if placed or not state.placed or state.alert else "",
    )


def _row_to_keep(
    state: InboxState, row: HoldRow, fresh: Mapping[str, HoldRow], gone: Mapping[str, HoldRow | None]
) -> HoldRow | None:
    """What others have decided stays to be seen; what is one's own, or went elsewhere, leaves."""
    if row.id in fresh:
        return fresh[row.id]
    now = gone.get(row.id)
    if now is None or now.status is HoldStatus.pending:
        return None
    by = now.resolved_by or now.closed_by or ""
    return None if same_person(by, state.me) and state.view != "done" else now


def _place_refreshing(state: InboxState, ids: list[str]) -> int:
    """The same hold as before, else what took its place."""
    before = state.rows[state.at].id if state.at < len(state.rows) else None
    return ids.index(before) if before in ids else min(state.at, max(len(ids) - 1, 0))


def _is_placed(hold: str, fresh: Mapping[str, HoldRow]) -> bool:
    row = fresh.get(hold)
    return row is not None and row.placed is not None


def reread(state: InboxState, sheet: HoldDetails) -> tuple[InboxState, bool]:
    """The open hold as it is now, and whether what is being filled in came too late: another was first."""
    before = state.sheet.row if state.sheet is not None and state.sheet.row.id == sheet.row.id else None
    state = _replace(state, sheet=sheet)
    if before is None or not _was_overtaken(state, before, sheet.row):
        return state, False
    busy = state.filling is not None
    kept = " Your input is kept as a draft. Enter continues." if busy else ""
    after = _replace(
        state, armed=None, sure=(), prompt=None if busy else state.prompt, filling=None, cut_off=busy
    )
    return with_message(after, overtaken_text(sheet.row, state.now) + kept, alert=True), busy


def _was_overtaken(state: InboxState, before: HoldRow, now: HoldRow) -> bool:
    """By another person: decided, about to be, or reassigned."""
    if before.status is not HoldStatus.pending:
        return False
    if now.status is not HoldStatus.pending:
        return not same_person(now.resolved_by or now.closed_by or "", state.me)
    if now.placed_by is not None and before.placed_by is None:
        return not same_person(now.placed_by, state.me)
    return now.epoch != before.epoch


def overtaken_text(row: HoldRow, now: int) -> str:
    """`Resolved by user:dana@acme 12 s ago: reject.`"""
    outcome = outcome_of(row, now) or placed_of(row, now) or f"it waits for {assignee_of(row)} now"
    return f"{outcome[:1].upper()}{outcome[1:]}."


OPEN: Final = HoldFilter(status=(HoldStatus.pending,))
COUNTED: Final = ("mine", "groups", "asked", "unassigned", "all")


class InboxReader:
    def __init__(self, session: HoldSession) -> None:
        self.session = session

    async def load(self, state: InboxState) -> InboxState:
        """The list anew, in its own order. Raises InputError for a search that means nothing."""
        page = await self._page(state)
        chips = read_query(state.query, me=self.session.actor.id, now=self.session.now).chips
        at = _place(state, [row.id for row in page.rows])
        state = _replace(
            state,
            now=self.session.now,
            loaded_at=self.session.now,
            rows=page.rows,
            more=page.cursor is not None,
            fresh=(),
            chips=chips,
            at=at,
            selected=state.selected & {row.id for row in page.rows},
            sheet=None,
        )
        state = await self.count(state)
        return await self.look(state, page.rows[at].id) if page.rows else _replace(state, open=False)

    async def _page(self, state: InboxState) -> HoldPage:
        return await find_holds(
            self.session, HoldListOptions(query=state.query, view=state.view, limit=state.limit)
        )

    async def count(self, state: InboxState) -> InboxState:
        """Of the other views; without those that this person may not see."""
        counts: dict[str, int] = {}
        for view in COUNTED:
            try:
                counts[view] = await self.session.holds.count(self.session.actor, view=view, where=OPEN)
            except ForbiddenError:
                continue
        if not counts.get("asked"):
            counts.pop("asked", None)
        return _replace(state, counts=counts)

    async def refresh(self, state: InboxState) -> InboxState:
        """The same list as it is now, with nothing moved; and the hold that is being read."""
        state = _replace(state, now=self.session.now)
        for row in state.rows:
            if row.placed_until is not None and row.placed_until <= state.now:
                await self._now(row.id)  # reading it makes a decision that is due
        page = await self._page(state)
        found, state = page.rows, _replace(state, more=page.cursor is not None)
        ids = {row.id for row in found}
        gone: dict[str, HoldRow | None] = {
            row.id: await self._now(row.id) for row in state.rows if row.id not in ids
        }
        state = merged(state, found, gone)
        if state.sheet is None:
            return await self._reload_hold(state, state.rows[state.at].id) if state.rows else state
        keep = state.sheet.row.id if state.open or state.filling else None
        row = keep or (state.rows[state.at].id if state.rows else None)
        return _replace(state, sheet=None) if row is None else await self._reload_hold(state, row)

    async def _reload_hold(self, state: InboxState, hold: str) -> InboxState:
        """A hold that was reassigned meanwhile is closed, and not read again."""
        try:
            return await self.look(state, hold)
        except (ForbiddenError, ConflictError, NotFoundError) as error:
            rows = tuple(row for row in state.rows if row.id != hold)
            at = min(state.at, max(len(rows) - 1, 0))
            # What is being typed was meant for the line, and is no key for the hold that is shown next.
            typing = state.prompt is not None
            left = _replace(
                state,
                rows=rows,
                at=at,
                sheet=None,
                open=False,
                filling=None,
                prompt=None,
                armed=None,
                cut_off=typing,
            )
            rest = " Enter continues." if typing else ""
            return with_message(left, f"This hold is no longer yours: {error.message}{rest}", alert=True)

    async def _now(self, hold: str) -> HoldRow | None:
        try:
            return await self.session.holds.get(self.session.actor, hold)
        except HoldfastError:
            return None

    async def look(self, state: InboxState, hold: str) -> InboxState:
        """Raises HoldNotFoundError, ForbiddenError: it may have been reassigned."""
        holds, actor = self.session.holds, self.session.actor
        row = await holds.get(actor, hold)
        draft = await holds.draft(actor, hold)
        sheet = HoldDetails(
            row=row,
            notes=tuple(await holds.comments(actor, hold)),
            votes=tuple(await votes_of(self.session, row)),
            draft=None if draft is None or draft.is_empty else msgspec.to_builtins(draft),
            history=tuple(_line(each) for each in await holds.history(actor, hold)) if state.expanded else (),
        )
        filling = typed_so_far(state)
        state, too_late = reread(_replace(state, now=self.session.now), sheet)
        if too_late and filling is not None:
            # A person who loses the race keeps what they wrote.
            await holds.save_draft(actor, hold, draft_submission(filling))
            kept = await holds.draft(actor, hold)
            state = _replace(state, sheet=_replace(sheet, draft=msgspec.to_builtins(kept)))
        return state


def _place(state: InboxState, ids: Sequence[str]) -> int:
    """The same hold stays current, where it is still there."""
    row = state.current
    return ids.index(row.id) if row is not None and row.id in ids else min(state.at, max(len(ids) - 1, 0))


def _line(entry: Entry) -> str:
    return f"{entry.at[:19].replace('T', ' ')}  {entry.text}"
