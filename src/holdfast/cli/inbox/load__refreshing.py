"""What changed meanwhile, brought into an inbox without moving what is being read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from holdfast.cli.inbox.state import Sheet, State, told
from holdfast.holds.permissions.assignees import same_person
from holdfast.holds.queries.summary import assignee_of, outcome_of, placed_of
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus

_replace = msgspec.structs.replace


def merged(state: State, found: Iterable[HoldRow], gone: Mapping[str, HoldRow | None]) -> State:
    """Rows stay where they are and say what became of them; new ones wait until they are asked for.

    `gone`: what is not in the list any more, as it is now, where it can still be seen."""
    fresh: dict[str, HoldRow] = {row.id: row for row in found}
    kept = [each for row in state.rows if (each := _kept(state, row, fresh, gone)) is not None]
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
        at=_place(state, ids),
        selected=state.selected & set(ids),
        placed=placed,
        # That something can be taken back is not said for longer than it can.
        said=state.said if placed or not state.placed or state.alert else "",
    )


def _kept(
    state: State, row: HoldRow, fresh: Mapping[str, HoldRow], gone: Mapping[str, HoldRow | None]
) -> HoldRow | None:
    """What others have decided stays to be seen; what is one's own, or went elsewhere, leaves."""
    if row.id in fresh:
        return fresh[row.id]
    now = gone.get(row.id)
    if now is None or now.status is HoldStatus.pending:
        return None
    by = now.resolved_by or now.closed_by or ""
    return None if same_person(by, state.me) and state.view != "done" else now


def _place(state: State, ids: list[str]) -> int:
    """The same hold as before, else what took its place."""
    before = state.rows[state.at].id if state.at < len(state.rows) else None
    return ids.index(before) if before in ids else min(state.at, max(len(ids) - 1, 0))


def _is_placed(hold: str, fresh: Mapping[str, HoldRow]) -> bool:
    row = fresh.get(hold)
    return row is not None and row.placed is not None


def reread(state: State, sheet: Sheet) -> tuple[State, bool]:
    """The open hold as it is now, and whether what is being filled in came too late: somebody was first."""
    before = state.sheet.row if state.sheet is not None and state.sheet.row.id == sheet.row.id else None
    state = _replace(state, sheet=sheet)
    if before is None or not _was_overtaken(state, before, sheet.row):
        return state, False
    busy = state.filling is not None
    kept = " What you had filled in is your draft. Enter goes on." if busy else ""
    after = _replace(
        state, armed=None, sure=(), prompt=None if busy else state.prompt, filling=None, cut_off=busy
    )
    return told(after, overtaken(sheet.row, state.now) + kept, alert=True), busy


def _was_overtaken(state: State, before: HoldRow, now: HoldRow) -> bool:
    """By somebody else: decided, about to be, or handed on."""
    if before.status is not HoldStatus.pending:
        return False
    if now.status is not HoldStatus.pending:
        return not same_person(now.resolved_by or now.closed_by or "", state.me)
    if now.placed_by is not None and before.placed_by is None:
        return not same_person(now.placed_by, state.me)
    return now.epoch != before.epoch


def overtaken(row: HoldRow, now: int) -> str:
    """`Resolved by user:dana@acme 12 s ago: reject.`"""
    outcome = outcome_of(row, now) or placed_of(row, now) or f"it waits for {assignee_of(row)} now"
    return f"{outcome[:1].upper()}{outcome[1:]}."
