"""`holds resolve`, `vote`, `undo`, `bulk` and `cancel`: decisions, one or many."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from holdfast.cli.commands.hold_actor import ActorOptions, HoldSession, act, open_hold_session, short
from holdfast.cli.commands.holds__listing import HoldListOptions, find_holds
from holdfast.cli.main import Exit
from holdfast.cli.output.results import command
from holdfast.cli.output.screen import print_json, print_line, print_note, print_table
from holdfast.errors import InputError
from holdfast.holds.actions.answers import Submission
from holdfast.holds.actions.bulk import BulkItem, BulkResult
from holdfast.holds.actions.conflicts import resolution_of
from holdfast.holds.queries.hold_view import hold_view
from holdfast.holds.queries.summary import SHORT, needs_of
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus


class DecisionInput(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as it was typed, and on what conditions. `placed`: it can be taken back for a while."""

    decision: str
    data: Any = None
    comment: str | None = None
    reason: str | None = None
    if_match: int | None = None
    key: str | None = None
    placed: bool = False
    drafted: bool = False  # what is not given is that of the draft

    def filled(self, draft: Submission | None) -> DecisionInput:
        """Raises InputError for a draft that is not there."""
        if draft is None:
            raise InputError("there is no draft of yours at this hold.", hint="Leave --draft out.")
        data, own = draft.response_data, self.data
        if isinstance(data, dict) and isinstance(own, dict):
            data = {**cast("dict[str, Any]", data), **cast("dict[str, Any]", own)}
        elif own is not None:
            data = own
        comment = draft.comment if self.comment is None else self.comment
        return msgspec.structs.replace(self, data=data, comment=comment)

    def body(self, row: HoldRow) -> dict[str, Any]:
        """Bound to what the hold asks now: another question is not answered by it."""
        return {
            "decision": self.decision,
            "response_data": self.data,
            "comment": self.comment,
            "request_hash": row.request_hash,
        }


async def resolve_hold(which: str, said: DecisionInput, seat: ActorOptions) -> Exit:
    async with open_hold_session(seat) as desk:
        row = await desk.find(which)
        if said.drafted:
            said = said.filled(await desk.holds.draft(desk.actor, row.id))
        conditions: dict[str, Any] = {
            "if_match": said.if_match,
            "idempotency_key": said.key,
            "reason": said.reason,
        }
        decide = desk.holds.place if said.placed else desk.holds.resolve
        done = await decide(desk.actor, row.id, said.body(row), **conditions)
    if seat.json:
        print_json(hold_view(done.row, replay=done.replay))
        return Exit.ok
    print_line(_decision_text(done.row, said, replay=done.replay))
    if done.row.status is HoldStatus.resolved:
        print_note(f"A worker goes on with the run, or you do: {command('resume', row.run[:8], seat.store)}")
    return Exit.ok


def _decision_text(row: HoldRow, said: DecisionInput, *, replay: bool) -> str:
    if replay:
        return f"{short(row)} was decided so before: {said.decision!r}."
    if row.status is HoldStatus.resolved:
        outcome = resolution_of(row).get("decision", said.decision)
        return f"Decided: {outcome!r} for {short(row)}."
    if row.placed is not None:
        back = f"`holdfast holds undo {row.id[:SHORT]}` takes it back"
        return f"Placed: {said.decision!r} for {short(row)}; {back}."
    return f"Your vote is counted: {said.decision!r} for {short(row)}. It takes {needs_of(row)}."


async def undo_decision(which: str, seat: ActorOptions) -> Exit:
    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        return await desk.holds.undo(desk.actor, row.id)

    return await act(
        seat, which, do, lambda row: f"Taken back; {short(row)} is open, what you said is your draft."
    )


async def cancel_hold(which: str, reason: str, seat: ActorOptions) -> Exit:
    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        return await desk.holds.cancel(desk.actor, row.id, reason=reason)

    return await act(seat, which, do, lambda row: f"Withdrawn: {short(row)}.")


# ---------------------------------------------------------------------- many at once


async def resolve_many(
    decision: str, which: list[str], *, query: str | None, comment: str | None, sure: bool, seat: ActorOptions
) -> Exit:
    """A preview, unless they are sure. Exits with 2 where one was left out of what they were sure of."""
    if bool(which) == bool(query):
        raise InputError("name the holds, or say which by --query.", hint="One of the two.")
    async with open_hold_session(seat) as desk:
        rows = await _selected_holds(desk, which, query)
        found = await desk.holds.bulk(
            desk.actor,
            [row.id for row in rows],
            {"decision": decision, "comment": comment},
            preview=not sure,
            versions={row.id: row.version for row in rows},
        )
    if seat.json:
        print_json(_bulk_json(found))
    else:
        _print_bulk(found, decision, {row.id: row for row in rows})
    return Exit.ok if found.preview or found.done == len(found.items) else Exit.bad_input


async def _selected_holds(desk: HoldSession, which: list[str], query: str | None) -> list[HoldRow]:
    if query is not None:
        return list((await find_holds(desk, HoldListOptions(query=query, limit=500))).rows)
    return [await desk.find(each) for each in which]


def _print_bulk(found: BulkResult, decision: str, rows: dict[str, HoldRow]) -> None:
    left = ", ".join(f"{count} left out ({code.replace('_', ' ')})" for code, count in found.left_out.items())
    verb = "would be decided" if found.preview else "decided"
    print_line(f"{found.done} {verb} {decision!r}" + (f"; {left}." if left else "."))
    others = [item for item in found.items if not item.done]
    if others:
        print_table(("id", "why it is left out"), [(item.hold[:SHORT], item.why or "") for item in others])
    if found.preview and found.done:
        print_note("Nothing is decided yet; the same with --yes does it.")


def _bulk_json(found: BulkResult) -> dict[str, Any]:
    return {
        "preview": found.preview,
        "done": found.done,
        "left_out": found.left_out,
        "items": [_item_json(item) for item in found.items],
    }


def _item_json(item: BulkItem) -> dict[str, Any]:
    return {"hold": item.hold, "done": item.done, "code": item.code, "why": item.why}
