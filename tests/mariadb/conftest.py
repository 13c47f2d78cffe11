from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.store.open import open_store
from holdfast.store.sql.mariadb import MariadbStore
from tests.services import mariadb


@pytest.fixture
def address() -> str:
    """A database that is as nobody had used it yet."""
    return mariadb.emptied("mariadb")


@pytest.fixture
async def store(address: str, anyio_backend: str) -> AsyncIterator[MariadbStore]:
    opened = await open_store(address)
    assert isinstance(opened, MariadbStore)
    yield opened
    await opened.close()
