"""The page of the two source documents: 87 lines, each with codes of the ledger and tests that exist."""

from __future__ import annotations

import re

from tools import ledger
from tools.pages import source_lines


def test_every_line_names_codes_of_the_ledger():
    known = {entry.code for file in ledger.read_files() for entry in file.entries}
    rows = [line for lines in source_lines.LINES.values() for line in lines]
    assert len(rows) == 87
    assert {code for _, codes in rows for code in codes} <= known
    assert all(codes for _, codes in rows)


def test_the_page_names_only_tests_that_exist():
    existing = {
        marked.test.removeprefix("tests/").replace(".py::", "::") for marked in ledger.collect_tests()
    }
    assert set(re.findall(r"`([^`\s]+::[^`\s]+)`", source_lines.page())) <= existing
