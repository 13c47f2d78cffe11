"""The published ledger of pipelines: every line, its reading, and tests that are there."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_ledger import READS_ALL_TESTS
from tools import ledger
from tools.pages import attractor

ROW = re.compile(r"^\| (?:\[)?(A[A-Z0-9-]+)[^|]* \| (.*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
pytestmark = pytest.mark.covers("ATTRACTOR-LANG-04")


@pytest.fixture(scope="module")
def rows() -> dict[str, tuple[str, str, str]]:
    return {code: (text, reading, proof) for code, text, reading, proof in ROW.findall(attractor.page())}


def test_every_line_of_the_ledger_has_a_row(rows):
    (file,) = [each for each in ledger.read_files() if each.path.name == attractor.FILE]
    assert set(rows) == {entry.code for entry in file.entries}
    assert {code for code in rows if re.fullmatch(r"AT-\d+", code)} == {f"AT-{n}" for n in range(1, 254)}


def test_every_reading_says_which_lines_it_is_about(rows):
    assert set(attractor.READ_BY) == {f"A{n}" for n in range(1, 33)}
    for name, lines in attractor.READ_BY.items():
        assert f"AT-{name}" in rows
        for line in lines:
            assert f"#AT-{name})" in rows[f"AT-{line}"][1]


@READS_ALL_TESTS
def test_the_tests_that_it_names_are_those_that_say_so_themselves(rows):
    """Against the markers, and not against the file that both are written from."""
    proofs: dict[str, set[str]] = {}
    for marked in ledger.collect_tests():
        for code in marked.codes:
            proofs.setdefault(code, set()).add(attractor._short(marked.test))
    for code, (_, _, proof) in rows.items():
        named = set(re.findall(r"`([^`]+::[^`]+)`", proof))
        assert named <= proofs.get(code, set()), code


@READS_ALL_TESTS
def test_no_line_is_left_without_a_test():
    proven = {code for marked in ledger.collect_tests() for code in marked.codes}
    assert [code for _, codes in attractor.sections() for code in codes if code not in proven] == []
