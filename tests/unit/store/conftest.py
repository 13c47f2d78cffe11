from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.store.open import open_store
from holdfast.testing.conformance.kit import StoreKit


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
