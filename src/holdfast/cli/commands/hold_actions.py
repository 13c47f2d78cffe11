"""`holds`, all but the decision: whose it is, until when, and what is said about it."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, run_async
from holdfast.cli.commands.holds import As, Comment, Data, Hold, Whose, group

Reason = Annotated[Text, typer.Option(help="Why; kept in the audit")]
Words = Annotated[str, typer.Argument(help="In quotes", metavar="TEXT")]
Question = Annotated[Text, typer.Option(help="Which, where several are open", metavar="ID")]
Until = Annotated[str, typer.Argument(help="So long from now (4h, 2d), or a time", metavar="UNTIL")]


@group.command(
    epilog="Examples:  holdfast holds reassign 3fa9c1d2 group:finance   ·   "
    "holdfast holds reassign 3fa9c1d2 user:sam@acme --due 2d --reason 'on leave'"
)
def reassign(
    hold: Hold,
    to: Annotated[str, typer.Argument(help="user:NAME, group:KEY or role:KEY", metavar="WHOM")],
    due: Annotated[Text, typer.Option(help="A new deadline too", metavar="UNTIL")] = None,
    reason: Reason = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Give it to somebody else, who is told. Older links to it are void."""
    from holdfast.cli.commands.hold_actions__arranging import reassign_hold
    from holdfast.cli.commands.hold_actor import ActorOptions

    seat = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(reassign_hold(hold, to, due=due, reason=reason, seat=seat))


@group.command(epilog="Examples:  holdfast holds claim 3fa9c1d2   ·   holdfast holds claim 3fa9c1d2 --for 1h")
def claim(
    hold: Hold,
    lasting: Annotated[Text, typer.Option("--for", help="How long", metavar="DURATION")] = None,
    reason: Reason = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Take it for a while, so that nobody else works on it. An unrouted one becomes yours."""
    from holdfast.cli.commands.hold_actions__arranging import claim_hold
    from holdfast.cli.commands.hold_actor import ActorOptions

    seat = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(claim_hold(hold, lasting=lasting, reason=reason, seat=seat))


@group.command(epilog="Example:  holdfast holds release 3fa9c1d2")
def release(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Let go of what you claimed."""
    from holdfast.cli.commands.hold_actions__arranging import release_hold
    from holdfast.cli.commands.hold_actor import ActorOptions

    return run_async(release_hold(hold, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(
    epilog="Examples:  holdfast holds extend 3fa9c1d2 2d   ·   "
    "holdfast holds extend 3fa9c1d2 2030-01-31T17:00"
)
def extend(
    hold: Hold,
    until: Until,
    reason: Reason = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Give it a later deadline."""
    from holdfast.cli.commands.hold_actions__arranging import extend_hold
    from holdfast.cli.commands.hold_actor import ActorOptions

    return run_async(
        extend_hold(
            hold, until, reason=reason, seat=ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
        )
    )


@group.command(epilog="Example:  holdfast holds comment 3fa9c1d2 'The invoice is in the post.'")
def comment(
    hold: Hold,
    text: Words,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Say something to all who see it; it stays open, or decided."""
    from holdfast.cli.commands.hold_actions__arranging import add_comment
    from holdfast.cli.commands.hold_actor import ActorOptions

    return run_async(add_comment(hold, text, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(
    epilog="Examples:  holdfast holds draft 3fa9c1d2 approve --data @half.json   ·   "
    "holdfast holds draft 3fa9c1d2   ·   holdfast holds draft 3fa9c1d2 --drop"
)
def draft(
    hold: Hold,
    decision: Annotated[Text, typer.Argument(help="As far as you are sure")] = None,
    data: Data = None,
    comment: Comment = None,
    drop: Annotated[bool, typer.Option("--drop", help="Throw it away")] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Keep what you have so far, unchecked and for you alone; without anything, show it."""
    from holdfast.cli.commands.hold_actions__arranging import edit_draft
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.options.json_input import read_json

    seat = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(
        edit_draft(hold, decision, data=read_json(data, "--data"), comment=comment, drop=drop, seat=seat)
    )


@group.command(
    epilog="Examples:  holdfast holds snooze 3fa9c1d2 4h   ·   holdfast holds snooze 3fa9c1d2 --off"
)
def snooze(
    hold: Hold,
    until: Annotated[
        Text, typer.Argument(help="So long from now (4h, 2d), or a time", metavar="UNTIL")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="It is back")] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Out of your own list for a while; its deadline stays."""
    from holdfast.cli.commands.hold_actions__arranging import snooze_hold
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.errors import InputError

    if off == (until is not None):
        raise InputError("say until when, or --off.", hint="Write 4h, 2d or 2030-01-31T09:00.")
    return run_async(snooze_hold(hold, until, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Examples:  holdfast holds watch 3fa9c1d2   ·   holdfast holds watch 3fa9c1d2 --off")
def watch(
    hold: Hold,
    off: Annotated[bool, typer.Option("--off", help="No more")] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Keep an eye on it, whoever decides it: it is in the view `watching`."""
    from holdfast.cli.commands.hold_actions__arranging import watch_hold
    from holdfast.cli.commands.hold_actor import ActorOptions

    return run_async(
        watch_hold(hold, off=off, seat=ActorOptions(as_=as_, tenant=tenant, store=store, json=json))
    )


@group.command(
    "ask-back",
    epilog="Examples:  holdfast holds ask-back 3fa9c1d2 'Which invoice?'   ·   "
    "holdfast holds ask-back 3fa9c1d2 'Is this usual?' --to user:sam@acme   ·   "
    "holdfast holds ask-back 3fa9c1d2 --drop",
)
def ask_back(
    hold: Hold,
    text: Annotated[Text, typer.Argument(help="In quotes", metavar="TEXT")] = None,
    to: Annotated[
        str, typer.Option(help="requester (who started the run), agent, or user:NAME", metavar="WHOM")
    ] = "requester",
    drop: Annotated[bool, typer.Option("--drop", help="Take the question back")] = False,
    question: Question = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Ask for what you need to decide. The deadline stands still until the reply."""
    from holdfast.cli.commands.hold_actions__arranging import ask_question, withdraw_question
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.errors import InputError

    seat = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    if drop == (text is not None):
        raise InputError("ask something, or take it back by --drop.", hint="One of the two.")
    if text is None:
        return run_async(withdraw_question(hold, question, seat))
    return run_async(ask_question(hold, text, to=to, seat=seat))


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
    """Answer what was asked back."""
    from holdfast.cli.commands.hold_actions__arranging import answer_question
    from holdfast.cli.commands.hold_actor import ActorOptions

    seat = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(answer_question(hold, text, question=question, seat=seat))


@group.command(
    epilog="Example:  holdfast holds attach 3fa9c1d2 contract ./contract.pdf --as user:dana@acme",
)
def attach(
    hold: Hold,
    field: Annotated[str, typer.Argument(help="The field of the form that takes it", metavar="FIELD")],
    file: Annotated[str, typer.Argument(help="Which file", metavar="FILE")],
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Keep a file for a field of the form. It is in your draft: `resolve --draft` decides with it."""
    from holdfast.cli.commands.hold_actions__filing import attach_file
    from holdfast.cli.commands.hold_actor import ActorOptions

    return run_async(
        attach_file(hold, field, file, ActorOptions(as_=as_, tenant=tenant, store=store, json=json))
    )


@group.command(
    epilog="Examples:  holdfast holds files 3fa9c1d2   ·   holdfast holds files 3fa9c1d2 --save ./papers"
)
def files(
    hold: Hold,
    save: Annotated[
        Text, typer.Option("--save", help="Write them into this folder", metavar="FOLDER")
    ] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """What was attached to it."""
    from holdfast.cli.commands.hold_actions__filing import list_files
    from holdfast.cli.commands.hold_actor import ActorOptions

    return run_async(list_files(hold, save, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))
