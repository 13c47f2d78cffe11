"""Tables are made by steps that may be repeated: wherever a process dies, the next one completes them."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import NotAStoreError, SchemaTooNewError
from holdfast.store.open import open_store
from holdfast.store.sql.mariadb.migrate import migrations
from tests.services import mariadb

pytestmark = pytest.mark.anyio

SHAPE = """
SELECT 'column', table_name, column_name, column_type, is_nullable, column_default, extra,
       generation_expression FROM information_schema.columns WHERE table_schema = database()
UNION ALL
SELECT 'index', table_name, index_name, seq_in_index, column_name, non_unique, '', ''
FROM information_schema.statistics WHERE table_schema = database()
UNION ALL
SELECT 'trigger', event_object_table, trigger_name, event_manipulation, action_timing,
       action_statement, '', ''
FROM information_schema.triggers WHERE trigger_schema = database()
UNION ALL
SELECT 'view', table_name, '', '', '', '', '', '' FROM information_schema.views
WHERE table_schema = database() ORDER BY 1, 2, 3, 4, 5"""
STATEMENTS = [text for each in migrations() for text in each.statements]
# With all tests a few places, with the soak every one.
SOME = {1, 3, len(migrations()[0].statements), len(STATEMENTS) - 1}


def places() -> list[object]:
    return [
        pytest.param(n, marks=() if n in SOME else pytest.mark.soak) for n in range(1, len(STATEMENTS) + 1)
    ]


@pytest.fixture(scope="module")
def whole() -> list[tuple[object, ...]]:
    address = mariadb.fresh()
    mariadb.apart(_open(address))
    return mariadb.execute(SHAPE, address)


async def _open(address: str) -> None:
    await (await open_store(address)).close()


@pytest.mark.covers("MB-6")
@pytest.mark.parametrize("done", places())
async def test_next_process_completes_what_one_left_that_died_in_a_migration(
    done: int, whole: list[tuple[object, ...]]
) -> None:
    address = mariadb.fresh()
    # Each change commits by itself: this is what a process leaves that is killed after so many.
    left = STATEMENTS[:done]
    for text in left:
        mariadb.execute(text, address)
    if done > len(migrations()[0].statements):
        first = migrations()[0]
        mariadb.execute(f"INSERT INTO migrations VALUES ({first.number}, '{first.name}', 1)", address)
    await _open(address)
    assert mariadb.execute(SHAPE, address) == whole


@pytest.mark.covers("MB-6")
async def test_processes_that_open_an_empty_database_at_once_make_its_tables_once() -> None:
    address = mariadb.fresh()
    await asyncio.gather(*(_open(address) for _ in range(4)))
    found = mariadb.execute("SELECT number FROM migrations ORDER BY number", address)
    assert [number for (number,) in found] == [each.number for each in migrations()]


@pytest.mark.covers("MB-6")
async def test_database_of_another_program_is_refused_and_not_changed() -> None:
    address = mariadb.fresh()
    mariadb.execute("CREATE TABLE customers (id int)", address)
    with pytest.raises(NotAStoreError, match="another program"):
        await open_store(address)
    assert mariadb.execute("SHOW TABLES", address) == [("customers",)]


@pytest.mark.covers("MB-6")
async def test_newer_tables_are_refused_and_not_changed(address: str) -> None:
    await _open(address)
    mariadb.execute("INSERT INTO migrations VALUES (9999, 'future', 1)", address)
    try:
        with pytest.raises(SchemaTooNewError, match="9999"):
            await open_store(address)
    finally:
        mariadb.execute("DELETE FROM migrations WHERE number = 9999", address)
