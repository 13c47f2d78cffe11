"""The stores that the conformance suite runs over: a new one is a name here and an opener."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope, with_scope
from holdfast.runs.encryption.cipher import FieldCipher
from holdfast.runs.encryption.store import with_encryption
from holdfast.store.open import open_store
from holdfast.testing.conformance.kit import StoreKit
from tests.services import mariadb, postgres

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from holdfast.store.protocols import Store
    from holdfast.types.clock import Clock

STORES = ("memory", "sqlite", "encrypted", "postgres", "mariadb")


def memory_kit(_folder: Path) -> StoreKit:
    stores: list[Store] = []

    async def the_one(clock: Clock) -> Store:
        # Another handle on a store in memory is the store itself.
        if not stores:
            stores.append(await open_store("memory:", clock=clock))
        return stores[0]

    return StoreKit(the_one)


def sqlite_kit(folder: Path) -> StoreKit:
    address = f"sqlite:{folder / 'runs.db'}"

    async def opened(clock: Clock) -> Store:
        return await open_store(address, clock=clock)

    return StoreKit(opened, address=address)


def encrypted_kit(_folder: Path) -> StoreKit:
    """Encryption is a store around another: it keeps every promise of a store."""
    stores: list[Store] = []
    ring = StaticKeys(with_scope(None, EVERYBODY, new_scope(datetime(2026, 1, 1, tzinfo=UTC))))

    async def the_one(clock: Clock) -> Store:
        if not stores:
            stores.append(with_encryption(await open_store("memory:", clock=clock), FieldCipher(ring)))
        return stores[0]

    return StoreKit(the_one, sealed=True)


class PostgresKit(StoreKit):
    """One schema for all tests of this process, emptied before each."""

    fresh = True

    async def start(self) -> None:
        if self.fresh:
            self.fresh = False
            await postgres.empty("suite")
        await super().start()


def postgres_kit(_folder: Path) -> StoreKit:
    address = postgres.with_setting(postgres.database(), schema="suite")

    async def opened(clock: Clock) -> Store:
        return await open_store(address, clock=clock)

    return PostgresKit(opened, address=address)


class MariadbKit(StoreKit):
    """One database for all tests of this process, emptied before each."""

    fresh = True

    async def start(self) -> None:
        if self.fresh:
            self.fresh = False
            await mariadb.empty(mariadb.database("suite"))
        await super().start()


def mariadb_kit(_folder: Path) -> StoreKit:
    address = mariadb.database("suite")

    async def opened(clock: Clock) -> Store:
        return await open_store(address, clock=clock)

    return MariadbKit(opened, address=address)


KITS = {
    "memory": memory_kit,
    "sqlite": sqlite_kit,
    "encrypted": encrypted_kit,
    "postgres": postgres_kit,
    "mariadb": mariadb_kit,
}


@pytest.fixture(params=STORES)
async def kit(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreKit]:
    kit = KITS[request.param](tmp_path)
    await kit.start()
    yield kit
    await kit.stop()
