"""`holdfast holds shadows`: how often judges who answered beside people agree with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app import Json, Store, Text, run_async
from holdfast.cli.commands.holds.group import As, Whose, group
from holdfast.cli.hold_session import ActorOptions, open_hold_session
from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_note
from holdfast.cli.output.json_output import print_list
from holdfast.cli.output.tables import print_table

if TYPE_CHECKING:
    from holdfast.holds.policies.shadow import Agreement

_HEADS = ("judge", "version", "decided", "agreed", "share", "no answer", "disagreed, last")
_PAGE = 200


@group.command(
    "shadows", epilog="Examples:  holdfast holds shadows   ·   holdfast holds shadows --flow refund --json"
)
def shadows(
    flow: Annotated[Text, typer.Option(help="Only holds of this flow", metavar="NAME")] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Compare the sealed answers of judges with decisions of people.

    Judges answer the holds that a flow declares with `flow.hold(shadow=...)`. One line for each version of a
    judge: a change of its code, criteria, model or prompt is a new version.
    """
    return run_async(show_agreement(flow, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


async def show_agreement(flow: str | None, options: ActorOptions) -> Exit:
    from holdfast.holds.policies.shadow import Agreement
    from holdfast.types.hold import HoldFilter, HoldOrder
    from holdfast.types.status import HoldStatus

    where = HoldFilter(status=(HoldStatus.resolved,), flow=(flow,) if flow else ())
    found: dict[tuple[str, str], Agreement] = {}
    async with open_hold_session(options) as session:
        cursor: str | None = None
        while True:
            page = await session.holds.list(
                session.actor, view="all", where=where, order=HoldOrder.oldest, cursor=cursor, limit=_PAGE
            )
            for row in page.rows:
                if row.terms.shadow is None:
                    continue
                answer = await session.holds.shadow(session.actor, row.id)
                if answer is not None:
                    key = (answer.judge, answer.version)
                    found.setdefault(key, Agreement(answer.judge, answer.version)).count(row.id, answer)
            cursor = page.cursor
            if cursor is None:
                break
    _print(list(found.values()), json=options.json)
    return Exit.ok


def _print(found: list[Agreement], *, json: bool) -> None:
    if json:
        print_list([each.plain() for each in found])
    elif found:
        print_table(_HEADS, [each.cells() for each in found])
    else:
        print_note("No decided hold has a shadow answer. Declare a judge: flow.hold(..., shadow=judge)")
