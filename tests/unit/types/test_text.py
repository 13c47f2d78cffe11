"""Text from outside."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.types.text import decode_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d"', "\ufffd"),
        (r'"\uDE00 a"', "\ufffd a"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\\ud83d \ud83d"', r"\ud83d" + " \ufffd"),
        (r'{"a": "\n\ude00"}', {"a": "\n\ufffd"}),
    ],
)
def test_half_of_a_surrogate_pair_is_replaced_when_a_program_wrote_it(text: str, value: object) -> None:
    assert decode_json(text) == value


def test_what_is_no_json_is_refused_with_or_without_such_halves() -> None:
    for text in ("{", r'["\ud83d"', '"a'):
        with pytest.raises(msgspec.DecodeError):
            decode_json(text)
