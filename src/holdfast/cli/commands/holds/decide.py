"""`holdfast holds resolve`, `vote`, `undo`, `bulk` and `cancel`: decisions, one or many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
import typer

from holdfast.cli.app import Json, Store, Text, run_async
from holdfast.cli.commands.holds.group import As, Comment, Data, Hold, Whose, group
from holdfast.cli.hold_session import (
    ActorOptions,
    HoldListOptions,
    HoldSession,
    act,
    find_holds,
    open_hold_session,
    short,
)
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import command
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError
from holdfast.types.status import HoldStatus

if TYPE_CHECKING:
    from holdfast.holds.actions.bulk import BulkItem, BulkResult
    from holdfast.holds.actions.submission import Submission
    from holdfast.types.hold import HoldRow

Decision = Annotated[str, typer.Argument(help="One of the hold's options, or free text if it has none")]
Reason = Annotated[Text, typer.Option(help="Reason for overriding the assignment")]


@group.command(
    epilog="Examples:  holdfast holds resolve 3fa9c1d2 approve   ·   "
    "holdfast holds resolve 3fa9c1d2 reject -m 'too much' --as user:dana@acme   ·   "
    "holdfast holds resolve 3fa9c1d2 approve --data @form.json --undo"
)
def resolve(
    hold: Hold,
    decision: Decision,
    data: Data = None,
    comment: Comment = None,
    reason: Reason = None,
    if_version: Annotated[
        int | None, typer.Option("--if-version", help="Only if the hold still has this version", metavar="N")
    ] = None,
    key: Annotated[
        Text, typer.Option("--key", help="Idempotency key: the same key decides only once")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Allow undoing it for a few seconds")] = False,
    draft: Annotated[bool, typer.Option("--draft", help="Use your saved draft, including files")] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Decide a hold; where several people have to agree, vote.

    An answer that does not fit is refused: the hold stays open and your answer is saved as your draft.
    """
    found = read_json(data, "--data")
    answer = DecisionInput(
        decision=decision,
        data=found,
        comment=comment,
        reason=reason,
        if_match=if_version,
        key=key,
        placed=undo,
        drafted=draft,
    )
    return run_async(resolve_hold(hold, answer, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Example:  holdfast holds vote 3fa9c1d2 approve --as user:dana@acme")
def vote(
    hold: Hold,
    decision: Decision,
    data: Data = None,
    comment: Comment = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Vote where several people have to agree; the same as resolve."""
    answer = DecisionInput(decision=decision, data=read_json(data, "--data"), comment=comment)
    return run_async(resolve_hold(hold, answer, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Example:  holdfast holds undo 3fa9c1d2")
def undo(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Undo a decision made with --undo, within its window."""
    return run_async(undo_decision(hold, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(
    epilog="Examples:  holdfast holds bulk approve 3fa9c1d2 77b0ffe1   ·   "
    "holdfast holds bulk approve --query 'flow:refund priority:low' --yes"
)
def bulk(
    decision: Decision,
    holds: Annotated[list[str] | None, typer.Argument(help="Hold ids", metavar="HOLD...")] = None,
    query: Annotated[Text, typer.Option(help="Instead of ids: all open holds that match, up to 500")] = None,
    comment: Comment = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Decide; without it only a preview is printed")
    ] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Decide many holds, each on its own. Holds with a form are left out."""
    options = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(
        resolve_many(decision, holds or [], query=query, comment=comment, sure=yes, options=options)
    )


@group.command(epilog="Example:  holdfast holds cancel 3fa9c1d2 --reason 'ordered twice'")
def cancel(
    hold: Hold,
    reason: Annotated[str, typer.Option(help="Reason, stored with the hold")] = "cancelled",
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Withdraw a hold. The run is cancelled unless the flow handles it."""
    return run_async(cancel_hold(hold, reason, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


class DecisionInput(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and its conditions. `placed`: it can be undone for a while."""

    decision: str
    data: Any = None
    comment: str | None = None
    reason: str | None = None
    if_match: int | None = None
    key: str | None = None
    placed: bool = False
    drafted: bool = False  # options that are not given come from the draft

    def filled(self, draft: Submission | None) -> DecisionInput:
        """Raises InputError if there is no draft."""
        if draft is None:
            raise InputError("you have no draft for this hold.", hint="Leave --draft out.")
        data, own = draft.response_data, self.data
        if isinstance(data, dict) and isinstance(own, dict):
            data = {**cast("dict[str, Any]", data), **cast("dict[str, Any]", own)}
        elif own is not None:
            data = own
        comment = draft.comment if self.comment is None else self.comment
        return msgspec.structs.replace(self, data=data, comment=comment)

    def body(self, row: HoldRow) -> dict[str, Any]:
        """Bound to the current question: if the question changes, the answer is refused."""
        return {
            "decision": self.decision,
            "response_data": self.data,
            "comment": self.comment,
            "request_hash": row.request_hash,
        }


async def resolve_hold(which: str, answer: DecisionInput, options: ActorOptions) -> Exit:
    from holdfast.holds.queries.hold_view import hold_view

    async with open_hold_session(options) as session:
        row = await session.find(which)
        if answer.drafted:
            answer = answer.filled(await session.holds.draft(session.actor, row.id))
        conditions: dict[str, Any] = {
            "if_match": answer.if_match,
            "idempotency_key": answer.key,
            "reason": answer.reason,
        }
        decide = session.holds.place if answer.placed else session.holds.resolve
        done = await decide(session.actor, row.id, answer.body(row), **conditions)
    if options.json:
        print_json(hold_view(done.row, replay=done.replay))
        return Exit.ok
    print_line(_decision_text(done.row, answer, replay=done.replay))
    if done.row.status is HoldStatus.resolved:
        print_note(f"A worker resumes the run, or run: {command('resume', row.run[:8], options.store)}")
    return Exit.ok


def _decision_text(row: HoldRow, answer: DecisionInput, *, replay: bool) -> str:
    from holdfast.holds.actions.conflicts import resolution_of
    from holdfast.holds.queries.summary import SHORT, needs_of

    if replay:
        return f"{short(row)} was already decided: {answer.decision!r}."
    if row.status is HoldStatus.resolved:
        outcome = resolution_of(row).get("decision", answer.decision)
        return f"Decided: {outcome!r} for {short(row)}."
    if row.placed is not None:
        back = f"`holdfast holds undo {row.id[:SHORT]}` undoes it"
        return f"Placed: {answer.decision!r} for {short(row)}; {back}."
    return f"Your vote is counted: {answer.decision!r} for {short(row)}. It needs {needs_of(row)}."


async def undo_decision(which: str, options: ActorOptions) -> Exit:
    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        return await session.holds.undo(session.actor, row.id)

    return await act(
        options,
        which,
        do,
        lambda row: f"Undone; {short(row)} is open again, and your answer is kept as a draft.",
    )


async def cancel_hold(which: str, reason: str, options: ActorOptions) -> Exit:
    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        return await session.holds.cancel(session.actor, row.id, reason=reason)

    return await act(options, which, do, lambda row: f"Withdrawn: {short(row)}.")


async def resolve_many(
    decision: str,
    which: list[str],
    *,
    query: str | None,
    comment: str | None,
    sure: bool,
    options: ActorOptions,
) -> Exit:
    """A preview, unless --yes is given. Exits with 2 if --yes left out a hold."""
    if bool(which) == bool(query):
        raise InputError(
            "name the holds, or select them with --query.", hint="Give one of the two, not both."
        )
    async with open_hold_session(options) as session:
        rows = await _selected_holds(session, which, query)
        found = await session.holds.bulk(
            session.actor,
            [row.id for row in rows],
            {"decision": decision, "comment": comment},
            preview=not sure,
            versions={row.id: row.version for row in rows},
        )
    if options.json:
        print_json(_bulk_json(found))
    else:
        _print_bulk(found, decision, {row.id: row for row in rows})
    return Exit.ok if found.preview or found.done == len(found.items) else Exit.bad_input


async def _selected_holds(session: HoldSession, which: list[str], query: str | None) -> list[HoldRow]:
    if query is not None:
        return list((await find_holds(session, HoldListOptions(query=query, limit=500))).rows)
    return [await session.find(each) for each in which]


def _print_bulk(found: BulkResult, decision: str, rows: dict[str, HoldRow]) -> None:
    from holdfast.holds.queries.summary import SHORT

    left = ", ".join(f"{count} left out ({code.replace('_', ' ')})" for code, count in found.left_out.items())
    verb = "would be decided" if found.preview else "decided"
    print_line(f"{found.done} {verb} {decision!r}" + (f"; {left}." if left else "."))
    others = [item for item in found.items if not item.done]
    if others:
        print_table(("id", "why it is left out"), [(item.hold[:SHORT], item.why or "") for item in others])
    if found.preview and found.done:
        print_note("Nothing is decided yet; add --yes to decide.")


def _bulk_json(found: BulkResult) -> dict[str, Any]:
    return {
        "preview": found.preview,
        "done": found.done,
        "left_out": found.left_out,
        "items": [_item_json(item) for item in found.items],
    }


def _item_json(item: BulkItem) -> dict[str, Any]:
    return {"hold": item.hold, "done": item.done, "code": item.code, "why": item.why}
