"""`inbox`: the questions that wait for you, in the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.commands.holds.group import As, Whose
from holdfast.cli.hold_session import ActorOptions, HoldListOptions, HoldSession, open_hold_session
from holdfast.cli.main import Exit
from holdfast.cli.output.console import is_plain, print_line, print_note
from holdfast.errors import HoldfastError, InputError
from holdfast.types.clock import MICROS

if TYPE_CHECKING:
    from holdfast.cli.inbox.state import InboxState
    from holdfast.types.hold import HoldRow

_WITHOUT = "`holdfast holds list` and `holdfast holds resolve` work without it."


@app.command(
    epilog="Examples:  holdfast inbox   ·   holdfast inbox --as user:dana@acme   ·   "
    "holdfast inbox --query 'priority>=high'",
)
def inbox(
    query: Annotated[Text, typer.Option(help="Initial search: flow:NAME, priority>=high, ...")] = None,
    view: Annotated[
        Text, typer.Option(help="Initial view: mine, groups, unassigned, watching, all, ...", metavar="VIEW")
    ] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Decide your open holds in the terminal.

    The key ? shows all keys, q quits. A decision takes two keys and can be undone for a few seconds. --json
    prints the list and ends.
    """
    options = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(open_inbox(options, view=view, query=query or ""))


async def open_inbox(actor: ActorOptions, *, view: str | None, query: str) -> Exit:
    """Raises InputError where there is no terminal, or the extra `inbox` is not installed."""
    from holdfast.cli.commands.holds.list import list_holds

    shown = view or ("all" if actor.as_ is None else "mine")
    if actor.json:
        return await list_holds(HoldListOptions(query=query, view=shown, limit=200), actor)
    # textual reads stdin and draws on stderr.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise InputError("the inbox needs a terminal.", hint="`holdfast holds list` prints the open holds.")
    try:
        from holdfast.cli.inbox.app import InboxApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise InputError(
            "the inbox needs the package textual.",
            hint=f"Install the extra `inbox`: pip install 'holdfast-flow[inbox]'. {_WITHOUT}",
        ) from None
    from holdfast.cli.inbox.service_calls import Actions
    from holdfast.cli.inbox.state import InboxState

    async with open_hold_session(actor, channel="inbox") as session:
        state = InboxState(me=session.actor.id, view=shown, query=query, now=session.now)
        shown_app = InboxApp(session, await Actions(session).reader.load(state), plain=is_plain())
        await shown_app.run_async()
        if shown_app.return_code:
            return Exit.broken  # textual has printed the error
        await _finish(session, shown_app.state)
    return Exit.ok


async def _finish(session: HoldSession, state: InboxState) -> None:
    """Decisions that can still be undone are waited for: a person who quits has made them."""
    placed = await _placed(session, state)
    left = [row.placed_until - session.now for row in placed if row.placed_until is not None]
    if left and max(left) > 0:
        what = "1 decision takes" if len(left) == 1 else f"{len(left)} decisions take"
        print_note(
            f"{what} effect in {max(left) / MICROS:.0f} s. After Ctrl-C the next reader of the hold does it."
        )
        await asyncio.sleep(max(left) / MICROS)
    await _placed(session, state)
    if state.decided:
        print_line(f"{state.decided} decided. A worker resumes their runs, or `holdfast resume RUN`.")


async def _placed(session: HoldSession, state: InboxState) -> list[HoldRow]:
    """As they are now: reading one makes a decision whose time is over."""
    found: list[HoldRow] = []
    for hold in state.placed:
        with contextlib.suppress(HoldfastError):
            found.append(await session.holds.get(session.actor, hold))
    return found
