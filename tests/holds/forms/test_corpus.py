"""The corpus that the validator of the web app must agree with."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.model.forms.field_kinds import CONDITIONS, KINDS
from tests.holds.forms import corpus

CODES = {
    "type", "size", "depth", "hidden", "unknown", "decision", "required", "readonly", "length", "pattern",
    "format",
    "currency", "option", "schema", "limit", "min", "max", "step", "media_type",
}  # fmt: skip


@pytest.mark.covers("WB-25")
def test_corpus_of_the_web_app_is_current_and_has_every_kind_code_and_condition() -> None:
    assert corpus.FILE.read_text() == corpus.text(), "python -m tests.holds.forms.corpus writes it again"
    found = msgspec.json.decode(corpus.FILE.read_text())["cases"]
    assert len(found) >= 400
    sections = [each for case in found for each in case["sections"] if each["type"] == "input"]
    assert {each["kind"] for each in sections} == set(KINDS)
    assert {error[1] for case in found for error in case["errors"]} == CODES
    for condition in CONDITIONS:
        assert sum(condition in each for each in sections) >= 18
    right = sum(not case["errors"] for case in found)
    assert min(right, len(found) - right) > 150
