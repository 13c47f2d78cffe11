"""What people read on the button of an option."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.types.hold import Option, label_of


@pytest.mark.covers("WB-12")
@pytest.mark.parametrize(
    ("id_", "label", "text"),
    [
        ("approve", "approve", "Approve"),
        ("needs_work", "needs_work", "Needs work"),
        ("send-back", "send-back", "Send back"),
        ("approve", "book it", "book it"),  # as the flow wrote it
        ("iOS", "iOS", "iOS"),
        ("4400", "4400", "4400"),
        ("__proto__", "__proto__", "__proto__"),
        ("évident", "évident", "évident"),
    ],
)
def test_a_label_that_is_only_the_id_reads_as_words_and_stays_as_it_is_stored(
    id_: str, label: str, text: str
) -> None:
    option = Option(id_, label)
    assert option.text == text
    assert label_of((option,), id_) == text
    assert msgspec.to_builtins(option) == {"id": id_, "label": label, "variant": "secondary"}
    assert label_of((option,), "other") == label_of(None, "other") == "other"
