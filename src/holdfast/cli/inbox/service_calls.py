"""What an inbox does through the service, and the state that comes of it. A refusal is something to read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from holdfast.cli.commands.holds.files import local_path
from holdfast.cli.hold_session import HoldSession, moment
from holdfast.cli.inbox.decide import ask_field, file_attached
from holdfast.cli.inbox.load import InboxReader
from holdfast.cli.inbox.state import PAGE, Act, InboxState, with_message
from holdfast.cli.output.console import clean_text
from holdfast.drawing.state_signs import shortened
from holdfast.errors import FormInvalidError, HoldfastError, InputError
from holdfast.holds.permissions.assignees import same_person
from holdfast.holds.queries.summary import assignee_of, needs_of, roughly, title_of
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus

_replace = msgspec.structs.replace
_TITLE: Final = 40


class Actions:
    def __init__(self, session: HoldSession) -> None:
        self._holds, self._actor = session.holds, session.actor
        self.reader = InboxReader(session)

    async def perform(self, state: InboxState, act: Act) -> InboxState:
        """Nothing is raised but what ends the program."""
        try:
            return await _ACTS[act.do](self, state, act)
        except HoldfastError as error:
            return await self._refused(state, error)

    async def _refused(self, state: InboxState, error: HoldfastError) -> InboxState:
        """As the hold is now. The service keeps a refused answer as a draft."""
        if isinstance(error, FormInvalidError) and state.filling is not None:
            return ask_field(state, error)
        hint = f" {error.hint}" if error.hint else ""
        state = with_message(_replace(state, prompt=None, filling=None), f"{error.message}{hint}", alert=True)
        try:
            return await self.reader.refresh(state)
        except HoldfastError:
            return state  # the store does not answer: what is shown stays

    # ------------------------------------------------------------------ looking
    async def load(self, state: InboxState, act: Act) -> InboxState:
        """Another view or search begins at its top; one that is refused leaves everything as it is."""
        if act.view is None and act.query is None:
            return await self.reader.load(state)
        wanted = _replace(
            state,
            view=state.view if act.view is None else act.view,
            query=state.query if act.query is None else act.query,
            rows=(),
            limit=PAGE,
            at=0,
            selected=frozenset(),
            open=False,
            expanded=False,
        )
        return await self.reader.load(wanted)

    async def look(self, state: InboxState, act: Act) -> InboxState:
        if act.sure:
            await self._holds.seen(self._actor, act.holds[0])
        return await self.reader.look(state, act.holds[0])

    # ------------------------------------------------------------------ deciding
    async def decide(self, state: InboxState, act: Act) -> InboxState:
        shown = state.current
        body = {"decision": act.decision, "response_data": act.data, "comment": act.comment}
        if shown is not None and shown.id == act.holds[0]:
            # The decision counts only for the content on this
            # screen: it may have changed since it was painted.
            body["request_hash"] = shown.request_hash
        done = await self._holds.place(self._actor, act.holds[0], body)
        state = with_message(
            _replace(state, filling=None, prompt=None), _decided(done.row, act.decision, state.now)
        )
        placed = done.row.placed is not None
        kept = [each for each in state.placed if each != done.row.id]
        state = _replace(
            state,
            placed=(*kept, done.row.id) if placed else tuple(kept),
            decided=state.decided + 1,
            selected=state.selected - {done.row.id},
        )
        return await self._on(state, done.row)

    async def _on(self, state: InboxState, row: HoldRow) -> InboxState:
        """To the next one that is still to be decided."""
        message = state.message
        state = await self.reader.refresh(state)
        rest = [i for i, each in enumerate(state.rows) if each.id != row.id and _is_open(each)]
        if rest:
            at = next((i for i in rest if i >= state.at), rest[0])
            state = await self.reader.look(_replace(state, at=at), state.rows[at].id)
        else:
            state = _replace(state, open=False)
        return _replace(state, message=message, alert=False)

    async def attach(self, state: InboxState, act: Act) -> InboxState:
        """A file that is not taken is asked for again."""
        path = local_path(act.text)
        try:
            kept = await self._holds.attach(self._actor, act.holds[0], act.field, path.name, path)
        except InputError as error:
            prompt = state.prompt
            wrong = None if prompt is None else _replace(prompt, error=error.message)
            return _replace(state, prompt=wrong)
        state, then = file_attached(state, act.field, kept)
        return state if then is None else await self.perform(state, then)

    async def bulk(self, state: InboxState, act: Act) -> InboxState:
        # Only versions that were on the screen: what changed since is left out and not decided unseen.
        shown: dict[str, int] = {row.id: row.version for row in state.rows}
        found = await self._holds.bulk(
            self._actor, act.holds, act.decision, preview=not act.sure, versions=shown
        )
        left = "; ".join(f"{each.hold[:8]} left out: {each.why}" for each in found.items if not each.done)
        rest = f" {left}" if left else ""
        if act.sure:
            state = _replace(state, selected=frozenset(), decided=state.decided + found.done)
            return with_message(
                await self.reader.load(state),
                f"{found.done} decided {act.decision!r}.{rest}",
                alert=bool(left),
            )
        ids = tuple(each.hold for each in found.items if each.done)
        ask = f"{len(ids)} would be decided {act.decision!r}.{rest}"
        if not ids:
            return with_message(state, ask, alert=True)
        return with_message(
            _replace(state, sure=ids, armed=act.decision), f"{ask} Enter decides, any other key does not."
        )

    async def undo(self, state: InboxState, act: Act) -> InboxState:
        row = await self._holds.undo(self._actor, act.holds[0])
        state = _replace(
            state,
            placed=tuple(each for each in state.placed if each != row.id),
            decided=max(state.decided - 1, 0),
        )
        state = with_message(
            await self.reader.refresh(state), f"Undone: {_short(row)}. Your answer is kept as a draft."
        )
        ids = [each.id for each in state.rows]
        return (
            await self.reader.look(_replace(state, at=ids.index(row.id)), row.id) if row.id in ids else state
        )

    async def draft(self, state: InboxState, act: Act) -> InboxState:
        given = {"decision": act.decision or None, "response_data": act.data, "comment": act.comment}
        await self._holds.save_draft(self._actor, act.holds[0], given)
        return await self.reader.look(state, act.holds[0])

    # ------------------------------------------------------------------ arranging
    async def comment(self, state: InboxState, act: Act) -> InboxState:
        return await self._each(
            state,
            act,
            lambda hold: self._holds.comment(self._actor, hold, act.text),
            "Comment added.",
        )

    async def reassign(self, state: InboxState, act: Act) -> InboxState:
        def hand_over(hold: str) -> Awaitable[Any]:
            return self._holds.reassign(self._actor, hold, act.text)

        return await self._each(state, act, hand_over, f"Reassigned to {act.text}.")

    async def ask_back(self, state: InboxState, act: Act) -> InboxState:
        def ask(hold: str) -> Awaitable[Any]:
            return self._holds.ask_back(self._actor, hold, act.text)

        return await self._each(state, act, ask, "Question sent; the deadline is paused until the reply.")

    async def reply(self, state: InboxState, act: Act) -> InboxState:
        def answer(hold: str) -> Awaitable[Any]:
            return self._holds.reply(self._actor, hold, act.text)

        return await self._each(state, act, answer, "Replied.")

    async def snooze(self, state: InboxState, act: Act) -> InboxState:
        when = moment(act.text, "snooze")

        def put_off(hold: str) -> Awaitable[Any]:
            return self._holds.snooze(self._actor, hold, when)

        return await self._each(state, act, put_off, "Snoozed; its deadline stays.")

    async def claim(self, state: InboxState, act: Act) -> InboxState:
        """What one has claimed is released."""
        rows: dict[str, HoldRow] = {
            row.id: row for row in (*state.rows, *((state.sheet.row,) if state.sheet else ()))
        }
        mine = [each for each in act.holds if _is_claimed_by(rows.get(each), state)]
        if mine:
            return await self._each(
                state, act, lambda hold: self._holds.release(self._actor, hold), "Released."
            )
        return await self._each(
            state,
            act,
            lambda hold: self._holds.claim(self._actor, hold),
            "Claimed: the others see that you work on it.",
        )

    async def watch(self, state: InboxState, act: Act) -> InboxState:
        """Off again in the list of what is watched."""
        off = state.view == "watching"
        mark = self._holds.unwatch if off else self._holds.watch
        message = "Not watched any more." if off else "Watched: g w shows it, also after the decision."
        return await self._each(state, act, lambda hold: mark(self._actor, hold), message)

    async def _each(
        self, state: InboxState, act: Act, do: Callable[[str], Awaitable[Any]], message: str
    ) -> InboxState:
        for hold in act.holds:
            await do(hold)
        many = f" ({len(act.holds)} holds)" if len(act.holds) > 1 else ""
        return with_message(await self.reader.refresh(_replace(state, selected=frozenset())), message + many)


def _decided(row: HoldRow, decision: str, now: int) -> str:
    if row.placed is not None and row.placed_until is not None:
        return f"{decision!r} for {_short(row)} in {roughly(row.placed_until - now)}: z undoes it."
    if row.status is HoldStatus.resolved:
        return f"Decided {decision!r}: {_short(row)}."
    turn = f" It waits for {assignee_of(row)} now." if row.terms.approval.mode == "sequential" else ""
    return f"Your vote counts: {decision!r} for {_short(row)}. It takes {needs_of(row)}.{turn}"


def _short(row: HoldRow) -> str:
    return shortened(clean_text(title_of(row)), _TITLE)


def _is_open(row: HoldRow) -> bool:
    return row.status is HoldStatus.pending and row.placed is None


def _is_claimed_by(row: HoldRow | None, state: InboxState) -> bool:
    if row is None or row.claimed_by is None or not same_person(row.claimed_by, state.me):
        return False
    return row.claim_until is None or row.claim_until > state.now


_ACTS: Final[dict[str, Callable[[Actions, InboxState, Act], Awaitable[InboxState]]]] = {
    name: getattr(Actions, name)
    for name in (
"load", "look", "decide", "attach", "bulk", "undo", "draft", "comment", "ask_back", "reply", "reassign",
        "snooze", "claim", "watch",
    )
}  # fmt: skip
