"""`holds`: the questions that wait for people. Looking at them, and deciding them."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, go

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
Query = Annotated[
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
    query: Query = None,
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
    from holdfast.cli.commands.hold_actor import Seat
    from holdfast.cli.commands.holds__listing import Wanted, list_holds

    wanted = Wanted(query=" ".join(query or ()), view=view, after=after, limit=limit)
    return go(list_holds(wanted, Seat(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Examples:  holdfast holds show 3fa9c1d2   ·   holdfast holds show 3fa9c1d2 --json")
def show(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """One hold: what is asked, of whom and why, what was said about it, and how to decide it."""
    from holdfast.cli.commands.hold_actor import Seat
    from holdfast.cli.commands.hold_show import show_hold

    return go(show_hold(hold, Seat(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Example:  holdfast holds history 3fa9c1d2")
def history(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """What happened to it, oldest first; each entry with its number in the audit."""
    from holdfast.cli.commands.hold_actor import Seat
    from holdfast.cli.commands.hold_show import tell_history

    return go(tell_history(hold, Seat(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(
    epilog="Examples:  holdfast holds metrics   ·   holdfast holds metrics flow:refund 'age<7d' --json"
)
def metrics(
    query: Query = None, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Figures: what waits and how long, how long people take, how often it went otherwise."""
    from holdfast.cli.commands.hold_actor import Seat
    from holdfast.cli.commands.holds__listing import tell_metrics

    return go(tell_metrics(" ".join(query or ()), Seat(as_=as_, tenant=tenant, store=store, json=json)))


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
    from holdfast.cli.commands.evidence__evidencing import Wanted
    from holdfast.cli.commands.hold_actions__filing import evidence
    from holdfast.cli.commands.hold_actor import Seat

    wanted = Wanted(hold, out, page, None, False, as_ or "user:local")
    return go(evidence(wanted, Seat(as_=as_, tenant=tenant, store=store, json=json)))


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
    from holdfast.cli.commands.hold_actor import Seat
    from holdfast.cli.commands.holds__deciding import Said
    from holdfast.cli.commands.holds__deciding import resolve as decide
    from holdfast.cli.options.json_input import read_json

    found = read_json(data, "--data")
    said = Said(
        decision=decision,
        data=found,
        comment=comment,
        reason=reason,
        if_match=if_version,
        key=key,
        placed=undo,
        drafted=draft,
    )
    return go(decide(hold, said, Seat(as_=as_, tenant=tenant, store=store, json=json)))


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
    from holdfast.cli.commands.hold_actor import Seat
    from holdfast.cli.commands.holds__deciding import Said
    from holdfast.cli.commands.holds__deciding import resolve as decide
    from holdfast.cli.options.json_input import read_json

    said = Said(decision=decision, data=read_json(data, "--data"), comment=comment)
    return go(decide(hold, said, Seat(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Example:  holdfast holds undo 3fa9c1d2")
def undo(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Take back a decision that was made with --undo, while its window lasts."""
    from holdfast.cli.commands.hold_actor import Seat
    from holdfast.cli.commands.holds__deciding import undo

    return go(undo(hold, Seat(as_=as_, tenant=tenant, store=store, json=json)))


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
    from holdfast.cli.commands.hold_actor import Seat
    from holdfast.cli.commands.holds__deciding import bulk as decide

    seat = Seat(as_=as_, tenant=tenant, store=store, json=json)
    return go(decide(decision, holds or [], query=query, comment=comment, sure=yes, seat=seat))


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
    from holdfast.cli.commands.hold_actor import Seat
    from holdfast.cli.commands.holds__deciding import cancel

    return go(cancel(hold, reason, Seat(as_=as_, tenant=tenant, store=store, json=json)))
