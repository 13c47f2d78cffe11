"""A run while it goes on: a live view in a terminal, lines in a pipe, JSON lines for machines."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from typing import Any

from holdfast.app.flow import follow
from holdfast.cli.output.console import PATIENCE, is_terminal, live_console, print_line, status_console
from holdfast.cli.output.json_output import to_json
from holdfast.cli.output.results import event_json, event_line
from holdfast.model.graph import Graph
from holdfast.model.shown_names import shown_name
from holdfast.runs.events import reader_of
from holdfast.runs.history.visits import Visits, apply_event
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.event import Event
from holdfast.types.human_time import human_duration

POLL = 0.3
"""Seconds after which another process may have written something that this one was not notified of."""

FRAME = 0.1


async def watch(service: RunService, row: RunRow, driving: asyncio.Future[Any], *, json: bool) -> None:
    """Until the work is done."""
    if json:
        async for event in follow(service, row.id, driving, poll=POLL):
            print(to_json(event_json(event)), flush=True)
    elif is_terminal():
        await _live(service, row, driving)
    else:
        graph = (await reader_of(service, row)).graph
        async for event in follow(service, row.id, driving, poll=POLL):
            _print_event(event, graph)


def _print_event(event: Event, graph: Graph) -> None:
    line = event_line(event, graph)
    if line is not None:
        print_line(line)
        # The reader of the pipe wants it now.
        sys.stdout.flush()


async def _live(service: RunService, row: RunRow, driving: asyncio.Future[Any]) -> None:
    from rich.live import Live

    from holdfast.cli.output.live_view import view_of

    console = live_console()
    view = await view_of(service, row)

    def drawn() -> Any:
        return view.drawn(service.store.now(), console.width, console.height)

    with Live(drawn(), console=console, auto_refresh=False) as live:
        async with _each_frame(lambda: live.update(drawn(), refresh=True)):
            async for event in follow(service, row.id, driving, poll=POLL):
                view.see(event)
        view.stands((await service.get(row.id)).status)
        live.update(drawn(), refresh=True)


@contextlib.asynccontextmanager
async def _each_frame(act: Any) -> AsyncGenerator[None]:
    async def keep_acting() -> None:
        while True:
            act()
            await asyncio.sleep(FRAME)

    acting = asyncio.ensure_future(keep_acting())
    try:
        yield
    finally:
        acting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await acting


async def show_slow_progress(service: RunService, row: RunRow, driving: asyncio.Future[Any]) -> None:
    """Without --watch: what takes longer than two seconds says what it is at, on stderr in a terminal."""
    console = status_console()
    if console is None or (await asyncio.wait([driving], timeout=PATIENCE))[0]:
        return
    visits, graph = Visits(keep=0), (await reader_of(service, row)).graph
    with console.status("", spinner="dots") as status:
        async with _each_frame(lambda: status.update(_at_work(row, visits, graph, service.store.now()))):
            async for event in follow(service, row.id, driving, poll=POLL):
                apply_event(visits, event)


def _at_work(row: RunRow, visits: Visits, graph: Graph, now: int) -> str:
    from rich.markup import escape

    done = sum(node.done for node in visits.nodes.values())
    names = [
        f"{shown_name(visit.label, graph)} {human_duration(now - visit.started_at)}"
        for visit in visits.open.values()
    ]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return escape(f"{row.flow}: {', '.join(names[:3]) or 'running'}{more} ({done} done)")
