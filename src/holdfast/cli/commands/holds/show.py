"""`holdfast holds show` and `holds history`: one hold, its comments and its history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.cli.app import Json, Store, run_async
from holdfast.cli.commands.holds.group import As, Hold, Whose, group
from holdfast.cli.hold_session import ActorOptions, HoldSession, open_hold_session
from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.forms import decided_lines, form_lines, sample_data
from holdfast.cli.output.json_output import brief, print_json, print_list
from holdfast.cli.output.results import command
from holdfast.cli.output.tables import print_fields, print_table
from holdfast.types.clock import iso
from holdfast.types.human_time import clock_time
from holdfast.types.status import HOLD_LABELS, HoldStatus

if TYPE_CHECKING:
    from holdfast.holds.actions.submission import Submission
    from holdfast.holds.policies.shadow import ShadowAnswer
    from holdfast.holds.queries.history import Entry
    from holdfast.types.hold import HoldRow, Note


@group.command(epilog="Examples:  holdfast holds show 3fa9c1d2   ·   holdfast holds show 3fa9c1d2 --json")
def show(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Show a hold: question, assignee, comments, and how to decide it."""
    return run_async(show_hold(hold, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Example:  holdfast holds history 3fa9c1d2")
def history(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Show a hold's history, oldest first, with audit record numbers."""
    return run_async(print_history(hold, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


async def show_hold(which: str, options: ActorOptions) -> Exit:
    """If a person is named, it is recorded that they have seen the hold."""
    from holdfast.holds.queries.decided_values import decided_values
    from holdfast.holds.queries.hold_view import hold_view

    async with open_hold_session(options) as session:
        row = await session.find(which)
        if options.as_ is not None:
            await session.holds.seen(session.actor, row.id)
        comments = await session.holds.comments(session.actor, row.id)
        draft = await session.holds.draft(session.actor, row.id)
        votes = await votes_of(session, row)
        shadow = await session.holds.shadow(session.actor, row.id)
        now = session.now
    if options.json:
        shown = {"comments": [comment_json(each) for each in comments], "draft": draft, "votes": votes}
        values = [msgspec.to_builtins(each) for each in decided_values(row)]
        if shadow is not None:
            shown["shadow"] = msgspec.to_builtins(shadow)
        print_json({**hold_view(row), **shown, "values": values})
        return Exit.ok
    print_line(row.prompt or f"{row.flow} at {row.node}", style="bold")
    print_line()
    shadows = [] if shadow is None else [("shadow", shadow_text(shadow))]
    print_fields([*facts_of(row, now), *(("voted", vote) for vote in votes), *shadows])
    _print_details(row, comments, draft, now, options.store)
    return Exit.ok


async def votes_of(session: HoldSession, row: HoldRow) -> list[str]:
    """`user:dana@acme: approve`, if several people must agree."""
    from holdfast.holds.actions.vote import ballots_of

    if row.terms.approval.mode == "any":
        return []
    return [f"{each.person}: {each.decision}" for each in await ballots_of(session.holds.ctx, row)]


def shadow_text(shadow: ShadowAnswer) -> str:
    """`risk: approve (90% sure), as people decided. Small amount.`"""
    if shadow.error or not shadow.intact:
        return f"{shadow.judge}: {shadow.error or 'the answer was changed after it was sealed'}"
    if shadow.decision is None:
        return f"{shadow.judge} has answered; shown after the decision (sealed {shadow.sealed[:12]})"
    sure = "" if shadow.confidence is None else f" ({shadow.confidence:.0%} sure)"
    agrees = {True: ", as people decided", False: ", unlike the people", None: ""}[shadow.agrees]
    return f"{shadow.judge}: {shadow.decision}{sure}{agrees}. {shadow.reasoning}".strip()


def facts_of(row: HoldRow, now: int) -> list[tuple[str, str]]:
    from holdfast.holds.queries.summary import (
        assignee_of,
        claim_of,
        needs_of,
        outcome_of,
        placed_of,
        roughly,
        why_of,
    )

    context = msgspec.json.decode(row.context)
    return [
        ("hold", row.id),
        ("status", HOLD_LABELS[row.status]),
        ("outcome", outcome_of(row, now)),
        ("placed", placed_of(row, now)),
        ("priority", row.priority),
        ("for", assignee_of(row)),
        ("why", why_of(row)),
        ("needs", needs_of(row)),
        ("claimed by", claim_of(row, now)),
        ("asked", f"{clock_time(row.created_at)}, {roughly(now - row.created_at)} ago"),
        ("deadline", _deadline(row, now)),
        ("flow", f"{row.flow}, node {row.node}"),
        ("run", row.run),
        ("entity", row.instance_key or ""),
        ("tags", ", ".join(row.tags)),
        ("context", brief(context) if context else ""),
    ]


def _deadline(row: HoldRow, now: int) -> str:
    from holdfast.holds.queries.summary import countdown

    if row.expires_at is None or row.status is not HoldStatus.pending:
        return ""
    then = {
        "escalate": f"then it goes to {row.escalation_target}",
        "cancel": "then it is withdrawn",
        "default_option": "then its default is taken",
    }
    after = then.get(row.expiry_action or "", "then it expires")
    return f"{clock_time(row.expires_at)}, {countdown(row, now)}; {after}"


def _print_details(
    row: HoldRow, comments: Sequence[Note], draft: Submission | None, now: int, store: str | None
) -> None:
    lines = list(decided_lines(row) if row.resolution else form_lines(row))
    if lines:
        print_line()
    for line in lines:
        print_line(f"  {line}")
    if comments:
        print_line()
    for each in comments:
        print_line(comment_line(each, now))
    if draft is not None:
        print_note(f"Your draft: {brief(msgspec.to_builtins(draft))}")
    if row.status is HoldStatus.pending and not row.read_only:
        print_line()
        for line in _decision_commands(row, store):
            print_line(f"  {line}")


def _decision_commands(row: HoldRow, store: str | None) -> Iterator[str]:
    """What to type to decide it."""
    from holdfast.holds.queries.summary import SHORT

    if not row.options:
        yield command("holds resolve", f"{row.id[:SHORT]} 'YOUR ANSWER'{sample_data(row)}", store)
    for option in row.options or ():
        rest = sample_data(row) + (" -m 'WHY'" if option.requires_comment is True else "")
        if option.id.startswith("-"):
            yield f"{command('holds resolve', row.id[:SHORT] + rest, store)} -- {quote(option.id)}"
        else:
            yield command("holds resolve", f"{row.id[:SHORT]} {quote(option.id)}{rest}", store)


def comment_line(each: Note, now: int) -> str:
    from holdfast.holds.queries.summary import roughly

    comment = comment_json(each)
    word = {"comment": "says", "question": f"asks {comment.get('to', '')}", "reply": "replies"}[each.kind]
    return f"{each.person} {word.strip()}, {roughly(now - each.at)} ago: {comment.get('text', '')}"


def comment_json(each: Note) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(each.body)
    return {"id": each.slot, "kind": each.kind, "by": each.person, "at": iso(each.at), **body}


async def print_history(which: str, options: ActorOptions) -> Exit:
    async with open_hold_session(options) as session:
        entries = await _history(session, which)
    if options.json:
        print_list(entries)
        return Exit.ok
    print_table(("seq", "when", "what"), [_cells(entry) for entry in entries])
    return Exit.ok


async def _history(session: HoldSession, which: str) -> Sequence[Entry]:
    return await session.holds.history(session.actor, (await session.find(which)).id)


def _cells(entry: Entry) -> tuple[str, ...]:
    return (str(entry.seq), entry.at[:19].replace("T", " "), entry.text)
