"""Pictures as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from holdfast.drawing import EdgeStyle, Highlight, NodeShape, Picture, PictureEdge, PictureNode, State, to_svg
from tests.unit.drawing.pictures import picture, random_picture

NS = "{http://www.w3.org/2000/svg}"


def parsed(shown: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(shown))


def classes(root: ElementTree.Element) -> list[set[str]]:
    return [set(group.get("class", "").split()) for group in root.iter(f"{NS}g")]


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{NS}text")]


@pytest.mark.covers("TOOL-DRAW-03")
@pytest.mark.parametrize("state", [state for state in State if state])
def test_a_state_is_reported_by_class_sign_and_word(state: State) -> None:
    root = parsed(Picture(nodes=(PictureNode(id="pay", label="pay", state=state, note="3 ms"),)))

    node = next(group for group in root.iter(f"{NS}g") if "node" in group.get("class", ""))
    assert str(state) in node.get("class", "").split()
    assert next(g for g in node.iter(f"{NS}g") if g.get("class") == "sign").find(f"{NS}path") is not None
    assert any(text.endswith("· 3 ms") and len(text) > len("· 3 ms") for text in texts(root))
    assert f".{state}>.box" in to_svg(picture(("a", "b")))


@pytest.mark.covers("TOOL-DRAW-03")
def test_edges_show_labels_loops_failures_and_marks() -> None:
    shown = Picture(
        nodes=tuple(PictureNode(id=name, label=name) for name in "abc"),
        edges=(
            PictureEdge(
                source="a", target="b", label="amount > 100", look=EdgeStyle.conditional, mark=Highlight.taken
            ),
            PictureEdge(source="b", target="a", look=EdgeStyle.loop),
            PictureEdge(source="b", target="c", look=EdgeStyle.failure),
        ),
    )
    root = parsed(shown)

    kinds = [kind for kind in classes(root) if "edge" in kind]
    assert kinds == [{"edge", "conditional", "taken"}, {"edge", "loop"}, {"edge", "failure"}]
    assert "amount > 100" in texts(root)


@pytest.mark.covers("TOOL-DRAW-03")
def test_a_sub_flow_is_drawn_inside_its_node() -> None:
    inner = picture(("first", "second"))
    root = parsed(
        Picture(nodes=(PictureNode(id="child", label="child", shape=NodeShape.subflow, inside=inner),))
    )

    node = next(group for group in root.iter(f"{NS}g") if "subflow" in group.get("class", ""))
    assert {"child", "first", "second"} <= {"".join(t.itertext()) for t in node.iter(f"{NS}text")}
    assert len([g for g in node.iter(f"{NS}g") if "edge" in g.get("class", "")]) == 1


@pytest.mark.covers("TOOL-DRAW-03")
@pytest.mark.parametrize(
    "shape", [s for s in NodeShape if s not in (NodeShape.task, NodeShape.start, NodeShape.end)]
)
def test_each_kind_of_node_has_an_icon_and_a_word_in_the_legend(shape: NodeShape) -> None:
    root = parsed(Picture(nodes=(PictureNode(id="a", label="a", shape=shape),)))

    icons = [group for group in root.iter(f"{NS}g") if group.get("class") == "shape"]
    assert len(icons) == 2
    assert all(len(icon) for icon in icons)


@pytest.mark.covers("TOOL-DRAW-03")
def test_parallel_branches_stand_side_by_side() -> None:
    root = parsed(picture(("s", "a"), ("s", "b")))
    places = [g.get("transform", "") for g in root.iter(f"{NS}g") if g.get("class") == "node task"]

    ys = {place.rpartition(" ")[2] for place in places[1:]}
    assert len(ys) == 1
    assert len(set(places)) == 3


def test_every_text_is_escaped() -> None:
    nasty = "<script>alert('x')</script>&\""
    node = PictureNode(id=nasty, label=nasty, note=nasty, detail=nasty, state=State.done)
    shown = Picture(nodes=(node,), edges=(PictureEdge(source=nasty, target=nasty, label=nasty),), title=nasty)

    assert "<script" not in to_svg(shown)
    assert parsed(shown).find(f"{NS}title").text == nasty  # type: ignore[union-attr]


def test_those_who_do_not_see_it_are_reported_what_it_shows() -> None:
    root = parsed(picture(("assess", "pay", "amount > 100"), assess="done"))

    assert root.get("role") == "img"
    assert root.get("aria-label") == "a picture: 2 nodes"
    text = root.findtext(f"{NS}desc") or ""
    assert text == "assess (done) leads to pay when amount > 100; pay."


def test_colours_are_there_for_light_and_for_dark() -> None:
    svg = to_svg(picture(("a", "b")))

    assert "prefers-color-scheme:dark" in svg
    assert "<script" not in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("seed", range(20))
def test_everything_lies_inside_the_view(seed: int) -> None:
    root = parsed(random_picture(seed))
    width, height = (float(root.get(name, "0")) for name in ("width", "height"))

    for group in root.iter(f"{NS}g"):
        if "node" in group.get("class", "").split():
            x, y = (float(n) for n in group.get("transform", "")[10:-1].split())
            box = group.find(f"{NS}rect")
            assert box is not None
            assert x >= 0
            assert x + float(box.get("width", "0")) + 32 <= width + 0.2
            assert y + float(box.get("height", "0")) + 32 <= height + 0.2


@pytest.mark.covers("TOOL-DRAW-03")
def test_the_mark_of_a_box_colours_no_line_inside_it() -> None:
    inside = picture(("a", "b"))
    svg = to_svg(Picture(nodes=(PictureNode(id="box", label="box", mark=Highlight.added, inside=inside),)))
    sheet = svg[svg.index("<style>") : svg.index("</style>")]

    lines = [rule for rule in sheet.replace(",", "\n").splitlines() if ".line" in rule or ".head" in rule]
    assert [rule for rule in lines if any(f".{mark} ." in rule for mark in Highlight if mark)] == []
    assert ".added>.line" in sheet
