"""`holdfast doctor` finds what somebody changed in the tables, and says how to change it back.

After a migration: `python -m tests.mariadb.test_drift` renews the catalogue that the package carries.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.store.open import open_store
from holdfast.store.rows import Drift
from holdfast.store.sql import catalogue
from holdfast.store.sql.mariadb import MariadbStore, drift
from tests.services import mariadb

pytestmark = [pytest.mark.anyio, pytest.mark.covers("MB-7", "PLATFORM-MARIADB-01")]

FILE = Path(drift.__file__).parent / "schema" / "catalogue.txt"
CHANGES = [
    ("ALTER TABLE runs DROP INDEX runs_ready", "the index runs.runs_ready is missing", True),
    ("DROP TRIGGER audit_updated", "the trigger audit.audit_updated is missing", True),
    (
        "CREATE OR REPLACE TRIGGER audit_deleted BEFORE DELETE ON audit FOR EACH ROW SET @x = 1",
        "the trigger audit.audit_deleted was changed",
        True,
    ),
    ("ALTER TABLE feed MODIFY last int NOT NULL", "the column feed.last is 'int(11) not null'", True),
    ("ALTER TABLE deaths ENGINE = MyISAM", "the table deaths is 'MyISAM', not 'InnoDB'", True),
    ("ALTER TABLE deaths ADD CHECK (term < 5)", "constraint deaths.CONSTRAINT_1 was not created", True),
    ("DROP TABLE late_reports", "the table late_reports is missing", True),
    ("DROP VIEW mod_scaicore_checkpoints", "the view mod_scaicore_checkpoints is missing", False),
    ("CREATE INDEX ours ON runs (tenant)", "the index runs.ours was not created by Holdfast", False),
    ("CREATE TABLE notes (id int PRIMARY KEY)", "the table notes was not created by Holdfast", False),
]


async def catalogue_of(address: str) -> str:
    store = await open_store(address)
    assert isinstance(store, MariadbStore)
    try:
        return catalogue.written_catalogue(await store._pools.read(drift.read_catalogue))
    finally:
        await store.close()


async def found(address: str) -> list[Drift]:
    store = await open_store(address)
    try:
        return (await store.examine(deep=False)).drift
    finally:
        await store.close()


async def test_catalogue_in_the_package_is_what_the_migrations_make(address: str) -> None:
    assert await catalogue_of(address) == FILE.read_text("utf-8"), "renew it, see the top of this file"
    assert await found(address) == []


async def test_each_change_is_found_and_what_can_be_repaired_is_repaired_by_its_advice() -> None:
    """One database with all changes: to make its tables takes longer than to look at them."""
    address = mariadb.fresh()
    assert await found(address) == []
    for change, _, _ in CHANGES:
        mariadb.execute(change, address)
    drifts = await found(address)
    for change, what, grave in CHANGES:
        (named,) = [each for each in drifts if what in each.what]
        assert named.grave is grave, change
    repaired = {"runs_ready", "audit_deleted", "audit_updated"}
    for each in drifts:
        if any(name in each.what for name in repaired):
            mariadb.execute(each.todo, address)
    left = " ".join(each.what for each in await found(address))
    assert not any(name in left for name in repaired)


if __name__ == "__main__":
    import asyncio

    FILE.write_text(asyncio.run(catalogue_of(mariadb.fresh())), "utf-8")
