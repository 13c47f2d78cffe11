"""`holds`: the questions that wait for people. Looking at them, and deciding them."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async

group = typer.Typer(
    no_args_is_help=True,
    help="The questions that wait for people: list, open, decide, hand on.",
    epilog="Examples:  holdfast holds list 'priority>=high due<2d'   ·   holdfast holds show 3fa9c1d2   ·   "
    "holdfast holds resolve 3fa9c1d2 approve --as user:dana@acme",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="holds", short_help="The questions that wait for people: list, decide, hand on.")

Hold = Annotated[
    str, typer.Argument(help="A hold's id or its beginning, or a run with one hold", metavar="HOLD")
]
As = Annotated[
    Text,
    typer.Option(
        "--as",
        help="Who acts. With a directory: with that person's rights only; without: with all",
        metavar="WHO",
    ),
]
Whose = Annotated[str, typer.Option("--tenant", help="Whose holds")]
Decision = Annotated[str, typer.Argument(help="One of the hold's options, or text where it has none")]
Data = Annotated[Text, typer.Option(help="What is filled in: JSON, @file or -", metavar="JSON")]
Comment = Annotated[Text, typer.Option("--comment", "-m", help="Why")]
Reason = Annotated[Text, typer.Option(help="Why you override the assignment, where you may")]
QueryWords = Annotated[
    list[str] | None,
    typer.Argument(help="Words to look for, flow:NAME, priority>=high, due<2d and so on", metavar="QUERY"),
]


@group.command(
    "list",
    epilog="Examples:  holdfast holds list   ·   "
    "holdfast holds list 'priority>=high due<2d' flow:refund   ·   "
    "holdfast holds list --view mine --as user:dana@acme   ·   holdfast holds list status:any tag:vat --json",
)
def list_(
    query: QueryWords = None,
    view: Annotated[
        str,
        typer.Option(
            help="all, mine, groups, asked, unrouted, watching, snoozed, done or breakpoints", metavar="VIEW"
        ),
    ] = "all",
    limit: Annotated[int, typer.Option(help="At most so many", min=1, max=500)] = 20,
    after: Annotated[Text, typer.Option(help="Where the page before ended", metavar="CURSOR")] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """What waits for a decision, the most pressing first.

    Words: status: assignee:me group: role: flow: type: priority>=high due<2d due:overdue age>1h tag: run:
    key: has:comment; everything else is looked for in the question.
    """
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.commands.holds__listing import HoldListOptions, list_holds

    wanted = HoldListOptions(query=" ".join(query or ()), view=view, after=after, limit=limit)
    return run_async(list_holds(wanted, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Examples:  holdfast holds show 3fa9c1d2   ·   holdfast holds show 3fa9c1d2 --json")
def show(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """One hold: what is asked, of whom and why, what was said about it, and how to decide it."""
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.commands.hold_show import show_hold

    return run_async(show_hold(hold, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Example:  holdfast holds history 3fa9c1d2")
def history(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """What happened to it, oldest first; each entry with its number in the audit."""
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.commands.hold_show import print_history

    return run_async(print_history(hold, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(
    epilog="Examples:  holdfast holds metrics   ·   holdfast holds metrics flow:refund 'age<7d' --json"
)
def metrics(
    query: QueryWords = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Figures: what waits and how long, how long people take, how often it went otherwise."""
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.commands.holds__listing import print_metrics

    return run_async(
        print_metrics(" ".join(query or ()), ActorOptions(as_=as_, tenant=tenant, store=store, json=json))
    )


@group.command(epilog="Example:  holdfast holds evidence 3fa9c1d2-0000-4000-8000-000000000000 -o refund.json")
def evidence(
    hold: Hold,
    out: Annotated[
        Text, typer.Option("--out", "-o", help="The file; - for stdout; else HOLD.evidence.json")
    ] = None,
    page: Annotated[
        Text, typer.Option("--page", help="Also a page to read: FILE.html or FILE.md", metavar="FILE")
    ] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """One decision as a file that can be checked offline: `holdfast evidence` has more options."""
    from holdfast.cli.commands.evidence__evidencing import EvidenceOptions
    from holdfast.cli.commands.hold_actions__filing import write_hold_evidence
    from holdfast.cli.commands.hold_actor import ActorOptions

    wanted = EvidenceOptions(hold, out, page, None, False, as_ or "user:local")
    return run_async(
        write_hold_evidence(wanted, ActorOptions(as_=as_, tenant=tenant, store=store, json=json))
    )


# ---------------------------------------------------------------------- deciding


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
        int | None, typer.Option("--if-version", help="Only if it is still this version", metavar="N")
    ] = None,
    key: Annotated[Text, typer.Option("--key", help="The same key never decides twice")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Leave a few seconds to take it back")] = False,
    draft: Annotated[bool, typer.Option("--draft", help="With what your draft has, files included")] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Decide it, once; where several have to agree, give one vote.

    What does not fit is refused, the hold stays open, and what you sent is your draft.
    """
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.commands.holds__deciding import DecisionInput
    from holdfast.cli.commands.holds__deciding import resolve_hold as decide
    from holdfast.cli.options.json_input import read_json

    found = read_json(data, "--data")
    said = DecisionInput(
        decision=decision,
        data=found,
        comment=comment,
        reason=reason,
        if_match=if_version,
        key=key,
        placed=undo,
        drafted=draft,
    )
    return run_async(decide(hold, said, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


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
    """One vote where several have to agree; the same as resolve."""
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.commands.holds__deciding import DecisionInput
    from holdfast.cli.commands.holds__deciding import resolve_hold as decide
    from holdfast.cli.options.json_input import read_json

    said = DecisionInput(decision=decision, data=read_json(data, "--data"), comment=comment)
    return run_async(decide(hold, said, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Example:  holdfast holds undo 3fa9c1d2")
def undo(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Take back a decision that was made with --undo, while its window lasts."""
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.commands.holds__deciding import undo_decision

    return run_async(undo_decision(hold, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(
    epilog="Examples:  holdfast holds bulk approve 3fa9c1d2 77b0ffe1   ·   "
    "holdfast holds bulk approve --query 'flow:refund priority:low' --yes"
)
def bulk(
    decision: Decision,
    holds: Annotated[list[str] | None, typer.Argument(help="Which", metavar="HOLD...")] = None,
    query: Annotated[Text, typer.Option(help="Or: all that are open and fit, up to 500")] = None,
    comment: Comment = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, only say what would be")] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """The same decision on many, each by itself. What has something to fill in is left out."""
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.commands.holds__deciding import resolve_many as decide

    seat = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(decide(decision, holds or [], query=query, comment=comment, sure=yes, seat=seat))


@group.command(epilog="Example:  holdfast holds cancel 3fa9c1d2 --reason 'ordered twice'")
def cancel(
    hold: Hold,
    reason: Annotated[str, typer.Option(help="Kept with the hold")] = "cancelled",
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Withdraw the question: no decision, and the run ends as cancelled unless it catches that."""
    from holdfast.cli.commands.hold_actor import ActorOptions
    from holdfast.cli.commands.holds__deciding import cancel_hold

    return run_async(cancel_hold(hold, reason, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))
