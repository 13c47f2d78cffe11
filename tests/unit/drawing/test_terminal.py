"""Pictures as lines of text."""

from __future__ import annotations

from textwrap import dedent

import pytest

from holdfast.drawing import (
    EdgeStyle,
    Highlight,
    NodeShape,
    Picture,
    PictureEdge,
    PictureNode,
    State,
    TextRuler,
    lay_out,
    to_text,
)
from holdfast.drawing.channels import Net, plan
from holdfast.drawing.state_signs import ASCII_SIGNS, SIGNS, WORDS
from tests.unit.drawing.pictures import picture, random_picture


def drawn(shown: Picture, **how: object) -> str:
    return to_text(shown, legend=False, **how).plain  # type: ignore[arg-type]


def same(text: str, expected: str) -> None:
    """Where the drawing begins on the left is of no interest."""
    assert dedent(text).splitlines() == dedent(expected).strip("\n").splitlines()


@pytest.mark.covers("TOOL-DRAW-04")
def test_branches_are_drawn_side_by_side() -> None:
    shown = picture(("plan", "left"), ("plan", "right"), ("left", "join"), ("right", "join"), plan="done")

    same(
        drawn(shown),
        """
             ╭─────────╮
             │ ✓ plan  │
             ╰─────────╯
            ╭─────┴─────╮
            ▼           ▼
        ╭───────╮   ╭───────╮
        │ left  │   │ right │
        ╰───────╯   ╰───────╯
            ╰─────┬─────╯
                  ▼
              ╭───────╮
              │ join  │
              ╰───────╯
        """,
    )


@pytest.mark.covers("TOOL-DRAW-04")
def test_loops_and_labels_are_drawn_in_ascii_too() -> None:
    shown = picture(
        ("draft", "review"), ("review", "draft", "again", "loop"), ("review", "send", "good"), draft="failed"
    )

    same(
        drawn(shown, ascii_only=True),
        """
             +<---------+
             v          |
        +---------+     |
        | x draft |     |
        +---------+     |
             v          |
        +---------+     |
        | review  |   again
        +---------+     |
             +----------+
             |
           good
             v
         +-------+
         | send  |
         +-------+
        """,
    )


@pytest.mark.covers("TOOL-DRAW-04")
def test_a_flow_within_is_drawn_inside_its_frame() -> None:
    inner = picture(("a", "b"))
    shown = Picture(
        nodes=(PictureNode(id="child", label="child", shape=NodeShape.subflow, inside=inner),), title="outer"
    )

    same(
        drawn(shown),
        """
        ╭─ child ⊞ ─╮
        │   ╭───╮   │
        │   │ a │   │
        │   ╰───╯   │
        │     ▼     │
        │   ╭───╮   │
        │   │ b │   │
        │   ╰───╯   │
        ╰───────────╯
        """,
    )


def test_an_edge_to_the_node_itself_goes_round_it() -> None:
    assert drawn(picture(("poll", "poll", "", "loop"))).count("▼") == 1


@pytest.mark.covers("TOOL-DRAW-04")
def test_plain_text_is_ascii_alone_when_asked() -> None:
    node = PictureNode(
        id="a", label="größe ✓", state=State.asking, note="… \u00d7 \u2013", shape=NodeShape.hold
    )
    shown = Picture(
        nodes=(node,), edges=(PictureEdge(source="a", target="a", label="→", look=EdgeStyle.loop),)
    )

    for width in (100, 8):
        assert to_text(shown, width=width, ascii_only=True).plain.isascii()


def test_a_picture_that_hardly_fits_is_drawn_closer_and_without_notes() -> None:
    nodes = [PictureNode(id="plan", label="plan", note="a note")]
    nodes += [PictureNode(id=f"s{i}", label=f"source number {i} of many") for i in range(4)]
    edges = [PictureEdge(source="plan", target=f"s{i}") for i in range(4)]
    shown = Picture(nodes=tuple(nodes), edges=tuple(edges))

    far, close = drawn(shown, width=200), drawn(shown, width=80)

    assert "a note" in far
    assert "source number 3 of many" in far
    assert "a note" not in close
    assert close.count("│ source number…  │") == 4
    assert max(len(line) for line in close.splitlines()) <= 80


def test_a_picture_wider_than_the_terminal_becomes_an_outline() -> None:
    many = picture(*(("plan", f"source{i}") for i in range(9)), ("source0", "end", "x > 1"), plan="done")

    lines = drawn(many, width=60).splitlines()

    assert all(len(line) <= 60 for line in lines)
    assert lines[0].startswith("✓ plan  → source0, source1")
    assert any("source0  → end [x > 1]" in line for line in lines)
    assert "╭" in drawn(many, width=200)


def test_a_picture_taller_than_asked_becomes_an_outline() -> None:
    chain = picture(*((f"n{i}", f"n{i + 1}") for i in range(30)))

    assert len(drawn(chain, height=40).splitlines()) == 31
    assert "╭" in drawn(chain)


@pytest.mark.parametrize("state", [state for state in State if state])
def test_each_state_has_a_sign_and_a_word(state: State) -> None:
    shown = Picture(nodes=(PictureNode(id="a", label="a", state=state),))

    for plain, signs in ((False, SIGNS), (True, ASCII_SIGNS)):
        lines = to_text(shown, ascii_only=plain).plain.splitlines()
        assert f" {signs[state]} a " in lines[1]
        assert lines[-1] == f"{signs[state]} {WORDS[state]}"


def test_styles_are_words_that_the_caller_colours() -> None:
    shown = Picture(
        nodes=(
            PictureNode(id="a", label="a", state=State.failed),
            PictureNode(id="b", label="b", mark=Highlight.added),
        ),
        edges=(PictureEdge(source="a", target="b", mark=Highlight.taken),),
    )

    styles = {span.style for line in to_text(shown).lines for span in line if span.text.strip()}

    assert {"failed", "added", "taken"} <= styles


def test_wide_characters_keep_the_box_straight() -> None:
    lines = drawn(Picture(nodes=(PictureNode(id="a", label="承認する"),))).splitlines()

    assert lines[0] == "╭───────────╮"
    assert lines[1] == "│ 承認する  │"


@pytest.mark.covers("TOOL-DRAW-01", "TOOL-DRAW-04")
@pytest.mark.parametrize("seed", range(60))
def test_lines_share_a_place_only_where_they_lead_to_the_same_node(seed: int) -> None:
    for nets in plan(lay_out(random_picture(seed), TextRuler(ascii_only=False))):
        height = 1 + max((net.track for net in nets), default=0)
        for (_, col), users in _uprights(nets, height).items():
            assert len(users) == 1 or all(col in _ends(nets[user]) for user in users)
        for (_, col), users in _levels(nets).items():
            assert len(users) == 1 or all(_ends(nets[user]) == {col} for user in users)


def _ends(net: Net) -> set[int]:
    return {leg.col for leg in net.bottoms}


def _uprights(nets: list[Net], height: int) -> dict[tuple[int, int], set[int]]:
    found: dict[tuple[int, int], set[int]] = {}
    for number, net in enumerate(nets):
        whole = range(height) if net.straight else None
        for leg in net.tops:
            for row in whole or range(net.track + 1):
                found.setdefault((row, leg.col), set()).add(number)
        for leg in net.bottoms:
            for row in whole or range(net.track, height):
                found.setdefault((row, leg.col), set()).add(number)
    return found


def _levels(nets: list[Net]) -> dict[tuple[int, int], set[int]]:
    found: dict[tuple[int, int], set[int]] = {}
    for number, net in enumerate(nets):
        for col in range(min(net.cols), max(net.cols) + 1) if not net.straight else ():
            found.setdefault((net.track, col), set()).add(number)
    return found
