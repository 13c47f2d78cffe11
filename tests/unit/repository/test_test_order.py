"""How the test run hands its tests out (tests/distribution.py, tests/conftest.py)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import has_twin_on_sqlite
from tests.distribution import LONG, long_first, unit_of

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("test", "is_with_its_file"),
    [
        ("tests/flows/test_maps.py::test_a[memory]", True),
        ("tests/holds/actions/test_vote.py::test_a", True),
        ("tests/flows/test_scale.py::test_a", False),
        ("tests/crash/test_kill.py::test_a[x::y]", False),
    ],
)
def test_one_process_has_a_file_of_short_tests_and_any_process_a_long_test(
    test: str, is_with_its_file: bool
) -> None:
    assert unit_of(test) == (test.partition("::")[0] if is_with_its_file else test)


def test_what_takes_minutes_begins_before_what_takes_moments() -> None:
    def item(file: str, group: str | None = None) -> Any:
        return SimpleNamespace(path=ROOT / "tests" / file, get_closest_marker=lambda _name: group)

    short, many = item("unit/test_a.py"), [item("unit/test_b.py") for _ in range(50)]
    long, grouped, web = (
        item("flows/test_scale.py"),
        item("queues/test_c.py", "nats"),
        item("web/test_d.py", "web"),
    )
    items = [short, *many, long, grouped, web]
    long_first(items)
    assert items == [web, grouped, long, *many, short]


def test_every_file_that_is_long_is_there() -> None:
    found = {f"{file.parent.name}/{file.stem}" for file in (ROOT / "tests").rglob("test_*.py")}
    assert found >= LONG


@pytest.mark.parametrize(
    ("file", "name", "is_left_to_the_soak"),
    [
        ("flows/test_maps.py", "test_a[one-memory]", True),
        ("flows/test_maps.py", "test_a[in_memory]", False),  # no store: part of another word
        ("flows/test_maps.py", "test_alone[memory]", False),
        ("flows/test_flow_list.py", "test_a[one-memory]", False),
        ("conformance/test_claim.py", "test_a[one-memory]", False),
    ],
)
def test_a_test_in_memory_is_left_to_the_soak_where_the_same_runs_on_sqlite(
    file: str, name: str, is_left_to_the_soak: bool
) -> None:
    found = {f"tests/{file}::{each}" for each in (name, "test_a[one-sqlite]", "test_a[in_sqlite]")}
    item: Any = SimpleNamespace(
        nodeid=f"tests/{file}::{name}", path=ROOT / "tests" / file, config=SimpleNamespace(rootpath=ROOT)
    )
    assert has_twin_on_sqlite(item, found) is is_left_to_the_soak
