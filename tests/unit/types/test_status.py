from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.types.status import RUN_LABELS, RunStatus, label_for, run_label

GLOSSARY = Path(__file__).resolve().parents[3] / "docs" / "reference" / "glossary.md"


@pytest.mark.covers("PLAIN-WORD-01", "PLAIN-WORD-02")
def test_each_status_has_one_label_and_the_glossary_gives_the_same() -> None:
    assert set(RUN_LABELS) == set(RunStatus)
    assert len(set(RUN_LABELS.values())) == len(RunStatus)
    page = GLOSSARY.read_text("utf-8")
    for status, label in RUN_LABELS.items():
        assert re.search(rf"`{status}`[^\n]*\b{label}\b", page), status


def test_a_sleeping_run_says_until_when_and_other_words_stay() -> None:
    assert run_label(RunStatus.waiting, "29 Nov 23:39") == "sleeping until 29 Nov 23:39"
    assert run_label(RunStatus.completed, "29 Nov 23:39") == "completed"
    assert [label_for("resumable"), label_for("skipped")] == ["interrupted", "skipped"]
