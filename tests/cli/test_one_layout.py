"""Whatever is drawn, is drawn by the one layout."""

from __future__ import annotations

import pytest

from holdfast.drawing import layout
from holdfast.drawing.layers import Rows, make_rows
from holdfast.drawing.picture import Picture
from tests.cli.conftest import Cli, given


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of the pictures that were laid out."""
    titles: list[str] = []

    def remember(picture: Picture, *, short: bool = False) -> Rows:
        titles.append(picture.title)
        return make_rows(picture, short=short)

    monkeypatch.setattr(layout, "make_rows", remember)
    return titles


@pytest.mark.covers("TOOL-DRAW-05")
def test_commands_that_draw_use_the_one_layout(cli: Cli, refund: str, drawn: list[str]) -> None:
    runs = [cli("run", refund, "--input", given(amount), "--json").json["id"] for amount in (80, 250)]

    for words in (
        ("show", runs[0], "--graph"),
        ("graph", refund),
        ("graph", runs[1], "--svg", "-"),
        ("diff", *runs, "--svg", "-"),
        ("diff", *runs, "--graph"),
        ("postmortem", runs[1], "--format", "md"),
        ("postmortem", runs[1], "--format", "html"),
    ):
        drawn.clear()
        said = cli(*words)
        assert said.code == 0, said.err
        assert len(drawn) == 1, words
        assert "assess" in said.out


@pytest.mark.xdist_group("packages")  # with the tests of the page: all imports are read once
@pytest.mark.covers("TOOL-DRAW-05")
def test_the_documentation_is_drawn_by_the_one_layout(drawn: list[str]) -> None:
    from tools.pages.pictures import pictures

    for path, make in pictures().items():
        drawn.clear()
        assert path.read_text("utf-8") == make()
        # A picture inside of another one is laid out on its own, before the one around it.
        inside = ["The core"] if path.name == "packages.svg" else []
        assert drawn[:-1] == inside
        assert len(drawn) == len(inside) + 1
