"""The timeline of a run: each visit of each node, from when to when, what it waited for, what it cost.

The scale of a timeline's bars: work is to scale, and times when everything only waits are cut short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.checkpoint.visit import Visit, error_text
from holdfast.cli.output.console import clean_text, is_plain, is_terminal, print_note, style_of, width
from holdfast.cli.output.json_output import iso_times
from holdfast.cli.output.tables import print_table
from holdfast.drawing.state_signs import columns, shortened
from holdfast.model.graph import Graph
from holdfast.model.shown_names import shown_name
from holdfast.reports.run_graph import waiting_text
from holdfast.runs.history.visits import Visits
from holdfast.types.human_time import human_duration

IDLE_SHARE = 0.15
"""A wait is drawn at most as long as this part of all the work."""

Stretch = tuple[int, int]


class Axis:
    """From instants to columns 0 .. room - 1. `cut`: some of the waiting is drawn shorter than it was."""

    def __init__(self, visits: Sequence[Visit], room: int, now: int) -> None:
        self._room = room
        begin = min(visit.started_at for visit in visits)
        end = max(visit.ended_at or now for visit in visits)
        self._marks = [(begin, 0.0)]
        worked = _worked(visits, now)
        most = max(sum(high - low for low, high in worked) * IDLE_SHARE, 1.0)
        at, drawn, self.cut = begin, 0.0, False
        for low, high in [*worked, (end, end)]:
            idle = max(low - at, 0)
            self.cut = self.cut or idle > most
            drawn += min(idle, most)
            self._marks.append((low, drawn))
            drawn += high - low
            self._marks.append((high, drawn))
            at = high
        self._length = max(drawn, 1.0)

    def column(self, instant: int) -> int:
        (low, before), (high, after) = self._around(instant)
        share = (instant - low) / (high - low) if high > low else 0.0
        return max(
            min(int((before + (after - before) * share) / self._length * self._room), self._room - 1), 0
        )

    def _around(self, instant: int) -> tuple[tuple[int, float], tuple[int, float]]:
        for left, right in zip(self._marks, self._marks[1:], strict=False):
            if instant < right[0]:
                return left, right
        return self._marks[-1], self._marks[-1]


def _worked(visits: Sequence[Visit], now: int) -> list[Stretch]:
    """When at least one node was at work: neither waiting itself nor only around others."""
    around = {visit.scope for visit in visits}
    found: list[Stretch] = []
    for visit in visits:
        if not any(scope.startswith(f"{visit.label}.{visit.visit}[") for scope in around):
            found += _at_work(visit, now)
    return _merged(sorted(found))


def _at_work(visit: Visit, now: int) -> list[Stretch]:
    at, found = visit.started_at, list[Stretch]()
    for wait in sorted(visit.waits, key=lambda wait: wait.since):
        if wait.since > at:
            found.append((at, wait.since))
        at = max(at, wait.until or now)
    end = visit.ended_at or now
    return [*found, (at, end)] if end > at else found


def _merged(stretches: list[Stretch]) -> list[Stretch]:
    merged: list[Stretch] = []
    for low, high in stretches:
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


SHOWN = 60
"""Visits that a timeline tells unless asked for all."""

_BARS = {
    "work": ("█", "#"),
    "person": ("░", "."),
    "message": ("░", "."),
    "time": ("·", "-"),
    "retry": ("·", "-"),
    "failed": (" ", " "),
}


def print_timeline(visits: Visits, now: int, *, graph: Graph | None = None, limit: int = SHOWN) -> None:
    """The newest ones, oldest first; what is left out is counted."""
    found = visits.all()
    shown = found[-limit:] if limit else found
    if not shown:
        return
    begin = min(visit.started_at for visit in shown)
    if is_terminal():
        _grid(shown, begin, now, graph)
    else:
        print_table(_HEADS, [_cells(visit, begin, now, graph) for visit in shown])
    left = visits.left_out + len(found) - len(shown)
    if left:
        print_note(f"{left} earlier visits are left out; --all shows them, --json has everything.")


_HEADS = (
    "node",
    "visit",
    "state",
    "start",
    "took",
    "attempts",
    "steps",
    "waited for",
    "tokens",
    "cost",
    "error",
)


def _cells(visit: Visit, begin: int, now: int, graph: Graph | None) -> tuple[str, ...]:
    return (
        shown_name(visit.label, graph),
        str(visit.visit),
        visit.state,
        f"+{human_duration(visit.started_at - begin)}",
        human_duration((visit.ended_at or now) - visit.started_at),
        str(visit.attempts),
        str(visit.steps or ""),
        waiting_text(visit, now),
        str(visit.tokens or ""),
        money(visit.cost),
        _why(visit),
    )


def _why(visit: Visit) -> str:
    error = visit.last_error_text
    return " ".join(error.split())


def money(cost: float) -> str:
    return f"{cost:.4f}".rstrip("0").rstrip(".") if cost else ""


def _grid(shown: Sequence[Visit], begin: int, now: int, graph: Graph | None) -> None:
    """In a terminal: a line and a bar for each visit, and what was out of the ordinary as far as it fits."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [_cells(visit, begin, now, graph) for visit in shown]
    rows = [(shortened(each[0], 32), each[2], *each[3:5]) for each in cells]
    taken = [max(columns(row[i]) for row in rows) for i in range(4)]
    room = max(min((width() - sum(taken)) // 3, 32), 8)
    rest = width() - sum(taken) - room - 18
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for head, wide in zip(("node", "", "start", "took"), taken, strict=True):
        justify = "right" if head in ("start", "took") else "left"
        grid.add_column(head, no_wrap=True, min_width=max(wide, len(head)), justify=justify)
    axis = Axis(shown, room, now)
    grid.add_column("waits cut short" if axis.cut and room > 15 else "", no_wrap=True, min_width=room)
    grid.add_column("", no_wrap=True)
    for row, visit in zip(rows, shown, strict=True):
        style = style_of(visit.state)
        result = Text(shortened(_visit_note(visit, now), max(rest, 8)), style="red" if visit.error else "dim")
        drawn = Text(bar(visit, axis, room, now), style=style)
        grid.add_row(row[0], Text(row[1], style=style), row[2], row[3], drawn, result)
    Console(highlight=False).print(grid)


def _visit_note(visit: Visit, now: int) -> str:
    parts = [f"visit {visit.visit}"] if visit.visit > 1 else []
    parts += [f"{visit.attempts} attempts"] if visit.attempts > 1 else []
    parts += [f"{visit.steps} steps"] if visit.steps else []
    waited = waiting_text(visit, now)
    parts += [f"waited for {waited}"] if waited else []
    parts += [f"{visit.tokens} tokens"] if visit.tokens else []
    parts += [f"cost {money(visit.cost)}"] if visit.cost else []
    parts += [_why(visit)] if _why(visit) else []
    return clean_text(", ".join(" ".join(part.split()) for part in parts))


def bar(visit: Visit, axis: Axis, room: int, now: int) -> str:
    """When it worked and when it waited, on one scale for all."""
    plain = is_plain()
    first, last = axis.column(visit.started_at), axis.column(visit.ended_at or now)
    drawn = [" "] * room
    for at in range(first, last + 1):
        drawn[at] = _BARS["work"][plain]
    for wait in visit.waits:
        high = last if wait.until is None else min(axis.column(wait.until), last)
        for at in range(max(axis.column(wait.since), first), high + (wait.until is None)):
            drawn[at] = _BARS[wait.kind][plain]
    return "".join(drawn)


_SHOWN = (
    "label", "node", "scope", "visit", "started_at", "ended_at", "state", "outcome", "attempts", "work_us",
    "steps", "tokens", "cost", "emitted", "said", "progress", "run",
)  # fmt: skip


def timeline_json(visits: Visits) -> list[dict[str, Any]]:
    """All of it; instants in ISO 8601, durations in microseconds."""
    import msgspec

    return [
        {
            **iso_times({name: getattr(visit, name) for name in _SHOWN}),
            "error": visit.error_text,
            "waits": [iso_times(msgspec.structs.asdict(wait)) for wait in visit.waits],
            "retries": [
                iso_times({"at": retry.at, "error": error_text(retry.error)}) for retry in visit.retries
            ],
        }
        for visit in visits.all()
    ]
