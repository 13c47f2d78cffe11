"""Which characters are spelled out: all that have no glyph of their own, by the tables of Unicode."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Final

import pytest

from holdfast.model.forms.visible_text import escape_invisible, hides, show_invisible

pytestmark = pytest.mark.covers("SAFE-EDGE-07")

SEEN: Final = {
    # Signs above or around numbers of some scripts: format characters with a glyph.
    *range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD,
}  # fmt: skip
FILLERS: Final = (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2028, 0x2029, 0x2800, 0x3164, 0xFFA0)


def test_every_format_character_between_letters_is_spelled_out() -> None:
    formats = [each for each in range(sys.maxunicode + 1) if unicodedata.category(chr(each)) == "Cf"]
    bidi = [each for each in range(sys.maxunicode + 1) if unicodedata.bidirectional(chr(each)) in
            ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN") and each > 0x9F
            and unicodedata.category(chr(each)) in ("Cf", "Mn", "Zl", "Zp")]  # fmt: skip
    assert len(formats) > 150
    for each in {*formats, *bidi, *FILLERS} - SEEN:
        shown = show_invisible(f"a{chr(each)}b")
        assert shown in (f"a\\u{each:04x}b", f"a\\U{each:08x}b"), hex(each)
        assert hides(chr(each))


def test_texts_of_people_stay_as_they_are() -> None:
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    hebrew, number = "\u05e9\u05dc\u05d5\u05dd", "\u0600\u0661"
    for text in ("👩\u200d💻 ok", persian, hebrew, number, "naïve café", "日本語", "a\tb\n", ""):
        assert show_invisible(text) == text
        assert not hides(text)


def test_marks_of_one_letter_after_the_eighth_are_spelled_out() -> None:
    # Thousands of them are drawn over the lines above and below.
    shown = "e\u0301" * 9 + "Z" + "\u0301" * 8
    assert show_invisible(shown) == shown
    assert show_invisible(shown + "\u0301\u0e47") == shown + "\\u0301\\u0e47"


def test_json_with_escapes_is_the_same_value() -> None:
    value = {"a\u202e": ["b\u200b", "\U000e0041", "é"]}
    text = escape_invisible(json.dumps(value, ensure_ascii=False))
    assert not set("\u202e\u200b\U000e0041") & set(text)
    assert json.loads(text) == value
