"""What `top` shows: figures, lanes, workers; the same for a screen and for a pipe.

Tables that fit: where the terminal is narrow, the least important columns are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import msgspec
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.layout import Layout
from rich.table import Table
from rich.text import Text

from holdfast.cli.output.console import one_line
from holdfast.cli.top.figures import OLDER, SILENT, FleetSnapshot
from holdfast.drawing.state_signs import shortened
from holdfast.types.clock import MICROS
from holdfast.types.fleet import WorkerRow
from holdfast.types.human_time import ago, clock_time, human_duration
from holdfast.types.status import RUN_LABELS, RunStatus

Cell = tuple[str, str]
"""A text and its style."""
ALERT: Final = "bold red"
WARM: Final = "yellow"
LATE: Final = 10 * MICROS
"""Microseconds from which what is due and not done deserves a colour."""
_GAP: Final = 2
_HEADS: Final = 10
_NAMED: Final = 3
_VERSION: Final = 11  # characters of a version: `g1-ab12cd34`
_SHARE: Final = 2 / 5
_LANES_WIDTH: Final = 30
_STATES: Final = {"working": "", "draining": WARM, SILENT: ALERT}

T = TypeVar("T")


class FleetView:
    """Fills a screen; in a pipe it is as long as it needs to be."""

    def __init__(self, seen: FleetSnapshot, message: str = "") -> None:
        self.seen = seen
        self.message = message

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = console.height if console.is_alt_screen else options.height
        if height is None:
            yield self._body(console, options, None)
            return
        foot = [_text(f"q quit   {clock_time(self.seen.at)}", "dim")]
        foot[:0] = [_text(one_line(self.message), ALERT)] if self.message else []
        room = max(height - len(foot), 1)
        page = Layout()
        page.split_column(
            Layout(self._body(console, options, room)), Layout(Group(*foot), size=len(foot), minimum_size=1)
        )
        yield page

    def _body(self, console: Console, options: ConsoleOptions, height: int | None) -> RenderableType:
        """Lanes and workers share the lines below the figures."""
        figures, width = _figures(self.seen), options.max_width
        heads = len(console.render_lines(figures, options.update(height=None), pad=False))
        room = None if height is None else max(height - heads - 4, 2)
        lanes, workers = len(self.seen.figures.lanes), len(self.seen.workers)
        most = lanes if room is None else max(min(lanes, round(room * _SHARE)), min(lanes, room - workers), 1)
        left = workers if room is None else max(room - most, 1)
        return Group(figures, "", *_lanes(self.seen, width, most), "", *_workers(self.seen, width, left))


def lines(seen: FleetSnapshot, width: int) -> list[str]:
    """As plain text."""
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(FleetView(seen))
    return [line.rstrip() for line in captured.get().splitlines()]


def _text(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


class Column(msgspec.Struct, frozen=True):
    """`matters`: the least is left out first. The first column of a table stays, and is cut where need be."""

    head: str
    cells: list[Cell]
    matters: int = 0
    right: bool = True

    @property
    def width(self) -> int:
        return max(cell_len(self.head), *(cell_len(text) for text, _ in self.cells), 0)


def table(columns: list[Column], width: int) -> Table:
    """No wider than that."""
    first, *rest = columns
    kept = sorted(rest, key=lambda column: -column.matters)
    while kept and _sum(kept) + min(first.width, width // 4) > width:
        kept.pop()
    shown = [column for column in rest if column in kept]
    made = Table(box=None, pad_edge=False, padding=(0, 0, 0, _GAP), header_style="dim")
    made.add_column(first.head, no_wrap=True, width=max(min(first.width, width - _sum(shown)), 1))
    for column in shown:
        made.add_column(
            column.head, no_wrap=True, width=column.width, justify="right" if column.right else "left"
        )
    for i in range(len(first.cells)):
        made.add_row(*(_text(*column.cells[i]) for column in (first, *shown)))
    return made


def _sum(columns: list[Column]) -> int:
    return sum(column.width + _GAP for column in columns)


def _figures(seen: FleetSnapshot) -> Table:
    result = seen.figures
    runs: list[Cell] = [(f"{result.statuses.get(each, 0)} {RUN_LABELS[each]}", "") for each in _SHOWN]
    runs += [(f"{result.dead} dead", ALERT)] if result.dead else []
    outbox: list[Cell] = [(f"{result.outbox_waiting} waiting", "")] if result.outbox_waiting else []
    outbox += [(f"{result.outbox_dead} dead", ALERT)] if result.outbox_dead else []
    runs += [(f"{result.suspects} suspect", WARM)] if result.suspects else []
    found = {
        "Fleet": _fleet(seen),
        "Runs": runs,
        "Waits": _waits(seen),
        "Holds": _holds(seen),
        "Late": _late(seen),
    }
    unserved = _unserved(seen)
    found |= {"Unserved": unserved} if unserved else {}
    entities = _entities(seen)
    found |= {"Entities": entities} if entities else {}
    made = Table.grid(padding=0)
    made.add_column(width=_HEADS, style="bold")
    made.add_column(overflow="fold")
    for name, cells in (found | ({"Outbox": outbox} if outbox else {})).items():
        made.add_row(name, Text.assemble(*_separated(cells)))
    return made


def _separated(cells: list[Cell]) -> Iterator[Cell]:
    for i, cell in enumerate(cells):
        if i:
            yield " · ", "dim"
        yield cell


def _fleet(seen: FleetSnapshot) -> list[Cell]:
    alive = seen.alive
    silent, releases = len(seen.workers) - len(alive), sorted({row.release for row in alive})
    return [
        (f"{len(alive)} {'worker' if len(alive) == 1 else 'workers'}", "" if alive else ALERT),
        (f"{seen.busy} of {seen.room} busy", ""),
        (f"{_rate(seen.records_per_second)} records/s", ""),
        (f"{_rate(seen.ended_per_second)} runs/s", ""),
        *([(f"{silent} silent", ALERT)] if silent else []),
        *([(f"releases {', '.join(releases)}", WARM)] if len(releases) > 1 else []),
    ]


def _holds(seen: FleetSnapshot) -> list[Cell]:
    found: list[Cell] = [
        (f"{count} {age}", WARM if age == OLDER else "") for age, count in seen.holds.items() if count
    ]
    return [*found, (f"oldest {_whole(seen.figures.oldest_hold)}", "")] if found else [("none wait", "dim")]


def _waits(seen: FleetSnapshot) -> list[Cell]:
    """Runs that wait use no slot."""
    result = seen.figures
    asleep, asked = result.statuses.get("waiting", 0), result.statuses.get("pending_input", 0)
    if not (asleep or asked or result.timers or seen.hot):
        return [("none", "dim")]
    ends = "" if not result.next_timer else f", the next ends in {human_duration(result.next_timer)}"
    return [
        (f"{asleep} sleeping", ""),
        (f"{asked} waiting for input", ""),
        (f"{seen.hot} in memory", ""),
        (f"{result.timers} timers{ends}", ""),
    ]


def _unserved(seen: FleetSnapshot) -> list[Cell]:
    """What no worker takes."""
    if not seen.alive:
        return []  # the table of workers says so
    found = seen.unserved
    lanes = Counter[str]()
    for each in found.lanes:
        lanes[each.lane] += each.ready
    texts = [f"{count} ready in lane {one_line(lane)}" for lane, count in lanes.most_common(_NAMED)]
    texts += [
        f"{each.ready} of {one_line(each.flow)} {each.version[:_VERSION]}" for each in found.versions[:_NAMED]
    ]
    texts += [f"schedules of {one_line(each.flow)}" for each in found.schedules[:_NAMED]]
    more = len(lanes) + len(found.versions) + len(found.schedules) - len(texts)
    texts += [f"and {more} more"] if more else []
    return [(text, ALERT) for text in texts]


def _entities(seen: FleetSnapshot) -> list[Cell]:
    """Locked by code that still runs after its run was stopped; doctor says what to do."""
    blocked = [(row, each) for row in seen.alive for each in row.blocked]
    texts = [
        f"{one_line(each.entity)} taken by run {each.run[:8]} on {one_line(row.name)} for "
        f"{_whole(seen.at - each.since)}"
        for row, each in blocked[:_NAMED]
    ]
    more = len(blocked) - len(texts)
    texts += [f"and {more} more"] if more else []
    return [(text, ALERT) for text in texts]


def _late(seen: FleetSnapshot) -> list[Cell]:
    result = seen.figures
    lags = {"timers": result.timer_lag, "holds": result.hold_lag, "schedules": result.schedule_lag}
    found: list[Cell] = [
        (f"{what} {human_duration(lag)}", ALERT if lag > LATE else "") for what, lag in lags.items() if lag
    ]
    return found or [("nothing", "dim")]


_SHOWN: Final = (
    RunStatus.pending, RunStatus.running, RunStatus.resumable, RunStatus.waiting, RunStatus.pending_input,
)  # fmt: skip


def _lanes(seen: FleetSnapshot, width: int, most: int) -> list[RenderableType]:
    lanes = sorted(seen.figures.lanes, key=lambda lane: (-lane.ready, lane.lane))
    shown = _first(lanes, most)
    if not shown:
        return [Text("No run is ready, and none is under way.", style="dim")]
    columns = [
        Column("LANE", [(one_line(lane.lane), "") for lane in shown]),
        Column("READY", [(f"{lane.ready:,}", "bold" if lane.ready else "dim") for lane in shown], 9),
        Column("OLDEST", [_oldest(lane.oldest) for lane in shown], 8),
        Column("RUNNING", [(f"{lane.running:,}", "") for lane in shown], 7),
    ]
    if any(lane.in_line for lane in lanes):  # held back by limits
        columns.append(Column("LIMITED", [(f"{lane.in_line:,}", "") for lane in shown], 7))
    return [table(columns, width), *_more(len(lanes) - len(shown))]


def _oldest(age: int) -> Cell:
    return (human_duration(age), WARM if age > LATE else "") if age else ("-", "dim")


def _workers(seen: FleetSnapshot, width: int, most: int) -> list[RenderableType]:
    rows = sorted(seen.workers, key=lambda row: (not row.is_alive(seen.at), row.name))
    if not rows:
        return [Text("No worker is alive. Start one: holdfast worker FLOW...", style=ALERT)]
    shown = _first(rows, most)
    styles = [_STATES[seen.state(row)] for row in shown]

    def column(head: str, cells: list[str], matters: int, *, right: bool = True) -> Column:
        return Column(
            head, [(one_line(text), style) for text, style in zip(cells, styles, strict=True)], matters, right
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
    return [table(columns, width), *_more(len(rows) - len(shown))]


def _lanes_of(row: WorkerRow) -> str:
    return "all" if row.lanes is None else shortened(", ".join(row.lanes), _LANES_WIDTH)


def _whole(micros: int) -> str:
    return human_duration(max(micros, 0) // MICROS * MICROS) if micros >= MICROS else "0 s"


def _rate(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def _first(rows: Sequence[T], most: int) -> Sequence[T]:
    """Where not all fit there is a line less: it says how many are left out."""
    return rows if len(rows) <= most else rows[: max(most - 1, 1)]


def _more(count: int) -> list[RenderableType]:
    return [_text(f"and {count} more", "dim")] if count > 0 else []
