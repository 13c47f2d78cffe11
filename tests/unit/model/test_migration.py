from __future__ import annotations

import pytest

from holdfast.model.migration import Migration, chain, composed


def step(source: str, target: str = "", **rename: str) -> Migration:
    return Migration(source=source, target=target, rename=rename)


@pytest.mark.covers("TOOL-VER-03")
def test_the_shortest_way_is_taken_when_several_lead_to_the_newest() -> None:
    long = [step("1", "2"), step("2", "3"), step("3")]
    assert chain(long, ["g1-old", "1"], ["g1-new", "4"]) == tuple(long)
    short = step("1")
    assert chain([*long, short], ["1"], ["4"]) == (short,)
    by_name = step("1", "4")
    assert chain([by_name], ["1"], ["4"]) == (by_name,)


@pytest.mark.covers("TOOL-VER-03")
def test_there_is_no_way_when_none_leads_on_or_versions_lead_in_a_circle() -> None:
    assert chain([], ["1"], ["2"]) is None
    assert chain([step("1", "2"), step("2", "1")], ["1"], ["3"]) is None


@pytest.mark.covers("TOOL-VER-04")
def test_names_are_followed_from_version_to_version() -> None:
    assert composed([step("1", "2", a="b"), step("2", "3", b="c", x="y")]) == {"a": "c", "x": "y"}
    assert composed([step("1", a="b")]) == {"a": "b"}
    assert composed([]) == {}
