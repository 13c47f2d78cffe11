"""`inbox`: opens the holds of a person in the terminal, until the person quits."""

from __future__ import annotations

import asyncio
import contextlib
import sys

from holdfast.cli.commands.holds.list import list_holds
from holdfast.cli.hold_session import ActorOptions, HoldListOptions, HoldSession, open_hold_session
from holdfast.cli.inbox.service_calls import Actions
from holdfast.cli.inbox.state import InboxState
from holdfast.cli.main import Exit
from holdfast.cli.output.screen import is_plain, print_line, print_note
from holdfast.errors import HoldfastError, InputError
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow

_WITHOUT = "`holdfast holds list` and `holdfast holds resolve` work without it."


async def open_inbox(actor: ActorOptions, *, view: str | None, query: str) -> Exit:
    """Raises InputError where there is no terminal, or the extra `inbox` is not installed."""
    shown = view or ("all" if actor.as_ is None else "mine")
    if actor.json:
        return await list_holds(HoldListOptions(query=query, view=shown, limit=200), actor)
    # textual reads stdin and draws on stderr.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise InputError("The inbox needs a terminal.", hint="`holdfast holds list` prints the open holds.")
    try:
        from holdfast.cli.inbox.app import InboxApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise InputError(
            "The inbox needs the package textual.",
            hint=f"Install the extra `inbox`: pip install 'holdfast-flow[inbox]'. {_WITHOUT}",
        ) from None
    async with open_hold_session(actor, channel="inbox") as session:
        state = InboxState(me=session.actor.id, view=shown, query=query, now=session.now)
        app = InboxApp(session, await Actions(session).reader.load(state), plain=is_plain())
        await app.run_async()
        if app.return_code:
            return Exit.broken  # textual has printed the error
        await _finish(session, app.state)
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
