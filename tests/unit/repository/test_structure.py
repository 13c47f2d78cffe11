"""The shape of the tree that no linter knows of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import names

SOURCE = Path(__file__).resolve().parents[3] / "src" / "holdfast"
DIALECTS = ("sqlite", "postgres")
# What is different in kind from one database to another. Everything else is written once, in store/sql.
OF_A_DIALECT = {
    "__init__", "claim", "claim_outbox", "connect", "copy", "delete", "dialect", "errors", "examine", "feed",
    "concurrency_limits", "migrate", "settle", "store", "move_barrier",
}  # fmt: skip


@pytest.mark.covers("PLAIN-SAME-01")
def test_dialects_repeat_only_what_differs_between_them() -> None:
    first, second = ({path.stem for path in (SOURCE / "store/sql" / name).glob("*.py")} for name in DIALECTS)
    assert first & second <= OF_A_DIALECT
    shared = {path.stem for path in (SOURCE / "store/sql").glob("*.py")}
    assert {"runs", "journal", "hold_rows", "hold_changes", "outbox", "audit", "schedules", "store"} <= shared


@pytest.mark.covers("PLAIN-SAME-05")
def test_no_helper_of_the_driver_imports_it() -> None:
    # The runtime starts drivers; everything else in the folder is a part of one.
    others = ("__init__", "driver", "runtime")
    helpers = [path for path in (SOURCE / "runs/driver").glob("*.py") if path.stem not in others]
    assert len(helpers) > 8
    assert [path.stem for path in helpers if "runs.driver.driver" in path.read_text("utf-8")] == []


@pytest.mark.covers("PLAIN-SAME-05")
def test_helpers_of_the_driver_import_only_those_that_are_before_them_in_the_stated_order() -> None:
    order = stated("runs/driver/session.py", r"only those before it: ([^.]+)\.")
    texts = {name: (SOURCE / f"runs/driver/{name}.py").read_text("utf-8") for name in order}
    wrong = [
        (name, later)
        for place, name in enumerate(order)
        for later in order[place + 1 :]
        if f"import {later}\n" in texts[name] or f"runs.driver.{later} import" in texts[name]
    ]
    assert wrong == []


@pytest.mark.covers("PLAIN-SAME-06")
def test_modules_of_the_engine_that_import_each_other_are_those_that_are_stated() -> None:
    source = names.Source(SOURCE.parents[1])
    found = next(each for each in names.components(source.imports) if "holdfast.engine.settle" in each)
    listed = stated("engine/settle.py", r"This module, (.+?) import each other")
    assert sorted(f"holdfast.engine.{name}" for name in ("settle", *listed)) == found


def stated(path: str, pattern: str) -> list[str]:
    """The names of modules that a docstring lists."""
    text = re.sub(r"\s+", " ", (SOURCE / path).read_text("utf-8"))
    found = re.search(pattern, text)
    assert found is not None, path
    return re.split(r", | and ", found[1])


@pytest.mark.covers("PLAIN-SAME-02")
def test_memory_store_has_at_most_sixteen_modules_and_no_sql() -> None:
    # It stays because SQLite in memory takes twice the time for a step (ADR 56); it had 23 modules. The
    # fourteenth is recovery: leases that a clock set strands; the fifteenth has the messages of queues,
    # the sixteenth the runs of other engines.
    modules = [each for each in (SOURCE / "store/memory").rglob("*.py") if each.name != "__init__.py"]
    assert len(modules) <= 16
    assert [path.stem for path in modules if "store.sql" in path.read_text("utf-8")] == []
