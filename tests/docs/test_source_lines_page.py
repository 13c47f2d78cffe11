"""The page of the two source documents: 87 lines, each with its codes and the tests that show it."""

from __future__ import annotations

import pytest

from tools import ledger
from tools.pages import source_lines

ROWS = [line for lines in source_lines.LINES.values() for line in lines]


def test_every_line_names_codes_of_the_ledger():
    known = {entry.code for file in ledger.read_files() for entry in file.entries}
    assert len(ROWS) == 87
    assert {code for line in ROWS for code in line.codes} <= known
    assert all(line.codes for line in ROWS)


@pytest.mark.covers("PLATFORM-PROOF-03")
def test_every_line_names_tests_that_exist():
    existing = {source_lines.shown_name(marked.test) for marked in ledger.collect_tests()}
    for line in ROWS:
        assert line.tests, line.text
        assert set(line.tests) <= existing, line.text
    assert source_lines.page().count("<br>") >= 40
