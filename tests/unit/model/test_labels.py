"""The key that stands before a label, and what is left without it."""

from __future__ import annotations

import pytest

from holdfast.attractor.human_gates import bare
from holdfast.model.edge_labels import normal_label, split_label


@pytest.mark.covers("AT-60", "AT-159")
@pytest.mark.parametrize(
    ("label", "key", "rest"),
    [
        ("[Y] Yes, deploy", "Y", "Yes, deploy"),
        ("Y) Yes", "Y", "Yes"),
        ("  y - Yes ", "y", "Yes"),
        ("[OK] Fine", "OK", "Fine"),
        ("Yes", "", "Yes"),
        ("A -b", "", "A -b"),
        ("Ship (plan a) now", "", "Ship (plan a) now"),
        ("Keep [B] aside", "", "Keep [B] aside"),
    ],
)
def test_key_stands_before_its_label_and_nowhere_else(label: str, key: str, rest: str) -> None:
    assert split_label(label) == (key, rest)
    assert normal_label(label) == rest.lower()
    assert bare(label) == rest
