"""What `make test` leaves to `make slow` exists, and nothing is left out of both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.slow import ALL, SLOW

TESTS = Path(__file__).resolve().parents[2]


def files_named(name: str) -> list[Path]:
    folder, _, stem = name.partition("/")
    return [each for each in TESTS.rglob(f"{stem}.py") if each.parent.name == folder]


@pytest.mark.parametrize("name", sorted(SLOW))
def test_entry_of_slow_tests_names_one_file_and_tests_that_are_in_it(name: str) -> None:
    (file,) = files_named(name)
    found = set(re.findall(r"^(?:async )?def (test_\w+)\(", file.read_text(), re.MULTILINE))
    assert {each.partition("[")[0] for each in SLOW[name]} <= found
    assert SLOW[name] < found or SLOW[name] == ALL or any("[" in each for each in SLOW[name])


def test_ci_runs_the_slow_tests_and_the_soak_has_them_too() -> None:
    root = TESTS.parent
    assert "stage tests slow\n" in (root / ".ci" / "run").read_text()
    makefile = (root / "Makefile").read_text()
    assert '-m "slow and not soak"' in makefile
    assert '-m "soak or slow"' in makefile
