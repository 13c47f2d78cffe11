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


def nets_of(layout: Layout) -> list[list[Net]]:
    """Channel 0 is above the first row, the last one below the last row."""
    by_source: list[dict[int, Net]] = [{} for _ in range(len(layout.rows) + 1)]
    for number, route in enumerate(layout.routes):
        if route.back:
            _turn(layout, by_source, number)
        down = route.slots if not route.back else route.slots[-2:0:-1]
        for upper, lower in pairwise(down):
            net = _net(layout, by_source[layout.slots[upper].layer + 1], upper, number)
            net.bottoms.append(Leg(column(layout, lower), number, lower == route.slots[-1]))
    return [list(nets.values()) for nets in by_source]


def _net(layout: Layout, nets: dict[int, Net], slot: int, route: int) -> Net:
    net = nets.setdefault(slot, Net())
    if not any(leg.col == column(layout, slot) and leg.route == route for leg in net.tops):
        net.tops.append(Leg(column(layout, slot), route))
    return net


def _turn(layout: Layout, channels: list[dict[int, Net]], number: int) -> None:
    """A loop: out of its source and around below it, then into its target from above."""
    source, first, *_ = slots = layout.routes[number].slots
    last, target = slots[-2], slots[-1]
    below = _net(layout, channels[layout.slots[source].layer + 1], source, number)
    below.tops.append(Leg(column(layout, first), number))
    # A separate key: this net is in the channel above the slots, not below.
    above = channels[layout.slots[target].layer].setdefault(-1 - last, Net())
    above.bottoms += [Leg(column(layout, last), number), Leg(column(layout, target), number, True)]


def plan(layout: Layout) -> list[list[Net]]:
    """The nets of each channel with their tracks. If two lines would have to swap places exactly, the lower
    row moves a little."""
    for channel in range(len(layout.rows) + 1):
        # Each shift may cause another conflict; the bound ends pictures that cannot be solved.
        for _ in range(64):
            stuck = assign(nets_of(layout)[channel])
            if stuck is None or channel == len(layout.rows):
                break
            _shift(layout, channel, stuck)
    planned = nets_of(layout)
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
