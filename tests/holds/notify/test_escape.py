"""Text on its way out: whatever it is, it stays text."""

from __future__ import annotations

import html
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.notify.escape import clean_text, for_html, for_slack, one_line
from tests.holds.notify.build import a_notice

ANY = st.text(st.characters(codec=None, exclude_categories=()), max_size=300)
HIDDEN = {
    "\u200b",
    "\u200e",
    "\u200f",
    "\u202a",
    "\u202b",
    "\u202c",
    "\u202d",
    "\u202e",
    "\u2066",
    "\u2069",
    "\ufeff",
}


@pytest.mark.covers("HOLD-SEC-07", "HOLD-SEC-08")
@given(ANY)
def test_text_shows_everything_that_is_in_it(text):
    found = clean_text(text)
    assert not HIDDEN & set(found)
    assert all(letter in "\n\t" or unicodedata.category(letter) != "Cc" for letter in found)
    found.encode()


@pytest.mark.covers("HOLD-SEC-07")
@given(ANY)
def test_line_is_one_line(text):
    assert len(one_line(text).splitlines()) <= 1
    assert len(one_line(text)) <= 150
    assert len(a_notice(prompt=text).subject.splitlines()) == 1


@pytest.mark.covers("HOLD-SEC-07")
@given(ANY)
def test_marks_of_a_target_lose_their_meaning(text):
    assert not {"<", ">"} & set(for_slack(text))
    plain = for_html(text).replace("<br>\n", "")
    assert not {"<", ">", '"', "'"} & set(plain)
    assert html.unescape(for_html(text).replace("<br>\n", "\n")) == html.unescape(
        html.escape(clean_text(text))
    )


@pytest.mark.covers("HOLD-SEC-07")
def test_text_is_cut_when_it_is_long():
    assert len(clean_text("x" * 10**6)) < 16_100
    assert clean_text("x" * 10**6).endswith("… (1,000,000 characters)")


@pytest.mark.covers("HOLD-SEC-08")
@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("pay to exe\u202egpj", "pay to exe\\u202egpj"),
        ("see https://\u0430pple.com/x", "see https://xn--pple-43d.com/x"),
        ("see www.\u0440aypal.com", "see www.xn--aypal-uye.com"),
        ("https://" + "\u0430" * 100 + ".com", "https://" + "\\u0430" * 100 + ".com"),
        ("see https://apple.com/\u0430", "see https://apple.com/\u0430"),
        ("Gr\u00fc\u00dfe \u4f60\u597d", "Gr\u00fc\u00dfe \u4f60\u597d"),
    ],
)
def test_what_would_be_read_otherwise_is_spelled_out(text, seen):
    assert clean_text(text) == seen
