"""How much a layout computes, whatever the graph: pictures of strangers are laid out by servers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest

from holdfast.drawing import Picture, PictureEdge, PictureNode, SvgRuler, from_graph, lay_out, to_svg, to_text
from holdfast.drawing.layers import count_slots, make_rows
from holdfast.drawing.layout import MOST_SLOTS, is_tangled
from holdfast.drawing.node_boxes import positions_of
from holdfast.drawing.placed_picture import placed
from holdfast.errors import InputError
from holdfast.model.graph import Graph, GraphSpec, MapSpec, Node, NodeKind
from tests.operations import operations
from tests.unit.drawing.pictures import random_picture, tangle

DRAWS = (positions_of, placed, to_svg, to_text)


def nodes(count: int) -> tuple[PictureNode, ...]:
    return tuple(PictureNode(id=f"n{i}", label=f"n{i}") for i in range(count))


def edges(*pairs: tuple[int, int]) -> tuple[PictureEdge, ...]:
    return tuple(PictureEdge(source=f"n{a}", target=f"n{b}") for a, b in pairs)


def side_by_side() -> Picture:
    """Nodes side by side with thousands of edges each."""
    return Picture(nodes=nodes(4), edges=edges(*((i % 2, 2 + i // 2 % 2) for i in range(2000))))


def dense_rows() -> Picture:
    return Picture(nodes=nodes(120), edges=edges(*((i % 60, 60 + i * 7 % 59) for i in range(2000))))


def turning() -> Picture:
    """As many loops as rows."""
    chain = [(i, i + 1) for i in range(299)]
    return Picture(nodes=nodes(300), edges=edges(*chain, *((i % 300, i % 300) for i in range(600))))


def nested() -> Picture:
    """Many insides, each below the limit."""
    inside = tangle(20, 60)
    held = (msgspec.structs.replace(node, inside=inside) for node in nodes(10))
    return Picture(nodes=tuple(held))


def star() -> Picture:
    return Picture(nodes=nodes(300), edges=edges(*((0, 1 + i % 299) for i in range(900))))


@pytest.mark.covers("TOOL-DRAW-02")
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize(
    "shape",
    [lambda: tangle(150, 600), lambda: tangle(30, 100), side_by_side, dense_rows, turning, nested, star],
    ids=["tangle", "just below", "side by side", "dense rows", "turning", "nested", "star"],
)
def test_the_work_of_a_layout_is_bounded_by_nodes_and_edges(
    shape: Callable[[], Picture], draw: Callable[[Picture], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, most = shape(), 1000
    monkeypatch.setattr("holdfast.drawing.layout.MOST_SLOTS", most)
    whole = [shown, *(node.inside for node in shown.nodes if node.inside is not None)]
    size = sum(len(each.nodes) + 2 * len(each.edges) for each in whole)

    # What is kept apart costs the same for any picture; the rest grows with nodes and edges.
    assert operations(lambda: draw(shown)) < 500 * most + 300 * size


@pytest.mark.covers("TOOL-DRAW-02")
def test_the_work_of_a_tangled_layout_doubles_with_its_size() -> None:
    small, large = tangle(200, 800), tangle(400, 1600)
    assert is_tangled(small)

    for draw in DRAWS:
        assert operations(lambda draw=draw: draw(large)) < 3 * operations(lambda draw=draw: draw(small))


@pytest.mark.covers("TOOL-DRAW-01")
@pytest.mark.parametrize("label", ["", "when it is so"])
def test_tangled_picture_has_every_node_apart_in_rows_that_lead_down(label: str) -> None:
    shown = tangle(200, 1500, label)
    layout = lay_out(shown, SvgRuler())

    assert len(layout.slots) <= len(shown.nodes) + 2 * len(shown.edges)
    for route in layout.routes:
        source, target = (layout.slots[route.slots[i]].layer for i in (0, -1))
        assert route.back is (target <= source)
    for row in layout.rows:
        for left, right in pairwise(layout.slots[i] for i in row):
            assert left.x + left.width / 2 < right.x - right.width / 2
    svg = to_svg(shown)
    assert (svg.count('class="node task"'), svg.count('class="line"')) == (200, 1500)
    picture = placed(shown)
    assert (len(picture.nodes), len(picture.edges)) == (200, 1500)
    assert len(positions_of(shown)) == 200
    assert to_text(shown, width=100).plain.count("\n") >= 199
    # The rows are those of the layout with few crossings.
    rows = make_rows(shown)
    assert [slot.layer for slot in rows.slots[:200]] == [slot.layer for slot in layout.slots[:200]]
    assert len(rows.slots) == count_slots(shown) > MOST_SLOTS


def test_ordinary_pictures_are_drawn_as_before() -> None:
    """A change of this value is a change of the pictures that people know."""
    drawn = hashlib.sha256()
    for seed in range(40):
        shown = random_picture(seed)
        drawn.update(to_svg(shown).encode() + to_text(shown, width=200).plain.encode())
        drawn.update(msgspec.json.encode([positions_of(shown), placed(shown)]))
    large = random_picture(3, count=300, reach=12)
    drawn.update(to_svg(large).encode())
    assert drawn.hexdigest() == "aa976280cc5bf03368c8e572727abeef5167abe28b9edb4c1be3ff867effb811"


@pytest.mark.covers("TOOL-DRAW-02")
def test_bodies_of_bodies_that_are_too_much_to_draw_are_refused_before_they_are_copied() -> None:
    spec = GraphSpec(name="g0", nodes=tuple(Node(id=f"n{i}") for i in range(10)), edges=(), start=("n0",))
    for depth in range(1, 30):
        body = MapSpec(over="items", into="found", body=spec.name)
        held = tuple(Node(id=f"n{i}", kind=NodeKind.map, map=body) for i in range(10))
        spec = GraphSpec(name=f"g{depth}", nodes=held, edges=(), start=("n0",), subgraphs=(spec,))
    graph = Graph(spec)

    with pytest.raises(InputError, match="nodes and edges to draw"):
        from_graph(graph, expand=True)
    _, first, second, *_ = from_graph(graph, expand=["n0", "n0/n1"]).nodes
    assert first.inside is not None
    assert second.closed
