"""What `top` shows: figures, lanes, workers; the same for a screen and for a pipe.

Tables that fit: where the terminal is narrow, what matters least is left out.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from rich.cells import cell_len

from holdfast.cli.inbox.screen import ScreenFrame
from holdfast.cli.inbox.text_spans import Line, Span, cut, fitted, flat, length, padded
from holdfast.cli.top.figures import OLDER, SILENT, FleetSnapshot
from holdfast.types.clock import MICROS
from holdfast.types.fleet import WorkerRow
from holdfast.types.human_time import ago, clock_time, human_duration

_GAP = 2


class Column(msgspec.Struct, frozen=True):
    """`matters`: the least is left out first. The first column of a table stays, and is cut where need be."""

    head: str
    cells: list[Span]
    matters: int = 0
    right: bool = True

    @property
    def wide(self) -> int:
        return max(cell_len(self.head), *(cell_len(text) for text, _ in self.cells), 0)


def table(columns: list[Column], width: int) -> list[Line]:
    """A head and a line for each row, none of them wider than that."""
    first, *rest = columns
    kept = sorted(rest, key=lambda column: -column.matters)
    while kept and _sum(kept) + min(first.wide, width // 4) > width:
        kept.pop()
    shown = [column for column in rest if column in kept]
    name = max(min(first.wide, width - _sum(shown)), 1)
    head: Line = [(padded(first.head, name), "dim")]
    head += [(_cell(column, column.head), "dim") for column in shown]
    lines = [head]
    for i, (text, style) in enumerate(first.cells):
        line: Line = [(padded(cut(flat(text), name), name), style)]
        line += [(_cell(column, column.cells[i][0]), column.cells[i][1]) for column in shown]
        lines.append(line)
    return lines


def _sum(columns: list[Column]) -> int:
    return sum(column.wide + _GAP for column in columns)


def _cell(column: Column, text: str) -> str:
    fill = " " * (column.wide - cell_len(text))
    gap = " " * _GAP
    return gap + (fill + text if column.right else text + fill)


T = TypeVar("T")

LATE: Final = 10 * MICROS
"""Microseconds from which what is due and not done deserves a colour."""
_HEADS: Final = 7
_SHARE: Final = 2 / 5
_STATES: Final = {"working": "", "draining": "warm", SILENT: "alert"}


def frame(seen: FleetSnapshot, width: int, height: int, said: str = "") -> ScreenFrame:
    """Exactly as many lines as the terminal has."""
    foot: list[Line] = [[(cut(said, width), "alert")]] if said else []
    foot.append([(cut(f"q leave   {clock_time(seen.at)}", width), "dim")])
    body = lines(seen, width, height - len(foot))
    body += [[] for _ in range(height - len(body) - len(foot))]
    return ScreenFrame([*(fitted(line, width) for line in body[: height - len(foot)]), *foot][-height:])


def lines(seen: FleetSnapshot, width: int, height: int | None = None) -> list[Line]:
    """`height` None: all of it."""
    heads = [each for line in _figures(seen) for each in _folded(line, width)]
    room = None if height is None else max(height - len(heads) - 4, 2)
    lanes, workers = len(seen.figures.lanes), len(seen.workers)
    most = lanes if room is None else max(min(lanes, round(room * _SHARE)), min(lanes, room - workers), 1)
    left = workers if room is None else max(room - most, 1)
    return [*heads, [], *_lanes(seen, width, most), [], *_workers(seen, width, left)]


def _figures(seen: FleetSnapshot) -> list[tuple[str, list[Span]]]:
    result = seen.figures
    runs: list[Span] = [(f"{result.statuses.get(name, 0)} {word}", "") for name, word in _WORDS.items()]
    runs += [(f"{result.dead} dead", "alert")] if result.dead else []
    outbox: list[Span] = [(f"{result.outbox_waiting} waiting", "")] if result.outbox_waiting else []
    outbox += [(f"{result.outbox_dead} dead", "alert")] if result.outbox_dead else []
    found = [("Fleet", _fleet(seen)), ("Runs", runs), ("Holds", _holds(seen)), ("Late", _late(seen))]
    return [*found, ("Outbox", outbox)] if outbox else found


def _fleet(seen: FleetSnapshot) -> list[Span]:
    alive = seen.alive
    silent, releases = len(seen.workers) - len(alive), sorted({row.release for row in alive})
    return [
        (f"{len(alive)} {'worker' if len(alive) == 1 else 'workers'}", "" if alive else "alert"),
        (f"{seen.busy} of {seen.room} busy", ""),
        (f"{_rate(seen.records_per_second)} records/s", ""),
        (f"{_rate(seen.ended_per_second)} runs/s", ""),
        *([(f"{silent} silent", "alert")] if silent else []),
        *([(f"releases {', '.join(releases)}", "warm")] if len(releases) > 1 else []),
    ]


def _holds(seen: FleetSnapshot) -> list[Span]:
    found: list[Span] = [
        (f"{count} {age}", "warm" if age == OLDER else "") for age, count in seen.holds.items() if count
    ]
    return [*found, (f"oldest {_whole(seen.figures.oldest_hold)}", "")] if found else [("none wait", "dim")]


def _late(seen: FleetSnapshot) -> list[Span]:
    result = seen.figures
    lags = {"timers": result.timer_lag, "holds": result.hold_lag, "schedules": result.schedule_lag}
    found: list[Span] = [
        (f"{what} {human_duration(lag)}", "alert" if lag > LATE else "") for what, lag in lags.items() if lag
    ]
    return found or [("nothing", "dim")]


_WORDS: Final = {
    "pending": "pending",
    "running": "running",
    "resumable": "resumable",
    "waiting": "waiting",
    "pending_input": "wait for people",
}


def _folded(line: tuple[str, list[Span]], width: int) -> list[Line]:
    """Its parts one after another, on as many lines as they take."""
    name, parts = line
    found: list[Line] = [[(f"{name:{_HEADS}}", "bold")]]
    for i, (text, style) in enumerate(parts):
        glue = "" if i == 0 else " · "
        if length(found[-1]) + len(glue) + len(text) > width and i > 0:
            found.append([(" " * _HEADS, "")])
            glue = ""
        found[-1] += [(glue, "dim"), (text, style)]
    return found


def _lanes(seen: FleetSnapshot, width: int, most: int) -> list[Line]:
    lanes = sorted(seen.figures.lanes, key=lambda lane: (-lane.ready, lane.lane))
    shown = _first(lanes, most)
    if not shown:
        return [[("No run is ready, and none is under way.", "dim")]]
    columns = [
        Column("LANE", [(flat(lane.lane), "") for lane in shown]),
        Column("READY", [(f"{lane.ready:,}", "bold" if lane.ready else "dim") for lane in shown], 9),
        Column("OLDEST", [_oldest(lane.oldest) for lane in shown], 8),
        Column("RUNNING", [(f"{lane.running:,}", "") for lane in shown], 7),
    ]
    if any(lane.in_line for lane in lanes):  # held back by limits
        columns.append(Column("IN LINE", [(f"{lane.in_line:,}", "") for lane in shown], 6))
    return [*table(columns, width), *_more(len(lanes) - len(shown))]


def _oldest(age: int) -> Span:
    return (human_duration(age), "warm" if age > LATE else "") if age else ("-", "dim")


def _workers(seen: FleetSnapshot, width: int, most: int) -> list[Line]:
    rows = sorted(seen.workers, key=lambda row: (row.until <= seen.at, row.name))
    if not rows:
        return [[("No worker is alive. Start one: holdfast worker FLOW...", "alert")]]
    shown = _first(rows, most)
    styles = [_STATES[seen.state(row)] for row in shown]

    def column(head: str, cells: list[str], matters: int, *, right: bool = True) -> Column:
        return Column(
            head, [(flat(text), style) for text, style in zip(cells, styles, strict=True)], matters, right
        )

    columns = [
        column("WORKER", [row.name for row in shown], 0),
        column("STATE", [seen.state(row) for row in shown], 8, right=False),
        column("BUSY", [f"{row.busy}/{row.concurrency}" for row in shown], 9),
        column("HOT", [str(row.hot) for row in shown], 3),
        column("RECORDS/S", [_rate(row.records_per_second) for row in shown], 6),
        column("RUNS/S", [_rate(row.ended_per_second) for row in shown], 5),
        column("SEEN", [ago(row.seen_at, seen.at) for row in shown], 7),
        column("UP", [_whole(seen.at - row.started_at) for row in shown], 4),
        column("LANES", [_lanes_of(row) for row in shown], 2, right=False),
        column("RELEASE", [row.release for row in shown], 1, right=False),
    ]
    return [*table(columns, width), *_more(len(rows) - len(shown))]


def _lanes_of(row: WorkerRow) -> str:
    return "all" if row.lanes is None else cut(", ".join(row.lanes), 30)


def _whole(micros: int) -> str:
    return human_duration(max(micros, 0) // MICROS * MICROS) if micros >= MICROS else "0 s"


def _rate(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def _first(rows: list[T], most: int) -> list[T]:
    """Where not all fit there is a line less: it says how many are left out."""
    return rows if len(rows) <= most else rows[: max(most - 1, 1)]


def _more(count: int) -> list[Line]:
    return [[(f"and {count} more", "dim")]] if count > 0 else []
