"""What a terminal shows of a question: all that is in it, and nothing that acts on the terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.output.console import clean_text

HIDDEN = "\u00ad\u061c\u200b\u200e\u200f\u202a\u202e\u2028\u2060\u2066\u2069\ufeff\U000e0041"


@pytest.mark.covers("HOLD-SEC-08", "HOLD-PROOF-07")
@given(st.text(st.sampled_from(HIDDEN + "abc \x1b\x07\x9b\r\n\u200d"), max_size=40) | st.text(max_size=40))
def test_terminal_shows_every_character_that_nobody_sees(text: str) -> None:
    shown = clean_text(text)
    assert not set(HIDDEN) & set(shown)
    assert all(letter in "\n\t" or unicodedata.category(letter) != "Cc" for letter in shown)
