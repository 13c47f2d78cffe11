from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.telemetry import on_substep
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


@pytest.fixture
def performed() -> Iterator[list[tuple[str, str]]]:
    """Name and effect of each step that is performed."""
    found: list[tuple[str, str]] = []

    def watch(fn: Any, step: Any, _key: str | None) -> Any:
        found.append((step.name, str(step.effect)))
        return fn

    on_substep.append(watch)
    yield found
    on_substep.remove(watch)
