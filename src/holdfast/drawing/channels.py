"""Between two rows of a terminal drawing: assigns a track to each line, so that no two overlap.

All edges of a node leave it together and share a track; edges into a node meet on its last stretch.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from holdfast.drawing.layout import Layout


class Leg(msgspec.Struct):
    """Where a net leaves the channel, and for which route. `arrives`: it ends at the route's target."""

    col: int
    route: int
    arrives: bool = False


class Net(msgspec.Struct):
    """The lines from one slot: ends above (its own, and those of loops that turn below it) and ends below."""

    tops: list[Leg] = []
    bottoms: list[Leg] = []
    track: int = -1

    @property
    def cols(self) -> list[int]:
        return [leg.col for leg in (*self.tops, *self.bottoms)]

    @property
    def straight(self) -> bool:
        return len(set(self.cols)) == 1


def column(layout: Layout, slot: int) -> int:
    return int(layout.slots[slot].x)


class Part(msgspec.Struct, frozen=True):
    """Of a route, in one channel, between two slots: down to the next row, or a loop that turns `below` its
    source or `above` its target."""

    route: int
    first: int
    second: int
    turn: str = ""


def parts_of(layout: Layout) -> list[list[Part]]:
    """By channel: 0 is above the first row, the last one below the last row."""
    found: list[list[Part]] = [[] for _ in range(len(layout.rows) + 1)]
    for number, route in enumerate(layout.routes):
        slots = route.slots
        if route.back:
            below, above = layout.slots[slots[0]].layer + 1, layout.slots[slots[-1]].layer
            found[below].append(Part(number, slots[0], slots[1], "below"))
            found[above].append(Part(number, slots[-2], slots[-1], "above"))
        for upper, lower in pairwise(slots[-2:0:-1] if route.back else slots):
            found[layout.slots[upper].layer + 1].append(Part(number, upper, lower))
    return found


def nets_of(layout: Layout, parts: list[Part]) -> list[Net]:
    """Of one channel, with the columns that the slots have now."""
    nets: dict[int, Net] = {}
    for part in parts:
        first, second = column(layout, part.first), column(layout, part.second)
        if part.turn == "above":
            # A separate key: this net is in the channel above the slots, not below.
            net = nets.setdefault(-1 - part.first, Net())
            net.bottoms += [Leg(first, part.route), Leg(second, part.route, True)]
            continue
        net = _net(layout, nets, part.first, part.route)
        if part.turn:
            net.tops.append(Leg(second, part.route))
        else:
            arrives = part.second == layout.routes[part.route].slots[-1]
            net.bottoms.append(Leg(second, part.route, arrives))
    return list(nets.values())


def _net(layout: Layout, nets: dict[int, Net], slot: int, route: int) -> Net:
    net = nets.setdefault(slot, Net())
    if not any(leg.col == column(layout, slot) and leg.route == route for leg in net.tops):
        net.tops.append(Leg(column(layout, slot), route))
    return net


def plan(layout: Layout) -> list[list[Net]]:
    """The nets of each channel with their tracks. If two lines would have to swap places exactly, the lower
    row moves a little."""
    parts = parts_of(layout)
    for channel, own in enumerate(parts):
        # Each shift may cause another conflict; the bound ends pictures that cannot be solved.
        for _ in range(64):
            stuck = assign(nets_of(layout, own))
            if stuck is None or channel == len(layout.rows):
                break
            _shift(layout, channel, stuck)
    planned = [nets_of(layout, own) for own in parts]
    for nets in planned:
        assign(nets)
    layout.width = max((slot.x + slot.width / 2 for slot in layout.slots), default=0)
    return planned


def _shift(layout: Layout, row: int, col: int) -> None:
    for slot in layout.rows[row]:
        if column(layout, slot) >= col:
            layout.slots[slot].x += 2


def assign(nets: list[Net]) -> int | None:
    """Tracks for all nets that turn; returns a column if that is not possible."""
    turning = sorted((net for net in nets if not net.straight), key=_rank)
    after = [_above(net, turning) for net in turning]
    tracks: list[list[Net]] = []
    waiting = list(range(len(turning)))
    while waiting:
        free = [i for i in waiting if not any(j in waiting for j in after[i])]
        stuck = None if free else waiting[0]
        for i in free or waiting[:1]:
            lowest = 1 + max((turning[j].track for j in after[i]), default=-1)
            _put(turning[i], tracks, lowest)
            waiting.remove(i)
        if stuck is not None:
            tops = {leg.col for j in after[stuck] for leg in turning[j].tops}
            return next(leg.col for leg in turning[stuck].bottoms if leg.col in tops)
    return None


def _rank(net: Net) -> tuple[int, int, int]:
    """Nets with several ends turn first, so that lines that join them later join below."""
    return (-len(net.bottoms), max(net.cols) - min(net.cols), min(net.cols))


def _above(net: Net, others: list[Net]) -> list[int]:
    """Nets that must turn before this one, because it comes down where they start."""
    ends = {leg.col for leg in net.bottoms}
    return [
        i for i, other in enumerate(others) if other is not net and any(t.col in ends for t in other.tops)
    ]


def _put(net: Net, tracks: list[list[Net]], lowest: int) -> None:
    for track in range(max(lowest, 0), len(tracks)):
        if all(_fit(net, other) for other in tracks[track]):
            break
    else:
        track = max(lowest, len(tracks))
        tracks += [[] for _ in range(track + 1 - len(tracks))]
    net.track = track
    tracks[track].append(net)


def _fit(a: Net, b: Net) -> bool:
    """Whether two nets fit on one track: apart, or from both sides into the same end."""
    left, right = (a, b) if min(a.cols) < min(b.cols) else (b, a)
    end, start = max(left.cols), min(right.cols)
    meet = end == start and {leg.col for leg in left.bottoms} == {leg.col for leg in right.bottoms} == {end}
    return end < start - 1 or meet
