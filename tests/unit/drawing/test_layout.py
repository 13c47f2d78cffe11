"""The one layout: rows, order, places."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from itertools import pairwise

import pytest

from holdfast.drawing import Layout, Picture, PictureEdge, PictureNode, SvgRuler, lay_out, to_svg, to_text
from holdfast.drawing.curves import path_of, ports_of
from holdfast.drawing.svg import tops_of
from holdfast.errors import InputError
from tests.deadlines import HANG
from tests.operations import operations
from tests.unit.drawing.pictures import picture, random_picture

SEEDS = range(60)
Point = tuple[float, float]


def laid(shown: Picture) -> Layout:
    return lay_out(shown, SvgRuler())


def row_of(layout: Layout, name: str) -> int:
    return next(slot.layer for slot in layout.slots if slot.node is not None and slot.node.id == name)


def crossings(layout: Layout) -> int:
    place = {slot: i for row in layout.rows for i, slot in enumerate(row)}
    links = [
        (layout.slots[a].layer, place[a], place[b])
        for route in layout.routes
        for a, b in pairwise(route.slots)
        if layout.slots[b].layer == layout.slots[a].layer + 1
    ]
    return sum(
        (one[1] - other[1]) * (one[2] - other[2]) < 0
        for i, one in enumerate(links)
        for other in links[i + 1 :]
        if one[0] == other[0]
    )


@pytest.mark.covers("TOOL-DRAW-01")
@pytest.mark.parametrize("seed", SEEDS)
def test_edges_lead_down_and_loops_lead_up(seed: int) -> None:
    layout = laid(random_picture(seed))

    for route in layout.routes:
        source, target = (layout.slots[route.slots[i]].layer for i in (0, -1))
        assert route.back is (target <= source)


@pytest.mark.covers("TOOL-DRAW-01")
@pytest.mark.parametrize("seed", SEEDS)
def test_slots_of_a_row_stand_apart(seed: int) -> None:
    layout = laid(random_picture(seed))

    for row in layout.rows:
        slots = [layout.slots[i] for i in row]
        for left, right in pairwise(slots):
            assert left.x + left.width / 2 < right.x - right.width / 2


@pytest.mark.covers("TOOL-DRAW-01")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_edge_runs_through_a_node(seed: int) -> None:
    layout = laid(random_picture(seed))
    tops, heights = tops_of(layout), [layout.row_height(row) for row in range(len(layout.rows))]
    boxes = [_box(layout, slot, tops, heights) for slot in range(len(layout.picture.nodes))]

    for route, ports in zip(layout.routes, ports_of(layout), strict=True):
        for x, y in _points(path_of(layout, route, tops, heights, ports)):
            assert not any(left < x < right and top < y < bottom for left, top, right, bottom in boxes)


def _box(layout: Layout, number: int, tops: list[float], heights: list[float]) -> tuple[float, ...]:
    slot = layout.slots[number]
    top = tops[slot.layer] + (heights[slot.layer] - slot.height) / 2
    return slot.x - slot.width / 2 + 1, top + 1, slot.x + slot.width / 2 - 1, top + slot.height - 1


def _points(path: str) -> list[Point]:
    """Along the lines and curves of an SVG path."""
    found: list[Point] = []
    at: Point = (0, 0)
    for kind, text in re.findall(r"([MLC])([^MLC]+)", path):
        numbers = [float(n) for n in text.split()]
        ends = list(zip(numbers[::2], numbers[1::2], strict=True))
        found += [_between(at, ends, i / 20) for i in range(21 if kind != "M" else 0)]
        at = ends[-1]
    return found


def _between(at: Point, ends: list[Point], t: float) -> Point:
    points = [at, *ends]
    while len(points) > 1:
        points = [(a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t) for a, b in pairwise(points)]
    return points[0]


@pytest.mark.covers("TOOL-DRAW-01")
def test_edges_that_need_not_cross_do_not() -> None:
    ladder = picture(
        ("a", "y"), ("b", "x"), ("a", "z"), ("s", "a"), ("s", "b"), ("x", "e"), ("y", "e"), ("z", "e")
    )

    assert crossings(laid(ladder)) == 0


@pytest.mark.covers("TOOL-DRAW-01")
def test_edges_that_must_cross_do_so_once() -> None:
    assert crossings(laid(picture(("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")))) == 1


def test_a_chain_stands_in_one_line() -> None:
    layout = laid(picture(("a", "b"), ("b", "c"), ("c", "d")))

    assert len({slot.x for slot in layout.slots}) == 1


def test_a_long_edge_stays_straight_beside_what_it_passes() -> None:
    layout = laid(picture(("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")))
    (route,) = [route for route in layout.routes if len(route.slots) > 2]

    assert len({layout.slots[i].x for i in route.slots[1:-1]}) == 1


def test_a_circle_without_a_declared_loop_is_drawn_all_the_same() -> None:
    layout = laid(picture(("a", "b"), ("b", "c"), ("c", "a")))

    assert [row_of(layout, name) for name in "abc"] == [0, 1, 2]
    assert [route.back for route in layout.routes] == [False, False, True]


def test_a_label_has_a_row_of_its_own_between_the_nodes() -> None:
    layout = laid(picture(("a", "b", "when it is so"), ("a", "c")))

    assert (row_of(layout, "b"), row_of(layout, "c")) == (2, 1)
    (label,) = [slot for slot in layout.slots if slot.label]
    assert label.layer == 1


def test_a_picture_of_nothing_is_empty() -> None:
    assert laid(Picture(nodes=())).width == 0
    assert to_text(Picture(nodes=())).plain == ""
    assert to_svg(Picture(nodes=())).startswith("<svg")


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ([PictureNode(id="a", label="a")], [PictureEdge(source="a", target="b")]),
        ([PictureNode(id="a", label="a"), PictureNode(id="a", label="b")], []),
    ],
)
def test_a_picture_that_does_not_fit_together_is_refused(
    nodes: list[PictureNode], edges: list[PictureEdge]
) -> None:
    with pytest.raises(InputError):
        Picture(nodes=tuple(nodes), edges=tuple(edges))


@pytest.mark.covers("TOOL-DRAW-02")
def test_a_picture_is_drawn_the_same_in_every_process() -> None:
    code = (
        "import hashlib; from tests.unit.drawing.pictures import random_picture as p;"
        "from holdfast.drawing import to_svg, to_text;"
        "print(hashlib.sha256((to_svg(p(7, 40)) + to_text(p(7, 40), width=999).plain).encode()).hexdigest())"
    )
    env = {**os.environ, "PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=HANG
    ).stdout.strip()
    here = to_svg(random_picture(7, 40)) + to_text(random_picture(7, 40), width=999).plain

    assert done == hashlib.sha256(here.encode()).hexdigest()


@pytest.mark.covers("TOOL-DRAW-02")
def test_the_work_of_a_layout_grows_with_the_nodes_and_not_with_their_square() -> None:
    shown = random_picture(3, count=1000, reach=12)
    small = random_picture(3, count=250, reach=12)

    svg = to_svg(shown)

    assert operations(lambda: to_svg(shown)) < 8 * operations(lambda: to_svg(small))
    assert svg.count('class="node task"') == 1000
