from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.store.open import open_store
from holdfast.store.sql.sqlite import migrate
from holdfast.testing.conformance.kit import StoreKit
from tests.services import sqlite_files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
async def kit(file: Path) -> AsyncIterator[StoreKit]:
    """A SQLite store that gives up waiting for others after half a second."""
    address = f"sqlite:{file}?busy_timeout=0.5"
    kit = StoreKit(lambda clock: open_store(address, clock=clock), address=address)
    await kit.start()
    yield kit
    await kit.stop()


@pytest.fixture(autouse=True)
def files_made_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, sqlite_files.MAKE, sqlite_files.as_usual)
