"""`holdfast holds comment`, `draft`, `ask-back` and `reply`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import Json, Store, Text, run_async
from holdfast.cli.commands.holds.group import As, Comment, Data, Hold, Whose, group
from holdfast.cli.hold_session import ActorOptions, HoldSession, act, open_hold_session, short
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.types.hold import HoldRow

Words = Annotated[str, typer.Argument(help="The text, in quotes", metavar="TEXT")]
Question = Annotated[Text, typer.Option(help="Question id, if several are open", metavar="ID")]


@group.command(epilog="Example:  holdfast holds comment 3fa9c1d2 'The invoice is in the post.'")
def comment(
    hold: Hold,
    text: Words,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Add a comment to a hold."""
    return run_async(add_comment(hold, text, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(
    epilog="Examples:  holdfast holds draft 3fa9c1d2 approve --data @half.json   ·   "
    "holdfast holds draft 3fa9c1d2   ·   holdfast holds draft 3fa9c1d2 --delete"
)
def draft(
    hold: Hold,
    decision: Annotated[Text, typer.Argument(help="Decision, if you have one yet")] = None,
    data: Data = None,
    comment: Comment = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the draft")] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Save your draft of an answer; without options, show it.

    It is not checked, and only you see it.
    """
    options = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(
        edit_draft(
            hold, decision, data=read_json(data, "--data"), comment=comment, delete=delete, options=options
        )
    )


@group.command(
    "ask-back",
    epilog="Examples:  holdfast holds ask-back 3fa9c1d2 'Which invoice?'   ·   "
    "holdfast holds ask-back 3fa9c1d2 'Is this usual?' --to user:sam@acme   ·   "
    "holdfast holds ask-back 3fa9c1d2 --withdraw",
)
def ask_back(
    hold: Hold,
    text: Annotated[Text, typer.Argument(help="The text, in quotes", metavar="TEXT")] = None,
    to: Annotated[
        str, typer.Option(help="requester (who started the run), agent, or user:NAME", metavar="WHOM")
    ] = "requester",
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Withdraw the question")] = False,
    question: Question = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Ask a question before you decide. The deadline is paused until the reply."""
    options = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    if withdraw == (text is not None):
        raise InputError(
            "write a question, or withdraw it with --withdraw.", hint="Give one of the two, not both."
        )
    if text is None:
        return run_async(withdraw_question(hold, question, options))
    return run_async(ask_question(hold, text, to=to, options=options))


@group.command(epilog="Example:  holdfast holds reply 3fa9c1d2 'Number 42.' --as user:ian@acme")
def reply(
    hold: Hold,
    text: Words,
    question: Question = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Reply to a question about a hold."""
    options = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(answer_question(hold, text, question=question, options=options))


async def ask_question(which: str, text: str, *, to: str, options: ActorOptions) -> Exit:
    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        return await session.holds.ask_back(session.actor, row.id, text, to=to)

    return await act(
        options, which, do, lambda row: f"Asked. The deadline of {short(row)} is paused until the reply."
    )


async def withdraw_question(which: str, question: str | None, options: ActorOptions) -> Exit:
    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        return await session.holds.withdraw_question(session.actor, row.id, question=question)

    return await act(options, which, do, lambda row: f"The question about {short(row)} is withdrawn.")


async def answer_question(which: str, text: str, *, question: str | None, options: ActorOptions) -> Exit:
    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        return await session.holds.reply(session.actor, row.id, text, question=question)

    return await act(options, which, do, lambda row: f"Replied to the question about {short(row)}.")


async def add_comment(which: str, text: str, options: ActorOptions) -> Exit:
    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        await session.holds.comment(session.actor, row.id, text)
        return row

    return await act(options, which, do, lambda row: f"Commented on {short(row)}.")


async def edit_draft(
    which: str, decision: str | None, *, data: Any, comment: str | None, delete: bool, options: ActorOptions
) -> Exit:
    """Save the draft, delete it, or, without options, show it."""
    async with open_hold_session(options) as session:
        row = await session.find(which)
        given = {"decision": decision, "response_data": data, "comment": comment}
        if delete:
            await session.holds.delete_draft(session.actor, row.id)
        elif any(value is not None for value in given.values()):
            await session.holds.save_draft(session.actor, row.id, given)
        kept = await session.holds.draft(session.actor, row.id)
    if options.json or (kept is not None and not delete):
        print_json(kept)
    else:
        print_line(f"You have no draft for  {short(row)}.")
    return Exit.ok
