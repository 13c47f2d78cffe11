from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.conftest import positions
from tests.flows.places import Place
from tests.integrations.notes import Notes

__all__ = ["positions"]


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


@pytest.fixture
async def place(tmp_path: Path, anyio_backend: str):
    found = Place(f"sqlite:{tmp_path / 'h.db'}")
    yield found
    await found.close()
